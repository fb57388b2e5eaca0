"""The parts of a problem: what they take, what they refuse, and that they never change."""

from __future__ import annotations

import copy
import operator
import pickle
from collections import OrderedDict, defaultdict
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.problem.parts import (
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.values.frozen import FrozenMap
from tests.samples import refusal
from tests.texts import LETTERS

refused = partial(refusal, InvalidProblem)

PARTS = [
    FrozenMap({"b": 1, "a": 2}),
    DemandFunction({"b": 1, "a": "1/3"}),
    MachineType("a100", "1.5", 8),
    Configuration({"b": 2, "a": 1}, "a100"),
    SizeBoundedConfigurations({"b": 44, "a": "33.5"}, 132, "a100", 5),
    Job("bert", 1200, {"b": 90, "a": 0}),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_is_equal_to_its_copies_and_hashes_alike(part: Any) -> None:
    for twin in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part), copy.copy(part)):
        assert type(twin) is type(part)
        assert twin == part
        assert {twin: 1}[part] == 1
    assert part != "b"


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_cannot_be_changed(part: Any) -> None:
    fields = [name for name in dir(part) if not name.startswith("_") and name != "new"]
    for name in [*fields, "new"]:
        with pytest.raises((AttributeError, TypeError)):
            setattr(part, name, None)
    for name in fields:
        with pytest.raises((AttributeError, TypeError)):
            delattr(part, name)
    assert not hasattr(part, "__dict__")
    assert part == pickle.loads(pickle.dumps(part))


# --- frozen maps ----------------------------------------------------------------------------------


@given(st.dictionaries(st.text(LETTERS, max_size=3), st.integers()))
def test_a_frozen_map_is_a_mapping_in_the_order_of_its_keys(table: dict[str, int]) -> None:
    frozen = FrozenMap(table)
    assert list(frozen.items()) == sorted(table.items())
    assert frozen == table == dict(frozen)
    assert frozen == FrozenMap(dict(reversed(table.items())))
    assert hash(frozen) == hash(FrozenMap(dict(reversed(table.items()))))
    assert [*zip(frozen.keys(), frozen.values(), strict=True)] == [*frozen.items()]
    assert (len(frozen), "no such key" in frozen) == (len(table), False)
    table["another"] = 1
    assert "another" not in frozen


def test_a_frozen_map_has_no_way_to_be_changed() -> None:
    frozen: Any = FrozenMap({"a": 1})
    for change in (
        partial(operator.setitem, frozen, "a", 2),
        partial(operator.delitem, frozen, "a"),
        partial(setattr, frozen, "_items", {}),
        partial(delattr, frozen, "_items"),
        lambda: frozen.update(a=2),
        lambda: frozen.pop("a"),
        lambda: frozen.clear(),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()
    assert frozen == {"a": 1}
    assert FrozenMap() == {}
    assert FrozenMap({"a": 1}) != {"a": 2}
    assert repr(frozen) == "FrozenMap({'a': 1})"


# --- machine types --------------------------------------------------------------------------------


def test_a_machine_type_costs_one_and_has_no_limit_unless_told() -> None:
    machine = MachineType("a100")
    assert (machine.name, machine.cost, machine.limit) == ("a100", Fraction(1), None)
    none: Any = np.int64(0)
    dear = MachineType("h100", cost=0.1, limit=none)
    assert (dear.cost, dear.limit, type(dear.limit)) == (Fraction(1, 10), 0, int)
    assert MachineType("free", cost=0).cost == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("",), "machine type name is ''; expected a text that is not empty"),
        ((5,), "machine type name is 5; expected a text that is not empty"),
        (("a\nb",), "machine type name 'a\\nb' contains a control character; remove it"),
        (("m", -1), "cost of machine type 'm' is -1; expected a number >= 0"),
        (("m", "1,5"), "cost of machine type 'm': '1,5' is not a number; write 12, 12.5, 1e3 or"),
        (("m", None), "cost of machine type 'm' is None; expected a finite number"),
        (("m", 1, -1), "limit of machine type 'm' is -1; expected a whole number >= 0"),
        (("m", 1, 2.0), "limit of machine type 'm' is 2.0; expected a whole number >= 0"),
        (("m", 1, "2"), "limit of machine type 'm' is '2'; expected a whole number >= 0"),
        (("m", 1, True), "limit of machine type 'm' is True; expected a whole number >= 0"),
    ],
)
def test_a_bad_machine_type_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    assert refused(MachineType, *arguments).startswith(message)


# --- configurations -------------------------------------------------------------------------------


def test_a_configuration_is_a_multiset_without_zeros() -> None:
    four: Any = np.uint8(4)
    shape = Configuration({"3g": 1, "1g": four, "7g": 0})
    assert shape.blocks == {"1g": 4, "3g": 1}
    assert list(shape.blocks) == ["1g", "3g"]
    assert shape.machine is None
    assert shape == Configuration(OrderedDict([("1g", 4), ("3g", 1)]))
    assert shape != Configuration({"3g": 1, "1g": 4}, "a100")
    assert (str(shape), repr(shape)) == ("4 x 1g + 3g", "Configuration(4 x 1g + 3g)")
    assert repr(Configuration({"7g": 1}, "a100")) == "Configuration(7g on a100)"
    assert Configuration({"a": 10**30}).blocks["a"] == 10**30


def test_what_a_part_was_made_of_may_change_later() -> None:
    table: dict[str, Any] = {"a": 1}
    shape, shares = Configuration(table), SizeBoundedConfigurations(table, 3)
    job, supply = Job("x", 1, table), DemandFunction(MappingProxyType(table))
    table["a"] = 5
    table["b"] = 7
    assert shape.blocks == {"a": 1}
    assert shares.sizes == {"a": 1}
    assert job.demand_function == supply == {"a": 1}


def test_names_become_plain_texts() -> None:
    name = np.str_("a")
    parts = [
        MachineType(name).name,
        *Configuration({name: 1}, name).blocks,
        Configuration({name: 1}, name).machine,
        *SizeBoundedConfigurations({name: 1}, 1, name).sizes,
        SizeBoundedConfigurations({name: 1}, 1, name).machine,
        *DemandFunction({name: 1}),
        Job(name, 1, {}).name,
    ]
    assert [type(part) for part in parts] == [str] * 7
    assert set(parts) == {"a"}


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({}, "a configuration has no blocks; leave it out"),
        ({"a": 0}, "a configuration has no blocks; leave it out"),
        (["a"], "a configuration is ['a']; expected a mapping of blocks to counts, such as"),
        ({"a": -1}, "count of block 'a' in a configuration is -1; expected a whole number >= 0"),
        ({"a": 1.0}, "count of block 'a' in a configuration is 1.0; expected a whole number >= 0"),
        ({"a": True}, "count of block 'a' in a configuration is True; expected a whole number"),
        ({"": 1}, "block name is ''; expected a text that is not empty"),
        ({"a\x9bb": 1}, "block name 'a\\x9bb' contains a control character; remove it"),
    ],
)
def test_a_bad_configuration_is_refused(blocks: Any, message: str) -> None:
    assert refused(Configuration, blocks).startswith(message)


# --- size-bounded configurations ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, 1), "size-bounded configurations without a block; give sizes"),
        ((["a"], 1), "sizes is ['a']; expected a mapping of blocks to numbers, such as"),
        (({"a": 0}, 1), "size of block 'a' is 0; expected a number > 0, since any number of"),
        (({"a": -1}, 1), "size of block 'a' is -1; expected a number >= 0"),
        (({"a": "x"}, 1), "size of block 'a': 'x' is not a number"),
        (({"a": 1}, -1), "capacity is -1; expected a number >= 0"),
        (({"a": 1}, None), "capacity is None; expected a finite number"),
        (({"a": 1}, 1, None, 0), "max_blocks is 0; expected a whole number >= 1"),
    ],
)
def test_a_bad_size_bounded_set_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    assert refused(SizeBoundedConfigurations, *arguments).startswith(message)


# --- demand functions and jobs --------------------------------------------------------------------


@pytest.mark.parametrize(
    "table",
    [
        {"a": 1},
        MappingProxyType({"a": 1}),
        OrderedDict(a=1),
        defaultdict(int, a=1),
        FrozenMap({"a": 1}),
        DemandFunction({"a": 1}),
    ],
    ids=lambda table: type(table).__name__,
)
def test_a_job_takes_any_mapping_as_its_table(table: Any) -> None:
    job = Job("x", "1/3", table)
    assert (job.demand, job.demand_function) == (Fraction(1, 3), DemandFunction({"a": 1}))
    assert type(job.demand_function) is DemandFunction
    assert job == Job("x", Fraction(1, 3), {"a": 1})
    assert len({job, Job("x", Fraction(1, 3), {"a": 1})}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 1, {}), "job name is ''; expected a text that is not empty"),
        (("x\ty", 1, {}), "job name 'x\\ty' contains a control character; remove it"),
        (("x", -1, {}), "demand of job 'x' is -1; expected a number >= 0"),
        (("x", float("nan"), {}), "demand of job 'x' is nan; expected a finite number (an int,"),
        (("x", 1, None), "demand_function of job 'x' is None; expected a table"),
        (("x", 1, [1, 2]), "demand_function of job 'x' is [1, 2]; expected a table"),
        (("x", 1, {"a": -1}), "supply of block 'a' to job 'x' is -1; expected a number >= 0"),
        (("x", 1, {"a": "b"}), "supply of block 'a' to job 'x': 'b' is not a number; write"),
        (("x", 1, {"a": np.nan}), "supply of block 'a' to job 'x' is nan; expected a finite"),
        (("x", 1, {"": 1}), "block name is ''; expected a text that is not empty"),
        (("x", 1, {"a\x00": 1}), "block name 'a\\x00' contains a control character; remove it"),
    ],
)
def test_a_bad_job_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    assert refused(Job, *arguments).startswith(message)
