"""The whole method on demands of a trillion blocks, and on numbers that no float holds."""

from __future__ import annotations

import pytest

from cms import Configuration, MachineType, SizeBoundedConfigurations, check, solve
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
def test_free_machines_run_out_at_any_size(exponent: int) -> None:
    huge = 10**exponent
    problem = of(
        *FREE,
        jobs={"x": (huge, {"a": 1})},
        types=(MachineType("free", 0, huge // 100), MachineType("paid", 3)),
    )
    proved(problem, 3 * (huge - huge // 100))


@pytest.mark.parametrize("limited", few(1, [True, False]))
@pytest.mark.parametrize("exponent", LONG)
def test_several_huge_demands_end_at_the_bound_or_next_to_it(exponent: int, limited: bool) -> None:
    huge = 10**exponent
    types = (
        MachineType("m", 2, huge // 10 if limited else None),
        MachineType("n", "3/2"),
    )
    problem = of(
        Configuration({"a": 2, "b": 1}, "m"),
        Configuration({"b": 3}, "n"),
        Configuration({"c": 7}, "n"),
        jobs={
            "x": (huge, {"a": "6.5", "b": 1}),
            "y": (huge + 7, {"a": 3, "b": 2, "c": 1}),
            "z": (3 * huge // 10 + 1, {"a": 1, "b": 1, "c": 1}),
            "small": (3, {"b": 1}),
        },
        types=types,
    )
    solution = solve(problem, "price_and_branch", threads=1, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert solution.gap is not None
    # Whole machines of either type differ by 1/2.
    assert solution.gap <= 2
    assert len(solution.schedule.groups) <= 60


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
