"""Both exact parts against enumeration, and the sizes at which they give up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import algorithms.ptas.few_machines
from algorithms.ptas.few_machines import CompactProgram, DynamicProgram, Fleet
from cms import Problem, UnsupportedProblem, check
from cms.reduction.reduction import reduce
from instances import hard
from tests.algorithms.branch_and_price.parts import Counting, Unlimited, cases
from tests.families import FAMILIES
from tests.samples import so_many, spread

WAYS = (DynamicProgram, CompactProgram)


def searched(way: Any, problem: Problem, lowest: Any, highest: Any) -> list[Fraction]:
    """The costs of what a way finds between two costs; every schedule is checked."""
    reduction = reduce(problem)
    fleet = Fleet(reduction.problem)
    *found, last = way(fleet, Fraction(lowest), Fraction(highest)).run(Unlimited())
    assert last is None
    for one in found:
        assert not check(problem, reduction.restore(one))
    return [one.cost(reduction.problem) for one in found]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_a_way_finds_what_enumeration_finds(family: str, way: Any) -> None:
    for case in cases(family, so_many(6, 24)):
        step = Fleet(reduce(case.problem).problem).step
        if not step or not case.best:
            continue  # nothing to do, or nothing to pay
        for lowest in (0, case.best):
            costs = searched(way, case.problem, lowest, case.best + 3 * step)
            assert costs == sorted(costs, reverse=True), case.name
            assert costs[-1] == case.best, case.name
        # Below the optimum there is nothing.
        assert searched(way, case.problem, 0, case.best) == [], case.name


def test_a_search_ends_whenever_it_is_stopped() -> None:
    fleet = Fleet(reduce(hard.PARTITION_NO.make()).problem)
    table = DynamicProgram(fleet, Fraction(0), Fraction(9))
    whole = Counting(10**9)
    assert len(list(table.run(whole))) == 2
    for questions in range(0, whole.asked, 3):
        assert list(table.run(Counting(questions))) == []
    budget = Unlimited()
    budget.stopped = True
    assert list(CompactProgram(fleet, Fraction(0), Fraction(9)).run(budget)) == []


@pytest.mark.parametrize(
    ("limit", "value"),
    [("MAX_CELLS", 3), ("MAX_LAST", 1), ("MAX_PASSES", 1), ("MAX_WORK", 1), ("MAX_LEAVES", 1)],
)
def test_tables_that_are_too_large_are_refused(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms.ptas.few_machines, limit, value)
    with pytest.raises(UnsupportedProblem, match="tables of the dynamic program"):
        searched(DynamicProgram, hard.PARTITION_NO.make(), 0, 9)


# --- planted faults -------------------------------------------------------------------------------

_cap, _options, _add = (
    DynamicProgram._cap,
    DynamicProgram._list_options,
    DynamicProgram._add_machine,
)
_tabulate, _pay = DynamicProgram._tabulate, CompactProgram._pay
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "one block too few": (DynamicProgram, "_cap", lambda self, i: max(0, _cap(self, i) - 1)),
    "one block too many": (DynamicProgram, "_add_machine", lambda self, *one: _add(self, *one) + 1),
    "a block for nothing": (
        DynamicProgram,
        "_list_options",
        lambda self, demand, supply: _options(self, demand - max(supply), supply),
    ),
    "a cost is left out": (
        DynamicProgram,
        "_tabulate",
        lambda self, tables, cost, budget: (
            0 * tables[0] if cost else _tabulate(self, {}, 0, budget)
        ),
    ),
    "costs begin a step too high": (
        CompactProgram,
        "_pay",
        lambda self, costs, least, most: _pay(self, costs, least + 1, most),
    ),
    "costs end a step too low": (
        CompactProgram,
        "_pay",
        lambda self, costs, least, most: _pay(self, costs, least, most - 3),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_way_with_a_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises((AssertionError, ValueError, IndexError)):
        sweep(FAULTS[fault][0])


def sweep(way: Any) -> None:
    for family in ("random_configurations", "a100_arbitrary", "costs", "set_cover"):
        test_a_way_finds_what_enumeration_finds(family, way)
