"""Certificates: what they prove, worked out by hand; their depth; that they never change."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from cms.certificate.certificate import (
    LARGEST_DEPTH,
    BlockPrices,
    Branch,
    Certificate,
    first_certificate,
    round_up,
)
from cms.certificate.quantity import MachinesOfType
from cms.errors import InvalidCertificate
from cms.files import certificate_from_json
from cms.knapsack import pricing as knapsack
from cms.problem.parts import Configuration, Job
from cms.problem.parts import SizeBoundedConfigurations as SizeBounded
from cms.problem.problem import Problem
from tests.samples import refusal, triple

THIRD = Fraction(1, 3)

refused = partial(refusal, InvalidCertificate)


# --- prices, by hand ------------------------------------------------------------------------------


def test_thirds_add_up_to_one_exactly() -> None:
    problem = Problem(configurations=Configuration({"b": 3}), jobs=[Job("x", 1, {"b": THIRD})])
    assert BlockPrices({"b": THIRD}).bound(problem) == 1
    message = refused(BlockPrices({"b": "0.33333333333333334"}).bound, problem)
    assert message.startswith("configuration 3 x b is worth 1.00000000000000002 at these prices")
    # three blocks of 333.3333333333333 meet 999.9999999999999, four are needed for 1000
    for demand, blocks in ((999.9999999999999, 3), (1000, 4)):
        long = Problem(
            configurations=Configuration({"b": 1}),
            jobs=[Job("x", demand, {"b": 333.3333333333333})],
        )
        assert BlockPrices({"b": 1}).bound(long) == blocks


def test_the_fullest_machine_of_a_size_bounded_set_decides() -> None:
    sizes = {"a": 44, "b": 33, "c": 12}
    problem = Problem(
        configurations=SizeBounded(sizes, 132),
        jobs=[Job(block, n, {block: 1}) for block, n in {"a": 2, "b": 3, "c": 6}.items()],
    )
    # prices by size are worth at most 132/132: 2 x 44 + 3 x 33 + 6 x 12 = 259
    by_size = {block: Fraction(size, 132) for block, size in sizes.items()}
    assert BlockPrices(by_size).bound(problem) == Fraction(259, 132)
    # 3 a, 4 b or 11 c fill a machine, a third each; but 2 a + 1 b + 0 c and so on are also there
    dear = BlockPrices({"a": THIRD, "b": "1/4", "c": "1/10"})
    # the fullest: 11 c = 1.1
    assert refused(dear.bound, problem) == (
        "the fullest machine of capacity 132 is worth 1.1 at these prices, more than its "
        "machine's cost 1"
    )
    few = problem.replace(configurations=[SizeBounded(sizes, 132, max_blocks=3)])
    # at most three blocks: 3 a are worth 3 x 1/3
    assert dear.bound(few) == Fraction(2, 3) + Fraction(3, 4) + Fraction(6, 10)


# --- depth ----------------------------------------------------------------------------------------


def chain(depth: int) -> Certificate:
    """A branch above a branch above a branch; each leaf with its multipliers."""
    tree: Certificate = BlockPrices(multipliers=[0] * depth)
    for above in range(depth - 1, -1, -1):
        tree = Branch(
            MachinesOfType("machine"), 0, BlockPrices(multipliers=[0] * (above + 1)), tree
        )
    return tree


def test_the_deepest_tree_allowed_can_be_used_in_every_way_and_no_deeper_one() -> None:
    tree = chain(LARGEST_DEPTH)
    assert isinstance(tree, Branch)
    assert tree.depth == LARGEST_DEPTH
    assert len(list(tree.leaves())) == LARGEST_DEPTH + 1
    assert tree.bound(triple()) == 0
    twin = pickle.loads(pickle.dumps(tree))
    for each in (twin, certificate_from_json(json.loads(json.dumps(tree.to_json())))):
        assert each == tree
        assert hash(each) == hash(tree)
    assert repr(tree)
    message = f"a certificate has more than {LARGEST_DEPTH} branches above one another"
    assert refused(chain, LARGEST_DEPTH + 1) == message


def test_a_message_that_nobody_asks_for_is_not_worded() -> None:
    """Two allowed prices are worth a number that Python would not print."""
    long = {"a": Fraction(1, 10**4200 + 1), "c": Fraction(1, 10**4201 + 3)}
    problem = Problem(
        configurations=Configuration({"a": 1, "c": 1}),
        jobs=[Job("x", 1, {"a": 1}), Job("y", 1, {"c": 1})],
    )
    assert BlockPrices(long).bound(problem) == sum(long.values())
    dear = BlockPrices({"a": 1, "c": long["a"]})
    assert refused(dear.bound, problem) == (
        "configuration a + c is worth about 1.000 at these prices, more than its machine's cost 1"
    )


# --- what cannot be changed -----------------------------------------------------------------------


@pytest.mark.parametrize("certificate", [BlockPrices({"b": 1}, {"m": 1}, [1]), chain(1)], ids=repr)
def test_a_certificate_cannot_be_changed(certificate: Any) -> None:
    before = certificate.to_json()
    for name in ("prices", "limit_prices", "multipliers", "quantity", "below", "depth", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(certificate, name, None)
        with pytest.raises((AttributeError, TypeError)):
            delattr(certificate, name)
    for leaf in certificate.leaves():
        with pytest.raises((AttributeError, TypeError)):
            leaf.prices["b"] = 5
    before["prices" if "prices" in before else "below"] = None
    assert certificate.to_json() != before


# --- what is certain before any work; rounding ----------------------------------------------------


def test_the_first_certificate_sees_blocks_that_no_machine_can_have() -> None:
    problem = Problem(
        configurations=[
            Configuration({"here": 1}),
            SizeBounded({"small": 1, "giant": 3}, capacity=2),
        ],
        jobs=[Job("x", 1, {"here": 1, "giant": 1})],
    )
    first = first_certificate(problem)
    assert first == BlockPrices({"giant": 1})
    assert (first.bound(problem), first.proves_infeasible(problem)) == (0, False)
    lost = Problem(configurations=problem.configurations, jobs=[Job("x", 5, {"giant": 2})])
    # three giants that nobody has
    assert (first.bound(lost), first.proves_infeasible(lost)) == (3, True)
    nowhere = Problem.from_arrays(
        demands=[1], supply=[[0, 1]], configurations=Configuration({"a": 1}), blocks=["a", "z"]
    )
    assert first_certificate(nowhere).proves_infeasible(nowhere)
    assert first_certificate(Problem(configurations=[])) == BlockPrices()


@pytest.mark.parametrize(
    ("bound", "step", "rounded"),
    [
        (Fraction(176, 15), Fraction(1), Fraction(12)),
        (Fraction(12), Fraction(1), Fraction(12)),
        (Fraction(5, 4), Fraction(1, 2), Fraction(3, 2)),
        (Fraction(1, 10**30), Fraction(1, 3), Fraction(1, 3)),
        (Fraction(0), Fraction(5), Fraction(0)),
        (Fraction(-7, 2), Fraction(1), Fraction(-3)),
        (Fraction(7, 2), Fraction(0), Fraction(7, 2)),  # all machines are free: nothing to round to
    ],
)
def test_a_bound_is_rounded_up_to_what_schedules_can_cost(
    bound: Fraction, step: Fraction, rounded: Fraction
) -> None:
    assert round_up(bound, step) == rounded


# --- many jobs ------------------------------------------------------------------------------------


def test_jobs_too_far_from_their_blocks_are_priced_exactly_among_many() -> None:
    n = knapsack.COMPILED_FROM
    demands, supply = [7] * n, [[2, 3]] * n
    demands[5], supply[5] = 10**30 + 1, [10, 1]
    demands[6], supply[6] = 10**30, [0, 0]
    problem = Problem.from_arrays(demands=demands, supply=supply, configurations=[[1, 1]])
    prices = BlockPrices({"b0": "1/2", "b1": "1/2"})
    # 7 takes 3 blocks (3 + 3 + 2); 10**30 + 1 takes 10**29 of ten and one more
    assert prices.bound(problem) == Fraction(3 * (n - 2) + 10**29 + 1, 2)
    assert prices.proves_infeasible(problem)
    pricing = knapsack.price_jobs(problem.rows, [1, 1], want_options=True)
    assert pricing is not None
    assert pricing.unservable == (6,)
    assert pricing.options is not None
    assert pricing.options[5].tolist() in ([10**29, 1], [10**29 + 1, 0])
