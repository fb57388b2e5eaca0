"""Solving a problem and holding everything that is said about it against what is known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    Solution,
    check,
    solve,
)
from cms.files import problem_to_json, solution_to_json
from cms.files.documents import lay_out
from proofs_checks.checker import check_solution, parse_document


def proved(problem: Problem, cost: Any, seconds: float = 600.0) -> Solution:
    """Solve a problem; None as the cost means infeasible. Every proof is a checked one."""
    solution = solve(problem, "price_and_branch", threads=1, time_limit=seconds)
    expected = None if cost is None else Fraction(cost)
    assert check(problem, solution.schedule) == () or cost is None
    assert solution.cost == expected
    assert solution.status == ("infeasible" if cost is None else "optimal")
    assert solution.proof == "checked"
    refuse_false_files(problem, solution)
    return solution


def refuse_false_files(problem: Problem, solution: Solution) -> None:
    """The second checker reads both documents from their text and must find no fault."""
    documents = [
        parse_document(lay_out(document))
        for document in (problem_to_json(problem), solution_to_json(solution))
    ]
    assert check_solution(*documents) == []


def of(
    *shapes: Configuration | SizeBoundedConfigurations,
    jobs: dict[str, tuple[Any, dict[str, Any]]],
    types: tuple[MachineType, ...] = (),
) -> Problem:
    listed = [Job(name, demand, table) for name, (demand, table) in jobs.items()]
    return Problem(configurations=shapes, jobs=listed, machine_types=types)
