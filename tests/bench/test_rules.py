"""Rules of thumb, ParvaGPU's rule, and the bound that leaves layouts out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.row import Outcome, RunRow
from bench.rules import BOUNDS, RULES
from bench.rules.parvagpu import parvagpu
from bench.runs import perform
from bench.task import NAMED, Kind, Source, Task
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    UnsupportedProblem,
    check,
    solve,
)
from instances.families import families, generate
from tests.bench.stand_in import on_a100
from tests.property.problems import share

#: systems.md 4.4 and 4.5, at most 3 processes; the mix and first fit are our own measurement.
GPUS = {
    "whole_gpus": (6, 11, 11, 11, 22, 22),
    "smallest": (2, 3, 5, 7, 14, 19),
    "static_mix": (3, 5, 6, 8, 15, 20),
    "first_fit": (2, 3, 5, 8, 14, 20),
    "parvagpu": (2, 3, 5, 7, 13, 17),
}


def scenario(name: str) -> Problem:
    return Source(family=name, module=NAMED).problem()


def test_every_rule_knows_the_published_scenarios_or_machines_cut_at_will() -> None:
    assert {*GPUS, "best_fit"} == set(RULES)


@pytest.mark.parametrize("name", GPUS)
def test_the_published_scenarios_need_the_known_gpus(name: str) -> None:
    found = [RULES[name].schedule(scenario(f"S{i}")).machine_count for i in range(1, 7)]
    assert tuple(found) == GPUS[name]


def test_without_its_last_step_parvagpu_needs_what_its_authors_code_needs() -> None:
    found = [parvagpu(scenario(f"S{i}"), repack=False).machine_count for i in range(1, 7)]
    assert found == [2, 3, 8, 11, 22, 29]


@pytest.mark.parametrize("family", [*families(), "beyond any float"])
def test_a_rule_makes_a_valid_schedule_or_says_why_not(family: str) -> None:
    beyond = [(10**400, [1, 2, 3, 4, 7])]
    problem = generate(family, n=40, seed=3) if family in families() else on_a100(beyond)
    for rule in RULES.values():
        try:
            schedule = rule.schedule(problem)
        except UnsupportedProblem:
            continue
        assert not check(problem, schedule)


@share(4)
@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.lists(st.integers(0, 60), min_size=5, max_size=5)),
        max_size=5,
    )
)
def test_no_rule_needs_less_than_the_optimum(rows: list[tuple[int, list[int]]]) -> None:
    problem = on_a100(rows)
    best = solve(problem)
    for rule in RULES.values():
        try:
            schedule = rule.schedule(problem)
        except UnsupportedProblem:
            continue
        assert not check(problem, schedule)
        assert best.cost is not None
        assert schedule.cost(problem) >= best.cost


@pytest.mark.parametrize(
    ("name", "rows", "why"),
    [
        ("smallest", [(5, [0, 1, 1, 1, 1])], "serves job 'j0'"),
        ("static_mix", [(5, [0, 0, 1, 0, 1])], "serves not every job"),
        ("first_fit", [(5, [0, 0, 0, 0, 0])], "no block serves job 'j0'"),
        ("parvagpu", [(10**12, [1, 2, 3, 4, 7])], "one by one"),
        ("static_mix", [(10**12, [1, 2, 3, 4, 7])], "one by one"),
        ("best_fit", [(5, [1, 2, 3, 4, 7])], "cut at will, no listed ones"),
    ],
)
def test_what_a_rule_cannot_do_it_says(
    name: str, rows: list[tuple[int, list[int]]], why: str
) -> None:
    with pytest.raises(UnsupportedProblem, match=why):
        RULES[name].schedule(on_a100(rows))


def test_whole_gpus_take_the_cheapest_type_for_each_job() -> None:
    problem = Problem(
        configurations=[Configuration({"big": 1}, "new"), Configuration({"small": 1}, "old")],
        jobs=[
            Job("x", 10, {"big": 10, "small": 5}),
            Job("y", 10, {"big": 10, "small": 1}),
            Job("z", 0, {"small": 1}),
        ],
        machine_types=[MachineType("new", 3), MachineType("old", 1)],
    )
    schedule = RULES["whole_gpus"].schedule(problem)
    assert not check(problem, schedule)
    assert schedule.cost(problem) == Fraction(2 + 3)


def test_a_rule_is_a_run_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(family="S5", module=NAMED)
    task = Task(
        suite="s", kind=Kind.RULE, source=source, method="parvagpu", time_limit=9, warm_up=False
    )
    row = perform(task, 1, lambda stage, facts: None)
    assert (row.outcome, row.status, row.cost, row.checker) == (
        Outcome.ANSWERED, "feasible", 13, "cms",
    )  # fmt: skip

    class Liar:
        name = summary = "liar"

        def schedule(self, problem: Problem) -> object:
            return parvagpu(scenario("S4"))

    monkeypatch.setitem(RULES, "parvagpu", Liar())
    row = perform(task, 1, lambda stage, facts: None)
    assert row.outcome is Outcome.FAILED
    assert row.error is not None
    assert row.error.startswith("its schedule is not valid: ")


def one_by_one(sizes: list[int], capacity: int) -> int:
    """Count the bins of best fit decreasing, an item at a time."""
    bins: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        room = [held for held in bins if sum(held) + size <= capacity]
        if room:
            max(room, key=sum).append(size)
        else:
            bins.append([size])
    return len(bins)


@share(4)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30)), min_size=1, max_size=6),
    st.none() | st.integers(1, 9),
)
def test_best_fit_is_that_of_an_item_at_a_time(
    wanted: list[tuple[int, int]], most: int | None
) -> None:
    sizes = {f"size-{size}": size for size, _ in wanted}
    problem = Problem(
        configurations=SizeBoundedConfigurations(sizes, 20, max_blocks=most),
        jobs=[Job(f"j{j}", n, {f"size-{size}": 1}) for j, (size, n) in enumerate(wanted)],
    )
    schedule = RULES["best_fit"].schedule(problem)
    assert not check(problem, schedule)
    items = [size for size, number in wanted for _ in range(number)]
    if most is None:
        assert schedule.machine_count == one_by_one(items, 20)
    best = solve(problem).cost
    assert best is not None
    assert schedule.cost(problem) >= best


BOUND = BOUNDS["partition_free"]
SLICES = (1, 2, 3, 4, 7)


def value(problem: Problem) -> Fraction:
    return BOUND.certificate(problem).bound(problem)


def fewest_slices(demand: int, supply: list[int]) -> int:
    """Try every multiset of instances none of which alone would be one too many."""
    most = [range(ceil(demand / gives) + 1) if gives else range(1) for gives in supply]
    return min(
        sum(count * size for count, size in zip(counts, SLICES, strict=True))
        for counts in product(*most)
        if sum(count * gives for count, gives in zip(counts, supply, strict=True)) >= demand
    )


def performed(source: Source) -> RunRow:
    task = Task(
        suite="s", kind=Kind.BOUND, source=source, method=BOUND.name, time_limit=9, warm_up=False
    )
    return perform(task, 1, lambda stage, facts: None)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 60),
            st.lists(st.integers(0, 60).map(lambda n: n if n >= 10 else 0), min_size=5, max_size=5),
        ).filter(lambda row: any(row[1])),
        min_size=1,
        max_size=2,
    ),
    st.integers(1, 3),
)
def test_it_is_the_fewest_slices_of_every_service_over_seven(
    rows: list[tuple[int, list[int]]], cost: int
) -> None:
    slices = sum(fewest_slices(demand, supply) for demand, supply in rows)
    assert value(on_a100(rows, cost)) == Fraction(cost * slices, 7)


SHARES = SizeBoundedConfigurations({"a": 1}, capacity=2)


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (
            on_a100([(1, [1] * 5)]).replace(machine_types=[MachineType("a100-80gb", limit=3)]),
            "limit",
        ),
        (generate("mixed-fleet", n=3, seed=1), "one GPU type, not several"),
        (Problem(configurations=SHARES, jobs=[Job("x", 1, {"a": 1})]), "MIG layouts, not shares"),
        (generate("random-configurations", n=3, seed=1), "MIG alone"),
        (on_a100([(1, [0] * 5)]), "no block serves job 'j0'"),
    ],
)
def test_what_it_does_not_know_it_says(problem: Problem, why: str) -> None:
    with pytest.raises(UnsupportedProblem, match=why):
        BOUND.certificate(problem)


def test_a_bound_is_a_run_with_a_lower_bound_and_no_schedule() -> None:
    row = performed(Source(family="S5", module=NAMED))
    assert (row.kind, row.outcome, row.status, row.proof) == (
        "bound", Outcome.ANSWERED, "no_schedule", "none",
    )  # fmt: skip
    assert (row.lower_bound, row.cost, row.gap, row.checker) == (Fraction(82, 7), None, None, "cms")
    assert row.seconds is not None
    assert row.check_seconds is not None
    assert RunRow.from_line(row.to_line()) == row
