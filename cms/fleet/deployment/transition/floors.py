"""What each service keeps at every moment, and supplies counted alike before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from ....errors import InvalidOption
from ....values.frozen import FrozenMap
from ....values.numbers import Number, exact, shown
from ...serving.queueing import QueueingRule
from ...serving.service import Service
from ..instance import Work
from ..model import Deployment
from .model import Floor

__all__ = ["floors_of", "recounted"]


def floors_of(
    start: Deployment,
    target: Deployment,
    share: Number = 1,
    shares: Mapping[str, Number] | None = None,
) -> FrozenMap[str, Floor]:
    """Return the floor of each service.

    Parameters
    ----------
    start, target : Deployment
        With supplies counted alike (:func:`recounted`).
    share : number, default 1
        Of the smaller of the old and the new rate; 1 is 100 %.
    shares : Mapping[str, number], optional
        Shares of single services.

    Returns
    -------
    FrozenMap
        ``{service: floor}``. Never above what a service has today. A service that comes or goes
        has nothing to keep; one whose old rate is 0, so not known, keeps the share of what it has
        today.

    Raises
    ------
    InvalidOption
        If a share is negative, or of a service that is on neither side.

    Examples
    --------
    >>> from cms.fleet import Service
    >>> before = Deployment((), (Service("chat", "m", 200), Service("old", "m", 10)))
    >>> after = Deployment((), (Service("chat", "m", 180),))
    >>> for name, floor in floors_of(before, after, "0.9").items():
    ...     print(name, floor)
    chat 0 items/s (all it has today, less than 90 % of the smaller of 200 and 180 items/s)
    old 0 items/s (the service goes)
    """
    shares = shares or {}
    old = {service.name: service for service in start.services}
    new = {service.name: service for service in target.services}
    names = sorted({*old, *new})
    for name in shares:
        if name not in names:
            raise InvalidOption(
                f"a floor is given for the service {name!r}; expected one of {', '.join(names)}"
            )
    floors = {}
    for name in names:
        own = exact(shares.get(name, share), f"the floor of {name}", error=InvalidOption)
        if name not in new:
            floors[name] = Floor(Fraction(0), "the service goes")
        elif name not in old:
            floors[name] = Floor(Fraction(0), "the service comes")
        else:
            floors[name] = _floor(start.capacity(name), old[name], new[name], own)
    return FrozenMap(floors)


def _floor(today: Fraction, old: Service, new: Service, share: Fraction) -> Floor:
    before = old.rate_rps or today
    what = f"{shown(before)} and {shown(new.rate_rps)} items/s"
    if not old.rate_rps:
        what = f"{what}, the first being all it has today"
    reason = f"{shown(share * 100)} % of the smaller of {what}"
    rps = share * min(before, new.rate_rps)
    if today < rps:
        return Floor(today, f"all it has today, less than {reason}")
    return Floor(rps, reason)


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
