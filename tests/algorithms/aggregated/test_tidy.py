"""Clean-up: what nobody needs goes, and blocks handed out anew save machines."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import algorithms.aggregated.tidy as tidy
from algorithms.aggregated.tidy import handed_out, with_fewer_machines, without_waste
from algorithms.tables.integers import Tables
from cms import Configuration, Job, MachineType, Problem
from cms.solving.driver import RunBudget
from cms.solving.ledger import Ledger


def budget(tables: Tables) -> RunBudget:
    ledger = Ledger(tables.problem, "test", trusted=True, clock=lambda: 0.0)
    return RunBudget(ledger, seed=0, threads=1, end=float("inf"))


def plainly(counts: Any) -> tuple[list[int], list[list[int]]]:
    return counts[0], counts[1].tolist()


def two_pairs(scale: int = 1) -> Problem:
    """Each type serves one of two jobs well and the other one badly; one machine is enough."""
    shape = Configuration({"a": scale, "b": scale})
    jobs = [Job("x", 4 * scale, {"a": 4, "b": 1}), Job("y", 4 * scale, {"a": 1, "b": 4})]
    return Problem(configurations=shape, jobs=jobs)


def test_blocks_handed_out_anew_save_machines() -> None:
    tables = Tables.of(two_pairs())
    # Everybody has the wrong blocks: nothing can be taken back.
    given = np.array([[0, 4], [4, 0]])
    assert plainly(without_waste(tables, [4], given)) == ([4], [[0, 4], [4, 0]])
    counts = with_fewer_machines(tables, ([4], given), Fraction(1), budget(tables))
    assert plainly(counts) == ([1], [[1, 0], [0, 1]])


def test_what_cannot_be_handed_out_is_told_from_what_is_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = Tables.of(two_pairs())
    assert plainly(handed_out(tables, [1], budget(tables))) == (True, [[1, 0], [0, 1]])
    assert handed_out(tables, [0], budget(tables)) == (True, None)
    # Whether ten weights can be divided evenly takes some effort to see.
    shape = Configuration({f"b{i}": 1 for i in range(10)})
    weights = {f"b{i}": 2 * i + 3 for i in range(10)}
    hard = Tables.of(
        Problem(configurations=shape, jobs=[Job(f"j{j}", 61, weights) for j in range(2)])
    )
    monkeypatch.setattr(tidy, "_EFFORT", 0.0)
    assert handed_out(hard, [1], budget(hard)) == (False, None)


def test_dear_machines_that_nobody_needs_go() -> None:
    types = [MachineType("m", 2), MachineType("n", 3)]
    shapes = [Configuration({"a": 2}, "m"), Configuration({"a": 1, "b": 1}, "n")]
    jobs = [Job("x", 7, {"a": 2, "b": 5}), Job("y", 1, {"a": 1})]
    problem = Problem(configurations=shapes, jobs=jobs, machine_types=types)
    tables = Tables.of(problem, shapes[::-1])
    assert tables.shapes == tuple(shapes[::-1])
    machines, given = without_waste(tables, [2, 3], np.array([[3, 1], [1, 0]]))
    assert given.tolist() == [[1, 1], [1, 0]]
    assert machines == [1, 1]
