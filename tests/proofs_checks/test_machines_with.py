"""Branches on machines with some content by hand, and forgeries that neither checker takes."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.knapsack.packing import fullest_machine
from proofs_checks.checker.boxes import dearest_with_extras
from proofs_checks.checker.problem import Bounded
from tests.oracle import optimum
from tests.proofs_checks.both import plain_problem, proved, refused
from tests.proofs_checks.documents import Document, problem

F = Fraction


def leaf(prices: Document, *multipliers: Any, **more: Any) -> Document:
    return {"prices": prices, "multipliers": list(multipliers), **more}


def branch(blocks: Any, at_most: Any, below: Document, above: Document, **more: Any) -> Document:
    on = {"machines_with": {"machine": "m", "blocks": blocks, **more}}
    return {"branch": on, "at_most": at_most, "below": below, "above": above}


# Machines of cost 3 with room for three blocks, and others of cost 7/2 with one: four blocks take
# two machines, 4 by prices alone.
SET = {"machine": "m", "sizes": {"a": 1}, "capacity": 3, "max_blocks": None}
TYPES: list[Document] = [{"name": "m", "cost": 3}, {"name": "n", "cost": "7/2"}]
LISTED: Document = {"machine": "n", "blocks": {"a": 1}}
FOUR = problem([SET, LISTED], {"j": (4, {"a": 1})}, TYPES)
# One machine at most has two blocks or more: then a block may cost 3, 6 of which the multiplier
# takes back once, 4 · 3 - 6 = 6. Or there are two of these, which cost 3 each.
BELOW, ABOVE = leaf({"a": 3}, 6), leaf({"a": 0}, 3)
TREE = branch({"a": 2}, 1, BELOW, ABOVE)


def test_both_checkers_take_a_branch_on_machines_with_some_content() -> None:
    assert proved(FOUR, leaf({"a": 1})) == 4
    assert proved(FOUR, TREE) == 6 == optimum(plain_problem(FOUR))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        # another content than the prices count with
        (branch({"a": 3}, 1, BELOW, ABOVE), "is worth 6 at these prices"),
        (branch({"a": 4}, 1, BELOW, ABOVE), "is worth 9 at these prices"),
        (branch({"a": 2}, 1, BELOW, ABOVE, machine="n"), "is worth 9 at these prices"),
        # other multipliers, or the sides exchanged
        (branch({"a": 2}, 1, leaf({"a": 3}, "5.9"), ABOVE), "is worth 3.1 at these prices"),
        (branch({"a": 2}, 1, BELOW, leaf({"a": 0}, "3.1")), "is worth 3.1 at these prices"),
        (branch({"a": 2}, 1, ABOVE, BELOW), "is worth 15 at these prices"),
        (branch({"a": 2}, 1, leaf({"a": 3}, -6), ABOVE), "is -6, expected"),
        (branch({"a": 2}, 1, leaf({"a": 3}), ABOVE), "expected one for each branch"),
        # no content, or none that the problem knows
        (branch({}, 1, BELOW, ABOVE), "no blocks"),
        (branch({"a": -1}, 1, BELOW, ABOVE), "-1"),
        (branch({"A": 2}, 1, BELOW, ABOVE), "nearest: 'a'"),
        (branch({"a": 2}, 1, BELOW, ABOVE, machine=None), "of no machine type"),
    ],
)  # fmt: skip
def test_neither_checker_takes_a_forged_content(tree: Document, message: str) -> None:
    assert message in refused(FOUR, tree)


def chain(branches: int, multiplier: int) -> Document:
    tree = leaf({"a": 0}, *[multiplier] * branches)
    for depth in reversed(range(branches)):
        tree = branch({"a": 9}, 1, tree, leaf({"a": 0}, *[0] * (depth + 1)))
    return tree


def test_so_many_contents_at_most_count_above_a_leaf() -> None:
    assert proved(FOUR, chain(12, 1)) is not None
    assert proved(FOUR, chain(13, 0)) == 0
    assert "name 13 blocks" in refused(FOUR, chain(13, 1))


amounts = st.fractions(min_value=-6, max_value=9, max_denominator=3)
extras_of = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 2), st.integers(1, 4), min_size=1), amounts),
    max_size=4,
)


@given(
    st.lists(st.tuples(amounts, st.integers(1, 5)), min_size=3, max_size=3),
    st.integers(1, 11),
    st.none() | st.integers(1, 4),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    extras_of,
)
def test_both_knapsacks_find_what_listing_every_content_finds(
    types: list[tuple[Fraction, int]],
    capacity: int,
    max_blocks: int | None,
    most: list[int],
    extras: list[tuple[dict[int, int], Fraction]],
) -> None:
    prices, sizes = [p for p, _ in types], [F(s) for _, s in types]
    best = F(0)
    for content in product(*(range(n + 1) for n in most)):
        if sum(map(Fraction.__mul__, sizes, map(F, content))) > capacity:
            continue
        if max_blocks is not None and sum(content) > max_blocks:
            continue
        worth = sum(map(Fraction.__mul__, prices, map(F, content)), F(0))
        for least, amount in extras:
            if all(content[i] >= n for i, n in least.items()):
                worth += amount
        best = max(best, worth)
    found = fullest_machine(prices, sizes, F(capacity), max_blocks, most, extras)
    assert found.exact
    assert found.value == best
    names = "abc"
    machine = Bounded("m", dict(zip(names, sizes, strict=True)), F(capacity), max_blocks)
    by_name = [({names[i]: n for i, n in least.items()}, amount) for least, amount in extras]
    worth_of, proper = dict(zip(names, prices, strict=True)), dict(zip(names, most, strict=True))
    assert dearest_with_extras(machine, worth_of, proper, by_name) == best
    enough = best + random.Random(0).choice([-1, 0, 1])
    told = dearest_with_extras(machine, worth_of, proper, by_name, enough)
    assert (told > enough) == (best > enough)
