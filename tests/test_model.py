"""The parts of a problem: what they take, what they refuse, and that they never change."""

from __future__ import annotations

import copy
import operator
import pickle
from collections import OrderedDict, defaultdict
from decimal import Decimal
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
        ("a", "a configuration is 'a'; expected a mapping of blocks to counts"),
        (None, "a configuration is None; expected a mapping of blocks to counts"),
        ({"a": -1}, "count of block 'a' in a configuration is -1; expected a whole number >= 0"),
        ({"a": 1.0}, "count of block 'a' in a configuration is 1.0; expected a whole number >= 0"),
        ({"a": "1"}, "count of block 'a' in a configuration is '1'; expected a whole number"),
        ({"a": True}, "count of block 'a' in a configuration is True; expected a whole number"),
        ({"a": None}, "count of block 'a' in a configuration is None; expected a whole number"),
        ({"a": np.array([1])}, "count of block 'a' in a configuration is array([1]); expected"),
        ({"a": float("nan")}, "count of block 'a' in a configuration is nan; expected a whole"),
        ({"": 1}, "block name is ''; expected a text that is not empty"),
        ({5: 1}, "block name is 5; expected a text that is not empty"),
        ({"a\x9bb": 1}, "block name 'a\\x9bb' contains a control character; remove it"),
    ],
)
def test_a_bad_configuration_is_refused(blocks: Any, message: str) -> None:
    assert refused(Configuration, blocks).startswith(message)


@pytest.mark.parametrize("machine", ["", 5, ["a"], "a\n", 0, False])
def test_a_configurations_machine_type_is_a_name(machine: Any) -> None:
    for message in (
        refused(Configuration, {"a": 1}, machine),
        refused(SizeBoundedConfigurations, {"a": 1}, 1, machine),
    ):
        assert message.startswith("machine type name ")
        assert repr(machine) in message


# --- size-bounded configurations ------------------------------------------------------------------


def test_a_size_bounded_set_has_every_multiset_up_to_its_capacity() -> None:
    shares = SizeBoundedConfigurations({"a": "1/3", "b": 0.25}, 1)
    # 3 x 1/3 = 1 fits exactly; 2/3 + 1/4 = 11/12 fits, 2/3 + 2/4 = 7/6 does not
    assert shares.allows({"a": 3})
    assert shares.allows({"a": 2, "b": 1})
    assert not shares.allows({"a": 2, "b": 2})
    assert not shares.allows({"a": 4})
    assert not shares.allows({"c": 1})
    assert shares.allows({})
    assert (shares.largest_count("a"), shares.largest_count("b")) == (3, 4)
    few = SizeBoundedConfigurations({"a": "1/3", "b": 0.25}, 1, max_blocks=2)
    assert not few.allows({"a": 3})
    assert few.allows({"a": 1, "b": 1})
    assert few.largest_count("b") == 2
    # nothing may fit at all
    assert SizeBoundedConfigurations({"a": 2}, 1).largest_count("a") == 0
    assert SizeBoundedConfigurations({"a": 2}, 0).allows({})


def test_thirds_of_a_float_do_not_fit_three_times_more_than_they_print() -> None:
    assert SizeBoundedConfigurations({"a": 333.3333333333333}, 999.9999999999999).allows({"a": 3})
    assert not SizeBoundedConfigurations({"a": 333.33333333333337}, 1000.0).allows({"a": 3})
    assert SizeBoundedConfigurations({"a": np.float32(0.1)}, 1).largest_count("a") == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, 1), "size-bounded configurations without a block; give sizes"),
        ((["a"], 1), "sizes is ['a']; expected a mapping of blocks to numbers, such as"),
        (("a", 1), "sizes is 'a'; expected a mapping of blocks to numbers"),
        (({"a": 0}, 1), "size of block 'a' is 0; expected a number > 0, since any number of"),
        (({"a": -0.0}, 1), "size of block 'a' is 0; expected a number > 0, since any number of"),
        (({"a": -1}, 1), "size of block 'a' is -1; expected a number >= 0"),
        (({"a": "x"}, 1), "size of block 'a': 'x' is not a number"),
        (({5: 1}, 1), "block name is 5; expected a text that is not empty"),
        (({"a": 1}, -1), "capacity is -1; expected a number >= 0"),
        (({"a": 1}, None), "capacity is None; expected a finite number"),
        (({"a": 1}, 1, None, 0), "max_blocks is 0; expected a whole number >= 1"),
        (({"a": 1}, 1, None, 1.5), "max_blocks is 1.5; expected a whole number >= 1"),
    ],
)
def test_a_bad_size_bounded_set_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    assert refused(SizeBoundedConfigurations, *arguments).startswith(message)


# --- demand functions and jobs --------------------------------------------------------------------


def test_a_demand_function_says_zero_where_it_says_nothing() -> None:
    supply = DemandFunction({"1g": 90, "3g": "310.5", "7g": 0})
    assert (supply("1g"), supply("3g"), supply("7g"), supply("2g")) == (90, Fraction(621, 2), 0, 0)
    assert supply == {"1g": 90, "3g": Fraction(621, 2), "7g": 0}
    assert supply != DemandFunction({"1g": 90, "3g": "310.5"})


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


def test_a_job_keeps_a_callable_until_a_problem_evaluates_it() -> None:
    job = Job("x", 1, len)
    assert job.demand_function is len


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 1, {}), "job name is ''; expected a text that is not empty"),
        ((None, 1, {}), "job name is None; expected a text that is not empty"),
        (("x\ty", 1, {}), "job name 'x\\ty' contains a control character; remove it"),
        (("x", -1, {}), "demand of job 'x' is -1; expected a number >= 0"),
        (("x", float("nan"), {}), "demand of job 'x' is nan; expected a finite number (an int,"),
        (("x", Decimal("NaN"), {}), "demand of job 'x' is Decimal('NaN'); expected a finite"),
        (("x", "1/0", {}), "demand of job 'x': '1/0' divides by zero"),
        (("x", True, {}), "demand of job 'x' is True; expected a finite number"),
        (("x", 1, None), "demand_function of job 'x' is None; expected a table"),
        (("x", 1, [1, 2]), "demand_function of job 'x' is [1, 2]; expected a table"),
        (("x", 1, 5), "demand_function of job 'x' is 5; expected a table"),
        (("x", 1, {"a": -1}), "supply of block 'a' to job 'x' is -1; expected a number >= 0"),
        (("x", 1, {"a": "b"}), "supply of block 'a' to job 'x': 'b' is not a number; write"),
        (("x", 1, {"a": np.nan}), "supply of block 'a' to job 'x' is nan; expected a finite"),
        (("x", 1, {"": 1}), "block name is ''; expected a text that is not empty"),
        (("x", 1, {3: 1}), "block name is 3; expected a text that is not empty"),
        (("x", 1, {"a\x00": 1}), "block name 'a\\x00' contains a control character; remove it"),
    ],
)
def test_a_bad_job_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    assert refused(Job, *arguments).startswith(message)


@pytest.mark.parametrize("table", [["a"], "a", None, 5, {5: 1}, {"": 1}])
def test_a_bad_demand_function_is_refused(table: Any) -> None:
    message = refused(DemandFunction, table)
    assert message.startswith(("demand_function of job '?' is", "block name is"))
