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
from tests.proofs_checks.documents import SERVICES, SLICES, Document, branch, leaf, problem
from tests.samples import refusal

F = Fraction


def refused(of: Document, tree: Any) -> str:
    return refusal(Fault, certificate_bound, of, tree)


def test_costs_and_limits_count() -> None:
    assert certificate_bound(SERVICES, leaf(SLICES)) == F(17, 7)  # derived beside SERVICES
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
    # a limit price is not free: at 5 it costs more than the prices gain
    assert certificate_bound(two_types, leaf({"a": 3}, limit_prices={"cheap": 5})) == 1
    said = refused(two_types, leaf({"a": 3}, limit_prices={"cheap": 1}))
    assert "worth 3" in said
    assert "its cost 1 and its limit price 1" in said
    said = refused(two_types, leaf({"a": 3}, limit_prices={"dear": 2}))
    assert "limit price of 'dear', which has no limit" in said
    # One of each counts 3/2 together. Of up to 1.2, whole machines count 1: 2 - 1/2 - 1 > 0.
    for at_most, bound in [("1.2", None), ("1.5", 0)]:
        both = {"name": "both", "weights": {"cheap": "1/2", "dear": 1}, "at_most": at_most}
        prices = leaf({"a": 1}, limit_prices={"cheap": "1/2", "both": 1})
        assert certificate_bound({**two_types, "group_limits": [both]}, prices) == bound


def test_a_size_bounded_set_is_priced_by_its_dearest_machine() -> None:
    # Prices size/132 fill a machine of capacity 132 with at most 1. The demands are 2, 3 and 6
    # blocks: (2 * 44 + 3 * 33 + 6 * 12) / 132 = 259/132. (The optimum is 3: see the theory, 6.11.)
    sizes = {"a": 44, "b": 33, "c": 12}
    jobs = {"x": (2, {"a": 1}), "y": (3, {"b": 1}), "z": (6, {"c": 1})}
    shares = problem([{"sizes": sizes, "capacity": 132}], jobs)
    prices = {name: str(F(size, 132)) for name, size in sizes.items()}
    assert certificate_bound(shares, leaf(prices)) == F(259, 132)
    # 11 blocks c fill the machine; at 1/10.9 they would be worth 110/109
    assert "is worth 110/109" in refused(shares, leaf({**prices, "c": "10/109"}))
    # With at most 3 blocks on a machine each may cost 1/3: 11 blocks cost 11/3.
    few = problem([{"sizes": sizes, "capacity": 132, "max_blocks": 3}], jobs)
    assert certificate_bound(few, leaf(dict.fromkeys(sizes, "1/3"))) == F(11, 3)


def test_infeasibility_is_proved_by_a_limit_a_job_or_a_block_that_is_nowhere() -> None:
    # A free machine is worth 1 <= 0 + 1, and 2 - 1 * 1 > 0. With two machines, 2 - 2 * 1 = 0 shows
    # nothing more than that every schedule costs at least 0.
    for limit, bound in [(1, None), (2, 0)]:
        types = [{"name": "machine", "limit": limit}]
        limited = problem([{"blocks": {"a": 1}}], {"j": (2, {"a": 1})}, types)
        assert certificate_bound(limited, leaf({"a": 1}, limit_prices={"machine": 1})) == bound
    nobody = problem([{"blocks": {"a": 1}}], {"j": (1, {"a": 0}), "k": (1, {"a": 1})})
    assert certificate_bound(nobody, leaf({})) is None
    assert "is worth 2" in refused(nobody, leaf({"a": 2}))
    nowhere = problem([{"sizes": {"a": 5, "b": 1}, "capacity": 4}], {"j": (1, {"a": 1})})
    assert certificate_bound(nowhere, leaf({"a": 1})) is None


# Three blocks are needed. Machines with two cost 2; machines with one of a useless kind cost 5, so
# that all costs have no common step but 1. A price of 1 proves 3. One machine has too few blocks,
# so the optimum is 4.
HARD = problem(
    [{"machine": "m", "blocks": {"a": 2}}, {"machine": "n", "blocks": {"b": 1}}],
    {"j": (3, {"a": 1})},
    [{"name": "m", "cost": 2}, {"name": "n", "cost": 5}],
)
OWN = {"blocks_of_job": {"block": "a", "job": "j"}}


@pytest.mark.parametrize(
    ("on", "at_most", "below", "above"),
    [
        # at most 1: free machines are worth 2 * 1 - 2 <= 0, and 3 - 2 * 1 > 0: impossible
        # at least 2: the machine's cost itself is the multiplier, 2 * 2
        ({"machines_of": {"machine": "m", "blocks": {"a": 2}}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        ({"machines_of_type": "m"}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        # the same with those of n counted twice as well, which have no block of a: 2 * 2 <= 5
        ({"machines_of_type": {"m": 1, "n": 2}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        # at most 2 blocks: they are worth 1 - 1 each, and 3 - 1 * 2 > 0: impossible
        # at least 3: worth 1 each, 3 in all: the integrality of machines is not in it, so 3
        ({"blocks_of": "a"}, 2, leaf({"a": 1}, 1), leaf({}, 1)),
        # j gets at most 2: its price is 0 + 1, so 3 - 1 * 2 > 0: impossible
        # at least 3: its price is 1 - 1, and 1 * 3 remains
        (OWN, 2, leaf({}, 1), leaf({"a": 1}, 1)),
    ],
)
def test_each_quantity_can_be_branched_on(
    on: Document, at_most: int, below: Document, above: Document
) -> None:
    proves = 4 if any(kind.startswith("machines") for kind in on) else 3
    assert certificate_bound(HARD, branch(on, at_most, below, above)) == proves
    # The least leaf counts: a leaf that proves only 0 leaves 0.
    assert certificate_bound(HARD, branch(on, at_most, leaf({}, 0), above)) == 0
    assert certificate_bound(HARD, branch(on, at_most, below, leaf({}, 0))) == 0


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
