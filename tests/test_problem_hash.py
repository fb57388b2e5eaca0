"""Problems are hashed by what they mean: from objects and from arrays, in any order of blocks."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given

from cms.files import problem_to_json
from cms.problem.problem import Problem
from tests.files.documents import problems
from tests.proofs_checks.streaming.folders import LEAF, hashed, leaf_of, rows_of
from tests.samples import mig, mig_from_arrays


def test_the_same_problem_by_hand_and_from_arrays_in_any_order_of_the_blocks() -> None:
    by_hand = mig()
    for blocks in permutations(("7g", "4g", "3g", "1g")):
        problem = mig_from_arrays(blocks)
        assert problem.blocks == blocks
        assert problem == by_hand
        assert hash(problem) == hash(by_hand)
        assert problem.sha256 == by_hand.sha256
        assert {problem: 1}[by_hand] == 1


def sha256_by_definition(problem: Problem) -> str:
    """The bytes of docs/reference/files.md, from what a file says of a problem."""
    document = problem_to_json(problem)
    rows, blocks = rows_of(document), document["blocks"]
    leaves = [
        leaf_of(rows[at : at + LEAF], blocks, at, problem.job_names[at : at + LEAF])
        for at in range(0, len(rows), LEAF)
    ]
    return hashed(document, leaves)


@given(problems())
def test_the_hash_is_taken_over_the_bytes_that_the_documents_define(problem: Problem) -> None:
    assert problem.sha256 == sha256_by_definition(problem)
    assert problem.compute_sha256() == problem.sha256


def test_numbered_names_are_hashed_as_any_others() -> None:
    for n in (1_000, 66_001):  # in a leaf, and in two
        parts: dict[str, Any] = {"demands": [1] * n, "supply": [[2]] * n, "configurations": [[1]]}
        named = Problem.from_arrays(**parts, job_names=[f"j{j}" for j in range(n)])
        assert Problem.from_arrays(**parts).sha256 == named.sha256
