"""The checker on certificates: bounds derived by hand, and trees that are none.

That no certificate proves more than is true is shown by the mutants of ``tests/property``, on which
it has one opinion with the package and the definition.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cms.certificate.certificate import LARGEST_DEPTH, LARGEST_LEAVES
from proofs_checks.checker import Fault, certificate_bound
from proofs_checks.checker import certificate as certificate_module
from proofs_checks.checker.bundles import cheapest_bundle
from tests.proofs_checks.documents import Document, branch, leaf, problem
from tests.samples import refusal

F = Fraction


def refused(of: Document, tree: Any) -> str:
    return refusal(Fault, certificate_bound, of, tree)


# Three blocks are needed. Machines with two cost 2; machines with one of a useless kind cost 5, so
# that all costs have no common step but 1. A price of 1 proves 3. One machine has too few blocks,
# so the optimum is 4.
HARD = problem(
    [{"machine": "m", "blocks": {"a": 2}}, {"machine": "n", "blocks": {"b": 1}}],
    {"j": (3, {"a": 1})},
    [{"name": "m", "cost": 2}, {"name": "n", "cost": 5}],
)
OWN = {"blocks_of_job": {"block": "a", "job": "j"}}


def test_both_checkers_take_as_many_branches_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file holds for one of them alone."""

    def chain(depth: int) -> Document:
        tree = leaf({}, *[0] * depth)
        for above in range(depth - 1, -1, -1):
            tree = branch({"blocks_of": "a"}, above, tree, leaf({}, *[0] * (above + 1)))
        return tree

    assert certificate_module._DEEPEST == LARGEST_DEPTH
    assert certificate_module._MOST_LEAVES == LARGEST_LEAVES
    assert certificate_bound(HARD, chain(LARGEST_DEPTH)) == 0
    said = refused(HARD, chain(LARGEST_DEPTH + 1))
    assert f"more than {LARGEST_DEPTH} branches above one another" in said
    monkeypatch.setattr(certificate_module, "_MOST_LEAVES", 20)
    assert certificate_bound(HARD, chain(19)) == 0
    assert "more than 20 leaves" in refused(HARD, chain(20))


def test_leaves_that_prove_the_same_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tree that the package judges in a second takes minutes, as a side is written often."""
    asked = []

    def counted(*arguments: Any) -> int | None:
        asked.append(arguments)
        return cheapest_bundle(*arguments)

    monkeypatch.setattr(certificate_module, "cheapest_bundle", counted)
    listed = {"blocks": {"a": 2}}
    document = problem([listed], {"x": (3, {"a": 1})})
    kinds: list[Document] = [
        {"blocks_of": "a"},
        {"machines_of": listed},
        {"blocks_of_job": {"block": "a", "job": "x"}},
    ]
    tree = leaf({"a": F(1, 4)}, *[0] * 12)
    for number in range(12):
        tree = branch(kinds[number % 3], number, tree, tree)
    assert certificate_bound(document, tree) == F(3, 4)
    assert len(asked) <= 2  # for the job's own prices, and for those of all others
    # A multiplier that counts tells leaves apart.
    quarter, half = leaf({"a": F(1, 4)}, F(1, 2)), leaf({"a": F(1, 2)}, 0)
    assert certificate_bound(document, branch(kinds[1], 1, quarter, quarter)) == F(7, 4)
    assert certificate_bound(document, branch(kinds[1], 1, half, quarter)) == F(3, 2)
