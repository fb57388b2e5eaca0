"""Families of measured throughputs of real models under random latency limits.

A job is a model and a latency limit. A model has few different rows of supply, one for
each interval of limits, so a job is one draw from a short table.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cms.fleet.serving.csv_input import read_operating_points
from cms.fleet.serving.latency_rule import PARVAGPU
from cms.fleet.serving.operating_point import OperatingPoint
from cms.problem.parts import MachineType
from cms.problem.problem import Problem

from .family import LOAD, draw_alike, draw_demands, family, integer, real
from .machines import A100, Floats, Integers, Rng, cut, mig, mps

_POINTS = Path(__file__).parent.parent / "data" / "a100_operating_points.csv"
_MOST_PROCESSES = 3
#: Latency limits in milliseconds, drawn log-uniformly between these.
SHORTEST, LONGEST = 15, 1000
_MEMORY = 80  # GB of an A100


class Rows(NamedTuple):
    """The rows of supply that a model can have under some limit, in 1/1000 item/s, 1g to 7g.

    A limit of more than the first and at most the second of a pair, in milliseconds, gives a row;
    `reach` is the chance of this row or one before it.
    """

    models: tuple[str, ...]
    limits: tuple[tuple[Fraction, Fraction], ...]
    supply: Integers
    reach: Floats


@cache
def measured_rows() -> Rows:
    """Compute the rows, under the rule ``parvagpu`` (latency < 0.45 x limit), <= 3 processes.

    Rows in which a whole GPU serves nothing are left out: such limits are drawn again.
    """
    points = [p for p in read_operating_points(_POINTS) if p.processes <= _MOST_PROCESSES]
    unit = math.lcm(*(point.throughput_rps.denominator for point in points))
    models, limits, supply, chances = [], [], [], []
    for model in sorted({point.model for point in points}):
        mine = [point for point in points if point.model == model]
        needed = {point.latency_ms / PARVAGPU.share for point in mine}
        inside = {limit for limit in needed if SHORTEST < limit < LONGEST}
        steps = [Fraction(SHORTEST), *sorted(inside), Fraction(LONGEST)]
        # the rule is strict: a limit of exactly `high` does not admit what needs more
        within = (
            (low, high, [int(unit * _best(mine, profile, high)) for profile in mig().blocks])
            for low, high in itertools.pairwise(steps)
        )
        for row, alike in itertools.groupby(within, key=lambda step: step[2]):
            ends = list(alike)  # a point that another one beats makes no new row
            low, high = ends[0][0], ends[-1][1]
            if row[-1]:
                models.append(model)
                limits.append((low, high))
                supply.append(row)
                chances.append(math.log(high / low))
    reach = np.cumsum(chances)
    reach /= reach[-1]
    for array in (table := np.array(supply, dtype=np.int64), reach):
        array.setflags(write=False)
    return Rows(tuple(models), tuple(limits), table, reach)


def _best(points: list[OperatingPoint], profile: str, limit: Fraction) -> Fraction:
    """Return the best throughput of one profile within a limit; 0 if there is none."""
    inside = (p for p in points if p.profile == profile and p.latency_ms < PARVAGPU.share * limit)
    return max((p.throughput_rps for p in inside), default=Fraction(0))


def _draw_rows(rng: Rng, count: int) -> Integers:
    """Draw the measured row of each job: a draw is below 1, which is what the last row reaches."""
    return np.searchsorted(measured_rows().reach, rng.random(count), side="right")


@family(1, m=LOAD)
def real_rows(rng: Rng, n: int, *, m: Fraction) -> Problem:
    """Eleven models on an A100, each job with a latency limit and a demand of its own."""

    def draw(count: int) -> tuple[Integers, Integers]:
        supply = measured_rows().supply[_draw_rows(rng, count)]
        return draw_demands(rng, supply[:, -1], m), supply

    return mig().drawn(n, draw)


@family(21, m=LOAD, step=real("2.5", least=Fraction(1, 2), most=50))
def measured_shares(rng: Rng, n: int, *, step: Fraction, m: Fraction) -> Problem:
    """The jobs of ``real-rows`` on A100s shared under MPS, on lines between the measured sizes."""
    machines = mps("gpu", step)

    def supply(count: int) -> Integers:
        return _curves(machines.slices, float(step) / 100)[_draw_rows(rng, count)]

    return draw_alike(rng, n, machines, supply, m)


@family(22, m=LOAD, compute=integer(5, 1, 50), memory=integer(5, 1, _MEMORY // 2))
def memory_shares(rng: Rng, n: int, *, compute: int, memory: int, m: Fraction) -> Problem:
    """The jobs of ``measured-shares`` with a need of memory, on A100s cut by compute and memory."""
    # a per cent of the compute is 4 units, a GB is 5: both are 400 in all
    percent, gb = 4 * compute, 5 * memory
    marks = sorted({*range(percent, 401, percent), *range(gb, 401, gb)})
    large = [size for size in marks if size >= max(percent, gb)]
    sizes = {f"{s // percent * compute}%-{s // gb * memory}gb": s for s in large}
    machines = cut(sizes, 400, MachineType(A100))

    def supply(count: int) -> Integers:
        found = _curves(machines.slices // percent, compute / 100)[_draw_rows(rng, count)]
        needed = rng.integers(1, min(_MEMORY // 2 // memory, 8), count, endpoint=True)
        found[machines.slices // gb < needed[:, None]] = 0
        return found

    return draw_alike(rng, n, machines, supply, m)


def _curves(steps: Integers, step: float) -> Integers:
    """Return what a number of steps of a GPU gives each of the measured rows: shape (rows, shares).

    Between nothing and the measured sizes a curve is straight, and never falls; below the smallest
    size that serves within the limit it is nothing.
    """
    shares, sizes = steps * step, np.array([0, *mig().slices]) / 7
    measured = np.maximum.accumulate(measured_rows().supply, axis=1)
    table = np.empty((len(measured), len(steps)), dtype=np.int64)
    for row, given in zip(table, measured, strict=True):
        row[:] = np.interp(shares, sizes, [0, *given])
        least = int(np.flatnonzero(given)[0])  # a whole GPU serves every row
        if least:
            row[shares < sizes[1 + least]] = 0
    return table
