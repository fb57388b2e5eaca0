"""Whether the numbers of a simulation's file bear out what it says of each service."""

from __future__ import annotations

from collections.abc import Iterator

from ...schedule.faults import Violation
from ...values.numbers import shown
from .result import ServiceResult, Simulation
from .statistics import Verdict

__all__ = ["simulation_faults"]


def simulation_faults(simulation: Simulation) -> Iterator[Violation]:
    """List what contradicts itself; that the requests ran so, only a replay of the plan shows.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from fractions import Fraction
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
    >>> instance = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,))
    >>> chat = ModelledService("chat", Fraction(50), 40_000_000, Fraction(1, 100), (instance,))
    >>> found = simulate([chat], requests=1000)
    >>> list(simulation_faults(found))
    []
    >>> worse = replace(found.services[0], tolerated=Fraction(0), verdict=Verdict.KEPT)
    >>> [fault.kind for fault in simulation_faults(replace(found, services=(worse,)))]
    ['verdict']
    """
    for each in simulation.services:
        yield from _faults(each)


def _faults(each: ServiceResult) -> Iterator[Violation]:
    what, (low, high) = f"service {each.name!r}", each.interval
    if not low <= each.late_share <= high:
        yield Violation(
            "late", what, f"a late share of {shown(each.late_share)}",
            f"one within its interval, {shown(low)} to {shown(high)}",
        )  # fmt: skip
    if not each.p50_ns <= each.p90_ns <= each.p99_ns:
        yield Violation(
            "latency", what, f"{each.p50_ns}, {each.p90_ns} and {each.p99_ns} ns at 50, 90, 99 %",
            "quantiles that ascend",
        )  # fmt: skip
    beyond = f"an interval of {shown(low)} to {shown(high)}, {shown(each.tolerated)} tolerated"
    if each.verdict is Verdict.KEPT and each.requests and high > each.tolerated:
        yield Violation("verdict", what, beyond, "all of it tolerated, since it is said to be kept")
    if each.verdict is Verdict.BROKEN and low <= each.tolerated and not each.overloaded:
        yield Violation(
            "verdict", what, beyond, "none of it tolerated, since it is said to be broken"
        )
