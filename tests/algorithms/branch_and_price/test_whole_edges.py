"""The whole method at the edges of the model and at demands that no float holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cms import Configuration, MachineType, Problem, SizeBoundedConfigurations, check, solve
from instances.families import generate
from tests.algorithms.branch_and_price.parts import single
from tests.algorithms.branch_and_price.proving import of, proved
from tests.samples import few

ONE, PAIR = Configuration({"a": 1}), Configuration({"a": 2, "b": 1})
FREE = (Configuration({"a": 1}, "free"), Configuration({"a": 1}, "paid"))

EDGES: dict[str, tuple[Callable[[], Problem], Any]] = {
    "no jobs": (lambda: Problem(configurations=ONE), 0),
    "no configurations": (lambda: of(jobs={"x": (0, {})}), 0),
    "no configuration for a job": (lambda: of(jobs={"x": (1, {})}), None),
    "demand 0 in a row of long numbers": (
        lambda: of(
            Configuration({"a": 4, "b": 2}),
            jobs={"x": (19, {"a": 4, "b": 4}), "nothing": (0, {"a": 10**30})},
        ),
        1,
    ),
    "a block that no machine has": (
        lambda: Problem.from_arrays(
            demands=[5], supply=[[1, 9]], configurations=[ONE], blocks=["a", "nowhere"]
        ),
        5,
    ),
    "free machines": (
        lambda: of(
            *FREE, jobs={"x": (500, {"a": 1})}, types=(MachineType("free", 0), MachineType("paid"))
        ),
        0,
    ),
    "two free machines": (
        lambda: of(
            *FREE,
            jobs={"x": (5, {"a": 1})},
            types=(MachineType("free", 0, 2), MachineType("paid", 3)),
        ),
        9,
    ),
    "limit 0 and nothing else": (lambda: single({"a": 1}, 5, {"a": 1}, limit=0), None),
    "a limit missed by one": (lambda: single({"a": 2}, 5, {"a": 1}, limit=2), None),
    "all of a set too large": (
        lambda: of(SizeBoundedConfigurations({"a": 5, "b": 3}, 2), jobs={"x": (5, {"a": 1})}),
        None,
    ),
    "no blocks allowed but one": (
        lambda: of(
            SizeBoundedConfigurations({"a": 1}, 10, max_blocks=1), jobs={"x": (5, {"a": 1})}
        ),
        5,
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_of_the_model_is_solved_and_proved(name: str) -> None:
    make, cost = EDGES[name]
    proved(make(), cost)


#: Beyond an int64, beyond a float; and on either side of these.
LONG = few(3, [18, 309, 30, 12, 308, 400])


@pytest.mark.parametrize("exponent", LONG)
def test_one_block_at_any_demand(exponent: int) -> None:
    huge = 10**exponent
    proved(single({"a": 3}, huge, {"a": 1}), -(-huge // 3))
    proved(single({"a": 1}, huge, {"a": 1}, cost=2, limit=huge), 2 * huge)
    proved(single({"a": 1}, huge, {"a": 1}, limit=huge - 1), None)


@pytest.mark.parametrize("exponent", LONG)
def test_two_blocks_at_any_demand(exponent: int) -> None:
    """A machine gives 14, used up to the last block: the bound is the optimum."""
    huge = 10**exponent
    proved(single({"a": 2, "b": 1}, huge, {"a": "6.5", "b": 1}), -(-huge // 14))


@pytest.mark.parametrize("exponent", LONG)
def test_a_size_bounded_set_at_any_demand(exponent: int) -> None:
    huge = 10**exponent
    shares = SizeBoundedConfigurations({"a": 44, "b": 33, "c": 12}, 132)
    problem = of(
        shares, jobs={"x": (huge, {"a": "6.5", "b": 1}), "y": (huge + 7, {"a": 3, "c": 1})}
    )
    solution = solve(problem, "price_and_branch", threads=1, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert solution.gap is not None
    assert solution.gap <= 1


@pytest.mark.parametrize("case", few(3, [(1, 2), (5, 6), (10, 7), (30, 0), (10, 10), (10, 11)]))
def test_huge_and_small_demands_together_are_proved(case: tuple[int, int]) -> None:
    """Millions of machines for some jobs, and a few for others."""
    n, seed = case
    problem = generate("huge-demands", n=n, seed=seed)
    solution = solve(problem, "price_and_branch", threads=1, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert (solution.status, solution.proof) == ("optimal", "checked")
