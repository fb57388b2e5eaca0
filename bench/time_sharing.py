"""Figures of time sharing, each with what it should be: ``python -m bench.time_sharing``.

The published figures are of a measured table that nobody may ship: they are made again where
``CMS_GPULET_TABLE`` names it (and ``CMS_GPULET_OVERHEADS`` a table of overheads, columns ``batch,
overhead_ms``, and ``CMS_GPULET_PAIRS`` one of pairs), else those of the made-up table of
:mod:`instances.families.time_sharing` stand in their place, as they were found first.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from time import perf_counter

from rich.console import Console

from bench.expected import Line, show
from bench.tables import Column, Table
from cms import FrameRule, TimeSharedJob, TimeSharedProblem, solve
from cms.fleet.serving import (
    Headroom,
    NeighbourServing,
    OperatingPoint,
    Plan,
    Service,
    as_problem,
    neighbour_faults,
    read_gpulet_pairs,
    read_gpulet_table,
)
from cms.fleet.serving.headroom import read_overheads
from cms.fleet.simulation import replay_frames
from instances.families.time_sharing import larger_mix, pairs, random_mix
from instances.families.time_sharing import scenario_3 as made_up

GPU = "a100-80gb"
RATES = (50, 100, 300, 500, 600, 900, 1200, 2400, 5000)
SCENARIO_3 = {"resnet50": 108, "vgg16": 142, "mobilenet": 64}
OTHERS = {"vgg19": 142, "resnet50": 108, "densenet121": 120}
#: By rule: the least number of GPUs at each rate, and the linear bound from 500 a second on.
PUBLISHED = {
    "round_robin": (
        (1, 1, 1, 1, 1, 1, 2, 3, 5),
        ("0.51947", "0.59783", "0.86772", "1.14742", "2.27791", "4.71455"),
    ),
    "collect_then_run": (
        (1, 1, 1, 1, 1, 1, 2, 3, 5),
        ("0.56343", "0.62591", "0.90136", "1.16044", "2.27997", "4.71455"),
    ),
}
MADE_UP = {
    "round_robin": (
        (1, 1, 1, 1, 1, 1, 1, 2, 3),
        ("0.50000", "0.50000", "0.56935", "0.71711", "1.31300", "2.71652"),
    ),
    "collect_then_run": (
        (1, 1, 1, 1, 1, 1, 1, 2, 3),
        ("0.50000", "0.50000", "0.65037", "0.74412", "1.31300", "2.71652"),
    ),
}
#: With head-room and overheads, at the rates up to 2,400: with sharing, and without.
INFLATED = (1, 1, 1, 2, 2, 2, 3, 6), (2, 2, 2, 2, 2, 3, 3, 6)
#: What is planned for, as options of a plan, and the GPUs and kept services by either rule.
HEADROOMS: tuple[tuple[str, str | None, str], ...] = (
    ("nothing", None, "0"),
    ("10 % more", None, "0.1"),
    ("30 % more", None, "0.3"),
    ("50 % more", None, "0.5"),
    ("100 % more", None, "1"),
    ("200 % more", None, "2"),
    ("gpulet", "gpulet", "0"),
    ("gpulet, 20 % more", "gpulet", "0.2"),
    ("gpulet, 50 % more", "gpulet", "0.5"),
)


def scenario_3(points: Sequence[OperatingPoint] | None, rate: int, rule: str) -> TimeSharedProblem:
    """Return three services of one rate: as measured, or made up where there is no table."""
    if points is None:
        return made_up(rate, rule=rule)
    return TimeSharedProblem(
        configurations=pairs(),
        jobs=[
            TimeSharedJob(model, rate, Fraction(limit, 1000), _lengths(points, model))
            for model, limit in SCENARIO_3.items()
        ],
        rule=rule,
    )


def _lengths(points: Sequence[OperatingPoint], model: str) -> dict[str, list[tuple[int, Fraction]]]:
    found: dict[str, list[tuple[int, Fraction]]] = {}
    for point in points:
        if point.model == model:
            found.setdefault(point.profile, []).append(
                (point.batch, point.computed_batch_ms / 1000)
            )
    return found


def linear_bound(problem: TimeSharedProblem) -> Fraction:
    """Return the value of the linear program over all mixes, to five decimal places.

    Rates count up to the demand; there are no cuts. It is written here from the definition, for a
    handful of jobs, and solved by SciPy.

    Examples
    --------
    >>> job = TimeSharedJob("a", 30, 10, {"b": [(4, 1)]})
    >>> from cms import Configuration
    >>> linear_bound(TimeSharedProblem(configurations=[Configuration({"b": 2})], jobs=[job]))
    Fraction(15, 4)
    """
    import numpy as np
    from scipy.optimize import linprog

    shapes = [dict(shape.blocks) for shape in problem.configurations]  # type: ignore[union-attr]
    place = {block: at for at, block in enumerate(problem.blocks)}
    rows = len(place) + len(problem.jobs)
    columns = []
    for shape in shapes:
        column = np.zeros(rows)
        for block, count in shape.items():
            column[place[block]] = -count
        columns.append(column)
    for block, rates in _mixes(problem):
        column = np.zeros(rows)
        column[place[block]] = 1
        for job, rate in rates.items():
            demand = problem.jobs[job].demand
            column[len(place) + job] = -float(min(rate, demand) / demand)
        columns.append(column)
    most = np.concatenate([np.zeros(len(place)), -np.ones(len(problem.jobs))])
    costs = [1.0] * len(shapes) + [0.0] * (len(columns) - len(shapes))
    found = linprog(costs, A_ub=np.array(columns).T, b_ub=most, method="highs")
    if found.fun is None:
        raise ValueError("the linear program has no solution: some job has no mix that serves it")
    return Fraction(round(float(found.fun) * 10**5), 10**5)


def _mixes(problem: TimeSharedProblem) -> Iterator[tuple[str, dict[int, Fraction]]]:
    """All mixes that are admitted, with the rate of each job."""
    for block in problem.blocks:
        for size in range(1, min(problem.max_jobs or 3, len(problem.jobs)) + 1):
            for chosen in combinations(range(len(problem.jobs)), size):
                own = [problem.jobs[job].points.get(block, ()) for job in chosen]
                for points in product(*own):
                    frame = sum((point.length for point in points), Fraction(0))
                    if all(
                        problem.rule.admits(frame, point.length, problem.jobs[job].limit)
                        for job, point in zip(chosen, points, strict=True)
                    ):
                        yield (
                            block,
                            {j: p.amount / frame for j, p in zip(chosen, points, strict=True)},
                        )


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def scenario_figures(points: Sequence[OperatingPoint] | None) -> Iterator[Line]:
    """Figures 1 and 2: the optimum of scenario 3, proved, and its linear bounds."""
    expected = MADE_UP if points is None else PUBLISHED
    for rule, (counts, bounds) in expected.items():
        found = [solve(scenario_3(points, rate, rule)) for rate in RATES]
        gpus = tuple(each.machine_count for each in found)
        proved = all(each.proof == "checked" for each in found)
        slowest = max(each.seconds for each in found)
        of = f"{rule}: GPUs at {_listed(RATES)}/s, each proved, {slowest:.2f} s at most"
        yield Line("1", of, _listed(counts), _listed(gpus), gpus == counts and proved)
        linear = [
            f"{float(linear_bound(scenario_3(points, rate, rule))):.5f}" for rate in RATES[3:]
        ]
        yield Line(
            "2", f"{rule}: linear bounds", _listed(bounds), _listed(linear), [*bounds] == linear
        )


def inflated_figures(points: Sequence[OperatingPoint], overheads: Path) -> Iterator[Line]:
    """Figure 3: scenario 3 with head-room, overheads, and batches interpolated to 32."""
    more = Headroom("gpulet", read_overheads(overheads))
    for cap, expected in zip((None, 1), INFLATED, strict=True):
        found = []
        for rate in RATES[:8]:
            services = [Service(m, m, rate, limit) for m, limit in SCENARIO_3.items()]
            serving = as_problem(
                services, [*_interpolated(points)], GPU, sharing="time", max_services=cap,
                rule="collect_then_run", headroom=more,
            )  # fmt: skip
            found.append(solve(serving.problem).machine_count)
        of = f"inflated, collect_then_run, {'without' if cap else 'with'} sharing"
        yield Line("3", of, _listed(expected), _listed(found), tuple(found) == expected)


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


def interference_figures(points: Sequence[OperatingPoint], path: Path) -> Iterator[Line]:
    """Figure 9: three services at 2,400 a second on shares that slow one another."""
    table = read_gpulet_pairs(path, points, device=GPU)
    own = [point for point in points if point.model in OTHERS]
    services = [Service(model, model, 2400, limit) for model, limit in OTHERS.items()]
    for classes in (1, 3):
        posed: NeighbourServing = as_problem(
            services, own, GPU, sharing="time", interference=table, classes=classes
        )
        inner, outer = solve(posed.problem), solve(posed.outer)
        plan = Plan(posed, inner, outer).answer
        kept = not neighbour_faults(posed, inner.schedule)
        yield Line(
            "9", f"2,400/s, {classes} classes: GPUs", "4" if classes == 3 else ">= 4",
            f"{plan.cost}, proved >= {plan.lower_bound}", kept and plan.cost == 4,
        )  # fmt: skip
    solo = solve(posed.solo.problem)
    yield Line("9", "2,400/s, no interference: GPUs", "3", str(solo.cost), solo.cost == 3)


def larger_figures(sizes: Sequence[int], seeds: int, seconds: float) -> Iterator[Line]:
    """Figure 10: gaps of mixes of many made-up services, within a time limit."""
    for jobs in sizes:
        for seed in range(seeds):
            begun = perf_counter()
            found = solve(larger_mix(jobs, seed), time_limit=seconds)
            took, most = perf_counter() - begun, 1 if jobs <= 20 else 2
            gap = found.gap
            yield Line(
                "10", f"{jobs} made-up services, seed {seed}, at most {seconds:g} s",
                f"a gap of at most {most}",
                f"{found.cost} GPUs, proved >= {found.lower_bound}, {took:.1f} s",
                gap is not None and gap <= most,
            )  # fmt: skip


def headroom_table(plans: int, requests: int) -> Table:
    """Plan ten mixes with each head-room, and replay them at the stated rates."""
    lines = []
    for said, name, margin in HEADROOMS:
        cells: list[object] = []
        for rule in FrameRule:
            kept = services = gpus = 0
            for seed in range(1, plans + 1):
                plan = _planned(random_mix(seed, most=6), rule, name, margin)
                found = replay_frames(plan, arrivals="poisson", requests=requests).services
                kept += sum(100 * each.late <= each.requests for each in found)
                services += len(found)
                gpus += plan.solution.machine_count or 0
            cells += [f"{kept} of {services}", gpus]
        lines.append((said, *cells))
    heads = [Column("planned with", left=True)]
    for rule in FrameRule:
        heads += [Column(f"{rule}: kept"), Column("GPUs")]
    return Table(
        "Head-room and the 99th percentile",
        f"{plans} plans of 3 to 6 made-up services (mix_first_fit, one order, no cap); kept: at "
        f"most 1 % of {requests:,} Poisson arrivals at the stated rates are late, in one run.",
        tuple(heads),
        tuple(lines),
    )


def _planned(problem: TimeSharedProblem, rule: FrameRule, name: str | None, margin: str) -> Plan:
    """The plan of a made-up problem, whose jobs become services of models of their own."""
    services = [Service(job.name, job.name, job.demand, 1000 * job.limit) for job in problem.jobs]
    points = [
        OperatingPoint(
            job.name, GPU, block, 1, int(point.amount), point.amount / point.length,
            1000 * point.length,
        )
        for job in problem.jobs
        for block, own in job.points.items()
        for point in own
    ]  # fmt: skip
    posed = as_problem(
        services, points, GPU, sharing="time", rule=rule, headroom=name, rate_margin=margin
    )
    return Plan(posed, solve(posed.problem, "mix_first_fit", options={"orders": 1}))


def figures(named: Mapping[str, str], sizes: Sequence[int], seeds: int) -> Iterator[Line]:
    """Make every figure that the tables at hand allow."""
    table, overheads, beside = (
        Path(path) if (path := named.get(f"CMS_GPULET_{what}")) else None
        for what in ("TABLE", "OVERHEADS", "PAIRS")
    )
    points = None if table is None else read_gpulet_table(table, device=GPU)
    yield from scenario_figures(points)
    if points is not None and overheads is not None:
        yield from inflated_figures(points, overheads)
    if points is not None and beside is not None:
        yield from interference_figures(points, beside)
    yield from larger_figures(sizes, seeds, 60)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures, or the table of head-room; 1 if a figure is not what it should be."""
    parser = argparse.ArgumentParser(prog="python -m bench.time_sharing", description=__doc__)
    parser.add_argument("--headroom", action="store_true", help="the table of head-room instead")
    parser.add_argument("--plans", type=int, default=10, help="of the table of head-room")
    parser.add_argument("--requests", type=int, default=20_000, help="of each service, there")
    parser.add_argument("--largest", type=int, default=50, help="services of figure 10")
    parser.add_argument("--seeds", type=int, default=1, help="mixes of each size")
    asked = parser.parse_args(arguments)
    if asked.headroom:
        Console().print(headroom_table(asked.plans, asked.requests).rich())
        return 0
    sizes = [size for size in (20, 50) if size <= asked.largest]
    measured = "measured" if os.environ.get("CMS_GPULET_TABLE") else "made up"
    caption = f"The table of batches of scenario 3 is {measured}."
    return show("Time sharing", caption, figures(os.environ, sizes, asked.seeds))


if __name__ == "__main__":
    raise SystemExit(main())
