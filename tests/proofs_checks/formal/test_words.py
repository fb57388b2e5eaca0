"""The words for the proved program, printed back: the same problem, schedule and tree."""

from __future__ import annotations

import pytest

from proofs_checks.checker import Fault, problem_sha256
from proofs_checks.checker.problem import Problem, read_problem
from proofs_checks.checker.schedule import read_schedule
from proofs_checks.checker.solution import examine
from proofs_checks.formal.__main__ import proved, words_of
from proofs_checks.formal.grammar import (
    problem_document,
    read_words,
    schedule_document,
    tree_document,
)
from proofs_checks.formal.words import plan_words
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import (
    BY_WORD,
    FEASIBLE,
    INFEASIBLE,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    Document,
    changed,
)
from tests.samples import refusal, so_many

from .random_plans import both_say, random_plans, second_verdict


def names(problem: Problem) -> tuple[list[str], list[str], list[str]]:
    return list(problem.machine_types), problem.blocks, list(problem.jobs)


def printed_back(of: Document, line: str) -> tuple[Document, Document | None, Document]:
    found, named = read_words(line), names(read_problem(read(of)))
    return (
        problem_document(found, *named),
        None if found.groups is None else schedule_document(found, *named),
        tree_document(found.tree, *named),
    )


def test_random_plans_printed_back_are_what_they_were() -> None:
    compared = 0
    for draw in random_plans(2, so_many(250, 5000)):
        _, line = both_say(draw.problem, draw.groups, draw.tree)
        if line is None:
            continue
        of, schedule, tree = printed_back(draw.problem, line)
        problem = read_problem(of)
        assert problem_sha256(of) == problem_sha256(read(draw.problem))
        # Written again, it is the same line: no fact is lost between.
        again = None if schedule is None else read_schedule(schedule, problem)
        assert plan_words(problem, again, tree) == line
        groups = None if schedule is None else schedule["groups"]
        original = None if draw.groups is None else [*map(read, draw.groups)], read(draw.tree)
        assert second_verdict(problem, groups, tree) == second_verdict(problem, *original)
        compared += 1
    assert compared > 100


def words(of: Document, solution: Document) -> str:
    """The words of a solution of a problem, an infeasible one's without a schedule."""
    problem, document = read_problem(read(of)), read(solution)
    groups = read_schedule(document["schedule"], problem)
    return words_of(problem, groups or None, document["certificate"]["tree"])


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        (changed(SOLUTION, "schedule", "groups", 0, "machine", to="b"), "'b', which the problem"),
        (
            changed(SOLUTION, "schedule", "groups", 0, "assignment", 0, 1, to="gpt"),
            "'gpt', which the problem",
        ),
        (changed(SOLUTION, "certificate", "tree", "prices", to={"9g": 1}), "'9g'"),
        (changed(SOLUTION, "certificate", "tree", to={}), "has no 'prices'"),
    ],
)
def test_what_cannot_be_put_into_words(solution: Document, message: str) -> None:
    assert message in refusal(Fault, words, SERVICES, solution)


@pytest.mark.parametrize(
    ("document", "verdict", "missing"),
    [
        (SOLUTION, "optimal 3", None),
        (SOLUTION, "optimal 2", "the lower_bound is 3; the certificate proves 2"),
        (SOLUTION, "between 2 3", "the lower_bound is 3; the certificate proves 2"),
        (SOLUTION, "rejected", "nothing is proved"),
        (SOLUTION, "infeasible", "that there is no schedule, but there is one"),
        ({**SOLUTION, "lower_bound": 2, "gap": 1}, "between 2 3", "is not the cost 3"),
        ({**SOLUTION, "machine_count": 4}, "optimal 3", "machine_count, cost and gap are 4, 3"),
        ({**SOLUTION, "proof": "none"}, "between 2 3", "has the proof 'none'"),
        ({**SOLUTION, "status": "best"}, "at least 3", "the status is 'best'"),
        ({**SOLUTION, **FEASIBLE, "lower_bound": 3, "gap": 0}, "between 2 3", "proves 2"),
        ({**SOLUTION, **FEASIBLE, "lower_bound": 2, "gap": 1}, "between 2 3", None),
        (BY_WORD, "between 2 3", None),
        ({**BY_WORD, "claimed_bound": None}, "between 2 3", "claimed_bound None is not the cost"),
        (SOLUTION, "at least 5/2", "rounds 5/2 up"),
        (INFEASIBLE, "infeasible", None),
        (INFEASIBLE, "at least 2", "does not prove that there is no schedule"),
        ({**INFEASIBLE, **FEASIBLE, "status": "no_schedule"}, "at least 2", None),
    ],
)
def test_what_is_said_beyond_what_is_proved(
    document: Document, verdict: str, missing: str | None
) -> None:
    of = ONE_IS_TOO_FEW if document["machine_count"] is None else SERVICES
    try:
        found, _ = examine(read_problem(read(of)), read(document), lambda p, *_: proved(p, verdict))
    except Fault as fault:
        found = [str(fault)]
    assert found == [] if missing is None else missing in "\n".join(found)
