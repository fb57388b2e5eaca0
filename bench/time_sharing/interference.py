"""Figure 9: three services on shares that slow one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from bench.expected import Line
from bench.importers.gpulet import read_gpulet_pairs
from cms import TimeSharedProblem, solve
from cms.fleet.serving import (
    Interference,
    NeighbourServing,
    OperatingPoint,
    Pair,
    Plan,
    Service,
    build_problem,
    neighbour_faults,
)
from cms.fleet.serving.neighbours import find_pair

from .asked import GPU, Asked
from .linear import Choices, least_machines, machines_of

OTHERS = {"vgg19": 142, "resnet50": 108, "densenet121": 120}
_RATE = 2400
#: Linear bounds to three digits: of the exact pairs, and by the number of classes of the outer and
#: the inner image as a prototype had them, whose classes may have been cut elsewhere. An outer one
#: that is larger and an inner one that is smaller are better.
EXACT, _DIGIT = 3.341, 0.0015
IMAGES = {1: (2.988, 3.444), 3: (3.276, 3.444), 7: (3.281, 3.407)}


def neighbours(asked: Asked) -> Iterator[Line]:
    """Figure 9: the two images' values around the exact one, and four GPUs, proved."""
    if asked.points is None or asked.pairs is None:
        return
    table = read_gpulet_pairs(asked.pairs, asked.points, device=GPU)
    own = [point for point in asked.points if point.model in OTHERS]
    posed = {classes: _posed(own, table, classes) for classes in IMAGES}
    solo = posed[1].solo.problem
    exact = least_machines(machines_beside(solo, table), len(solo.jobs))
    at = f"{_RATE:,}/s, linear bound"
    near = abs(exact - EXACT) <= _DIGIT
    yield Line("9", f"{at} of exact pairs", f"{EXACT:.3f}, or .001 off", f"{exact:.3f}", near)
    for classes, (low, high) in IMAGES.items():
        images = posed[classes].outer, posed[classes].problem
        outer, inner = (least_machines(machines_of(each), len(each.jobs)) for each in images)
        yield Line(
            "9", f"{at}s of {classes} classes: outer, inner",
            f">= {low:.3f}, <= {high:.3f}; outer <= exact <= inner", f"{outer:.3f}, {inner:.3f}",
            round(outer, 3) >= low and round(inner, 3) <= high and outer <= exact <= inner,
        )  # fmt: skip
    for classes in (1, 3):
        yield _optimum(posed[classes])
    found = solve(solo)
    of = f"{_RATE:,}/s, no interference: GPUs"
    proved = found.cost == 3 and found.proof == "checked"
    yield Line("9", of, "3, proved", f"{found.cost}, {found.proof}", proved)


def _posed(own: Sequence[OperatingPoint], table: Interference, classes: int) -> NeighbourServing:
    services = [Service(model, model, _RATE, limit) for model, limit in OTHERS.items()]
    posed: NeighbourServing = build_problem(
        services, own, GPU, sharing="time", interference=table, classes=classes
    )
    return posed


def _optimum(posed: NeighbourServing) -> Line:
    inner, outer = solve(posed.problem), solve(posed.outer)
    plan = Plan(posed, inner, outer).answer
    kept = not neighbour_faults(posed, inner.schedule)
    return Line(
        "9", f"{_RATE:,}/s, {posed.classes} classes: GPUs", "4, lower bound 4; every limit met",
        f"{plan.cost}, lower bound {plan.lower_bound}; {'kept' if kept else 'not kept'}",
        kept and plan.cost == 4 and plan.lower_bound == 4,
    )  # fmt: skip


# -- the exact pairs, from the definition --------------------------------------------------------


class _Place(NamedTuple):
    """A point of a job on a share: its batch, and its length alone."""

    job: int
    batch: int
    length: float


def machines_beside(solo: TimeSharedProblem, table: Interference) -> list[Choices]:
    """Return what a GPU can give, each mix slowed by the largest factor of what is beside it."""
    found = []
    factors = _factors(table)
    for shape in solo.configurations:
        pair = find_pair(shape)
        if pair is not None:
            rows = [*_side_by_side(solo, pair, factors)]
            found.append((np.array(rows),))
    return [*(c for c in machines_of(solo) if len(c) == 1), *found]


def _factors(table: Interference) -> dict[tuple[str, str, int, str, int], float]:
    pairs: Mapping[Pair, Fraction] = table.pairs
    return {
        (p.model, p.profile, p.batch, p.beside_model, p.beside_batch): max(1.0, float(factor))
        for p, factor in pairs.items()
    }


def _side_by_side(
    solo: TimeSharedProblem,
    pair: tuple[str, str],
    factors: Mapping[tuple[str, str, int, str, int], float],
) -> Iterator[list[float]]:
    """Iterate over the shares of demands that two mixes side by side serve."""
    here, there = (_mixes(solo, block) for block in pair)
    for mix, other in product(here, there):
        one = _served(solo, pair[0], mix, other, factors)
        two = _served(solo, pair[1], other, mix, factors)
        if one is not None and two is not None:
            yield [a + b for a, b in zip(one, two, strict=True)]


def _mixes(solo: TimeSharedProblem, block: str) -> list[tuple[_Place, ...]]:
    """Return the mixes that are admitted where nothing is beside them, and the empty one."""
    own = [
        [None, *(_Place(j, int(p.amount), float(p.length)) for p in job.points.get(block, ()))]
        for j, job in enumerate(solo.jobs)
    ]
    every = (tuple(place for place in chosen if place is not None) for chosen in product(*own))
    return [mix for mix in every if _served(solo, block, mix, (), {}) is not None]


def _served(
    solo: TimeSharedProblem,
    block: str,
    mix: Sequence[_Place],
    other: Sequence[_Place],
    factors: Mapping[tuple[str, str, int, str, int], float],
) -> list[float] | None:
    """Return the shares of demands that a mix serves beside another; None if it is not admitted."""
    names, served = solo.job_names, [0.0] * len(solo.jobs)
    lengths = [
        place.length
        * max(
            (factors[names[place.job], block, place.batch, names[o.job], o.batch] for o in other),
            default=1.0,
        )
        for place in mix
    ]
    cycle = sum(lengths)
    for place, length in zip(mix, lengths, strict=True):
        job = solo.jobs[place.job]
        takes = cycle + length if solo.rule == "round_robin" else 2 * cycle
        if takes > float(job.limit):
            return None
        served[place.job] = min(1.0, place.batch / cycle / float(job.demand))
    return served
