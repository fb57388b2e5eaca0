"""What is measured: one benchmark a hot path, collected by ``python -m bench.micro`` alone."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cms import BlockPrices, check, solve
from cms.files.problems import problem_to_json
from cms.files.solutions import solution_to_json
from cms.fleet import get_gpu
from cms.knapsack.pricing import price_jobs
from cms.presolver.presolve import presolve
from instances.families import generate
from proofs_checks.checker import check_solution

if TYPE_CHECKING:
    from cms.problem.problem import Problem
    from cms.solving.solution import Solution

#: In the order of the families' blocks, 1 to 7 slices: close to what a search ends with, and no
#: machine of cost 2^20 is worth more.
_PRICES = (149_700, 299_500, 449_100, 598_900, 1_048_576)


@cache
def problem(n: int) -> Problem:
    """Draw a problem, once."""
    return generate("real-rows", n=n, seed=1, m=5)


@cache
def solution(n: int) -> Solution:
    """Solve it, once."""
    return solve(problem(n))


def test_yardstick(benchmark: Any) -> None:
    """Sorting a million random numbers, what all others are measured in."""
    numbers = np.random.default_rng(0).random(1_000_000)
    benchmark(np.sort, numbers)


@pytest.mark.parametrize("n", [300, 100_000])
def test_pricing_pass(benchmark: Any, n: int) -> None:
    """One pass over the jobs at given prices: plain for a few, compiled for many."""
    rows = problem(n).rows
    price_jobs(rows, _PRICES, compiled=n > 1_000)  # compiling is not what is measured
    benchmark(price_jobs, rows, _PRICES, compiled=n > 1_000)


def test_reduce(benchmark: Any) -> None:
    """Leaving out what cannot matter, 100,000 jobs."""
    benchmark(presolve, problem(100_000))


def test_check_of_a_schedule(benchmark: Any) -> None:
    """The exact check of a schedule, 10,000 jobs."""
    assert not benchmark(check, problem(10_000), solution(10_000).schedule)


def test_bound_of_a_certificate(benchmark: Any) -> None:
    """The exact bound of block prices, 10,000 jobs."""
    drawn = problem(10_000)
    proof = BlockPrices({b: Fraction(v, 2**20) for b, v in zip(drawn.blocks, _PRICES, strict=True)})
    benchmark(proof.bound, drawn)


def test_independent_checker(benchmark: Any) -> None:
    """The second checker, a solution of 300 jobs from its documents."""
    documents = problem_to_json(problem(300)), solution_to_json(solution(300))
    assert not benchmark(check_solution, *documents)


@pytest.mark.parametrize("method", ["auto", "greedy", "lp_rounding", "ptas"])
def test_solve(benchmark: Any, method: str) -> None:
    """A whole solve, 100 jobs, checks included."""
    benchmark(solve, problem(100), method, time_limit=30)


def test_placement(benchmark: Any) -> None:
    """A thousand look-ups of start slots on an A100."""
    card = get_gpu("a100-80gb")
    profiles = [name for name in card.base_profiles if "7g" not in name]
    rng = random.Random(1)
    wanted = [{name: rng.randrange(3) for name in profiles} for _ in range(1_000)]
    benchmark(lambda: [card.place(counts) for counts in wanted])
