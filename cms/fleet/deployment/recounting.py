"""Supplies counted alike before and after: what runs, under another rule and other limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..serving.queueing import QueueingRule
from ..serving.service import Service
from .instance import Work
from .model import Deployment

__all__ = ["recounted"]


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

    Notes
    -----
    A point that a new limit does not admit supplies nothing under it; the instances are then no
    part of what a floor can ask for.
    """
    known = {(work.service, work.point): work.supply_rps for work in works}
    limits = {service.name: service for service in (*start.services, *services)}
    counted: dict[Work, Work] = {}

    def count(work: Work) -> Work:
        if work not in counted:
            supply = known.get((work.service, work.point))
            if supply is None:
                service = limits[work.service]
                supply = work.supply_rps if rule is None else rule.supply(service, work.point)
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
