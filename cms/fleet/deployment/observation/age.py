"""The age of observations, and when they are too old to act upon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from ....errors import CmsError
from ....values.words import decimal
from ..model import Deployment, FleetNode

#: How old an observation may be that something is planned from.
MAX_AGE = timedelta(minutes=15)


class StaleObservation(CmsError, ValueError):
    """An observation of a node is too old to be acted upon."""


def format_moment(moment: datetime) -> str:
    """Write a moment as observations have it: ``2026-11-23T10:15:00Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age_of(node: FleetNode, now: datetime) -> timedelta | None:
    """Return how long ago a node was observed; None if it never was."""
    if node.observed is None:
        return None
    try:
        moment = datetime.fromisoformat(node.observed.at)
    except ValueError:
        raise StaleObservation(
            f"node {node.name!r} was observed at {node.observed.at!r}, which is no moment; "
            "expected 2026-11-23T10:15:00Z"
        ) from None
    return now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def refuse_stale(
    deployment: Deployment, now: datetime, max_age: timedelta | None = MAX_AGE
) -> tuple[str, ...]:
    """Refuse observations that are older than `max_age`, and return the nodes that have none.

    A moment that is further in the future is refused likewise: clocks disagree.
    """
    ages = [(age_of(node, now), node) for node in deployment.nodes]
    stale = [(a, n) for a, n in ages if a is not None and max_age is not None and abs(a) > max_age]
    if stale and max_age is not None:
        age, node = max(stale, key=lambda pair: abs(pair[0]))
        when = f"{format_age(abs(age))} {'ago' if age > timedelta(0) else 'from now'}"
        more = f" ({len(stale) - 1} more nodes likewise)" if len(stale) > 1 else ""
        by = ", ".join((node.observed.at, *node.observed.sources)) if node.observed else ""
        raise StaleObservation(
            f"node {node.name!r} was observed {when} ({by}), and at most {format_age(max_age)} are "
            f"allowed{more}; run again: cms observe {_again(deployment)} -o now.json, or allow "
            "more with --max-age"
        )
    return tuple(node.name for age, node in ages if age is None)


def _again(deployment: Deployment) -> str:
    """The sources as arguments, those of the first few nodes."""
    nodes_of: dict[str, list[str]] = {}
    for node in deployment.nodes:
        for source in node.observed.sources if node.observed else ():
            for path in source.split(", "):
                nodes_of.setdefault("-" if path == "<stdin>" else path, []).append(node.name)
    given = [f"{names[0]}={path}" if len(names) == 1 else path for path, names in nodes_of.items()]
    return " ".join(given[:4]) + (" ..." if len(given) > 4 else "")


def format_time(seconds: Fraction) -> str:
    """Write how long something takes: ``5.5 s``, ``1 min 20 s``."""
    if seconds < 60:
        return f"{decimal(seconds)} s"
    return format_age(timedelta(seconds=round(seconds)))


def format_age(age: timedelta) -> str:
    """Write an age in its two largest units: ``3 h 12 min``."""
    seconds = int(age.total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    units = (days, f"day{'s' * (days != 1)}"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")
    first = next((at for at, (n, _) in enumerate(units) if n), 3)
    return " ".join(f"{n} {unit}" for n, unit in units[first : first + 2] if n) or "0 s"
