"""What ``cms simulate`` takes where services share instances in time: cycles are replayed."""

from __future__ import annotations

from typing import Any

from . import options

__all__ = ["arguments", "refuse_even"]

_HOW = "the services of this plan share instances in time, whose duty cycles are replayed"


def arguments(arrivals: list[str] | None, queues: dict[str, Any]) -> str:
    """Return how requests arrive, a key of ``CYCLE_ARRIVALS``."""
    from cms.fleet.simulation import CYCLE_ARRIVALS

    for option, value in queues.items():
        if value:
            raise options.usage_error(
                f"{_HOW}, not queues; leave it out (--arrivals poisson or even, --scale, "
                "--requests and --seed are heeded)",
                option,
            )
    given = arrivals or ["poisson"]
    if len(given) > 1 or given[0] not in CYCLE_ARRIVALS:
        said = " and ".join(repr(each) for each in given)
        raise options.usage_error(
            f"{said}: {_HOW}; expected {' or '.join(CYCLE_ARRIVALS)}, once and for all services",
            "--arrivals",
        )
    return given[0]


def refuse_even(text: str) -> None:
    """Refuse evenly spaced arrivals where queues are replayed."""
    if text == "even":
        raise options.usage_error(
            "'even': evenly spaced arrivals are for plans whose services share instances in time; "
            "gamma:0.01 with --routing round_robin comes near them",
            "--arrivals",
        )
