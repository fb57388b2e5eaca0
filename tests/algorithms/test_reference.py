"""The reference against enumeration: on every tiny problem it must find what brute force finds.

The problems come from ``tests.families``, their optima from ``tests.oracle``. Everything a solution
says also passes the second checker, as text in files would.

``make test`` takes some hundred problems; ``pytest -m long tests/algorithms`` takes thousands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

import algorithms.prices.jobs
import algorithms.prices.search
import cms.knapsack.pricing
from cms import Problem, Proof, Solution, Status, check, solve
from cms.files import problem_to_json, solution_to_json
from cms.files.documents import lay_out
from proofs_checks.checker import check_solution, parse_document
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import spread

FEW, MANY = 24, 200
KINDS = ("optimal checked", "optimal solver", "infeasible checked", "infeasible solver")


@pytest.fixture(params=["plain", "compiled"])
def pricing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Price jobs as in small problems, or by compiled code on the rows' images as in large ones."""
    if request.param == "compiled":
        for module in (cms.knapsack.pricing, algorithms.prices.search):
            monkeypatch.setattr(module, "COMPILED_FROM", 1)
        monkeypatch.setattr(algorithms.prices.jobs, "_FINEST_BELOW", 1)
    return str(request.param)


def examine(problem: Problem, **options: int) -> str:
    """Solve a problem, hold everything against the optimum, and say how it was proved."""
    best = optimum(problem)
    solution = solve(problem, method="cp_sat", options=options, threads=1, time_limit=None)
    assert solution.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert solution.cost == best
    assert solution.proof in (Proof.CHECKED, Proof.SOLVER)
    assert check(problem, solution.schedule) == () or best is None
    refuse_false_bounds(problem, solution)
    refuse_false_files(problem, solution)
    return f"{solution.status} {solution.proof}"


def refuse_false_bounds(problem: Problem, solution: Solution) -> None:
    """No certificate, no bound and no line of the history may exceed the optimum."""
    infeasible = solution.certificate.proves_infeasible(problem)
    if solution.cost is None:
        assert infeasible == (solution.proof is Proof.CHECKED)
        return
    assert not infeasible
    assert solution.certificate.bound(problem) <= solution.lower_bound <= solution.cost
    assert solution.claimed_bound is None or solution.claimed_bound <= solution.cost
    for line in solution.history:
        assert line.lower_bound <= solution.cost
        assert line.cost is None or line.cost >= solution.cost
        assert line.claimed_bound is None or line.claimed_bound <= solution.cost


def refuse_false_files(problem: Problem, solution: Solution) -> None:
    """The second checker reads both documents from their text and must find no fault."""
    documents = [
        parse_document(lay_out(document))
        for document in (problem_to_json(problem), solution_to_json(solution))
    ]
    assert check_solution(*documents) == []


def tally(family: str, numbers: Iterable[int], **options: int) -> Counter[str]:
    """Examine problems of a family; a failure names the one to look at."""
    found: Counter[str] = Counter()
    for number in numbers:
        try:
            found[examine(instance(family, number), **options)] += 1
        except Exception as fault:
            raise AssertionError(f"instance({family!r}, {number}): {fault}") from fault
    return found


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_the_reference_finds_the_optimum_of_every_tiny_problem(family: str) -> None:
    assert tally(family, range(FEW // 3)).total() == FEW // 3


def test_pricing_by_compiled_code_changes_no_optimum(pricing: str) -> None:
    for family in ("random_configurations", "limits", "max_blocks", "long_numbers"):
        assert tally(family, range(4)).total() == 4


def test_the_families_reach_every_status_and_kind_of_proof() -> None:
    found: Counter[str] = Counter()
    for family in ("costs", "infeasible_by_block", "infeasible_by_limit"):
        found += tally(family, range(FEW))
    assert set(found) == set(KINDS)


@pytest.mark.long
def test_the_reference_is_right_on_thousands_of_problems(pricing: str) -> None:
    many = MANY if pricing == "plain" else MANY // 2
    rows = {family: tally(family, range(FEW, FEW + many)) for family in FAMILIES}
    assert sum(found.total() for found in rows.values()) == many * len(FAMILIES)


@pytest.mark.long
def test_several_workers_of_the_solver_find_the_same_optima() -> None:
    for family in FAMILIES:
        assert tally(family, range(6), workers=3).total() == 6
