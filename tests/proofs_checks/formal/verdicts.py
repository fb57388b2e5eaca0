"""What the second checker says of a plan, in the words of the proved program."""

from __future__ import annotations

from typing import Any

from proofs_checks.checker.certificate import tree_bound
from proofs_checks.checker.problem import Problem, read_problem
from proofs_checks.checker.reading import ZERO, Fault
from proofs_checks.checker.schedule import read_schedule, schedule_faults
from proofs_checks.checker.usable import round_up
from proofs_checks.formal.words import plan_words
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import Document


def second_verdict(problem: Problem, groups: list[Document] | None, tree: Any) -> str:
    """What the second checker says."""
    try:
        bound = tree_bound(tree, problem)
        if bound is None:
            return "Infeasible"
        least = round_up(problem, bound)
        if groups is None:
            return f"AtLeast {least}"
        found = read_schedule({"groups": groups}, problem)
        if schedule_faults(problem, found):
            return "Rejected"
    except Fault:
        return "Rejected"
    cost = sum((problem.machine_types[g.machine].cost * g.count for g in found), ZERO)
    return f"Optimal {cost}" if cost <= least else f"Between {least} {cost}"


def both(of: Document, groups: Any, tree: Any) -> tuple[str, str | None]:
    """What the second checker says, and the words for the proved one; None if they are refused."""
    try:
        problem = read_problem(read(of))
        groups, tree = read(groups), read(tree)
    except Fault:
        return "Rejected", None
    said = second_verdict(problem, groups, tree)
    try:
        found = None if groups is None else read_schedule({"groups": groups}, problem)
        line = plan_words(problem, found, tree)
    except Fault:
        line = None
    return said, line
