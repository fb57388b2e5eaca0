"""The whole method on demands of a trillion blocks, and on numbers that no float holds."""

from __future__ import annotations

import pytest

from cms import Configuration, SizeBoundedConfigurations, check, solve
from instances.families import generate
from tests.algorithms.branch_and_price.parts import single
from tests.algorithms.branch_and_price.proving import of, proved
from tests.samples import few

PAIR = Configuration({"a": 2, "b": 1})
FREE = (Configuration({"a": 1}, "free"), Configuration({"a": 1}, "paid"))

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
