"""CP-SAT's reference and branch-and-price find and prove what enumeration and HiGHS find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

import algorithms.branch_and_price.program
import algorithms.cp_sat
import algorithms.prices.jobs
import algorithms.prices.search
import cms.knapsack.pricing
from cms import Job, Problem, Proof, Solution, Status, check, load_instance, solve
from cms.files import problem_to_json, solution_to_json
from cms.files.documents import lay_out
from cms.infeasibility.variants import PARTS, at_share
from instances.families import generate
from proofs_checks.checker import check_solution, parse_document
from tests.families import FAMILIES, instance
from tests.oracle import given as supply_of
from tests.oracle import optimum
from tests.property.problems import rebuilt
from tests.references.guarantees import contradictions
from tests.references.programs import within
from tests.samples import few, so_many, spread

#: These decide every tiny problem, whatever its kind.
METHODS = ("branch_and_price", "cp_sat")


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


def answer(problem: Problem, method: str, **more: Any) -> Solution:
    return solve(problem, method, **{"threads": 1, "time_limit": None, **more})


def refuse_false_files(problem: Problem, solution: Solution) -> None:
    """The second checker reads both documents from their text and must find no fault."""
    documents = [
        parse_document(lay_out(document))
        for document in (problem_to_json(problem), solution_to_json(solution))
    ]
    assert check_solution(*documents) == []


def examine(problem: Problem, method: str, **options: int) -> str:
    """Solve a problem, hold everything against the optimum, and say how it was proved."""
    best, solution = optimum(problem), answer(problem, method, options=options)
    assert solution.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert solution.cost == best
    assert solution.proof in (Proof.CHECKED, Proof.SOLVER)
    assert check(problem, solution.schedule) == () or best is None
    assert contradictions(problem, best, solution) == []
    assert solution.certificate.proves_infeasible(problem) == (
        best is None and solution.proof is Proof.CHECKED
    )
    costs = [line.cost for line in solution.history if line.cost is not None]
    assert best is None or min(costs) == best
    refuse_false_files(problem, solution)
    return f"{solution.status} {solution.proof}"


def tally(method: str, family: str, numbers: Iterable[int], **options: int) -> Counter[str]:
    """Examine problems of a family; a failure names the one to look at."""
    found: Counter[str] = Counter()
    for number in numbers:
        try:
            found[examine(instance(family, number), method, **options)] += 1
        except Exception as fault:
            raise AssertionError(f"instance({family!r}, {number}): {fault}") from fault
    return found


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_tiny_problem_is_solved_and_proved(family: str, method: str) -> None:
    found = tally(method, family, range(so_many(3, 200)))
    # where no prices reach: covers over F_2, size-bounded sets
    if method == "branch_and_price" and family != "infeasible_by_limit":
        assert set(found) <= {"optimal checked", "infeasible checked"}


@pytest.mark.parametrize("method", METHODS)
def test_the_paths_of_large_problems_change_no_optimum(path: str, method: str) -> None:
    each = so_many(1, 50)
    for family in ("a100", "random_configurations", "limits", "max_blocks", "long_numbers"):
        assert tally(method, family, range(8, 8 + each)).total() == each


@pytest.mark.long
def test_several_workers_of_the_solver_find_the_same_optima() -> None:
    for family in FAMILIES:
        assert tally("cp_sat", family, range(6), workers=3).total() == 6


# --- problems too large to enumerate --------------------------------------------------------------

#: What HiGHS decides in a few nodes, and what it does not.
MIDDLING: list[tuple[str, dict[str, Any]]] = [
    ("arbitrary", {"n": 40, "m": 1}),
    ("superlinear", {"n": 30, "exponent": "2"}),
    ("near-ties", {"n": 20, "m": 1}),
    ("mixed-fleet", {"n": 20, "types": 2, "limits": "tight"}),
    ("size-bounded", {"n": 20, "m": 1}),
    ("equal-jobs", {"n": 50, "kinds": 5}),
    ("sparse", {"n": 60}),
    ("sublinear", {"n": 20, "m": 5, "exponent": "0.3"}),
    ("real-rows", {"n": 30, "m": 1}),
    ("mixed-fleet", {"n": 25, "types": 3, "cost_step": "0.01"}),
    ("random-configurations", {"n": 40, "k": 3, "configurations": 4, "largest": 10}),
    ("rounding", {"n": 30, "kind": "non-irup-listed"}),
]


def agree(problem: Problem, method: str) -> bool:
    """Hold a solution against HiGHS; whether both ended."""
    solution = answer(problem, method)
    assert check(problem, solution.schedule) == ()
    assert solution.cost is not None
    refuse_false_files(problem, solution)
    found, ended = within(problem, nodes=60)
    if found is not None:
        assert solution.lower_bound <= found
        assert solution.status is not Status.OPTIMAL or solution.cost <= found
    if found is None or not ended:
        return False
    assert found <= solution.cost
    if method == "branch_and_price":
        assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    return solution.status is Status.OPTIMAL


@pytest.mark.parametrize("method", METHODS)
def test_another_solver_finds_the_same_optima(method: str) -> None:
    taken, seeds = MIDDLING[: so_many(6, 12)], range(7, so_many(8, 12))
    problems = [generate(name, seed=seed, **given) for name, given in taken for seed in seeds]
    assert sum(agree(problem, method) for problem in problems) >= len(problems) // 3


# --- threads and time -----------------------------------------------------------------------------

#: What reaches rounding, programs, branching and CP-SAT's word.
VARIED: list[tuple[str, dict[str, Any]]] = [
    ("real-rows", {"n": 60, "m": 30}),
    ("mixed-fleet", {"n": 12, "types": 3, "limits": "tight"}),
    ("rounding", {"n": 30, "kind": "non-irup-listed"}),
    ("rounding", {"n": 12, "kind": "triplets"}),
    ("size-bounded-mixed", {"n": 8}),
    ("huge-demands", {"n": 3}),
]


@pytest.mark.parametrize("varied", spread(3, VARIED))
def test_the_history_is_the_same_for_any_number_of_threads(
    varied: tuple[str, dict[str, Any]],
) -> None:
    problem = generate(varied[0], seed=2, **varied[1])
    one, two = (answer(problem, "branch_and_price", threads=n, seed=5) for n in (1, 2))
    assert [line._replace(seconds=0) for line in one.history] == [
        line._replace(seconds=0) for line in two.history
    ]
    assert (one.schedule, one.certificate) == (two.schedule, two.certificate)


def test_without_a_first_schedule_the_compact_program_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algorithms.cp_sat._Reference, "_round", lambda *_: iter(()))
    feasible = solve(generate("arbitrary", n=5, seed=1), "cp_sat", time_limit=None)
    assert (feasible.status, feasible.proof) == ("optimal", "checked")
    assert feasible.history[-1].source.startswith("cp_sat: the compact program")
    lost = solve(instance("infeasible_by_limit", 4), "cp_sat", time_limit=None)
    assert (lost.status, lost.proof) == ("infeasible", "solver")
    assert lost.history[-1].source.startswith("CP-SAT: the compact program")


@pytest.mark.parametrize("factor", few(1, [10**9, 10**3, 10**6]))
def test_s5_at_any_multiple_of_its_rates_is_solved_and_proved(factor: int) -> None:
    scenario: Any = load_instance("S5")
    problem = at_share(scenario.build_problem().problem, factor * PARTS)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert len(solution.schedule.groups) <= 100


def test_rows_rounded_one_way_find_and_the_other_way_prove_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One unit less of a demand of thirty digits changes no option, but fits into no program."""
    short = generate("mixed-fleet", n=8, seed=3, types=3)
    rows = [
        (job.demand * 10**30 - 1, {b: supply_of(job, b) * 10**30 for b in short.blocks})
        for job in short.jobs
    ]
    long = rebuilt(short, jobs=[Job(f"j{at}", *row) for at, row in enumerate(rows)])
    monkeypatch.setattr(algorithms.branch_and_price.program, "_OPTIONS_A_BLOCK", 0)
    for problem, last in ((short, "compact program"), (long, "program, rounded for proofs")):
        solution = solve(problem, "cp_sat", time_limit=None)
        assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 10)
        assert solution.history[-1].source.endswith(last)
        sources = [line.source.split(", ")[0] for line in solution.history]
        assert "cp_sat: the compact program" in sources
