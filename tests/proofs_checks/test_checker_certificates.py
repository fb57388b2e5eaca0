"""The checker on certificates: bounds derived by hand, and none above a brute-forced optimum."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cms.certificate.certificate import LARGEST_DEPTH, LARGEST_LEAVES
from proofs_checks.checker import Fault, certificate_bound
from proofs_checks.checker import certificate as certificate_module
from proofs_checks.checker.knapsacks import cheapest_price
from tests.proofs_checks.documents import SERVICES, SLICES, Document, problem
from tests.samples import so_many

F = Fraction


def branch(on: Document, at_most: int, below: Document, above: Document) -> Document:
    return {"branch": on, "at_most": at_most, "below": below, "above": above}


def leaf(prices: Document, *multipliers: Any, limit_prices: Document | None = None) -> Document:
    return {"prices": prices, "limit_prices": limit_prices or {}, "multipliers": list(multipliers)}


# --- prices ---------------------------------------------------------------------------------------


def test_prices_of_slices_prove_seventeen_sevenths() -> None:
    # derived beside SERVICES
    assert certificate_bound(SERVICES, leaf(SLICES)) == F(17, 7)
    assert certificate_bound(SERVICES, {"prices": {}}) == 0


def test_costs_and_limits_count() -> None:
    # One machine of cost 1 exists, others cost 3; two blocks are needed, so every schedule costs 4.
    # At a price of 3 both blocks are worth 6; the cheap machine is worth 3 <= 1 + 2, and its limit
    # gives back 1 * 2. Without a limit price, blocks may cost 1.
    two_types = problem(
        [{"machine": "cheap", "blocks": {"a": 1}}, {"machine": "dear", "blocks": {"a": 1}}],
        {"j": (2, {"a": 1})},
        [{"name": "cheap", "limit": 1}, {"name": "dear", "cost": 3}],
    )
    assert certificate_bound(two_types, leaf({"a": 3}, limit_prices={"cheap": 2})) == 4
    assert certificate_bound(two_types, leaf({"a": 1})) == 2
    with pytest.raises(Fault, match="worth 3 .* its cost 1 and its limit price 1"):
        certificate_bound(two_types, leaf({"a": 3}, limit_prices={"cheap": 1}))
    with pytest.raises(Fault, match="limit price of 'dear', which has no limit"):
        certificate_bound(two_types, leaf({"a": 3}, limit_prices={"dear": 2}))
    # a limit price is not free: at 5 it costs more than the prices gain
    assert certificate_bound(two_types, leaf({"a": 3}, limit_prices={"cheap": 5})) == 1


def test_a_size_bounded_set_is_priced_by_its_dearest_machine() -> None:
    # Prices size/132 fill a machine of capacity 132 with at most 1. The demands are 2, 3 and 6
    # blocks: (2 * 44 + 3 * 33 + 6 * 12) / 132 = 259/132. (The optimum is 3: see the theory, 6.11.)
    sizes = {"a": 44, "b": 33, "c": 12}
    shares = problem(
        [{"sizes": sizes, "capacity": 132}],
        {"x": (2, {"a": 1}), "y": (3, {"b": 1}), "z": (6, {"c": 1})},
    )
    prices = {name: str(F(size, 132)) for name, size in sizes.items()}
    assert certificate_bound(shares, leaf(prices)) == F(259, 132)
    # 11 blocks c fill the machine; at 1/10.9 they would be worth 110/109
    with pytest.raises(Fault, match="is worth 110/109"):
        certificate_bound(shares, leaf({**prices, "c": "10/109"}))
    # With at most 3 blocks on a machine each may cost 1/3: 11 blocks cost 11/3.
    few = problem(
        [{"sizes": sizes, "capacity": 132, "max_blocks": 3}],
        {"x": (2, {"a": 1}), "y": (3, {"b": 1}), "z": (6, {"c": 1})},
    )
    assert certificate_bound(few, leaf(dict.fromkeys(sizes, "1/3"))) == F(11, 3)


# --- infeasibility --------------------------------------------------------------------------------


def test_a_ray_from_a_limit_proves_infeasibility() -> None:
    # A free machine is worth 1 <= 0 + 1, and 2 - 1 * 1 > 0. With two machines, 2 - 2 * 1 = 0 shows
    # nothing more than that every schedule costs at least 0.
    for limit, bound in [(1, None), (2, 0)]:
        limited = problem(
            [{"blocks": {"a": 1}}], {"j": (2, {"a": 1})}, [{"name": "machine", "limit": limit}]
        )
        assert certificate_bound(limited, leaf({"a": 1}, limit_prices={"machine": 1})) == bound


def test_a_job_that_no_block_serves_proves_infeasibility() -> None:
    nobody = problem([{"blocks": {"a": 1}}], {"j": (1, {"a": 0}), "k": (1, {"a": 1})})
    assert certificate_bound(nobody, leaf({})) is None
    with pytest.raises(Fault, match="is worth 2"):
        certificate_bound(nobody, leaf({"a": 2}))


def test_a_block_that_no_machine_has_may_have_any_price() -> None:
    nowhere = problem([{"sizes": {"a": 5, "b": 1}, "capacity": 4}], {"j": (1, {"a": 1})})
    assert certificate_bound(nowhere, leaf({"a": 1})) is None


# --- branches -------------------------------------------------------------------------------------

# Three blocks are needed. Machines with two cost 2; machines with one of a useless kind cost 5, so
# that all costs have no common step but 1. A price of 1 proves 3. One machine has too few blocks,
# so the optimum is 4.
HARD = problem(
    [{"machine": "m", "blocks": {"a": 2}}, {"machine": "n", "blocks": {"b": 1}}],
    {"j": (3, {"a": 1})},
    [{"name": "m", "cost": 2}, {"name": "n", "cost": 5}],
)
TWO = {"a": 2}


@pytest.mark.parametrize(
    ("on", "at_most", "below", "above"),
    [
        # at most 1: free machines are worth 2 * 1 - 2 <= 0, and 3 - 2 * 1 > 0: impossible
        # at least 2: the machine's cost itself is the multiplier, 2 * 2
        ({"machines_of": {"machine": "m", "blocks": TWO}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        ({"machines_of_type": "m"}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        ({"machines_of_type": {"m": 1}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        # the same with those of n counted twice as well, which have no block of a: 2 * 2 <= 5
        ({"machines_of_type": {"m": 1, "n": 2}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        # at most 2 blocks: they are worth 1 - 1 each, and 3 - 1 * 2 > 0: impossible
        # at least 3: worth 1 each, 3 in all: the integrality of machines is not in it, so 3
        ({"blocks_of": "a"}, 2, leaf({"a": 1}, 1), leaf({}, 1)),
        # j gets at most 2: its price is 0 + 1, so 3 - 1 * 2 > 0: impossible
        # at least 3: its price is 1 - 1, and 1 * 3 remains
        ({"blocks_of_job": {"block": "a", "job": "j"}}, 2, leaf({}, 1), leaf({"a": 1}, 1)),
    ],
)
def test_each_quantity_can_be_branched_on(
    on: Document, at_most: int, below: Document, above: Document
) -> None:
    proves = 4 if any(kind.startswith("machines") for kind in on) else 3
    assert certificate_bound(HARD, leaf({"a": 1})) == 3
    assert certificate_bound(HARD, branch(on, at_most, below, above)) == proves
    # The least leaf counts: a leaf that proves only 0 leaves 0.
    assert certificate_bound(HARD, branch(on, at_most, leaf({}, 0), above)) == 0
    assert certificate_bound(HARD, branch(on, at_most, below, leaf({}, 0))) == 0


def test_multipliers_that_do_not_hold_are_refused() -> None:
    on = {"machines_of_type": "m"}
    with pytest.raises(Fault, match=r"configurations\[0\] is worth 3"):
        certificate_bound(HARD, branch(on, 1, leaf({"a": 1}, 2), leaf({}, 3)))
    with pytest.raises(Fault, match="has 0 multipliers below 1 branches"):
        certificate_bound(HARD, branch(on, 1, leaf({"a": 1}), leaf({}, 2)))
    with pytest.raises(Fault, match="has 2 multipliers below 1 branches"):
        certificate_bound(HARD, branch(on, 1, leaf({"a": 1}, 2, 0), leaf({}, 2)))
    with pytest.raises(Fault, match="a multiplier is -1, which is negative"):
        certificate_bound(HARD, branch(on, 1, leaf({"a": 1}, -1), leaf({}, 2)))
    own = {"blocks_of_job": {"block": "a", "job": "j"}}
    with pytest.raises(Fault, match="price for job 'j', less its multipliers, is -1"):
        certificate_bound(HARD, branch(own, 2, leaf({}, 1), leaf({}, 1)))


LEAVES = leaf({}, 0), leaf({}, 0)
WITH_OTHERS = {"machine": "m", "blocks": {"a": 1}}


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (None, "a node of the certificate is None"),
        ({}, "has no 'prices'"),
        ({"prices": {"c": 1}}, "a key of prices is 'c', which the problem does not have"),
        ({"prices": {"a": -1}}, "the price of 'a' is -1, which is negative"),
        ({"prices": {}, "limit_prices": {"a100": 1}}, "is 'a100', which the problem does not have"),
        ({"prices": {}, "multiplier": []}, "has the unknown key 'multiplier'"),
        (branch({"blocks_of": "c"}, 0, *LEAVES), "the block of a branch is 'c'"),
        (branch({"blocks_of": "a"}, "0", *LEAVES), "is '0', not an integer"),  # type: ignore[arg-type]
        (branch({"machines_of_type": "h"}, 0, *LEAVES), "type of a branch is 'h'"),
        (branch({"machines_of_type": {"h": 2}}, 0, *LEAVES), "machines of a branch is 'h'"),
        (branch({"machines_of_type": {}}, 0, *LEAVES), "on the machines of no type"),
        (branch({"machines_of_type": {"m": 0}}, 0, *LEAVES), "type 'm' is 0, less than 1"),
        (branch({"machines_of_type": {"m": "1"}}, 0, *LEAVES), "type 'm' is '1', not an integer"),
        (branch({"machines_of_type": ["m"]}, 0, *LEAVES), "the machine type of a branch is ['m']"),
        (branch({"luck": 1}, 0, *LEAVES), "has the unknown key 'luck'"),
        (branch({}, 0, *LEAVES), "not on exactly one quantity"),
        (branch({"machines_of": WITH_OTHERS}, 0, *LEAVES), "{'a': 1}, is not a listed one"),
        (branch({"blocks_of_job": {"block": "a", "job": "k"}}, 0, *LEAVES), "branch is 'k'"),
    ],
)
def test_a_tree_that_is_none_is_refused(tree: Any, sentence: str) -> None:
    with pytest.raises(Fault) as caught:
        certificate_bound(HARD, tree)
    assert sentence in str(caught.value)


def test_a_tree_has_at_most_two_hundred_branches_above_one_another() -> None:
    def chain(depth: int) -> Document:
        tree = leaf({}, *[0] * depth)
        for above in range(depth - 1, -1, -1):
            tree = branch({"blocks_of": "a"}, above, tree, leaf({}, *[0] * (above + 1)))
        return tree

    # `Branch` refuses the same depth, so that no file holds for one checker alone.
    assert certificate_bound(HARD, chain(200)) == 0
    with pytest.raises(Fault, match="more than 200 branches above one another"):
        certificate_bound(HARD, chain(201))


def test_both_checkers_take_as_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    def even(leaves: int, depth: int = 0) -> Document:
        if leaves == 1:
            return leaf({}, *[0] * depth)
        half = leaves // 2
        sides = even(half, depth + 1), even(leaves - half, depth + 1)
        return branch({"blocks_of": "a"}, 0, *sides)

    assert certificate_module._MOST_LEAVES == LARGEST_LEAVES
    assert certificate_module._DEEPEST == LARGEST_DEPTH
    nothing = problem([{"blocks": {"a": 1}}], {})
    monkeypatch.setattr(certificate_module, "_MOST_LEAVES", 20)
    assert certificate_bound(nothing, even(20)) == 0
    with pytest.raises(Fault, match="more than 20 leaves"):
        certificate_bound(nothing, even(21))


# --- no certificate proves more than is true ------------------------------------------------------

numbers = st.sampled_from(["0", "1/4", "1/2", "1", "2"])
quantities = st.sampled_from(
    [
        {"machines_of_type": "m"},
        {"machines_of_type": "n"},
        {"machines_of_type": {"m": 1, "n": 1}},
        {"machines_of_type": {"m": 2, "n": 3}},
        {"machines_of": {"machine": "m", "blocks": {"a": 2, "b": 1}}},
        {"blocks_of": "a"},
        {"blocks_of": "b"},
        {"blocks_of_job": {"block": "a", "job": "x"}},
        {"blocks_of_job": {"block": "b", "job": "y"}},
    ]
)


def trees(depth: int) -> st.SearchStrategy[Document]:
    leaves = st.builds(
        lambda a, b, limit, multipliers: leaf(
            {"a": a, "b": b}, *multipliers, limit_prices={"n": limit}
        ),
        numbers,
        numbers,
        numbers,
        st.lists(numbers, min_size=depth, max_size=depth),
    )
    if depth == 2:
        return leaves
    nodes = st.builds(branch, quantities, st.integers(-1, 3), trees(depth + 1), trees(depth + 1))
    return leaves | nodes


def optimum(demands: tuple[int, int], supply: tuple[Document, Document]) -> int | None:
    """The least cost of machines m (a, a, b; cost 2) and n (at most 1; a, a or b; cost 1)."""

    def serves(job: int, a: int, b: int) -> bool:
        return int(supply[job]["a"] * a + supply[job]["b"] * b) >= demands[job]

    best = None
    for m in range(7):
        # n: one machine with two blocks a, one with one block b (sizes 1 and 2, capacity 2), none
        for n, a_of_n, b_of_n in [(0, 0, 0), (1, 2, 0), (1, 0, 1)]:
            all_a, all_b = 2 * m + a_of_n, m + b_of_n
            splits = itertools.product(range(all_a + 1), range(all_b + 1))
            if any(serves(0, a, b) and serves(1, all_a - a, all_b - b) for a, b in splits):
                cost = 2 * m + n
                best = cost if best is None else min(best, cost)
    return best


def test_leaves_that_prove_the_same_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tree that the package judges in a second takes minutes, as a side is written often."""
    asked = []
    price = cheapest_price

    def counted(*arguments: Any) -> int | None:
        asked.append(arguments)
        return price(*arguments)

    monkeypatch.setattr(certificate_module, "cheapest_price", counted)
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
    tree = branch(kinds[1], 1, leaf({"a": F(1, 4)}, F(1, 2)), leaf({"a": F(1, 4)}, F(1, 2)))
    assert certificate_bound(document, tree) == F(7, 4)  # one machine is too few
    tree = branch(kinds[1], 1, leaf({"a": F(1, 2)}, 0), leaf({"a": F(1, 4)}, F(1, 2)))
    assert certificate_bound(document, tree) == F(3, 2)


@settings(max_examples=so_many(40, 10_000))  # half of the trees do not hold
@given(
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    trees(0),
)
def test_no_certificate_proves_more_than_the_optimum(
    demands: tuple[int, int], supply: list[int], tree: Document
) -> None:
    functions = ({"a": supply[0], "b": supply[1]}, {"a": supply[2], "b": supply[3]})
    document = problem(
        [
            {"machine": "m", "blocks": {"a": 2, "b": 1}},
            {"machine": "n", "sizes": {"a": 1, "b": 2}, "capacity": 2},
        ],
        {"x": (demands[0], functions[0]), "y": (demands[1], functions[1])},
        [{"name": "m", "cost": 2}, {"name": "n", "cost": 1, "limit": 1}],
    )
    try:
        bound = certificate_bound(document, tree)
    except Fault:
        event("does not hold")
        return
    # 7 machines m are more than both jobs can need, as 4 blocks serve a job that any serves.
    best = optimum(demands, functions)
    event("infeasible" if best is None else "branched" if "branch" in tree else "prices alone")
    if bound is None:
        assert best is None
    elif best is not None:
        assert bound <= best
