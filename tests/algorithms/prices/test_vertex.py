"""LP_DW against its definition, its rows and its certificate; and what its solver may not spoil."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import algorithms.prices.search
import algorithms.prices.vertex
from algorithms.prices.master import Master
from algorithms.prices.passes import Passes
from algorithms.prices.vertex import solve_dantzig_wolfe
from cms import Problem, check
from cms.reduction.reduction import reduce
from instances import hard, small
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Counting
from tests.algorithms.prices.parts import (
    built,
    cases,
    every_case,
    refuse_faults,
    restored,
    solved,
    split,
    value,
)
from tests.families import FAMILIES
from tests.references.programs import lp_dw
from tests.samples import so_many, spread

FEW = 8
NAMED = [one for one in (hard.PROBLEMS | small.PROBLEMS).values() if "LP_DW" in one.bounds]


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_the_value_is_the_bound_and_what_the_definition_says(family: str) -> None:
    for case in cases(family, so_many(3, FEW)):
        reduction = reduce(case.problem)
        solution = solved(reduction.problem)
        refuse_faults(solution)
        small = reduction.problem
        by_definition = lp_dw(small, proper=True) if small.n_jobs else 0.0
        assert by_definition is not None, case.name
        assert float(solution.bound) == pytest.approx(by_definition, rel=1e-6, abs=1e-9), case.name
        assert value(solution) == solution.bound == restored(reduction, solution), case.name
        assert solution.bound <= case.best, case.name
        k, p = len(solution.problem.blocks), len(solution.machines)
        assert p + split(solution) <= k, case.name


@pytest.mark.parametrize("one", NAMED, ids=lambda one: one.name)
def test_named_instances_have_their_exact_values(one: Any) -> None:
    solution = solved(reduce(one.make()).problem)
    refuse_faults(solution)
    known = one.bounds["LP_DW"]
    if one is hard.NON_IRUP:  # 23/11 with proper contents, derived in test_proper_contents.py
        assert known == Fraction(259, 132)
        known = Fraction(23, 11)
    assert value(solution) == solution.bound == known


@pytest.mark.parametrize("family", ["sparse", "identical_jobs", "costs", "max_blocks"])
def test_groups_of_jobs_change_nothing(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [solved(reduce(case.problem).problem).bound for case in cases(family, FEW)]
    monkeypatch.setattr(algorithms.prices.search, "MOST_SINGLE", 1)
    monkeypatch.setattr(algorithms.prices.search, "GROUPS", 2)
    for case, bound in zip(cases(family, FEW), alone, strict=True):
        solution = solved(reduce(case.problem).problem)
        refuse_faults(solution)
        assert value(solution) == solution.bound == bound, case.name


@pytest.mark.parametrize(("n", "m"), [(300, 1), (300, 5), (1000, 5)])
def test_measured_models_on_a_gpu_are_solved_to_the_end(n: int, m: int) -> None:
    reduction = reduce(generate("real-rows", n=n, seed=1, m=m))
    solution = solved(reduction.problem)
    refuse_faults(solution)
    assert 0 <= value(solution) - solution.bound <= Fraction(1, 10**4)
    assert restored(reduction, solution) == solution.bound
    assert len(solution.machines) + split(solution) <= len(solution.problem.blocks)


# --- what the solver may not spoil ----------------------------------------------------------------


@pytest.fixture
def floats_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with more block types than the exact program takes."""
    monkeypatch.setattr(algorithms.prices.search, "MOST_BLOCKS", 0)
    monkeypatch.setattr(algorithms.prices.vertex, "MOST_BLOCKS", 0)


def test_without_the_floating_point_solver_the_answer_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Master, "solve", lambda _: None)
    for case in every_case(6):
        reduction = reduce(case.problem)
        solution = solved(reduction.problem)
        refuse_faults(solution)
        assert value(solution) == solution.bound == restored(reduction, solution), case.name


@pytest.mark.usefixtures("floats_alone")
def test_without_any_solver_the_answer_is_valid_if_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Master, "solve", lambda _: None)
    for case in every_case(6):
        reduction = reduce(case.problem)
        solution = solved(reduction.problem)
        refuse_faults(solution)
        assert split(solution) == 0
        assert not check(case.problem, built(solution, reduction)), case.name


def test_a_wrong_solver_costs_optimality_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices and weights that are turned round, and machines that are left out."""
    honest = Master.solve

    def wrong(self: Master) -> Any:
        proposal = honest(self)
        self.weights = [1.0 - weight for weight in self.weights]
        self.machines = [Fraction(0)] * len(self.machines)
        if proposal is None:
            return None
        prices = [price * (i + 1) for i, price in enumerate(proposal.prices)]
        return proposal._replace(prices=prices)

    monkeypatch.setattr(Master, "solve", wrong)
    monkeypatch.setattr(algorithms.prices.search, "_MOST_PASSES", 12)
    for case in every_case(6):
        reduction = reduce(case.problem)
        solution = solved(reduction.problem)
        refuse_faults(solution)
        assert restored(reduction, solution) == solution.bound <= value(solution), case.name
        assert not check(case.problem, built(solution, reduction)), case.name


def test_the_bound_is_the_certificate_s_and_not_the_passes_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Passes.evaluate

    def boasting(self: Passes, *arguments: Any) -> Any:
        found = honest(self, *arguments)
        assert found is not None
        point, cuts = found
        return point._replace(bound=point.bound + Fraction(1, 10**9)), cuts

    monkeypatch.setattr(Passes, "evaluate", boasting)
    reduction = reduce(generate("arbitrary", n=6, seed=2))
    solution = solved(reduction.problem)
    assert restored(reduction, solution) == solution.bound


# --- the edges ------------------------------------------------------------------------------------


def test_it_ends_whenever_it_is_stopped() -> None:
    problem = reduce(generate("arbitrary", n=6, seed=2)).problem
    whole = Counting(10**9)
    assert solve_dantzig_wolfe(problem, whole) is not None
    for questions in range(0, whole.asked, max(1, whole.asked // 40)):
        assert solve_dantzig_wolfe(problem, Counting(questions)) is None
    assert solve_dantzig_wolfe(problem, Counting(whole.asked)) is not None


def test_more_block_types_than_the_exact_program_takes() -> None:
    q = 6
    vectors = range(1, 2**q)
    member = np.array([[(e & v).bit_count() % 2 for v in vectors] for e in vectors])
    problem = Problem.from_arrays(
        demands=np.ones(len(member), dtype=np.int64),
        supply=np.diag(np.ones(len(member), dtype=np.int64)),
        configurations=member,
    )
    reduction = reduce(problem)
    solution = solved(reduction.problem)
    assert solution.bound == Fraction(2**q - 1, 2 ** (q - 1))
    assert not check(problem, built(solution, reduction))
