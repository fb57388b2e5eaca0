"""Both exact parts against enumeration, and the sizes at which they give up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import algorithms.ptas.exact
from algorithms.ptas.exact import CompactProgram, DynamicProgram, Fleet
from cms import (
    Configuration,
    Job,
    MachineType,
    NamedProblem,
    Problem,
    UnsupportedProblem,
    check,
)
from cms.reduction.reduction import reduce
from instances import hard
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Counting, Unlimited
from tests.algorithms.prices.parts import cases
from tests.algorithms.ptas.parts import run
from tests.families import FAMILIES
from tests.samples import so_many, spread

WAYS = (DynamicProgram, CompactProgram)
NAMED = [
    hard.CEIL_GAP,
    hard.AGGREGATED_LP_GAP,
    hard.NO_TRUNCATION_GAP,
    hard.NEEDLESS_DOUBLING,
    hard.PARTITION_YES,
    hard.PARTITION_NO,
    hard.HALF_TRAP,
    hard.NON_IRUP,
    hard.BIN_PACKING,
    hard.SLOTS_NEEDED,
    hard.EXPLICIT_LIST_YES,
    hard.EXPLICIT_LIST_NO,
    hard.SET_COVER_F2_2,
    hard.SET_COVER_F2_3,
    hard.GREEDY_TRAP_3,
]


def searched(way: Any, problem: Problem, lowest: Any, highest: Any) -> list[Fraction]:
    """The costs of what a way finds between two costs; every schedule is checked."""
    reduction = reduce(problem)
    fleet = Fleet(reduction.problem)
    *found, last = way(fleet, Fraction(lowest), Fraction(highest)).run(Unlimited())
    assert last is None
    for one in found:
        schedule = reduction.restore(fleet.schedule(one))
        assert not check(problem, schedule)
        assert schedule.cost(problem) == fleet.price(one)
    return [fleet.price(one) for one in found]


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


@pytest.mark.parametrize("one", NAMED, ids=lambda one: one.name)
def test_the_tables_find_the_optimum_of_named_instances(one: NamedProblem) -> None:
    assert run(one.make(), exact="dynamic", epsilon="1/1000").cost == one.optimum


def fine_costs() -> tuple[Problem, Fraction]:
    """Costs whose common step is tiny, and the optimum."""
    types = {"m": "1000003/1000033", "n": "999983/1000037", "o": "999979/1000039"}
    problem = Problem(
        configurations=[
            Configuration({"a": 1, "b": 1}, "m"),
            Configuration({"b": 1, "c": 1}, "n"),
            Configuration({"a": 1, "c": 1}, "o"),
        ],
        jobs=[Job(name, 1, {name: 1}) for name in "abc"],
        machine_types=[MachineType(name, cost) for name, cost in types.items()],
    )
    return problem, Fraction(types["n"]) + Fraction(types["o"])


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
    monkeypatch.setattr(algorithms.ptas.exact, limit, value)
    with pytest.raises(UnsupportedProblem, match="tables of the dynamic program"):
        searched(DynamicProgram, hard.PARTITION_NO.make(), 0, 9)


def test_large_problems_are_refused() -> None:
    huge = Problem(
        configurations=[Configuration({"a": 2, "b": 1}), Configuration({"b": 3})],
        jobs=[Job(name, 10**12, {"a": 1, "b": 2}) for name in "xy"],
    )
    for problem in (generate("real-rows", n=80, seed=1, m=5), huge):
        with pytest.raises(UnsupportedProblem, match="tables of the dynamic program"):
            searched(DynamicProgram, problem, 0, 10**12)
    jobs = [Job("x", 2**62 - 1, {"a": 2**61 + 1, "b": 2**61})]
    large = Problem(configurations=Configuration({"a": 1, "b": 1}), jobs=jobs)
    for problem in (
        large,
        fine_costs()[0].replace(
            machine_types=[
                MachineType(name, Fraction(cost, 10**20 + cost))
                for name, cost in zip("mno", (3, 7, 9), strict=True)
            ]
        ),
    ):
        with pytest.raises(UnsupportedProblem, match="beyond 2"):
            searched(CompactProgram, problem, 0, 9)


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
        lambda self, least, most: _pay(self, least + 1, most),
    ),
    "costs end a step too low": (
        CompactProgram,
        "_pay",
        lambda self, least, most: _pay(self, least, most - 3),
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
