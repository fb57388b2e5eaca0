"""The same services at other rates, or without some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from ...errors import InvalidOption
from ...values.names import nearest
from ...values.numbers import Number, exact
from ..serving import Service


def changed_services(
    services: Iterable[Service],
    *,
    scale: Number | Mapping[str, Number] = 1,
    drop: Iterable[str] = (),
) -> tuple[Service, ...]:
    """Return services at multiples of their rates, some of them left out.

    `scale` is what all rates are multiplied by, >= 0, or those of single services, by name: the
    others stay as they are. `drop` names services that are left out. InvalidOption, with the
    nearest name, if there is no such service; or for a bad number.

    Examples
    --------
    >>> services = [Service("chat", "bert", 100, 60), Service("photos", "resnet50", 40, 30)]
    >>> print(*changed_services(services, scale={"chat": "1.5"}, drop=["photos"]))
    chat (bert): 150 requests/s within 60 ms
    """
    given = tuple(services)
    gone = set(drop)
    own = scale if isinstance(scale, Mapping) else {}
    known = {service.name: service for service in given}
    for name in (*gone, *own):
        named_service(known, name)
    if both := sorted(gone & own.keys()):
        raise InvalidOption(
            f"service {both[0]!r} is left out, and its rate is to be multiplied; give one of them"
        )
    said = "the factor of the rate of"
    factors = {n: exact(number, f"{said} {n!r}", error=InvalidOption) for n, number in own.items()}
    every = Fraction(1)
    if not isinstance(scale, Mapping):
        every = exact(scale, "the factor of all rates", error=InvalidOption)
    return tuple(
        replace(service, rate_rps=service.rate_rps * factors.get(service.name, every))
        for service in given
        if service.name not in gone
    )


def named_service(known: Mapping[str, Service], name: str) -> Service:
    """Return a service by its name; InvalidOption, with the nearest name, if there is none."""
    if name not in known:
        names = [*known]
        listed = ", ".join(names[:_NAMED]) or "none"
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise InvalidOption(
            f"there is no service {name!r}{nearest(name, names)}; expected one of: {listed}{more}"
        )
    return known[name]


#: Services that an error names.
_NAMED = 12
