"""Certificates in JSON: what is read, and what is no tree at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, Branch
from cms.certificate.quantity import BlocksOf, BlocksOfJob, MachinesOf, MachinesOfType
from cms.errors import FileError
from cms.files import certificate_from_json
from cms.problem.parts import Configuration
from tests.texts import LETTERS


def test_a_tree_in_json_is_plain_to_read() -> None:
    tree = Branch(
        MachinesOf(Configuration({"3g": 2, "1g": 1}, "a100")),
        3,
        BlockPrices({"1g": "1/7", "3g": 0.5}, {"a100": 2}, [0], {"3g": 12}),
        Branch(BlocksOfJob("3g", "bert"), -1, BlockPrices(multipliers=[1, "0.25"]), BlockPrices()),
    )
    assert tree.to_json() == {
        "branch": {"machines_of": {"machine": "a100", "blocks": {"1g": 1, "3g": 2}}},
        "at_most": 3,
        "below": {
            "prices": {"1g": "1/7", "3g": "0.5"},
            "limit_prices": {"a100": 2},
            "multipliers": [0],
            "proper": {"3g": 12},
        },
        "above": {
            "branch": {"blocks_of_job": {"block": "3g", "job": "bert"}},
            "at_most": -1,
            "below": {"prices": {}, "limit_prices": {}, "multipliers": [1, "0.25"]},
            "above": {"prices": {}, "limit_prices": {}, "multipliers": []},
        },
    }
    assert BlocksOf("3g").to_json() == {"blocks_of": "3g"}
    assert MachinesOfType("a100").to_json() == {"machines_of_type": "a100"}
    sums = MachinesOfType({"h100": 10, "a100": 3})
    assert sums.to_json() == {"machines_of_type": {"a100": 3, "h100": 10}}
    # a type counted once is the same in either form, and is written in the shorter one
    assert MachinesOfType({"a100": 1}).to_json() == {"machines_of_type": "a100"}
    long = {**tree.to_json(), "branch": {"machines_of_type": {"a100": 1}}}
    read = certificate_from_json(long)
    assert isinstance(read, Branch)
    assert read.quantity == MachinesOfType("a100")


LEAF: dict[str, Any] = {"prices": {}}
GOOD: dict[str, Any] = {"branch": {"blocks_of": "b"}, "at_most": 0, "below": LEAF, "above": LEAF}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(LETTERS, max_size=3),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["prices", "limit_prices", "multipliers", "proper", "branch", "at_most", "below",
                 "above", "blocks_of", "machines_of", "blocks_of_job", "block", "job", "machine",
                 "blocks"]
            ),
            inner, max_size=4,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_json_is_a_tree_or_is_refused_as_a_certificate(value: Any) -> None:
    for tree in (value, {**GOOD, "branch": value}):
        try:
            certificate = certificate_from_json(tree)
        except FileError:
            continue
        assert certificate_from_json(json.loads(json.dumps(certificate.to_json()))) == certificate


@pytest.mark.parametrize("depth", [201, 900, 5_000])
def test_a_document_with_too_many_branches_is_refused_before_python_gives_up(depth: int) -> None:
    tree: dict[str, Any] = {"prices": {}}
    for _ in range(depth):
        tree = {"branch": {"blocks_of": "a"}, "at_most": 0, "below": {"prices": {}}, "above": tree}
    with pytest.raises(FileError, match="more than 200 branches"):
        certificate_from_json(tree)
