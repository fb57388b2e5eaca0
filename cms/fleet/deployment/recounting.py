"""Supplies counted alike before and after: what runs, under another rule and other limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..serving.queueing import QueueingRule
from ..serving.service import Service
from .instance import Work
from .model import Deployment
from .turns import refuse_turns

__all__ = ["beyond_limits", "outdated", "recounted"]


def recounted(
    start: Deployment,
    services: Iterable[Service],
    rule: QueueingRule | None,
    works: Iterable[Work] = (),
) -> Deployment:
    """Return a deployment with the supplies that another rule and other limits make of its work.

    Then a point of a service has one supply before and after, and what goes on is recognised.

    Parameters
    ----------
    start : Deployment
    services : iterable of Service
        Those of the target: with their limits the points are counted. Services that are not among
        them keep their own limits.
    rule : QueueingRule or None
        None leaves supplies as they are, but for those that `works` know.
    works : iterable of Work
        Work of the target, whose supplies hold whatever the rule says.

    Raises
    ------
    UnsupportedProblem
        If services of ours take turns in a share.

    Notes
    -----
    What a new limit does not admit still serves as well as it did: it counts for what it supplied
    under the old one, until it goes. It goes in the end, and none comes (`outdated`).
    """
    refuse_turns(start.gpus())
    known = {(work.service, work.point): work.supply_rps for work in works}
    limits = {service.name: service for service in (*start.services, *services)}
    counted: dict[Work, Work] = {}

    def count(work: Work) -> Work:
        if work not in counted:
            supply = known.get((work.service, work.point))
            if supply is None:
                service = limits[work.service]
                supply = work.supply_rps if rule is None else rule.supply(service, work.point)
                supply = supply or work.supply_rps
            counted[work] = replace(work, supply_rps=supply)
        return counted[work]

    cards = {
        (card.node, card.index): replace(
            card,
            instances=tuple(
                each if each.work is None else replace(each, work=count(each.work))
                for each in card.instances
            ),
        )
        for card in start.gpus()
        if any(each.work is not None for each in card.instances)
    }
    return replace(start.with_gpus(cards), rule=rule or start.rule, plan=None)


def outdated(start: Deployment, target: Deployment) -> frozenset[Work]:
    """Return the work at the start that the target's limits do not admit.

    Parameters
    ----------
    start : Deployment
        As `recounted` returns it.
    target : Deployment

    Examples
    --------
    >>> outdated(Deployment(()), Deployment(()))
    frozenset()
    """
    services = {service.name: service for service in target.services}
    works = {each.work for _, each in start.instances() if each.work is not None}
    works -= {each.work for _, each in target.instances()}
    return frozenset(beyond_limits(works, services, target.rule))


def beyond_limits(
    works: Iterable[Work | None], services: Mapping[str, Service], rule: QueueingRule | None
) -> list[Work]:
    """Return the work that counts for something and that the limits of its service do not admit.

    Parameters
    ----------
    works : iterable of Work or None
    services : Mapping[str, Service]
        By name, with the limits that count; of others nothing is said.
    rule : QueueingRule or None
        None admits everything.

    Examples
    --------
    >>> beyond_limits([None], {}, None)
    []
    """
    if rule is None:
        return []
    return [
        work
        for work in dict.fromkeys(works)
        if work is not None
        and work.supply_rps
        and work.service in services
        and not rule.supply(services[work.service], work.point)
    ]
