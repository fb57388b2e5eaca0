"""Figures 1 to 3: three services of one rate, as in gpulet's third scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from bench.expected import Line
from cms import TimeSharedJob, TimeSharedProblem, solve
from cms.fleet.serving import Headroom, OperatingPoint, Service, SharedServing, build_problem
from cms.fleet.serving.time_sharing import read_overheads
from instances.families.time_sharing import pairs
from instances.families.time_sharing import scenario_3 as made_up

from .asked import GPU, Asked, listed, timed
from .linear import linear_bound

RATES = (50, 100, 300, 500, 600, 900, 1200, 2400, 5000)
SCENARIO_3 = {"resnet50": 108, "vgg16": 142, "mobilenet": 64}
#: CPU seconds that a proof may take.
_AT_ONCE = 0.3
#: The least number of GPUs at each rate, and by rule the linear bound from 500 a second on.
_Optima: TypeAlias = tuple[tuple[int, ...], dict[str, str]]
PUBLISHED: _Optima = (
    (1, 1, 1, 1, 1, 1, 2, 3, 5),
    {
        "round_robin": "0.51947, 0.59783, 0.86772, 1.14742, 2.27791, 4.71455",
        "collect_then_run": "0.56343, 0.62591, 0.90136, 1.16044, 2.27997, 4.71455",
    },
)
MADE_UP: _Optima = (
    (1, 1, 1, 1, 1, 1, 1, 2, 3),
    {
        "round_robin": "0.50000, 0.50000, 0.56935, 0.71711, 1.31300, 2.71652",
        "collect_then_run": "0.50000, 0.50000, 0.65037, 0.74412, 1.31300, 2.71652",
    },
)
#: With head-room and overheads, at the rates up to 2,400: with sharing, and without.
INFLATED = (1, 1, 1, 2, 2, 2, 3, 6), (2, 2, 2, 2, 2, 3, 3, 6)


def scenario_3(
    tables: Mapping[str, Mapping[str, Sequence[tuple[int, Fraction]]]] | None, rate: int, rule: str
) -> TimeSharedProblem:
    """Return three services of one rate: as measured, or made up where there is no table."""
    if tables is None:
        return made_up(rate, rule=rule)
    return TimeSharedProblem(
        configurations=pairs(),
        jobs=[
            TimeSharedJob(model, rate, Fraction(limit, 1000), tables[model])
            for model, limit in SCENARIO_3.items()
        ],
        rule=rule,
    )


def optima(asked: Asked) -> Iterator[Line]:
    """Figure 1: the least number of GPUs, proved at once."""
    counts, bounds = MADE_UP if asked.points is None else PUBLISHED
    # The first solve of a process loads the solvers, which is no part of a proof.
    solve(scenario_3(asked.tables, RATES[0], next(iter(bounds))))
    for rule in bounds:
        found = [timed(scenario_3(asked.tables, rate, rule)) for rate in RATES]
        gpus = tuple(each.solution.machine_count for each in found)
        proved = all(each.solution.proof == "checked" for each in found)
        slowest = max(each.seconds for each in found)
        yield Line(
            "1", f"{rule}: GPUs at {listed(RATES)}/s, proved in {_AT_ONCE} CPU s each",
            listed(counts), f"{listed(gpus)}; {slowest:.2f} s at most",
            gpus == counts and proved and slowest <= _AT_ONCE,
        )  # fmt: skip


def linear_bounds(asked: Asked) -> Iterator[Line]:
    """Figure 2: the linear bounds, to five digits."""
    for rule, expected in (MADE_UP if asked.points is None else PUBLISHED)[1].items():
        bounds = (linear_bound(scenario_3(asked.tables, rate, rule)) for rate in RATES[3:])
        found = listed(f"{float(bound):.5f}" for bound in bounds)
        of = f"{rule}: linear bounds at {listed(RATES[3:])}/s"
        yield Line("2", of, expected, found, expected == found)


def inflated(asked: Asked) -> Iterator[Line]:
    """Figure 3: scenario 3 with head-room, overheads, and batches interpolated to 32."""
    if asked.points is None or asked.overheads is None:
        return
    more = Headroom("gpulet", read_overheads(asked.overheads))
    points = list(_interpolated(asked.points))
    for cap, expected in zip((None, 1), INFLATED, strict=True):
        found = [_inflated(points, rate, more, cap) for rate in RATES[:8]]
        counts = tuple(solve(each.problem).machine_count for each in found)
        of = (
            f"inflated, collect_then_run, {'without' if cap else 'with'} sharing: GPUs at "
            f"{listed(RATES[:8])}/s"
        )
        yield Line("3", of, listed(expected), listed(counts), counts == expected)


def _inflated(
    points: Sequence[OperatingPoint], rate: int, more: Headroom, cap: int | None
) -> SharedServing:
    services = [Service(model, model, rate, limit) for model, limit in SCENARIO_3.items()]
    return build_problem(
        services, points, GPU, sharing="time", max_services=cap, rule="collect_then_run",
        headroom=more,
    )  # fmt: skip


def _interpolated(points: Sequence[OperatingPoint]) -> Iterator[OperatingPoint]:
    by: dict[tuple[str, str], dict[int, Fraction]] = {}
    for point in points:
        if point.model in SCENARIO_3:
            own = by.setdefault((point.model, point.profile), {})
            own[point.batch] = point.computed_batch_ms
    for (model, profile), known in by.items():
        ordered = sorted(batch for batch in known if batch <= 32)
        for low, high in zip(ordered, [*ordered[1:], ordered[-1] + 1], strict=True):
            for batch in range(low, high):
                part = Fraction(batch - low, high - low)
                ms = known[low] + part * (known.get(high, known[low]) - known[low])
                yield OperatingPoint(model, GPU, profile, 1, batch, 1000 * batch / ms, ms)
