"""How old what is known of nodes is, and when it is too old to act upon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ....errors import CmsError
from ..model import Deployment, FleetNode

__all__ = ["MAX_AGE", "StaleObservation", "age_of", "in_words", "refuse_stale", "written"]

#: How old an observation may be that something is planned from.
MAX_AGE = timedelta(minutes=15)
_FORM = "%Y-%m-%dT%H:%M:%SZ"


class StaleObservation(CmsError, ValueError):
    """What is known of a node is too old to be acted upon."""


def written(moment: datetime) -> str:
    """Write a moment as observations have it.

    Examples
    --------
    >>> written(datetime(2026, 11, 23, 10, 15, tzinfo=UTC))
    '2026-11-23T10:15:00Z'
    """
    return moment.astimezone(UTC).strftime(_FORM)


def age_of(node: FleetNode, now: datetime) -> timedelta | None:
    """Return how long ago a node was observed; None if nobody looked.

    Raises
    ------
    StaleObservation
        If the moment that its file names is none.

    Examples
    --------
    >>> from cms.fleet.deployment import Observation
    >>> node = FleetNode("a", observed=Observation("2026-11-23T10:15:00Z", ("lgi.txt",)))
    >>> print(age_of(node, datetime(2026, 11, 23, 10, 30, tzinfo=UTC)))
    0:15:00
    """
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
    """Refuse to act upon what was seen too long ago.

    Parameters
    ----------
    deployment : Deployment
    now : datetime
    max_age : timedelta, optional
        None for any age.

    Returns
    -------
    tuple of str
        The nodes that nobody ever observed: what is known of them was written, not seen.

    Raises
    ------
    StaleObservation
        With the oldest such node, its age, and the command to run again. A moment that is further
        in the future than `max_age` is refused likewise: clocks disagree.

    Examples
    --------
    >>> from cms.fleet.deployment import Observation
    >>> seen = Observation("2026-11-23T10:15:00Z", ("lgi.txt",))
    >>> fleet = Deployment((FleetNode("a", observed=seen),))
    >>> refuse_stale(fleet, datetime(2026, 11, 23, 13, 27, tzinfo=UTC))
    Traceback (most recent call last):
        ...
    cms.fleet.deployment.observation.age.StaleObservation: node 'a' was observed 3 h 12 min ago
    (2026-11-23T10:15:00Z, lgi.txt), and at most 15 min are allowed; run again: cms observe
    a=lgi.txt -o now.json, or allow more with --max-age
    """
    ages = [(age_of(node, now), node) for node in deployment.nodes]
    if max_age is not None:
        known = [(age, node) for age, node in ages if age is not None]
        age, node = max(known, key=lambda pair: abs(pair[0]), default=(timedelta(0), None))
        if abs(age) > max_age and node is not None and node.observed is not None:
            when = f"{in_words(age)} ago" if age > timedelta(0) else f"{in_words(-age)} from now"
            others = sum(1 for each, _ in known if abs(each) > max_age) - 1
            more = f" ({others} more nodes likewise)" if others else ""
            raise StaleObservation(
                f"node {node.name!r} was observed {when} ({node.observed.at}, "
                f"{', '.join(node.observed.sources)}), and at most {in_words(max_age)} are "
                f"allowed{more}; run again: cms observe {_again(deployment)} -o now.json, or "
                "allow more with --max-age"
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
    first = given[:4]
    return " ".join(first) + (" ..." if len(given) > len(first) else "")


def in_words(age: timedelta) -> str:
    """Write an age for a person.

    Examples
    --------
    >>> in_words(timedelta(seconds=40)), in_words(timedelta(hours=3, minutes=12))
    ('40 s', '3 h 12 min')
    >>> in_words(timedelta(days=2, hours=1))
    '2 days 1 h'
    """
    seconds = int(age.total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [f"{days} day{'s' * (days != 1)}", f"{hours} h", f"{minutes} min", f"{seconds % 60} s"]
    values = [days, hours, minutes, seconds % 60]
    first = next((place for place, value in enumerate(values) if value), 3)
    return " ".join(
        part
        for value, part in list(zip(values, parts, strict=True))[first : first + 2]
        if value or first == 3
    )
