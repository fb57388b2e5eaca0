"""Families of tables that no measurement shows: on GPUs cut up by MIG, or into shares by MPS."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from cms.problem.parts import Configuration, MachineType
from cms.problem.problem import Problem

from .family import (
    LOAD,
    choice,
    draw_alike,
    draw_demands,
    family,
    integer,
    power_law,
    real,
    table,
    whole_machine,
)
from .machines import A100, Floats, Integers, Rng, cut, joined, made, mig, mps

# Of the measured models bert gains least from size (7g gives 3.7 x 1g: an exponent of 0.68) and
# densenet169 most (13.7 x 1g: 1.34).
EXPONENTS = (0.65, 1.35)
_LARGEST = integer(100, 1, 10**6)
#: What a slice gives the middle model of ``mig-serving``, in 1/100 request/s; the standard
#: deviation of its logarithm; and the least normal rate, as a share of the mean.
_SPEED, _SPEED_SPREAD, _LEAST_RATE = 10_000, 1.0, 1 / 20
#: The blocks of a random configuration, at most.
_MOST_BLOCKS = 8


@family(2, m=LOAD, largest=_LARGEST)
def arbitrary(rng: Rng, n: int, *, largest: int, m: Fraction) -> Problem:
    """Tables of integers without any pattern."""
    machines = mig()
    draw = partial(table, rng, k=len(machines.blocks), largest=largest)
    return draw_alike(rng, n, machines, draw, m)


@family(3, m=LOAD, largest=_LARGEST)
def sparse(rng: Rng, n: int, *, largest: int, m: Fraction) -> Problem:
    """Each job is served by one or two block types, half of the jobs by each number."""
    machines = mig()
    k = len(machines.blocks)

    def supply(count: int) -> Integers:
        found, jobs = np.zeros((count, k), dtype=np.int64), np.arange(count)
        first = rng.integers(0, k, count)
        second = (first + rng.integers(1, k, count)) % k
        amounts = rng.integers(1, largest, (count, 2), endpoint=True)
        found[jobs, second] = amounts[:, 1] * rng.integers(0, 2, count)
        found[jobs, first] = amounts[:, 0]
        return found

    return draw_alike(rng, n, machines, supply, m)


@family(4, m=LOAD)
def near_ties(rng: Rng, n: int, *, m: Fraction) -> Problem:
    """Supply in proportion to size but for one part in 10^3 to 10^6, each job's own order of it."""
    machines = mig()

    def supply(count: int) -> Integers:
        unit = rng.integers(50_000, 150_000, count, endpoint=True)
        even = unit[:, None] * machines.slices
        parts = np.array([10**3, 10**4, 10**5, 10**6])[rng.integers(0, 4, count)]
        most = even // parts[:, None]
        deviation: Integers = rng.integers(-most, most, endpoint=True)
        return even + deviation

    return draw_alike(rng, n, machines, supply, m)


@family(5, m=LOAD, exponent=real("1.35", above=1, most=3))
def superlinear(rng: Rng, n: int, *, exponent: Fraction, m: Fraction) -> Problem:
    """Supply grows faster than the block's size, as densenet169's does on an A100."""
    return _curved(rng, n, (1.0, float(exponent)), m)


@family(6, m=LOAD, exponent=real("0.6", above=0, most=1))
def sublinear(rng: Rng, n: int, *, exponent: Fraction, m: Fraction) -> Problem:
    """Supply grows slower than the block's size, as bert's does on an A100."""
    return _curved(rng, n, (float(exponent), 1.0), m)


def _curved(rng: Rng, n: int, exponents: tuple[float, float], m: Fraction) -> Problem:
    draw = partial(power_law, rng, slices=mig().slices, exponents=exponents)
    return draw_alike(rng, n, mig(), draw, m)


@family(11, m=LOAD, k=integer(5, 1, 1000), configurations=integer(10, 1, 10_000), largest=_LARGEST)
def random_configurations(
    rng: Rng, n: int, *, k: int, configurations: int, largest: int, m: Fraction
) -> Problem:
    """Random lists of configurations of 1 to 8 blocks, with arbitrary integer tables."""
    counts = np.zeros((configurations, k), dtype=np.int64)
    for row in counts:
        types = rng.permutation(k)[: rng.integers(1, min(k, 4), endpoint=True)]
        size = rng.integers(1, _MOST_BLOCKS, endpoint=True)
        np.add.at(row, rng.choice(types, size), 1)
    for absent in np.flatnonzero(~counts.any(axis=0)):
        counts[rng.integers(0, configurations), absent] = 1
    blocks = [f"b{i}" for i in range(k)]
    shapes = [Configuration(dict(zip(blocks, row, strict=True))) for row in counts.tolist()]
    machines = made(blocks, shapes, [MachineType("machine")], counts.max(axis=0).tolist())
    return draw_alike(rng, n, machines, lambda count: table(rng, count, k, largest), m)


@family(12, low=integer(6, 0, 17), high=integer(12, "low", 18, more=1))
def huge_demands(rng: Rng, n: int, *, low: int, high: int) -> Problem:
    """Demands over many orders of magnitude, up to millions of machines a job."""
    machines = mig()

    def draw(count: int) -> tuple[Integers, Integers]:
        supply = power_law(rng, count, machines.slices, EXPONENTS)
        decades = np.array([10**e for e in range(low, high)])
        least = decades[rng.integers(0, high - low, count)]
        return rng.integers(least, 10 * least, endpoint=True), supply

    return machines.drawn(n, draw)


@family(13, m=LOAD, kinds=integer(5, 1, 10**6))
def equal_jobs(rng: Rng, n: int, *, kinds: int, m: Fraction) -> Problem:
    """Few different jobs, demands included, each many times."""
    machines = mig()
    supply = power_law(rng, kinds, machines.slices, EXPONENTS)
    demands = draw_demands(rng, whole_machine(supply, machines.counts), m)

    def draw(count: int) -> tuple[Integers, Integers]:
        kind = rng.integers(0, kinds, count)
        return demands[kind], supply[kind]

    return machines.drawn(n, draw)


@family(15, rates=choice("normal", "lognormal"), m=real(4, above=0, most=10**6))
def mig_serving(rng: Rng, n: int, *, rates: str, m: Fraction) -> Problem:
    """Models of very different speed, with required rates drawn independently of it."""
    machines = mig()
    # the middle model is linear: m sevenths of a whole GPU are what m slices give it
    middle = _SPEED * float(m)

    def draw(count: int) -> tuple[Integers, Integers]:
        speeds = _SPEED * rng.lognormal(0.0, _SPEED_SPREAD, count)
        supply = power_law(rng, count, machines.slices, EXPONENTS, speeds)
        if rates == "lognormal":
            drawn = middle * rng.lognormal(0.0, 0.75, count)
        else:
            drawn = middle * np.maximum(rng.normal(1.0, 0.5, count), _LEAST_RATE)
        return np.maximum(np.rint(drawn), 1).astype(np.int64), supply

    return machines.drawn(n, draw)


_SHARES = {"m": LOAD, "step": integer(5, 1, 50), "floor": integer(50, "step", 100)}


@family(9, **_SHARES)
def size_bounded(rng: Rng, n: int, *, step: int, floor: int, m: Fraction) -> Problem:
    """GPUs shared under MPS in steps of 5 %, say: k = 20, capacity 100."""
    machines = mps("gpu", step)

    def supply(count: int) -> Integers:
        return _shared(rng, step, floor, *_curves(rng, count))

    return draw_alike(rng, n, machines, supply, m)


@family(10, **_SHARES, mig_cost=real(1, above=0, most=1000))
def size_bounded_mixed(
    rng: Rng, n: int, *, step: int, floor: int, mig_cost: Fraction, m: Fraction
) -> Problem:
    """GPUs shared under MPS beside GPUs cut up by MIG: k = 25, say."""
    listed = mig()._replace(machine_types=(MachineType(A100, cost=mig_cost),))
    machines = joined([mps(f"{A100}-mps", step), listed])

    def supply(count: int) -> Integers:
        most, bend = _curves(rng, count)
        speeds = rng.uniform(0.9, 1.3, (count, len(listed.slices)))
        isolated = np.rint(_curve(most, bend, listed.slices / 7) * speeds).astype(np.int64)
        return np.hstack([_shared(rng, step, floor, most, bend), isolated])

    return draw_alike(rng, n, machines, supply, m)


def _curves(rng: Rng, count: int) -> tuple[Floats, Floats]:
    """Draw throughputs on a whole GPU and curves' constants."""
    return 10 ** rng.uniform(4, 5, count), 10 ** rng.uniform(-1, 1, count)


def _curve(most: Floats, bend: Floats, shares: Floats) -> Integers:
    """Return what shares of a GPU give, shape (jobs, shares)."""
    top, c = most[:, None], bend[:, None]
    return np.rint(top * (1 + c) * shares / (shares + c)).astype(np.int64)


def _shared(rng: Rng, step: int, floor: int, most: Floats, bend: Floats) -> Integers:
    """Draw what the multiples of a step give."""
    shares, count = np.arange(step, 101, step), len(most)
    supply = _curve(most, bend, shares / 100)
    least = step * rng.integers(1, floor // step, count, endpoint=True)
    least[rng.random(count) < 0.5] = step
    supply[least[:, None] > shares] = 0
    return supply


@family(24, types=integer(3, 1, 10), step=integer(2, 1, 50))
def few_jobs_many_shares(rng: Rng, n: int, *, types: int, step: int) -> Problem:
    """Machine types cut into many shares, for few jobs: hundreds of block types to choose from."""
    speeds = np.sort(rng.uniform(1, 12, types)).tolist()
    costs = [f"{speed**0.85 * rng.uniform(0.8, 1.25):.2f}" for speed in speeds]
    shares = np.arange(step, 101, step)
    machines = joined(
        [
            cut({f"g{m}:{share}": share for share in shares.tolist()}, 100, MachineType(f"g{m}", c))
            for m, c in enumerate(costs)
        ]
    )
    own = rng.lognormal(1.0, 0.8, n)
    rates = own[:, None] * speeds * rng.lognormal(0.0, 0.35, (n, types))
    tenths = np.maximum(1, np.rint(10 * rates)).astype(np.int64)
    demands = np.maximum(1, np.rint(own * rng.uniform(1, 8, n))).astype(np.int64)
    supply = (tenths[:, :, None] * shares).reshape(n, len(machines.blocks))
    return machines.problem(1000 * demands, supply)
