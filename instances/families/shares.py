"""Families of GPUs cut into shares: configurations bounded by size, never listed."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations

from .family import LOAD, draw_alike, family, integer, real
from .machines import A100, Floats, Integers, Rng, joined, made, mig, mps

if TYPE_CHECKING:
    from cms.problem.problem import Problem

_SHARES = {"m": LOAD, "step": integer(5, 1, 50), "floor": integer(50, "step", 100)}


@family(9, **_SHARES)
def size_bounded(rng: Rng, n: int, *, step: int, floor: int, m: Fraction) -> Problem:
    """GPUs shared under MPS in steps of 5 %, say: k = 20, capacity 100.

    A share s of a GPU gives a job T (1 + c) s / (s + c): increasing, concave, T for the whole GPU,
    with a T from 10^4 to 10^5 and a c from 0.1 to 10, both log-uniform and the job's own. Half of
    the jobs are too slow on small shares: below a share of their own these give nothing.
    """
    machines = mps("gpu", step)

    def supply(count: int) -> Integers:
        return _shared(rng, step, floor, *_curves(rng, count))

    return draw_alike(rng, n, machines, supply, m)


@family(10, **_SHARES, mig_cost=real(1, above=0, most=1000))
def size_bounded_mixed(
    rng: Rng, n: int, *, step: int, floor: int, mig_cost: Fraction, m: Fraction
) -> Problem:
    """GPUs shared under MPS beside GPUs cut up by MIG: k = 25, say.

    What a MIG instance gives is the share's curve at its sevenths of a GPU times a factor of the
    job's own for each profile, uniform from 0.9 to 1.3: isolation against interference.
    """
    listed = mig()._replace(machine_types=(MachineType(A100, cost=mig_cost),))
    machines = joined([mps(f"{A100}-mps", step), listed])

    def supply(count: int) -> Integers:
        most, bend = _curves(rng, count)
        isolated = _curve(most, bend, listed.slices / 7) * rng.uniform(
            0.9, 1.3, (count, len(listed.slices))
        )
        shared = _shared(rng, step, floor, most, bend)
        return np.hstack([shared, np.rint(isolated).astype(np.int64)])

    return draw_alike(rng, n, machines, supply, m)


def _curves(rng: Rng, count: int) -> tuple[Floats, Floats]:
    """Draw each job's throughput on a whole GPU and its curve's constant."""
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
    """Machine types cut into many shares, for few jobs: hundreds of block types to choose from.

    A share s of a machine gives a job s times its rate there: the machine type's speed, uniform
    from 1 to 12, times the job's own rate, lognormal around e, times noise. A cost is the speed to
    the power of 0.85, up to a quarter more or a fifth less. A job needs 1 to 8 times its own rate,
    parts of machines. Numbers are in units of 1/1000.
    """
    speeds = np.sort(rng.uniform(1, 12, types)).tolist()
    costs = [f"{speed**0.85 * rng.uniform(0.8, 1.25):.2f}" for speed in speeds]
    shares = np.arange(step, 101, step)
    parts = []
    for m, cost in enumerate(costs):
        sizes = {f"g{m}:{share}": share for share in shares.tolist()}
        shape = SizeBoundedConfigurations(sizes, 100, f"g{m}")
        parts.append(made([*sizes], [shape], [MachineType(f"g{m}", cost)], [*sizes.values()]))
    machines = joined(parts)
    own = rng.lognormal(1.0, 0.8, n)
    rates = own[:, None] * speeds * rng.lognormal(0.0, 0.35, (n, types))
    tenths = np.maximum(1, np.rint(10 * rates)).astype(np.int64)
    demands = np.maximum(1, np.rint(own * rng.uniform(1, 8, n))).astype(np.int64)
    supply = (tenths[:, :, None] * shares).reshape(n, len(machines.blocks))
    return machines.problem(1000 * demands, supply)
