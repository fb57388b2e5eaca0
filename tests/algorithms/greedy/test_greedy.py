"""Greedy: the machines it opens, what fills them, its factors, and a clock that changes nothing."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from algorithms.greedy import opening
from algorithms.greedy.inner import INNER, assignment
from algorithms.greedy.opening import Opening
from algorithms.greedy.promises import FACTORS, best_inflation, harmonic_above, inflated_factor
from algorithms.integer_problem import Tables
from algorithms.solvers.linear import LinearProgram
from cms import Configuration, Job, MachineType, Problem, presolve, solve
from instances.families import generate
from proofs_checks.g_alone import alone
from proofs_checks.greedy import Inner, best_pair_first, by_trying_all, run, schedule
from proofs_checks.tiny import Tiny
from tests.algorithms.branch_and_price.parts import Counting
from tests.samples import so_many

PLAIN = {"variant": "units", "inner": "exact", "plain": True}


@pytest.mark.parametrize("inner", sorted(INNER))
def test_an_inner_method_ends_with_the_budget(inner: str) -> None:
    budgets = np.full(40, 5.0)
    bids = np.array([[1.0 + (3 * i + 7 * j) % 11 / 3 for j in range(40)] for i in range(8)])
    given = INNER[inner]([3] * 8, np.minimum(bids, budgets), budgets, Counting(0))
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
    problem = presolve(generate("real-rows", n=400, seed=2, m=5)).problem
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


Floats = NDArray[np.float64]


def case(rng: random.Random) -> tuple[list[int], Floats, Floats]:
    k, m = rng.randint(1, 3), rng.randint(1, 3)
    blocks = [rng.randint(0, 2) for _ in range(k)]
    budgets = np.array([rng.choice([1.0, 2.0, 3.0, 5.0]) for _ in range(m)])
    bids = np.array(
        [[rng.choice([0.0, 1.0, 1.0, 2.0, 2.5, 3.0]) for _ in range(m)] for _ in blocks]
    )
    return blocks, np.minimum(bids, budgets), budgets


def worth(given: NDArray[Any], bids: Floats, budgets: Floats) -> float:
    return float(np.minimum((given * bids).sum(axis=0), budgets).sum())


def brute_force(blocks: list[int], bids: Floats, budgets: Floats) -> float:
    m = bids.shape[1]
    units = [i for i, number in enumerate(blocks) for _ in range(number)]
    best = 0.0
    for owners in itertools.product(range(m), repeat=len(units)):
        got = np.zeros(m)
        for i, j in zip(units, owners, strict=True):
            got[j] += bids[i, j]
        best = max(best, float(np.minimum(got, budgets).sum()))
    return best


def test_where_floats_come_to_no_end_rationals_find_the_same_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(7)
    for _ in range(100):
        blocks, bids, budgets = case(rng)
        by_floats = assignment(blocks, bids, budgets)
        with monkeypatch.context() as patch:
            patch.setattr(LinearProgram, "solve", lambda self, budget: None)
            exactly = assignment(blocks, bids, budgets)
        assert (exactly.sum(axis=1) <= np.array(blocks) + 1e-9).all()
        paid = (exactly * bids).sum(axis=0)
        assert (paid <= budgets * (1 + 1e-9)).all()
        assert paid.sum() == pytest.approx((by_floats * bids).sum())


@pytest.mark.parametrize("method", sorted(INNER))
@pytest.mark.parametrize("zeros", [0, 8, 13, 40])
def test_a_method_keeps_its_factor_and_gives_no_block_twice(method: str, zeros: int) -> None:
    rng = random.Random(f"{method} {zeros}")
    for _ in range(so_many(50, 150) if zeros else 250):
        blocks, bids, budgets = case(rng)
        budgets *= [10.0 ** rng.randint(-zeros, zeros) for _ in budgets]
        bids *= [[10.0 ** rng.randint(-zeros, zeros) for _ in budgets] for _ in blocks]
        bids = np.minimum(bids, budgets)
        given = INNER[method](blocks, bids, budgets)
        assert (given >= 0).all()
        assert (given.sum(axis=1) <= blocks).all()
        best = brute_force(blocks, bids, budgets)
        less = 1e-5 if zeros else 1e-9
        assert worth(given, bids, budgets) >= float(FACTORS[method]) * best * (1 - less)


@pytest.mark.parametrize(
    ("n", "table"), [(2, "2.68"), (16, "5.48"), (1024, "10.26"), (10**4, "12.76"), (10**6, "17.69")]
)
def test_the_inflated_factor_is_the_table_of_the_theory(n: int, table: str) -> None:
    delta = best_inflation(n)
    factor = inflated_factor(n, delta)
    true = float(1 + delta) * log((1 + delta) * n / delta)
    assert true <= factor < true + 2e-6
    assert float(table) - 0.01 < factor < float(table) * 1.01


@pytest.mark.parametrize("number", [0, 1, 2, 30, 31, 999, 1000, 1001, 5000])
def test_harmonic_numbers_are_met_from_above(number: int) -> None:
    exact = sum(Fraction(1, i) for i in range(1, number + 1))
    assert exact <= harmonic_above(number) < exact + Fraction(1, 10**6)
