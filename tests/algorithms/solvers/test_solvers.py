"""CP-SAT and SCIP behind one layer, and the exact simplex method against scipy's."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import algorithms.solvers.integer
import algorithms.solvers.linear
import algorithms.solvers.simplex
from algorithms.solvers.integer import LARGEST, Hint, Outcome, TooLarge
from algorithms.solvers.integer import Program as IntegerProgram
from algorithms.solvers.simplex import Basic, cheapest
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.references.programs import minimum
from tests.samples import few


def test_a_program_out_of_the_solvers_range_is_not_built() -> None:
    program = IntegerProgram()
    with pytest.raises(TooLarge):
        program.variable(LARGEST)
    x = program.variable(2**40)
    with pytest.raises(TooLarge):
        program.at_least({x: 2**30}, 1)
    program.at_least({x: 3}, 7)
    with pytest.raises(TooLarge):
        program.equals({x: 1}, LARGEST + 1)


def knapsack() -> tuple[IntegerProgram, list[int]]:
    """Cover 97 by items of 13, 17 and 29 as cheaply as can be: 29 + 4 x 17 = 97 costs 12."""
    program = IntegerProgram()
    x = [program.variable(20) for _ in range(3)]
    program.at_least(dict(zip(x, (13, 17, 29), strict=True)), 97)
    program.minimise(dict(zip(x, (2, 2, 4), strict=True)))
    return program, x


def test_a_solver_is_stopped_and_waited_for_where_nobody_wants_more_of_it() -> None:
    """Left alone it would go on for minutes, and abort a process that ends meanwhile."""
    found = market_split(most=10**4).improvements(Unlimited())
    assert not isinstance(next(found), Outcome)
    assert any(thread.name == "cp-sat" for thread in threading.enumerate())
    found.close()
    assert not any(thread.name == "cp-sat" for thread in threading.enumerate())


def test_each_improvement_is_better_than_the_one_before_and_the_outcome_comes_last() -> None:
    program, _ = knapsack()
    *found, outcome = program.improvements(Unlimited())
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.bound) == ("optimal", 12)
    values = [values for values in found if not isinstance(values, Outcome)]
    assert len(values) == len(found) >= 1
    costs = [2 * a + 2 * b + 4 * c for a, b, c in values]
    assert costs == sorted(set(costs), reverse=True)
    assert costs[-1] == 12
    assert all(13 * a + 17 * b + 29 * c >= 97 for a, b, c in values)


def test_a_fault_in_the_solver_s_thread_is_raised_in_the_caller_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*args: Any, **options: Any) -> Outcome:
        raise ZeroDivisionError("within the thread")

    program, _ = knapsack()
    monkeypatch.setattr(program, "solve", broken)
    with pytest.raises(ZeroDivisionError, match="within the thread"):
        list(program.improvements(Unlimited()))


def test_both_solvers_find_the_optimum_in_time_and_no_solution_where_there_is_none() -> None:
    program, x = knapsack()
    found, ended = program.search(Unlimited(), nodes=1000)
    assert found is not None
    assert ended
    assert 2 * found[0] + 2 * found[1] + 4 * found[2] == 12
    budget = Unlimited()
    budget.stopped = True
    assert program.solve(budget) == Outcome("unknown", None, None)
    assert program.search(budget, nodes=1000) == Hint(None, ended=False)
    program.at_most(dict.fromkeys(x, 1), 3)
    assert program.search(Unlimited(), nodes=1000) == Hint(None, ended=True)
    assert program.solve(Unlimited()) == Outcome("infeasible", None, None)


def test_values_that_do_not_hold_are_no_end() -> None:
    """In floats 3 times 10^16 and 1 is the same as 3 times 10^16."""
    program = IntegerProgram()
    x, y = program.variable(100), program.variable(1)
    program.equals({x: 10**16, y: 1}, 3 * 10**16 + 1)
    assert program.search(Unlimited(), nodes=30) == Hint(None, ended=False)
    assert program.solve(Unlimited()).values == (3, 1)


def market_split(most: int = 0) -> IntegerProgram:
    """Equations in binaries that no solver decides before a long enumeration, or nearly so."""
    rng, program = random.Random(1), IntegerProgram()
    x, missing = ([program.variable(high) for _ in range(n)] for high, n in ((1, 50), (most, 6)))
    for slack in missing:
        row = [rng.randint(1, 99) for _ in x]
        program.equals({slack: 1, **dict(zip(x, row, strict=True))}, sum(row) // 2)
    program.minimise(dict.fromkeys(missing, 1))
    return program


def test_a_search_that_is_cut_off_says_so() -> None:
    assert market_split().search(Unlimited(), nodes=30) == Hint(None, ended=False)


class Ending(Unlimited):
    """A budget of a twentieth of a second that is stopped when the test says so."""

    def __init__(self) -> None:
        super().__init__(seconds=0.05)
        self.cancels: list[Callable[[], object]] = []
        self.begun = threading.Event()

    @contextmanager
    def on_stop(self, cancel: Callable[[], object]) -> Iterator[None]:
        self.cancels.append(cancel)
        self.begun.set()
        yield


@pytest.mark.parametrize("name", ["CP-SAT", "SCIP"])
def test_a_solver_ends_when_the_run_is_stopped_and_not_before(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that kept the time itself would end just before the clock: as if it had finished."""
    for module in (algorithms.solvers.integer, algorithms.solvers.linear):
        monkeypatch.setattr(module, "AFTER_THE_END", 60.0)
    budget, program, ended = Ending(), market_split(), threading.Event()

    def work() -> None:
        if name == "CP-SAT":
            program.solve(budget)
        else:
            program.search(budget, nodes=10**9)
        ended.set()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    assert budget.begun.wait(600)
    assert not ended.wait(0.5)
    while not ended.wait(0.05):
        for cancel in budget.cancels:
            cancel()
    worker.join()


Numbers = tuple[list[Fraction], list[list[int]], list[int]]


def drawn(seed: int) -> Numbers:
    """A program that has a solution: with all columns large enough every row is satisfied."""
    rng = random.Random(seed)
    m, n = rng.randint(1, 6), rng.randint(1, 8)
    costs = [Fraction(rng.randint(0, 9), rng.randint(1, 4)) for _ in range(n)]
    rows = [[rng.choice([0, 0, 1, 2, 5, -3]) for _ in range(n)] for _ in range(m)]
    inside = [rng.randint(0, 4) for _ in range(n)]
    least = [
        sum(a * x for a, x in zip(row, inside, strict=True)) - rng.choice([0, 0, 1, 7])
        for row in rows
    ]
    return costs, rows, least


def refuse_faults(program: Numbers, found: Basic) -> None:
    """Primal and dual feasible, of one value, basic: proof of optimality without a solver."""
    costs, rows, least = program
    assert min(found.values) >= 0
    assert min(found.prices) >= 0
    for row, b in zip(rows, least, strict=True):
        assert sum((a * x for a, x in zip(row, found.values, strict=True)), Fraction(0)) >= b
    for column, cost in zip(zip(*rows, strict=True), costs, strict=True):
        worth = sum((a * p for a, p in zip(column, found.prices, strict=True)), Fraction(0))
        assert worth <= cost
    assert found.cost == sum((c * x for c, x in zip(costs, found.values, strict=True)), Fraction(0))
    assert found.cost == sum((b * p for b, p in zip(least, found.prices, strict=True)), Fraction(0))
    assert sum(x > 0 for x in found.values) <= len(rows)


@pytest.mark.parametrize("steepest", [8, -1])
@pytest.mark.parametrize("seed", few(15, range(150)))
def test_a_basic_optimal_solution_is_found_by_either_rule(
    seed: int, steepest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the steepest column, and by the rule that cannot cycle."""
    monkeypatch.setattr(algorithms.solvers.simplex, "_STEEPEST_A_ROW", steepest)
    program = drawn(seed)
    found = cheapest(*program)
    assert found is not None
    refuse_faults(program, found)
    costs, rows, least = program
    floats = minimum(costs, -np.array(rows), [-b for b in least])
    assert float(found.cost) == pytest.approx(floats.fun, abs=1e-7)


def test_rows_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="contradict"):
        cheapest([Fraction(1)], [[1], [-1]], [3, -2])


def test_it_ends_when_it_is_stopped() -> None:
    assert cheapest([Fraction(1)], [[2]], [3], lambda: True) is None
    done = cheapest([Fraction(1)], [[2]], [0], lambda: True)
    assert done is not None  # there was nothing to do
    assert done.values == [0]
