"""Measured throughputs of real models under random latency limits.

A job is a model and a latency limit. As the limit grows, more operating points are admitted, so a
model has only so many different rows of supply; the chance of each is the length of its interval of
limits. A job is therefore one draw from a short table, however many jobs there are.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.fleet.serving.csv_input import read_operating_points
from cms.fleet.serving.latency_rule import PARVAGPU
from cms.fleet.serving.operating_point import OperatingPoint

from .family import Tabular
from .machines import Machines, mig
from .rows import Integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POINTS = Path(__file__).parent.parent / "data" / "a100_operating_points.csv"
_RULE = PARVAGPU
_MOST_PROCESSES = 3
#: Latency limits in milliseconds, drawn log-uniformly between these.
SHORTEST, LONGEST = 15, 1000


class Rows(NamedTuple):
    """The rows of supply that a model can have under some limit.

    Attributes
    ----------
    models : tuple of r names
    limits : tuple of r pairs of Fraction
        A limit of more than the first and at most the second, in milliseconds, gives this row.
    supply : ndarray of int64, shape (r, 5)
        In units of 1/1000 item/s, 1g to 7g.
    reach : ndarray of float64, shape (r,)
        The chance of this row or one before it; the last is 1.
    """

    models: tuple[str, ...]
    limits: tuple[tuple[Fraction, Fraction], ...]
    supply: Integers
    reach: NDArray[np.float64]


@cache
def measured_rows() -> Rows:
    """Compute the rows, under the rule ``parvagpu`` (latency < 0.45 x limit), <= 3 processes.

    Rows in which a whole GPU serves nothing are left out: such limits are drawn again.

    Examples
    --------
    >>> rows = measured_rows()
    >>> sorted(set(rows.models))[:3], rows.supply[0].tolist()
    (['bert', 'densenet121', 'densenet169'], [74408, 69288, 69945, 138022, 69019])
    """
    points = [p for p in read_operating_points(_POINTS) if p.processes <= _MOST_PROCESSES]
    unit = math.lcm(*(point.throughput_rps.denominator for point in points))
    models, limits, supply, chances = [], [], [], []
    for model in sorted({point.model for point in points}):
        mine = [point for point in points if point.model == model]
        needed = {point.latency_ms / _RULE.share for point in mine}
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
    return max(
        (
            point.throughput_rps
            for point in points
            if point.profile == profile and point.latency_ms < _RULE.share * limit
        ),
        default=Fraction(0),
    )


@dataclass(frozen=True)
class RealRows(Tabular):
    """Real models on an A100, each job with a latency limit and a demand of its own.

    The model is one of the 11 of ``instances/data/a100_operating_points.csv``, the limit
    log-uniform from 15 ms to 1 s, and the supply of a profile the best throughput at a latency
    below 0.45 times the limit; a limit under which a whole GPU serves nothing is drawn again (with
    the model, which makes slow models a little rarer). Numbers are in units of 1/1000 item/s.
    """

    name = "real-rows"
    number = 1
    title = "11 measured models on an A100 under random latency limits"
    stresses = "what users have: few distinct rows, not monotone, some too slow for small blocks"
    source = "ParvaGPU, SC '24 (measurements and latency rule)"

    def _machines(self, rng: np.random.Generator) -> Machines:
        return mig()

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        rows = measured_rows()
        # a draw is below 1, which is what the last row reaches
        return rows.supply[np.searchsorted(rows.reach, rng.random(count), side="right")]

    def _whole_machine(self, supply: Integers, machines: Machines) -> Integers:
        return supply[:, -1]
