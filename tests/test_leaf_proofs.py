"""Trees with shared sides: counted leaf by leaf, evaluated once; checks that are given up."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import LARGEST_LEAVES, BlockPrices, Branch, Certificate
from cms.certificate.quantity import BlocksOfJob, MachinesOfType, Quantity
from cms.errors import InvalidCertificate
from cms.files import certificate_from_json
from cms.knapsack.pricing import price_jobs
from cms.problem.problem import Problem
from tests.samples import refusal, triple

refused = partial(refusal, InvalidCertificate)


def shared(depth: int, multiplier: int = 0) -> Certificate:
    """Branches whose two sides are the same object; 2 ** depth leaves."""
    tree: Certificate = BlockPrices({"b": "1/3"}, multipliers=[multiplier] * depth)
    for _ in range(depth):
        tree = Branch(MachinesOfType("machine"), 1, tree, tree)
    return tree


def test_leaves_are_counted_as_often_as_they_stand() -> None:
    tree = shared(14)
    assert isinstance(tree, Branch)
    assert (tree.leaf_count, LARGEST_LEAVES) == (2**14, 20_000)
    message = "a certificate has more than 20000 leaves, a side that stands in several places"
    assert refused(shared, 15).startswith(message)


def passes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """When ``price_jobs`` is to be stopped, from now on."""
    asked: list[object] = []

    def counted(*given: Any, **more: Any) -> Any:
        asked.append((more["stopped"], more["undisturbed"]))
        return price_jobs(*given, **more)

    monkeypatch.setattr("cms.certificate.certificate.price_jobs", counted)
    return asked


def test_leaves_that_prove_the_same_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = passes(monkeypatch)
    # whether the sides are the same objects or only equal
    document = certificate_from_json(shared(6).to_json())
    for tree in (shared(14), document):
        asked.clear()
        assert tree.bound(triple()) == Fraction(4, 3)
        assert len(asked) == 1
    # with multipliers each path is a case of its own, unless it has the same branches
    asked.clear()
    shared(6, 1).bound(triple(cost=9))
    assert len(asked) == 2**6


@given(st.data())
def test_a_tree_with_shared_sides_proves_what_its_leaves_do_one_by_one(data: st.DataObject) -> None:
    problem = triple(cost=3)
    depth = data.draw(st.integers(1, 2))
    numbers = st.sampled_from([Fraction(0), Fraction(0), Fraction(1), Fraction(1, 2)])
    multipliers = st.lists(numbers, min_size=depth, max_size=depth)
    level: list[Certificate] = [
        BlockPrices({"b": "1/3"}, multipliers=data.draw(multipliers)) for _ in range(3)
    ]
    quantities: list[Quantity] = [MachinesOfType("machine"), BlocksOfJob("b", "x")]
    some = st.tuples(
        st.sampled_from(quantities),
        st.integers(0, 1),
        st.sampled_from([0, 1, 2]),
        st.sampled_from([0, 1, 2]),
    )
    for _ in range(depth):
        level = [
            Branch(quantity, value, level[below], level[above])
            for quantity, value, below, above in data.draw(st.lists(some, min_size=3, max_size=3))
        ]
    with pytest.MonkeyPatch.context() as patch:
        judged = proved(problem, level[0])
        patch.setattr(BlockPrices, "numbers", lambda self: object())  # no two are the same
        assert proved(problem, level[0]) == judged


def proved(problem: Problem, certificate: Certificate) -> Any:
    try:
        return certificate.judged(problem)
    except InvalidCertificate as fault:
        return str(fault)


@pytest.mark.parametrize("undisturbed", [0, 10**6])
def test_a_check_can_be_stopped_between_leaves_and_within_them(
    monkeypatch: pytest.MonkeyPatch, undisturbed: int
) -> None:
    asked = passes(monkeypatch)

    def stopped() -> bool:
        return len(asked) >= 3

    tree = shared(6, 1)
    assert tree.judged(triple(cost=9), stopped=stopped, undisturbed=undisturbed) is None
    assert asked == [(stopped, undisturbed)] * 3
    asked.clear()
    assert tree.judged(triple(cost=9), stopped=lambda: False) == tree.judged(triple(cost=9))
