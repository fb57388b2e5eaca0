"""The dynamic program against enumeration, and the sizes at which it gives up."""

from __future__ import annotations

from fractions import Fraction

import pytest

import algorithms.ptas.dynamic
from algorithms.ptas import optimum
from algorithms.ptas.dynamic import DynamicProgram
from algorithms.ptas.fleet import Fleet
from cms import (
    Configuration,
    Job,
    MachineType,
    NamedProblem,
    Problem,
    SizeBoundedConfigurations,
    UnsupportedProblem,
    check,
)
from cms.reduction.reduction import reduce
from instances import hard
from instances.families import generate
from tests.algorithms.price_and_branch.parts import Counting, Unlimited
from tests.algorithms.prices.parts import cases
from tests.families import FAMILIES, instance
from tests.samples import so_many, spread

FEW = so_many(8, 24)
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


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_it_finds_what_enumeration_finds(family: str) -> None:
    for case in cases(family, FEW):
        found = optimum(case.problem)
        assert found is not None
        assert found.cost == case.best, case.name
        assert found.schedule.cost(case.problem) == found.cost
        assert not check(case.problem, found.schedule), case.name


@pytest.mark.parametrize("one", NAMED, ids=lambda one: one.name)
def test_it_finds_the_optimum_of_named_instances(one: NamedProblem) -> None:
    found = optimum(one.make())
    assert found is not None
    assert found.cost == one.optimum


@pytest.mark.parametrize("number", range(24))
def test_a_job_that_nobody_serves_leaves_no_schedule(number: int) -> None:
    found = optimum(instance("infeasible_by_block", number))
    assert found is not None
    assert (found.cost, found.schedule.machine_count) == (None, 0)


def test_nothing_to_do_costs_nothing() -> None:
    idle = Problem(configurations=Configuration({"a": 1}), jobs=[Job("idle", 0, {"a": 1})])
    for problem in (idle, Problem(configurations=[])):
        found = optimum(problem)
        assert found is not None
        assert (found.cost, found.schedule.machine_count) == (0, 0)


def test_free_machines_supply_whatever_is_useful() -> None:
    problem = Problem(
        configurations=[Configuration({"a": 2, "b": 1}, "free"), Configuration({"c": 2}, "paid")],
        jobs=[Job("x", 5, {"a": 1}), Job("y", 3, {"c": 1}), Job("z", 4, {"b": 1, "c": 9})],
        machine_types=[MachineType("free", 0), MachineType("paid", "5/3")],
    )
    found = optimum(problem)
    assert found is not None
    assert found.cost == Fraction(10, 3)
    assert not check(problem, found.schedule)


def test_costs_are_the_sums_of_what_machines_cost_however_fine_their_step_is() -> None:
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
    found = optimum(problem)
    assert found is not None
    assert found.cost == Fraction(types["n"]) + Fraction(types["o"])
    assert not check(problem, found.schedule)


def test_a_search_below_a_cost_finds_nothing_at_the_optimum() -> None:
    problem = reduce(hard.NON_IRUP.make()).problem
    fleet = Fleet(problem)
    below = DynamicProgram(fleet, Fraction(3)).run(Fraction(2), lambda: False)
    assert below == (True, None)
    found = DynamicProgram(fleet, Fraction(4)).run(Fraction(2), lambda: False).found
    assert found is not None
    assert found.cost == 3


def test_a_lower_bound_only_skips_what_cannot_be() -> None:
    fleet = Fleet(reduce(hard.NON_IRUP.make()).problem)
    for lowest in (0, 1, 3):
        searched = DynamicProgram(fleet, Fraction(9)).run(Fraction(lowest), lambda: False)
        assert searched.found is not None
        assert searched.found.cost == 3


def test_it_ends_whenever_it_is_stopped() -> None:
    problem = hard.PARTITION_NO.make()
    whole = Counting(10**9)
    assert optimum(problem, whole) is not None
    for questions in range(0, whole.asked, 3):
        assert optimum(problem, Counting(questions)) is None
    assert optimum(problem, Unlimited()) == optimum(problem)


def test_a_limit_is_refused() -> None:
    problem = Problem(
        configurations=Configuration({"a": 1}), machine_types=[MachineType("machine", limit=1)]
    )
    with pytest.raises(UnsupportedProblem, match="limits"):
        optimum(problem)


def test_a_set_that_cannot_be_listed_is_refused() -> None:
    shares = SizeBoundedConfigurations({f"mps:{s}": s for s in range(1, 91)}, 100, max_blocks=48)
    jobs = [Job(f"j{s}", 3, {f"mps:{s}": 1}) for s in range(1, 91)]
    with pytest.raises(UnsupportedProblem, match="more than 20000 maximal"):
        optimum(Problem(configurations=shares, jobs=jobs))


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("MOST_CELLS", 3, "cells for each of 2 jobs"),
        ("_MOST_LAST", 1, r"of 2\*\*40 blocks at most"),
        ("MOST_PASSES", 1, "more than 1 different costs"),
        ("MOST_WORK", 1, "times or more through"),
        ("MOST_LEAVES", 1, "more than 1 combinations"),
    ],
)
def test_tables_that_are_too_large_are_refused_with_their_size(
    limit: str, value: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms.ptas.dynamic, limit, value)
    with pytest.raises(UnsupportedProblem, match=words):
        optimum(hard.PARTITION_NO.make())


def test_large_problems_are_refused() -> None:
    with pytest.raises(UnsupportedProblem, match="cells"):
        optimum(generate("real-rows", n=80, seed=1, m=5))
    huge = Problem(
        configurations=[Configuration({"a": 2, "b": 1}), Configuration({"b": 3})],
        jobs=[Job(name, 10**12, {"a": 1, "b": 2}) for name in "xy"],
    )
    with pytest.raises(UnsupportedProblem, match="cells"):
        optimum(huge)


# --- planted faults -------------------------------------------------------------------------------


def caught() -> int:
    """How many problems a weakened program gets wrong, or breaks on."""
    wrong = 0
    for family in ("random_configurations", "a100_arbitrary", "costs", "set_cover"):
        for case in cases(family, 12):
            try:
                found = optimum(case.problem)
                assert found is not None
                assert found.cost == case.best
                assert not check(case.problem, found.schedule)
            except (AssertionError, ValueError, IndexError):
                wrong += 1
    return wrong


def test_nothing_is_caught_where_nothing_is_wrong() -> None:
    assert caught() == 0


@pytest.mark.parametrize(
    "fault", ["one block too few", "one block too many", "a block for nothing"]
)
def test_a_table_weakened_by_one_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest_cap, honest_options = DynamicProgram._cap, DynamicProgram._options_of
    honest_with = DynamicProgram._with
    if fault == "one block too few":
        monkeypatch.setattr(DynamicProgram, "_cap", lambda self, i: max(0, honest_cap(self, i) - 1))
    elif fault == "one block too many":
        monkeypatch.setattr(
            DynamicProgram, "_with", lambda self, before, c: honest_with(self, before, c) + 1
        )
    else:
        monkeypatch.setattr(
            DynamicProgram,
            "_options_of",
            lambda self, demand, supply: honest_options(self, demand - max(supply), supply),
        )
    assert caught()
