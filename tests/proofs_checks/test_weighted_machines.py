"""Branches on weighted sums of machines by hand, and forgeries that neither checker takes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import optimum
from tests.proofs_checks.both import plain_problem, proved, refused
from tests.proofs_checks.documents import Document, problem


def leaf(price: Any, *multipliers: Any, **more: Any) -> Document:
    return {"prices": {"x": price}, "multipliers": list(multipliers), **more}


def branch(weights: Any, at_most: Any, below: Document, above: Document) -> Document:
    on = {"machines_of_type": weights}
    return {"branch": on, "at_most": at_most, "below": below, "above": above}


# 101 blocks, two on a small machine of cost 2, four on a large one of cost 4; one on a machine of
# cost 5, so that costs have no common step but 1. A price of 1 proves 101, and 102 is the best:
# small + 2 large >= 51, or <= 50. Then the block may cost 5 (the dear machine's cost), 8 of which
# the multiplier takes back for each two: 5 · 101 - 8 · 50 = 105. On the other side 51 times 2.
TYPES: list[Document] = [
    {"name": "small", "cost": 2},
    {"name": "large", "cost": 4},
    {"name": "dear", "cost": 5},
]
BLOCKS = {"small": 2, "large": 4, "dear": 1}
WEIGHTS = {"small": 1, "large": 2}
SHAPES: list[Document] = [{"machine": m, "blocks": {"x": n}} for m, n in BLOCKS.items()]
ODD = problem(SHAPES, {"j": (101, {"x": 1})}, TYPES)
BELOW, ABOVE = leaf(5, 8), leaf(0, 2)
TREE = branch(WEIGHTS, 50, BELOW, ABOVE)


def test_both_checkers_take_a_branch_on_a_weighted_sum() -> None:
    assert proved(ODD, leaf(1)) == 101
    assert proved(ODD, TREE) == 102
    assert optimum(plain_problem(problem(SHAPES, {"j": (13, {"x": 1})}, TYPES))) == 14


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        # a weight that is not what the prices count with
        (branch({"small": 1, "large": 3}, 50, BELOW, ABOVE), "is worth 6 at these prices"),
        (branch({"small": 2, "large": 2}, 50, BELOW, ABOVE), "is worth 4 at these prices"),
        (branch({"small": 1, "large": 1}, 50, BELOW, ABOVE), "is worth 12 at these prices"),
        (branch({"small": 1}, 50, BELOW, ABOVE), "is worth 20 at these prices"),
        (branch("small", 50, BELOW, ABOVE), "is worth 20 at these prices"),
        (branch({**WEIGHTS, "dear": 3}, 50, BELOW, ABOVE), "is worth 6 at these prices"),
        # another multiplier, on either side
        (branch(WEIGHTS, 50, leaf(5, "7.9"), ABOVE), "is worth 2.1 at these prices"),
        (branch(WEIGHTS, 50, BELOW, leaf(0, "2.1")), "is worth 2.1 at these prices"),
        (branch(WEIGHTS, 50, leaf(5, -8), ABOVE), "is -8, expected"),
        (branch(WEIGHTS, 50, leaf(5), ABOVE), "expected one for each branch"),
        (branch(WEIGHTS, 50, leaf(5, 8, 0), ABOVE), "expected one for each branch"),
        # the sides exchanged
        (branch(WEIGHTS, 50, ABOVE, BELOW), "is worth 18 at these prices"),
        # no weights
        (branch(WEIGHTS, 50.5, BELOW, ABOVE), "at_most is 50.5, expected a whole number"),
        (branch({**WEIGHTS, "dear": 0}, 50, BELOW, ABOVE), "dear is 0, expected a whole number >="),
        (branch({**WEIGHTS, "dear": True}, 50, BELOW, ABOVE), "dear is true, expected a whole num"),
        (branch({}, 50, BELOW, ABOVE), "a branch on machines of no type"),
        (branch({**WEIGHTS, "Small": 1}, 50, BELOW, ABOVE), "nearest: 'small'"),
    ],
)  # fmt: skip
def test_neither_checker_takes_a_forged_sum(tree: Document, message: str) -> None:
    assert message in refused(ODD, tree)


@pytest.mark.parametrize("at_most", [0, 49, 51, 52, 100, -1, 10**30])
def test_another_value_proves_less(at_most: int) -> None:
    # The same prices hold; what they prove is true, and below 102.
    bound = proved(ODD, branch(WEIGHTS, at_most, BELOW, ABOVE))
    assert bound is not None
    assert bound < 102
