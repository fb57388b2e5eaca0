"""Price-and-branch against enumeration, and against another solver where that takes too long.

Everything a solution says also passes the second checker, as text in files would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

import algorithms.prices.jobs
import algorithms.prices.search
import cms.knapsack.pricing
from algorithms.price_and_branch import PriceAndBranch
from cms import Problem, Proof, Solution, Status, check
from cms.solving.driver import Arguments
from cms.solving.solve import run_checked
from instances.families import generate
from tests.algorithms.branch_and_price.proving import refuse_false_files
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.references.programs import within
from tests.samples import so_many

FEW, MANY = so_many(2, 4), 300


@pytest.fixture(params=["plain", "compiled", "groups"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tiny problems on the paths of large ones: compiled pricing, and few groups of jobs."""
    if request.param == "compiled":
        for module in (cms.knapsack.pricing, algorithms.prices.search):
            monkeypatch.setattr(module, "COMPILED_FROM", 1)
        monkeypatch.setattr(algorithms.prices.jobs, "_FINEST_BELOW", 1)
    if request.param == "groups":
        monkeypatch.setattr(algorithms.prices.search, "MOST_SINGLE", 0)
        monkeypatch.setattr(algorithms.prices.search, "GROUPS", 1)
    return str(request.param)


def answer(problem: Problem, **more: Any) -> Solution:
    arguments = Arguments(threads=1, **{"time_limit": None, **more})
    return run_checked(PriceAndBranch(), True, problem, arguments)


def examine(problem: Problem, *, files: bool = True) -> str:
    """Solve a problem, hold everything against the optimum, and say how it was proved."""
    best, solution = optimum(problem), answer(problem)
    assert solution.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert solution.cost == best
    assert solution.proof in (Proof.CHECKED, Proof.SOLVER)
    assert check(problem, solution.schedule) == () or best is None
    assert solution.certificate.proves_infeasible(problem) == (
        best is None and solution.proof is Proof.CHECKED
    )
    if best is not None:
        assert solution.certificate.bound(problem) <= solution.lower_bound <= best
        for line in solution.history:
            assert line.lower_bound <= best
            assert line.cost is None or line.cost >= best
            assert line.claimed_bound is None or line.claimed_bound <= best
    if files:
        refuse_false_files(problem, solution)
    return f"{solution.status} {solution.proof}"


def tally(family: str, numbers: Iterable[int], **more: Any) -> Counter[str]:
    """Examine problems of a family; a failure names the one to look at."""
    found: Counter[str] = Counter()
    for number in numbers:
        try:
            found[examine(instance(family, number), **more)] += 1
        except Exception as fault:
            raise AssertionError(f"instance({family!r}, {number}): {fault}") from fault
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tiny_problem_is_solved_and_proved(family: str) -> None:
    found = tally(family, range(FEW))
    assert found.total() == FEW
    if family != "infeasible_by_limit":  # where no prices reach: F_2 covers, size-bounded sets
        assert set(found) <= {"optimal checked", "infeasible checked"}


def test_the_paths_of_large_problems_change_no_optimum(path: str) -> None:
    each = so_many(1, 5)
    for family in ("a100", "random_configurations", "limits", "max_blocks", "long_numbers"):
        assert tally(family, range(8, 8 + each), files=False).total() == each


# --- against another solver -----------------------------------------------------------------------


def agree(problem: Problem, nodes: int, *, files: bool = False) -> bool:
    """Hold a solution against HiGHS; whether both ended."""
    solution = answer(problem)
    assert check(problem, solution.schedule) == ()
    assert solution.cost is not None
    if files:
        refuse_false_files(problem, solution)
    found, proved = within(problem, nodes)
    if found is not None:
        assert solution.lower_bound <= found
        assert solution.status is not Status.OPTIMAL or solution.cost <= found
    if found is None or not proved:
        return False
    assert found <= solution.cost
    assert solution.status is Status.OPTIMAL
    assert solution.proof is Proof.CHECKED
    assert solution.cost == found
    return True


#: n = 20 to 60: what HiGHS decides in a few nodes, and what it does not.
MIDDLING: list[tuple[str, dict[str, Any]]] = [
    ("arbitrary", {"n": 40, "m": 1}),
    ("sparse", {"n": 60}),
    ("superlinear", {"n": 30, "exponent": "2"}),
    ("sublinear", {"n": 20, "m": 5, "exponent": "0.3"}),
    ("near-ties", {"n": 20, "m": 1}),
    ("real-rows", {"n": 30, "m": 1}),
    ("mixed-fleet", {"n": 20, "types": 2, "limits": "tight"}),
    ("mixed-fleet", {"n": 25, "types": 3, "cost_step": "0.01"}),
    ("size-bounded", {"n": 20, "m": 1}),
    ("random-configurations", {"n": 40, "k": 3, "configurations": 4, "largest": 10}),
    ("equal-jobs", {"n": 50, "kinds": 5}),
    ("rounding", {"n": 30, "kind": "non-irup-listed"}),
]


def test_another_solver_finds_the_same_optima() -> None:
    ended, half = 0, MIDDLING[::2]  # the long run takes all families
    for at, (name, arguments) in enumerate(half):
        problem = generate(name, seed=7, **arguments)
        ended += agree(problem, nodes=60, files=at % 3 == 0)
    assert ended >= len(half) // 3
