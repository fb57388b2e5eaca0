"""What the core costs on a large problem: every step of a solve that touches all jobs.

    python examples/core_costs.py --jobs 1000000 --family real-rows --demand 5

The figures in docs/measured/performance.md are this script's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from cms import BlockPrices, Configuration, Problem, Schedule, check
from cms.knapsack.kinds import kinds
from cms.knapsack.pricing import price_jobs
from cms.presolver.presolve import presolve
from instances.families import generate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--family", default="real-rows", help="one on a single A100 (k = 5)")
    parser.add_argument("--demand", default="5", help="m: the median demand is m/7 of a machine")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    n = arguments.jobs
    drawn = generate(arguments.family, n=n, seed=arguments.seed, m=arguments.demand)
    sizes = [int(block[0]) for block in drawn.blocks]
    rng = np.random.default_rng(arguments.seed)
    skewed = [int(size * 2**20 / 7 * rng.uniform(0.95, 1.05)) for size in sizes]
    table = drawn.rows.supplies.copy(), drawn.rows.demands.copy()
    print(f"{arguments.family}, m = {arguments.demand}, {n} jobs: seconds (ns a job)")
    pricing(drawn, sizes, skewed)

    def problem(divisor: int = 1) -> Problem:
        supply, demands = (part / divisor if divisor > 1 else part for part in table)
        return Problem.from_arrays(
            demands=demands,
            supply=supply,
            configurations=drawn.configurations,
            blocks=drawn.blocks,
            machine_types=drawn.machine_types,
        )

    timed("Problem.from_arrays, int64", n, problem)
    timed("Problem.from_arrays, 3 decimals", n, lambda: problem(1000))
    timed("Problem.sha256", n, drawn.compute_sha256)
    small = timed("reduce", n, lambda: presolve(drawn)).problem
    timed("reduce, nothing left to do", n, lambda: presolve(small))
    timed("kinds", n, lambda: kinds(small.rows))
    proof = BlockPrices({b: Fraction(size, 7) for b, size in zip(drawn.blocks, sizes, strict=True)})
    timed("BlockPrices.bound", n, lambda: proof.bound(drawn))
    machines, given = plan(drawn, sizes)
    schedule = timed(
        "Schedule.from_counts", n, lambda: Schedule.from_counts(drawn, machines, given)
    )
    timed("Schedule.without_idle_machines", n, schedule.without_idle_machines)
    timed("Schedule.cost", n, lambda: schedule.cost(drawn))
    assert timed("check", n, lambda: check(drawn, schedule)) == ()
    print(f"peak memory of the process: {peak():.2f} GiB")


def pricing(problem: Problem, sizes: list[int], skewed: list[int]) -> None:
    """Time passes of compiled pricing."""
    rows, n = problem.rows, problem.n_jobs
    for name, prices in (("proportional to size", sizes), ("5 % off", skewed)):
        for threads in (1, 2):

            def one_pass(prices: list[int] = prices, threads: int = threads) -> Any:
                return price_jobs(rows, prices, threads=threads, compiled=True)

            one_pass()  # load what was compiled
            found = timed(f"pricing at prices {name}, threads {threads}", n, one_pass)
        paid = sum(p * blocks for p, blocks in zip(prices, found.load, strict=True))
        print(f"    {paid - found.total} of {paid} not proved")
    timed(
        "pricing with options, all cores",
        n,
        lambda: price_jobs(rows, skewed, want_options=True),
    )
    timed("numpy copying the supply", n, rows.supplies.copy)


def plan(problem: Problem, prices: list[int]) -> tuple[dict[Configuration, int], Any]:
    """Cover the cheapest options with whichever configuration has most of each block."""
    found = price_jobs(problem.rows, prices, want_options=True)
    assert found is not None
    assert found.options is not None
    machines: dict[Configuration, int] = {}
    for block, load in zip(problem.blocks, found.load, strict=True):
        best = max(problem.listed_configurations, key=lambda shape: shape.blocks.get(block, 0))
        machines[best] = machines.get(best, 0) + -(-load // best.blocks[block])
    jobs, blocks = np.nonzero(found.options)
    return machines, (jobs, blocks, found.options[jobs, blocks])


def timed(what: str, n: int, work: Callable[[], Any]) -> Any:
    """Print the shorter time of two runs; return the result."""
    seconds = []
    for _ in range(2):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    print(f"{what:52} {min(seconds):8.3f} {min(seconds) / n * 1e9:9.0f}", flush=True)
    return result


def peak() -> float:
    if sys.platform == "win32":
        return float("nan")
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**30 if sys.platform == "darwin" else 2**20)


if __name__ == "__main__":
    main()
