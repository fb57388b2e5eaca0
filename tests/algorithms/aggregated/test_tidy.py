"""Clean-up: what nobody needs goes, and blocks handed out anew save machines."""

from __future__ import annotations

from fractions import Fraction

import pytest

import algorithms.aggregated.tidy as tidy
from algorithms.aggregated.tidy import HandedOut, handed_out, with_fewer_machines, without_waste
from algorithms.tables.integers import Tables
from cms import Configuration, Job, MachineType, Problem, solve
from cms.solving.driver import RunBudget
from cms.solving.ledger import Ledger


def budget(tables: Tables) -> RunBudget:
    ledger = Ledger(tables.problem, "test", trusted=True, clock=lambda: 0.0)
    return RunBudget(ledger, seed=0, threads=1, end=float("inf"))


def two_pairs(scale: int = 1) -> Problem:
    """Each type serves one of two jobs well and the other one badly; one machine is enough."""
    shape = Configuration({"a": scale, "b": scale})
    jobs = [Job("x", 4 * scale, {"a": 4, "b": 1}), Job("y", 4 * scale, {"a": 1, "b": 4})]
    return Problem(configurations=shape, jobs=jobs)


def test_blocks_handed_out_anew_save_machines() -> None:
    tables = Tables.of(two_pairs())
    # Everybody has the wrong blocks: nothing can be taken back.
    given = {(1, 0): 4, (0, 1): 4}
    assert without_waste(tables, [4], given) == ([4], given)
    counts = with_fewer_machines(tables, ([4], given), Fraction(1), budget(tables))
    assert counts == ([1], {(0, 0): 1, (1, 1): 1})


def test_a_bound_ends_the_search_for_fewer_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> HandedOut:
        raise AssertionError("fewer machines than the bound allows were tried")

    monkeypatch.setattr(tidy, "handed_out", never)
    tables = Tables.of(two_pairs())
    counts = ([4], {(1, 0): 4, (0, 1): 4})
    assert with_fewer_machines(tables, counts, Fraction(4), budget(tables)) == counts
    assert with_fewer_machines(tables, counts, Fraction(7, 2), budget(tables)) == counts


def test_dear_machines_go_first() -> None:
    types = [MachineType("m", 1), MachineType("n", 3)]
    shapes = [Configuration({"a": 1}, "m"), Configuration({"a": 1, "b": 1}, "n")]
    jobs = [Job("x", 2, {"a": 1, "b": 2})]
    tables = Tables.of(Problem(configurations=shapes, jobs=jobs, machine_types=types))
    # Either could go.
    counts = with_fewer_machines(tables, ([2, 1], {(1, 0): 1}), Fraction(0), budget(tables))
    assert counts == ([2, 0], {(0, 0): 2})
    # The dear one is needed here.
    counts = with_fewer_machines(tables, ([1, 1], {(1, 0): 1}), Fraction(0), budget(tables))
    assert counts == ([0, 1], {(1, 0): 1})


def test_what_cannot_be_handed_out_is_told_from_what_is_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = Tables.of(two_pairs())
    assert handed_out(tables, [1], budget(tables)) == HandedOut({(0, 0): 1, (1, 1): 1}, True)
    assert handed_out(tables, [0], budget(tables)) == HandedOut(None, True)
    # Whether ten weights can be divided evenly takes some effort to see.
    shape = Configuration({f"b{i}": 1 for i in range(10)})
    weights = {f"b{i}": 2 * i + 3 for i in range(10)}
    hard = Tables.of(
        Problem(configurations=shape, jobs=[Job(f"j{j}", 61, weights) for j in range(2)])
    )
    monkeypatch.setattr(tidy, "_EFFORT", 0.0)
    assert handed_out(hard, [1], budget(hard)) == HandedOut(None, False)


def test_so_many_undecided_tries_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def undecided(tables: Tables, machines: list[int], _: object) -> HandedOut:
        tried.append(machines)
        return HandedOut(None, False)

    monkeypatch.setattr(tidy, "handed_out", undecided)
    tables = Tables.of(two_pairs())
    counts = ([400], {(1, 0): 4, (0, 1): 4})
    assert with_fewer_machines(tables, counts, Fraction(0), budget(tables)) == counts
    assert tried == [[0], [200], [300]]


def test_huge_numbers_are_left_alone() -> None:
    jobs = [
        Job("x", 10**12 + 1, {"b0": 1, "b1": 3, "b2": 5}),
        Job("y", 7 * 10**9, {"b0": 2, "b1": 3, "b2": 5}),
    ]
    problem = Problem(configurations=Configuration({"b0": 2, "b1": 1, "b2": 1}), jobs=jobs)
    solution = solve(problem, "greedy", options={"variant": "units"}, time_limit=None)
    assert solution.stop_reason == "finished"
    tables = Tables.of(two_pairs(scale=10**6))
    counts = ([4], {(1, 0): 4 * 10**6, (0, 1): 4 * 10**6})
    assert with_fewer_machines(tables, counts, Fraction(1), budget(tables)) == counts


def test_dear_machines_that_nobody_needs_go() -> None:
    types = [MachineType("m", 2), MachineType("n", 3)]
    shapes = [Configuration({"a": 2}, "m"), Configuration({"a": 1, "b": 1}, "n")]
    jobs = [Job("x", 7, {"a": 2, "b": 5}), Job("y", 1, {"a": 1})]
    problem = Problem(configurations=shapes, jobs=jobs, machine_types=types)
    tables = Tables.of(problem, shapes[::-1])
    assert tables.shapes == tuple(shapes[::-1])
    machines, given = without_waste(tables, [2, 3], {(0, 0): 3, (1, 0): 1, (0, 1): 1})
    assert given == {(0, 0): 1, (1, 0): 1, (0, 1): 1}
    assert machines == [1, 1]
