"""Supplies counted alike before and after: what runs, under another rule and other limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar

from ..serving.capacity import CapacityRule
from ..serving.queueing import QueueingRule
from ..serving.service import Service
from .instance import Work
from .model import Deployment
from .turns import refuse_turns
from .wanted import DesiredState

T = TypeVar("T", bound=Deployment | DesiredState)


def recounted(
    start: Deployment, services: Iterable[Service], rule: QueueingRule | None,
    works: Iterable[Work] = (),
) -> Deployment:  # fmt: skip
    """Return a deployment with the supplies that another rule and other limits make of its work.

    Then a point of a service has one supply before and after, and what goes on is recognised.
    Services that are not among the target's keep their own limits. Without a rule supplies stay as
    they are, but for those of the target's `works`, which hold whatever a rule says. What a new
    limit does not admit counts for what it supplied, until it goes (`outdated`).
    """
    refuse_turns(start.gpus())
    known = {(work.service, work.point): work.supply_rps for work in works}
    limits = {service.name: service for service in (*start.services, *services)}

    @cache
    def count(work: Work) -> Work:
        supply = known.get((work.service, work.point))
        if supply is None and rule is not None:
            supply = rule.supply(limits[work.service], work.point) or None
        return work if supply is None else replace(work, supply_rps=supply)

    cards = {}
    for card in start.gpus():
        held = (replace(i, work=i.work and count(i.work)) for i in card.instances)
        cards[card.node, card.index] = replace(card, instances=tuple(held))
    return replace(start.with_gpus(cards), rule=rule or start.rule, plan=None)


def with_known_curves(to: T, start: Deployment) -> T:
    """Return a target whose rule has the load curves that the start's rule knows besides.

    A plan has those of the points in use: without the others work that runs would count by a table.
    """
    own, known = to.rule, start.rule
    if not isinstance(own, CapacityRule) or not isinstance(known, CapacityRule) or own.certified:
        return to
    return replace(to, rule=own.with_curves({**known.curves, **own.curves}))


def outdated(start: Deployment, target: Deployment) -> frozenset[Work]:
    """Return the work of a recounted start that the target's limits do not admit."""
    services = {service.name: service for service in target.services}
    works = {each.work for _, each in start.instances() if each.work is not None}
    works -= {each.work for _, each in target.instances()}
    return frozenset(beyond_limits(works, services, target.rule))


def beyond_limits(
    works: Iterable[Work | None], services: Mapping[str, Service], rule: QueueingRule | None
) -> list[Work]:
    """Return the work that counts for something and that the limits of its service do not admit."""
    if rule is None:
        return []
    known = [w for w in dict.fromkeys(works) if w and w.supply_rps and w.service in services]
    return [work for work in known if not rule.supply(services[work.service], work.point)]
