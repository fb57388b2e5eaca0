"""The independent checker on documents whose right verdict was derived by hand.

That it takes the true ones, as the package does, and of tampered ones has one opinion with it, is
shown by ``tests/cli/test_check.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

from proofs_checks import checker
from tests.proofs_checks.documents import (
    INFEASIBLE,
    NOTHING,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    WEAK,
    Document,
    changed,
    group,
    problem,
    solution,
)


@pytest.mark.parametrize(
    ("document", "path", "to", "sentence"),
    [
        (SOLUTION, ["problem_sha256"], "0" * 64, "the problem_sha256 is not this problem's"),
        (SOLUTION, ["machine_count"], 2, "recomputed, they are 3, 3, 0"),
        (SOLUTION, ["cost"], "5/2", "recomputed, they are 3, 3, 0"),
        (
            SOLUTION,
            ["lower_bound"],
            4,
            "the certificate proves 17/7, rounded up to the costs' step: 3",
        ),
        (SOLUTION, ["lower_bound"], None, "lower_bound is None, not an exact number"),
        (SOLUTION, ["lower_bound"], 2, "the lower_bound 2 is not the cost 3"),
        (
            SOLUTION,
            ["certificate", "tree", "prices", "4g"],
            "5/7",
            "configurations[1] is worth 8/7",
        ),
        # with a 3g at 2/7, four of them serve bert for 8/7 and two vgg for 4/7
        (SOLUTION, ["certificate", "tree", "prices", "3g"], "2/7", "the certificate proves 12/7"),
        (SOLUTION, ["claimed_bound"], 4, "the claimed_bound 4 exceeds the cost 3"),
        (SOLUTION, ["schedule", "groups", 2], ..., "job 'vgg' has 60 of its demand 100 covered"),
        (SOLUTION, ["status"], "feasible", "the status feasible has the proof 'checked', not none"),
        (SOLUTION, ["status"], "perfect", "the status is 'perfect', not one of optimal"),
        (SOLUTION, ["proof"], "solver", "the claimed_bound None is not the cost 3"),
        (SOLUTION, ["proof"], "none", "the status optimal has the proof 'none'"),
        (SOLUTION, ["stop_reason"], "bored", "the stop_reason 'bored' is unknown"),
        (WEAK, ["stop_reason"], "proved", "the stop_reason is proved, but the proof is 'none'"),
        (NOTHING, ["status"], "infeasible", "the status infeasible has the proof 'none'"),
        (NOTHING, ["cost"], 3, "recomputed, they are None, None, None"),
        (SOLUTION, ["seconds"], -1, "seconds is -1, not a number >= 0"),
        (SOLUTION, ["method"], None, "method is None, not a text"),
        (SOLUTION, ["limit"], 3, "the solution has the unknown key 'limit'"),
        (SOLUTION, ["history"], ..., "the solution has no 'history'"),
        (SOLUTION, ["format"], "cms-problem", "the format is 'cms-problem', not 'cms-solution'"),
        (SOLUTION, ["schema"], 1, "this checker knows version 2"),
    ],
)
def test_a_false_claim_is_named(
    document: Document, path: list[Any], to: Any, sentence: str
) -> None:
    faults = checker.check_solution(SERVICES, changed(document, *path, to=to))
    assert any(sentence in fault for fault in faults), faults


def test_without_a_ray_infeasibility_is_not_proved() -> None:
    no_ray = changed(INFEASIBLE, "certificate", "tree", to={"prices": {"a": 1}})
    assert checker.check_solution(ONE_IS_TOO_FEW, no_ray) == [
        "the certificate does not prove that there is no schedule"
    ]


def test_a_bound_is_rounded_up_to_the_costs_common_step() -> None:
    # Costs 3/2 and 5/2 are multiples of 1/2. A price of 5/4 proves 15/4 for three blocks, so 4: one
    # machine of each kind costs 4 and has three.
    two_kinds = problem(
        [{"machine": "m", "blocks": {"a": 1}}, {"machine": "n", "blocks": {"a": 2}}],
        {"j": (3, {"a": 1})},
        [{"name": "m", "cost": "3/2"}, {"name": "n", "cost": "2.5"}],
    )
    groups = [
        group({"a": 1}, [["a", "j", 1]], machine="m"),
        group({"a": 2}, [["a", "j", 2]], machine="n"),
    ]
    document = solution(two_kinds, groups, {"prices": {"a": "5/4"}}, cost=4, lower_bound=4)
    assert checker.check_solution(two_kinds, document) == []
    higher = {**document, "lower_bound": "4.5", "gap": "-1/2"}
    faults = checker.check_solution(two_kinds, higher)
    assert "the certificate proves 15/4, rounded up to the costs' step: 4" in faults[0]
