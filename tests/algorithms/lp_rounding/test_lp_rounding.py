"""Rounded linear programs as a whole: guarantees of every variant, tight cases, conformance."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

import pytest

from algorithms.aggregated.program import Aggregated
from algorithms.lp_rounding import LpRounding, LpRoundingOptions
from algorithms.lp_rounding.search import cheapest_support, vectors
from algorithms.tables.integers import Tables
from cms import Configuration, MachineType, Problem, Schedule, check, solve
from cms.plugin.algorithm import Named
from cms.reduction.reduction import reduce
from cms.solving.driver import RunBudget
from cms.solving.ledger import Ledger
from instances.families import generate
from tests.families import instance
from tests.references.named import named_problem


def test_doubling_is_needless_but_is_what_the_textbook_does() -> None:
    problem = named_problem("needless-doubling")
    assert solve(problem, "lp_rounding", options={"plain": True}).machine_count == 2
    assert solve(problem, "lp_rounding").machine_count == 1


def budget(problem: Problem) -> RunBudget:
    ledger = Ledger(problem, "test", trusted=True, clock=lambda: 0.0)
    return RunBudget(ledger, seed=0, threads=1, end=float("inf"))


def test_the_best_support_is_the_best_of_all_supports() -> None:
    for family in ("a100", "random_configurations", "costs"):
        for number in range(6):
            problem = reduce(instance(family, number)).problem
            tables = Tables.of(problem)
            if tables.unservable or not tables.n or tables.c > 6:
                continue
            found = cheapest_support(tables, budget(problem))
            assert found is not None
            values = []
            for there in itertools.product([False, True], repeat=tables.c):
                program = Aggregated(tables)
                used = [at for at in range(tables.c) if there[at]]
                absent = [at for at in range(tables.c) if not there[at]]
                if tables.served_by(list(map(int, there))):
                    values.append(program.solve(None, used, absent).value)
            assert found.value == min(values)


def test_machine_vectors_come_by_cost_and_all_of_them() -> None:
    types = [MachineType("m", 2), MachineType("n", 3)]
    shapes = [Configuration({"a": 1}, "m"), Configuration({"b": 1}, "n")]
    tables = Tables.of(Problem(configurations=shapes, machine_types=types))
    found = list(vectors(tables, Fraction(4), Fraction(9)))
    costs = [2 * x + 3 * y for x, y in found]
    assert costs == sorted(costs)
    every = {(x, y) for x in range(5) for y in range(4) if 4 <= 2 * x + 3 * y <= 9}
    assert {tuple(vector) for vector in found} == every
    assert len(found) == len(every)


class StoppedAfterOne:
    """A budget that ends within the variant's own program, once the first one is solved."""

    seed, threads, best, lower_bound = 0, 1, None, Fraction(0)
    stopped = False

    def remaining(self) -> float:
        return 0.0 if self.stopped else float("inf")

    def on_stop(self, _: object) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.mark.parametrize("variant", ["milp", "published", "supports"])
def test_a_plain_variant_that_is_stopped_ends_with_what_the_first_program_gives(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On three jobs and some hundred machines its own program may take minutes."""
    problem = generate("size-bounded", n=3, seed=1)
    budget, first = StoppedAfterOne(), Aggregated.solve

    def solved(self: Aggregated, budget: StoppedAfterOne) -> Any:
        vertex = first(self, budget)
        budget.stopped = True
        return vertex

    monkeypatch.setattr(Aggregated, "solve", solved)
    options = LpRoundingOptions(variant, Fraction(1), plain=True)
    named = [*LpRounding().run(problem, options, budget)][-1]
    assert isinstance(named, Named)
    assert isinstance(named.claim, Schedule)
    assert check(problem, named.claim) == ()
    assert named.claim.machine_count > 0
