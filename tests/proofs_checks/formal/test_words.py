"""The words for the proved program, printed back: the same problem, schedule and tree."""

from __future__ import annotations

import pytest

from proofs_checks.checker import Fault, problem_sha256
from proofs_checks.checker.problem import read_problem
from proofs_checks.checker.solution import examine
from proofs_checks.formal import forms
from proofs_checks.formal.__main__ import proved
from proofs_checks.formal.words import problem_document
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import (
    BY_WORD,
    FEASIBLE,
    INFEASIBLE,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    Document,
)
from tests.samples import so_many

from .random_plans import both_say, random_plans


def test_words_read_again_are_the_same_and_make_the_same_problem() -> None:
    compared = 0
    for draw in random_plans(2, so_many(250, 5000)):
        _, line = both_say(draw.problem, draw.groups, draw.tree)
        if line is None:
            continue
        plan, of = forms.read_words(line), read(draw.problem)
        assert " ".join(forms.write_words(plan)) == line
        document = problem_document(plan.problem, read_problem(of))
        assert problem_sha256(document) == problem_sha256(of)
        compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("document", "verdict", "missing"),
    [
        (SOLUTION, "Optimal 3", None),
        (SOLUTION, "Optimal 2", "the lower_bound is 3; the certificate proves 2"),
        (SOLUTION, "Between 2 3", "the lower_bound is 3; the certificate proves 2"),
        (SOLUTION, "Rejected", "nothing is proved"),
        (SOLUTION, "Infeasible", "that there is no schedule, but there is one"),
        ({**SOLUTION, **FEASIBLE, "lower_bound": 3, "gap": 0}, "Between 2 3", "proves 2"),
        ({**SOLUTION, **FEASIBLE, "lower_bound": 2, "gap": 1}, "Between 2 3", None),
        (BY_WORD, "Between 2 3", None),
        (SOLUTION, "AtLeast 5/2", "rounds 5/2 up"),
        (INFEASIBLE, "Infeasible", None),
        (INFEASIBLE, "AtLeast 2", "does not prove that there is no schedule"),
        ({**INFEASIBLE, **FEASIBLE, "status": "no_schedule"}, "AtLeast 2", None),
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
