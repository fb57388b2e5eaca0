"""What each service keeps at every moment of a transition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from ....errors import InvalidOption, UnsupportedProblem
from ....values.frozen import FrozenMap
from ....values.numbers import Number, exact, shown
from ..model import Deployment
from .model import Floor


def floors_of(
    start: Deployment,
    target: Deployment,
    share: Number = 1,
    shares: Mapping[str, Number] | None = None,
) -> FrozenMap[str, Floor]:
    """Return the floor of each service.

    `start`, `target`: With supplies counted alike (`recounted`). `share`: Of the smaller of the old
    and the new rate; 1 is 100 %. Default 1. `shares`: Shares of single services.

    Returns
    -------
    FrozenMap
        ``{service: floor}``. Never above what a service has today. A service that comes or goes
        has nothing to keep; one whose old rate is 0, so not known, keeps the share of what it has
        today.

    InvalidOption if a share is negative, or of a service that is on neither side.

    Examples
    --------
    >>> from cms.fleet import Service
    >>> before = Deployment((), (Service("chat", "m", 200), Service("old", "m", 10)))
    >>> after = Deployment((), (Service("chat", "m", 180),))
    >>> for name, floor in floors_of(before, after, "0.9").items():
    ...     print(name, floor)
    chat 0 requests/s (all it has today, less than 90 % of the smaller of 200 and 180 requests/s)
    old 0 requests/s (the service goes)
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
        if name not in new or name not in old:
            floors[name] = Floor(Fraction(0), f"the service {'goes' if name in old else 'comes'}")
        else:
            today, rate = start.capacity(name), new[name].rate_rps
            before = old[name].rate_rps or today
            rps = own * min(before, rate)
            note = "" if old[name].rate_rps else ", the first being all it has today"
            what = f"{shown(before)} and {shown(rate)} requests/s{note}"
            reason = f"{shown(own * 100)} % of the smaller of {what}"
            if today < rps:
                rps, reason = today, f"all it has today, less than {reason}"
            floors[name] = Floor(rps, reason)
    return FrozenMap(floors)


def refuse_unlike(
    start: Deployment, target: Deployment, floors: Mapping[str, Floor], routings: Collection[str]
) -> None:
    """Refuse a floor of unlike instances in equal shares: what comes can lessen what all supply.

    Of like ones what they supply is their sum, whatever the shares.
    """
    supplies: dict[str, set[Fraction]] = {}
    for work in (each.work for side in (start, target) for _, each in side.instances()):
        if work is not None and floors[work.service].rps:
            supplies.setdefault(work.service, set()).add(work.supply_rps)
    for name, own in supplies.items() if "equal" in routings else ():
        if len(own) > 1:
            raise UnsupportedProblem(
                f"instances of {name!r} supply {' and '.join(map(shown, sorted(own)))} requests/s, "
                "before or after, and routing is equal, so that each counts as the smallest; its "
                "floor is kept of like ones alone: expected a floor of 0, or weighted routing"
            )
