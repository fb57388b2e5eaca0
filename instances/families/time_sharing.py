"""Services that share GPUs in time: made-up tables of batches and shares, and mixes of models.

Nothing here was measured, and no model has these names; ``docs/reference/families.md`` says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from cms.problem.parts import Configuration
from cms.time_sharing.model import TimeSharedJob
from cms.time_sharing.problem import TimeSharedProblem
from cms.values.numbers import Number

#: Shares of a GPU, in per cent; a GPU is left whole or cut into two of 100 % together.
SHARES = (20, 40, 50, 60, 80, 100)
#: Batches that are as good as measured.
BATCHES = (1, 2, 4, 8, 16, 32, 64)
#: Rates of random mixes in items per second, and limits in milliseconds.
RATES, LIMITS = (30, 1600), (50, 200)
_NOISE = 0.12
#: Models of a random mix, at least.
_LEAST = 3


class Curve(NamedTuple):
    """A made-up model: ``c0 + c1 b^gamma (100/p)^delta`` milliseconds for a batch of b on p %."""

    name: str
    c0: float
    c1: float
    gamma: float
    delta: float

    def length(self, batch: int, share: int) -> Fraction:
        """Return the seconds of a batch, in steps of 0.1 microseconds."""
        noise = 1 + _NOISE * (2 * Random(f"{self.name} {batch} {share}").random() - 1)
        growth = batch**self.gamma * (100 / share) ** self.delta
        return Fraction(round((self.c0 + self.c1 * growth) * noise * 10_000), 10**7)

    def points(self) -> dict[str, list[tuple[int, Fraction]]]:
        """Return (batch, seconds) for every share: what a job's points are."""
        return {
            f"mps:{share}": [(batch, self.length(batch, share)) for batch in BATCHES]
            for share in SHARES
        }


#: Ten made-up models, from fast to slow; what a share gives them grows with delta.
CURVES = (
    Curve("tagger", 1.2, 0.12, 0.95, 0.55),
    Curve("classifier", 1.5, 0.20, 0.90, 0.70),
    Curve("embedder", 2.0, 0.25, 0.85, 0.85),
    Curve("ranker", 1.0, 0.35, 1.00, 0.60),
    Curve("detector", 2.8, 0.45, 0.95, 0.95),
    Curve("segmenter", 3.0, 0.60, 1.05, 1.00),
    Curve("captioner", 2.2, 0.50, 0.92, 1.10),
    Curve("transcriber", 4.0, 0.40, 1.00, 1.20),
    Curve("translator", 3.5, 0.75, 0.97, 0.80),
    Curve("upscaler", 2.5, 0.90, 1.04, 1.25),
)


def _points_by_name() -> dict[str, dict[str, list[tuple[int, Fraction]]]]:
    """Return the models' points by name."""
    return {curve.name: curve.points() for curve in CURVES}


def pairs(shares: Sequence[int] = SHARES) -> list[Configuration]:
    """Return how a GPU is cut: not at all, or into two shares of 100 % together."""
    whole = [{"mps:100": 1}] if 100 in shares else []
    unequal = [share for share in shares if share < 50 and 100 - share in shares]
    equal = [{"mps:50": 2}] if 50 in shares else []
    cuts = [{f"mps:{share}": 1, f"mps:{100 - share}": 1} for share in unequal]
    return [Configuration(cut) for cut in (*whole, *cuts, *equal)]


def scenario_3(rate: Number, **more: Any) -> TimeSharedProblem:
    """Three services of the same rate with limits of 108, 142 and 64 ms.

    Limits and shares are those of gpulet's third scenario; the models are made up. The cycle's
    ``rule`` and the ``max_jobs`` of a mix may be given, here and below.
    """
    limits, points = {"classifier": 108, "detector": 142, "tagger": 64}, _points_by_name()
    jobs = [TimeSharedJob(n, rate, Fraction(ms, 1000), points[n]) for n, ms in limits.items()]
    return TimeSharedProblem(configurations=pairs(), jobs=jobs, **more)


def random_mix(
    seed: int,
    *,
    most: int = 10,
    tables: Mapping[str, Mapping[str, Sequence[tuple[int, Fraction]]]] | None = None,
    **more: Any,
) -> TimeSharedProblem:
    """Three or more of ten models, each once: rates log-uniform in 30..1600, limits in 50..200.

    Every number of models up to `most` is as likely; by default at most 3 share a mix. `tables`, in
    place of the made-up ones, are ``{model: {share: [(batch, seconds)]}}``.
    """
    random = Random(f"random mix {seed}")
    number = _LEAST + _below(random, most - _LEAST + 1)
    tables = _points_by_name() if tables is None else tables
    chosen = sorted(tables, key=lambda _: random.random())[:number]
    jobs = [_job(random, name, tables[name]) for name in chosen]
    return TimeSharedProblem(configurations=pairs(), jobs=jobs, **{"max_jobs": 3, **more})


def larger_mix(n: int, seed: int, **more: Any) -> TimeSharedProblem:
    """So many services, each of one of the ten models, with a rate and a limit of its own."""
    random = Random(f"larger mix {n} {seed}")
    curves = (CURVES[_below(random, len(CURVES))] for _ in range(n))
    jobs = [_job(random, f"{one.name} {at}", one.points()) for at, one in enumerate(curves, 1)]
    return TimeSharedProblem(configurations=pairs(), jobs=jobs, **more)


def generate(name: str, **arguments: Any) -> TimeSharedProblem:
    """Make a problem by the name of its kind, as benchmarks ask for one."""
    makers = {"scenario-3": scenario_3, "random-mix": random_mix, "larger-mix": larger_mix}
    return makers[name](**arguments)  # type: ignore[operator, no-any-return]


def _job(
    random: Random, name: str, points: Mapping[str, Sequence[tuple[int, Fraction]]]
) -> TimeSharedJob:
    low, high = RATES
    rate = round(low * (high / low) ** random.random())
    limit = LIMITS[0] + _below(random, LIMITS[1] - LIMITS[0] + 1)
    return TimeSharedJob(name, rate, Fraction(limit, 1000), points)


def _below(random: Random, number: int) -> int:
    """Draw a whole number below another; only ``random()`` is the same in every version."""
    return int(random.random() * number)
