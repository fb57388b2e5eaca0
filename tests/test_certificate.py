"""Certificates: what they prove, worked out by hand; their depth; that they never change."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import Any

import pytest

from cms.certificate.certificate import (
    LARGEST_DEPTH,
    BlockPrices,
    Branch,
    Certificate,
    first_certificate,
)
from cms.certificate.quantity import MachinesOfType
from cms.errors import InvalidCertificate
from cms.files import certificate_from_json
from cms.problem.parts import Configuration, Job
from cms.problem.parts import SizeBoundedConfigurations as SizeBounded
from cms.problem.problem import Problem
from tests.samples import refusal, triple

refused = partial(refusal, InvalidCertificate)


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
