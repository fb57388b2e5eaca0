"""A run of greedy: the machines of the plain algorithm, and a clock that changes no schedule."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from algorithms.greedy import opening
from algorithms.greedy.inner import INNER
from algorithms.greedy.opening import Opening
from algorithms.tables.integers import Tables
from cms import Configuration, Job, MachineType, Problem, solve
from cms.reduction.reduction import reduce
from cms.running.stopping import Stopped
from instances.families import generate
from proofs_checks.g_alone import alone
from proofs_checks.greedy import Inner, best_pair_first, by_trying_all, run, schedule
from proofs_checks.tiny import Tiny
from tests.samples import so_many

PLAIN = {"variant": "units", "inner": "exact", "plain": True}


class Ends:
    """A budget that has ended after it was asked so many times."""

    seed, threads, lower_bound, best = 0, 1, Fraction(0), None

    def __init__(self, asked: int) -> None:
        self.left = asked

    @property
    def stopped(self) -> bool:
        self.left -= 1
        return self.left < 0

    def remaining(self) -> float:
        return 100.0

    def on_stop(self, cancel: Any) -> Any:
        from contextlib import nullcontext

        return nullcontext()


@pytest.mark.parametrize("inner", ["greedy", *sorted(INNER)])
def test_the_clock_is_looked_at_between_two_configurations(inner: str) -> None:
    shapes = [Configuration({f"b{i}": 1, f"b{i + 1}": 1}) for i in range(30)]
    jobs = [Job(f"j{j}", 7, {f"b{i}": 1 for i in range(31)}) for j in range(4)]
    built = Tables.of(Problem(configurations=shapes, jobs=jobs))
    budget = Ends(30)
    run = Opening(built, inner, "demands", budget=budget)
    with pytest.raises(Stopped):
        run.finish()
    # The first machine was not even opened.
    assert not any(run._state.machines)
    # It notices soon: nobody asked much more often.
    assert budget.left >= -5


@pytest.mark.parametrize("inner", sorted(INNER))
def test_an_inner_method_ends_with_the_budget(inner: str) -> None:
    budgets = np.full(40, 5.0)
    bids = np.array([[1.0 + (3 * i + 7 * j) % 11 / 3 for j in range(40)] for i in range(8)])
    given = INNER[inner]([3] * 8, np.minimum(bids, budgets), budgets, Ends(0))
    assert (given.sum(axis=1) <= 3).all()


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 3)])
@pytest.mark.parametrize("weights", ["units", "demands", "alone"])
@pytest.mark.parametrize(("name", "inner"), [("greedy", best_pair_first), ("exact", by_trying_all)])
def test_machines_are_those_of_the_plain_greedy_one_by_one(
    name: str, inner: Inner, weights: str, delta: Fraction
) -> None:
    """Without ties, however many machines are opened at once."""
    for seed in range(so_many(6, 40)):
        rng = random.Random(seed)
        blocks = ["a", "b", "c"]
        shapes = [
            Configuration({b: rng.randint(1, 3) for b in rng.sample(blocks, rng.randint(1, 2))})
            for _ in range(3)
        ]
        shapes = list(dict.fromkeys([*shapes, Configuration(dict.fromkeys(blocks, 1))]))
        jobs = [
            Job(
                f"j{j}",
                rng.randint(10**6, 10**7),
                {b: rng.randint(10**5, 2 * 10**6) for b in blocks},
            )
            for j in range(4)
        ]
        built = Tables.of(Problem(configurations=shapes, jobs=jobs))
        tiny = Tiny.of(built.demands.tolist(), built.supply.tolist(), built.counts, built.costs)
        weigh = {
            "units": [Fraction(1)] * tiny.n,
            "demands": [1 / d for d in tiny.demands],
            "alone": [alone(tiny, j) for j in range(tiny.n)],
        }
        targets = [(1 + delta) * d for d in tiny.demands]
        opened = Opening(built, name, weights, delta).finish()
        assert opened is not None
        assert opened[0] == schedule(tiny, run(tiny, weigh[weights], targets, inner))[0], seed


def test_the_compiled_loop_does_what_the_plain_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = reduce(generate("real-rows", n=400, seed=2, m=5)).problem
    tables = Tables.of(problem)
    plain = Opening(tables, "greedy", "demands", Fraction(1, 7)).finish()
    monkeypatch.setattr(opening, "_COMPILED_JOBS", 1)
    found = Opening(tables, "greedy", "demands", Fraction(1, 7)).finish()
    assert plain is not None
    assert found is not None
    assert found[0] == plain[0]
    assert (found[1] == plain[1]).all()


def test_costs_decide_between_machines() -> None:
    jobs = [Job("x", 4, {"a": 1})]
    shapes = [Configuration({"a": 2}, "dear"), Configuration({"a": 1}, "cheap")]
    for cheap, cost in ((2, 6), (1, 4)):
        types = [MachineType("dear", 3), MachineType("cheap", cheap)]
        problem = Problem(configurations=shapes, machine_types=types, jobs=jobs)
        assert solve(problem, "greedy", options=PLAIN).cost == cost
        item = {**PLAIN, "inner": "greedy"}
        assert solve(problem, "greedy", options=item).cost == cost
