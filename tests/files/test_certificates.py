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
from tests.samples import refusal
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
    tree = Branch(sums, 4, BlockPrices(multipliers=[1]), BlockPrices(multipliers=["1/3"]))
    assert certificate_from_json(tree.to_json()) == tree
    # a type counted once is the same in either form, and is written in the shorter one
    assert MachinesOfType({"a100": 1}).to_json() == {"machines_of_type": "a100"}
    long = {**tree.to_json(), "branch": {"machines_of_type": {"a100": 1}}}
    read = certificate_from_json(long)
    assert isinstance(read, Branch)
    assert read.quantity == MachinesOfType("a100")


LEAF: dict[str, Any] = {"prices": {}}
GOOD: dict[str, Any] = {"branch": {"blocks_of": "b"}, "at_most": 0, "below": LEAF, "above": LEAF}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "the document is null, expected an object"),
        ([], "the document is an array, expected an object"),
        ("prices", 'the document is "prices", expected an object'),
        ({"price": {}}, 'unknown key "price", expected only prices, limit_prices, multipliers, '),
        ({}, 'the document has no "prices"'),
        ({"prices": []}, "prices is an array, expected an object"),
        ({"prices": None}, "prices is null, expected an object"),
        ({"prices": {"b": [1]}}, "prices.b is an array, expected a number such as"),
        ({"prices": {"": 1}}, "block name is ''; expected a text that is not empty"),
        ({**LEAF, "limit_prices": 5}, "limit_prices is 5, expected an object"),
        ({**LEAF, "multipliers": {}}, "multipliers is an object, expected an array"),
        ({**LEAF, "multipliers": "12"}, 'multipliers is "12", expected an array'),
        ({**LEAF, "multipliers": [None]}, "multipliers[0] is null, expected a number such as"),
        ({**LEAF, "proper": [1]}, "proper is an array, expected an object"),
        ({**LEAF, "proper": {"b": -1}}, "proper.b is -1, expected a whole number >= 0"),
        ({**LEAF, "proper": {"b": 1.5}}, "proper.b is 1.5, expected a whole number >= 0"),
        ({**LEAF, "proper": {"b": "7"}}, 'proper.b is "7", expected a whole number >= 0; write '),
        ({**LEAF, "proper": {"": 1}}, "proper: block name is ''; expected a text that is not em"),
        ({"branch": {"blocks_of": "b"}}, 'the document has no "at_most"'),
        ({**GOOD, "prices": {}}, 'the document has the unknown key "prices"'),
        ({**GOOD, "at_most": 1.5}, "at_most is 1.5, expected a whole number"),
        ({**GOOD, "at_most": "1"}, 'at_most is "1", expected a whole number'),
        ({**GOOD, "at_most": []}, "at_most is an array, expected a whole number"),
        ({**GOOD, "below": 7}, "below is 7, expected an object"),
        ({**GOOD, "branch": "b"}, 'branch is "b", expected an object'),
        ({**GOOD, "branch": {}}, "branch has 0 quantities, expected exactly one of machines_of_"),
        ({**GOOD, "branch": {"blocks_of": 5}}, "branch.blocks_of is 5, expected a text"),
        ({**GOOD, "branch": {"machines_of_type": 5}}, "branch.machines_of_type is 5, expected a t"),
        ({**GOOD, "branch": {"machines_of_type": {}}}, "branch.machines_of_type: a branch on ma"),
        ({**GOOD, "branch": {"machines_of_type": {"m": 0}}}, "branch.machines_of_type.m is 0, e"),
        ({**GOOD, "branch": {"machines_of_type": {"m": -1}}}, "branch.machines_of_type.m is -1,"),
        ({**GOOD, "branch": {"machines_of_type": {"m": 1.5}}}, "branch.machines_of_type.m is 1."),
        ({**GOOD, "branch": {"machines_of_type": {"m": "1"}}}, 'branch.machines_of_type.m is "1'),
        ({**GOOD, "branch": {"machines_of_type": {"": 1}}}, "branch.machines_of_type: machine t"),
        ({**GOOD, "branch": {"blocks_of": ""}}, "branch.blocks_of: block name is ''"),
        (
            {**GOOD, "branch": {"blocks_of": "b", "machines_of_type": "m"}},
            "branch has 2 quantities, expected exactly one of machines_of_type",
        ),
        ({**GOOD, "branch": {"jobs_of": "b"}}, 'branch has the unknown key "jobs_of", expected '),
        ({**GOOD, "branch": {"blocks_of": "b", "x-note": "mine"}}, "branch has the unknown key "),
        ({**GOOD, "branch": {"blocks_of_job": {"block": "b"}}}, 'branch.blocks_of_job has no "j'),
        (
            {**GOOD, "branch": {"blocks_of_job": {"block": "b", "job": "x", "z": 1}}},
            'branch.blocks_of_job has the unknown key "z", expected only block, job',
        ),
        ({**GOOD, "branch": {"machines_of": {}}}, 'branch.machines_of has no "blocks"'),
        ({**GOOD, "branch": {"machines_of": {"blocks": {"b": -1}}}}, "branch.machines_of.blocks"),
        ({**GOOD, "branch": {"machines_of": {"blocks": ["b"]}}}, "branch.machines_of.blocks is "),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": {"b": 1}, "machine": 5}}},
            "branch.machines_of.machine is 5, expected a text",
        ),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": {"b": 1}, "type": "m"}}},
            'branch.machines_of has the unknown key "type", expected only blocks, machine',
        ),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": {"b": 1}, "x-me": 1}}},
            'unknown key "x-me"',
        ),
    ],
)
def test_json_that_is_no_tree_is_refused(tree: Any, message: str) -> None:
    assert message in refusal(FileError, certificate_from_json, tree)


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
