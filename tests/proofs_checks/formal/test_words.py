"""The words for the proved program, printed back: the same problem, schedule and tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from proofs_checks.checker import Fault, problem_sha256
from proofs_checks.checker.problem import Problem, read_problem
from proofs_checks.checker.schedule import read_schedule
from proofs_checks.checker.solution import examine
from proofs_checks.formal import forms
from proofs_checks.formal.__main__ import proved, words_of
from proofs_checks.formal.words import plan_words, problem_document
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import (
    BY_WORD,
    FEASIBLE,
    INFEASIBLE,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    Document,
    branch,
    changed,
    leaf,
)
from tests.samples import refusal, so_many

from .random_plans import random_plans
from .verdicts import both, second_verdict


def over(names: Iterable[str], values: Sequence[Any], kind: Any = int) -> Document:
    return {name: kind(v) for name, v in zip(names, values, strict=True) if v}


def schedule_document(groups: list[forms.Group], names: Problem) -> Document:
    """Write the schedule of some words as the ``schedule`` of a solution document again."""
    types, blocks, jobs = list(names.machine_types), names.blocks, list(names.jobs)
    return {
        "groups": [
            {
                "machine": types[group.group_type],
                "configuration": over(blocks, group.group_counts),
                "count": group.group_machines,
                "assignment": [[blocks[i], jobs[j], n] for i, j, n in group.group_assignment],
            }
            for group in groups
        ]
    }


def tree_document(node: forms.Tree, names: Problem) -> Document:
    """Write a tree of some words as the ``tree`` of a certificate again."""
    types, blocks, jobs = list(names.machine_types), names.blocks, list(names.jobs)
    if isinstance(node, forms.QLeaf):
        prices = over(blocks, node.leaf.qprices, str)
        limits = over(names.limits, node.leaf.qlimit_prices, str)
        proper = zip(blocks, node.leaf.qproper, strict=True)
        most = {i: n for i, n in proper if n is not None}
        multipliers = map(str, node.leaf.qmultipliers)
        return leaf(prices, *multipliers, limit_prices=limits, proper=most)
    what = node.quantity
    on: Document
    if isinstance(what, forms.MachinesOfType):
        on = {"machines_of_type": over(types, what.times)}
    elif isinstance(what, forms.BlocksOfType):
        on = {"blocks_of": blocks[what.block]}
    elif isinstance(what, forms.BlocksOfJob):
        on = {"blocks_of_job": {"block": blocks[what.block], "job": jobs[what.job]}}
    else:
        kind = "of" if isinstance(what, forms.MachinesOfConfiguration) else "with"
        content = {"machine": types[what.machine], "blocks": over(blocks, what.counts)}
        on = {f"machines_{kind}": content}
    below, above = tree_document(node.below, names), tree_document(node.above, names)
    return branch(on, node.at_most, below, above)


def printed_back(of: Document, line: str) -> tuple[Document, Document | None, Document]:
    found, names = forms.read_words(line), read_problem(read(of))
    return (
        problem_document(found.problem, names),
        None if found.schedule is None else schedule_document(found.schedule, names),
        tree_document(found.tree, names),
    )


def test_random_plans_printed_back_are_what_they_were() -> None:
    compared = 0
    for draw in random_plans(2, so_many(250, 5000)):
        _, line = both(draw.problem, draw.groups, draw.tree)
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
