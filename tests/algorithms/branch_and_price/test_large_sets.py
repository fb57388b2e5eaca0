"""Size-bounded sets of thousands of contents, and blocks worth a trillionth of a machine."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from fractions import Fraction

import pytest

from algorithms.tables.integers import listed
from cms import (
    Incumbent,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    Solution,
    check,
    solve,
)
from tests.algorithms.branch_and_price.parts import shares
from tests.samples import few

METHOD = "price_and_branch"


@pytest.mark.parametrize("seed", few(2, [0, 2, 5, 1, 3, 4, 6, 7]))
@pytest.mark.parametrize("beside", [False, True])
def test_sets_too_large_to_be_listed_are_scheduled_and_proved(seed: int, beside: bool) -> None:
    problem = shares(seed, 3 + 6 * seed, beside=beside)
    assert listed(problem, 2_000).left_out
    solution = solve(problem, METHOD, threads=1, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert solution.proof == "checked"


def until(problem: Problem, enough: Callable[[Incumbent], bool]) -> Solution:
    """Run as far as a line of the history, however long that takes."""
    cancel = threading.Event()

    def improved(line: Incumbent) -> None:
        if enough(line):
            cancel.set()

    return solve(
        problem, METHOD, threads=1, time_limit=None, cancel=cancel, on_improvement=improved
    )


def test_more_block_types_than_python_has_frames() -> None:
    rng = random.Random(5)
    sizes = {f"b{i}": rng.randint(400, 3000) for i in range(1_500)}
    jobs = [
        Job(f"j{j}", rng.randint(100, 9000), {b: s + rng.randint(0, 90) for b, s in sizes.items()})
        for j in range(4)
    ]
    problem = Problem(configurations=SizeBoundedConfigurations(sizes, 10_000), jobs=jobs)
    solution = until(problem, lambda line: line.cost is not None and line.lower_bound > 0)
    assert check(problem, solution.schedule) == ()
    assert solution.cost is not None
    assert 0 < solution.lower_bound <= solution.cost


def _hundred_shares(costs: tuple[str, str], least: int = 0, step: int = 1) -> Problem:
    """Four jobs on shares of two machine types: a share gives nothing up to ``least`` per cent."""
    rates = {"small": (2, 1, 5, 2), "large": (20, 20, 40, 20)}
    steps = range(step, 101, step)
    jobs = [
        Job(
            f"j{number}",
            demand,
            {
                f"{machine}:{share}": Fraction(rate[number] * max(0, share - least), 100 - least)
                for machine, rate in rates.items()
                for share in steps
            },
        )
        for number, demand in enumerate((6, 3, 15, 6))
    ]
    sizes = {machine: {f"{machine}:{share}": share for share in steps} for machine in rates}
    return Problem(
        configurations=[SizeBoundedConfigurations(sizes[m], 100, m) for m in rates],
        jobs=jobs,
        machine_types=[MachineType(m, cost) for m, cost in zip(rates, costs, strict=True)],
    )


@pytest.mark.parametrize(("costs", "cost"), [(("1.01", "3.67"), "4.68"), (("1", "4"), "5")])
def test_few_jobs_on_shares_in_steps_of_one_per_cent_are_proved(
    costs: tuple[str, str], cost: str
) -> None:
    problem = _hundred_shares(costs)
    solution = solve(problem, threads=1, time_limit=None)
    assert (solution.cost, solution.proof) == (Fraction(cost), "checked")
    assert solution.certificate.bound(problem) <= Fraction(cost)
