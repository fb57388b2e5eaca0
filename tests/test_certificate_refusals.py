"""What a certificate may not say, and what is no certificate at all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cms.certificate.certificate import BlockPrices, Branch, Certificate
from cms.certificate.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    MachinesWith,
    Quantity,
)
from cms.errors import InvalidCertificate
from cms.problem.machine_problem import MachineProblem
from cms.problem.parts import Configuration, Job
from cms.problem.parts import SizeBoundedConfigurations as SizeBounded
from cms.problem.problem import Problem
from tests.samples import refusal, two_types

refused = partial(refusal, InvalidCertificate)


# --- what a certificate may not say ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "message"),
    [
        (BlockPrices({"c": 1}), "a price for the block 'c', which the problem does not have"),
        (BlockPrices({"B": 1}), "a price for the block 'B', which the problem does not have; near"),
        (BlockPrices({"c": 0}), "a price for the block 'c', which the problem does not have"),
        (
            BlockPrices(proper={"B": 9}),
            "a proper count for the block 'B', which the problem does not have; nearest: 'b'",
        ),
        (
            BlockPrices(proper={"b": 0}),
            "a proper count of 0 for the block 'b': all jobs together can use ",
        ),
        (
            BlockPrices({}, {"Dear": 0}),
            "a price for the machine type 'Dear', which the problem does not have; nearest: 'dear'",
        ),
        (
            BlockPrices({}, {"dear": "1/7"}),
            "limit price 1/7 on machine type 'dear', which has no limit",
        ),
        (
            BlockPrices(multipliers=[1]),
            "a leaf below 0 branches has 1 multipliers; expected one for each branch",
        ),
        (
            Branch(BlocksOf("b"), 0, BlockPrices(multipliers=[0]), BlockPrices()),
            "a leaf below 1 branches has 0 multipliers; expected one for each branch",
        ),
        (
            BlockPrices({"b": 2}, {"cheap": 1}),
            None,
        ),
        (
            BlockPrices({"b": "2.5"}, {"cheap": 1}),
            "configuration b on 'cheap' is worth 2.5 at these prices, more than its machine's cost "
            "1 + limit price 1",
        ),
        (
            BlockPrices({"b": 4}, {"cheap": 3}),
            "configuration b on 'dear' is worth 4 at these prices, more than its machine's cost 3",
        ),
    ],
)
def test_a_breach_is_named(certificate: Certificate, message: str | None) -> None:
    if message is None:
        assert certificate.bound(two_types()) == 4 - 1
        return
    assert refused(certificate.bound, two_types()).startswith(message)
    assert refused(certificate.proves_infeasible, two_types()).startswith(message)


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        (MachinesOfType("DEAR"), "a branch on the machine type 'DEAR', which the problem does not "
                                 "have; nearest: 'dear'"),
        (MachinesOfType({"dear": 2, "DEAR": 1}), "a branch on the machine type 'DEAR', which the "
                                                 "problem does not have; nearest: 'dear'"),
        (BlocksOf("c"), "a branch on the block 'c', which the problem does not have"),
        (BlocksOfJob("c", "x"), "a branch on the block 'c', which the problem does not have"),
        (BlocksOfJob("b", "z"), "a branch on the job 'z', which the problem does not have"),
        (MachinesWith(Configuration({"c": 1}, "dear")), "a branch on the block 'c', which the "),
        (MachinesWith(Configuration({"b": 1}, "DEAR")), "a branch on the machine type 'DEAR', "),
        (MachinesWith(Configuration({"b": 1})), "a branch on machines with Configuration(b), of "),
        (MachinesOf(Configuration({"b": 1})), "a branch on Configuration(b), which is not a listed "
                                              "configuration of the problem"),
        (MachinesOf(Configuration({"b": 2}, "dear")), "a branch on Configuration(2 x b on dear), "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("multiplier", [0, 1])
def test_a_branch_is_on_something_the_problem_has(
    quantity: Quantity, message: str, multiplier: int
) -> None:
    leaf = BlockPrices(multipliers=[multiplier])
    assert refused(Branch(quantity, 0, leaf, leaf).bound, two_types()).startswith(message)


def test_a_branch_is_not_on_a_configuration_that_a_set_has_as_well() -> None:
    shape = Configuration({"b": 2}, "machine")
    problem = Problem(configurations=[shape, SizeBounded({"b": 1}, 2)])
    leaf = BlockPrices(multipliers=[0])
    assert refused(Branch(MachinesOf(shape), 0, leaf, leaf).bound, problem) == (
        "a branch on Configuration(2 x b on machine), which also belongs to a size-bounded set: "
        "branch on its machine type or on blocks instead"
    )
    smaller = problem.replace(configurations=[shape, SizeBounded({"b": 1}, 1)])
    assert Branch(MachinesOf(shape), 0, leaf, leaf).bound(smaller) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"b": -1},), "price of block 'b' is -1; expected a number >= 0"),
        (({}, {}, (), {"b": -1}), "proper count of block 'b' is -1; expected a whole number >= 0"),
        (({}, {}, (), {"b": 1.5}), "proper count of block 'b' is 1.5; expected a whole number >="),
        (({}, {}, (), {"b": "2"}), "proper count of block 'b' is '2'; expected a whole number >="),
        (({}, {}, (), ["b"]), "the proper counts of every block are ['b']; expected a mapping of"),
        (({}, {}, (), {"": 1}), "block name is ''; expected a text that is not empty"),
        (({"b": float("nan")},), "price of block 'b' is nan; expected a finite number"),
        (({"b": "x"},), "price of block 'b': 'x' is not a number"),
        (({"b": None},), "price of block 'b' is None; expected a finite number"),
        (({"b": True},), "price of block 'b' is True; expected a finite number"),
        (({5: 1},), "block name is 5; expected a text that is not empty"),
        (({5: 1, "b": 1},), "block name is 5; expected a text that is not empty"),
        ((["b"],), "the prices of every block are ['b']; expected a mapping of names to numbers"),
        (({}, {"m": -1}), "price of limit of machine type 'm' is -1; expected a number >= 0"),
        (({}, {"m": Decimal("NaN")}), "price of limit of machine type 'm' is Decimal('NaN'); ex"),
        (({}, "m"), "the prices of every limit of machine type are 'm'; expected a mapping"),
        (({}, {}, [-1]), "multiplier is -1; expected a number >= 0"),
        (({}, {}, ["a"]), "multiplier: 'a' is not a number"),
        (({}, {}, "12"), "multipliers is '12'; expected a list of numbers"),
        (({}, {}, 5), "multipliers is 5; expected a list of numbers"),
        (({"b": 10**5000},), "price of block 'b' has more than 4300 digits; round it"),
    ],
)
def test_prices_that_are_none_are_refused(arguments: Any, message: str) -> None:
    assert refused(BlockPrices, *arguments).startswith(message)


def test_prices_may_be_numbers_of_any_kind() -> None:
    multipliers: Any = np.array([1, 2])
    prices = BlockPrices(
        {"a": 0.1, "b": np.float32(0.1), "c": "1/10", "d": Decimal("0.1"), "e": Fraction(1, 10)},
        None,
        multipliers,
    )
    assert set(prices.prices.values()) == {Fraction(1, 10)}
    assert prices.multipliers == (1, 2)
    assert {type(m) for m in prices.multipliers} == {Fraction}


LEAF = BlockPrices(multipliers=[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("b", 0, LEAF, LEAF), "a branch on 'b'; expected MachinesOfType, MachinesOf, MachinesWit"),
        ((None, 0, LEAF, LEAF), "a branch on None; expected MachinesOfType"),
        ((BlocksOf("b"), 0.5, LEAF, LEAF), "at_most is 0.5; expected a whole number"),
        ((BlocksOf("b"), "1/3", LEAF, LEAF), "at_most is '1/3'; expected a whole number"),
        ((BlocksOf("b"), True, LEAF, LEAF), "at_most is True; expected a whole number"),
        ((BlocksOf("b"), None, LEAF, LEAF), "at_most is None; expected a whole number"),
        ((BlocksOf("b"), 0, None, LEAF), "a branch holds None; expected a certificate"),
        ((BlocksOf("b"), 0, LEAF, {}), "a branch holds {}; expected a certificate"),
    ],
)
def test_branches_that_are_none_are_refused(arguments: Any, message: str) -> None:
    assert refused(Branch, *arguments).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MachinesOfType(5), "a branch on a bad name: machine type name is 5"),  # type: ignore[arg-type]
        (lambda: MachinesOfType({}), "a branch on machines of no type; expected one at least"),
        (lambda: MachinesOfType({"": 1}), "a branch on a bad name: machine type name is ''"),
        (
            lambda: MachinesOfType({"m": 0}),
            "a branch's weight of machine type 'm' is 0; expected a whole number >= 1",
        ),
        (
            lambda: MachinesOfType({"m": -1}),
            "a branch's weight of machine type 'm' is -1; expected a whole number >= 1",
        ),
        (
            lambda: MachinesOfType({"m": 1.5}),  # type: ignore[dict-item]
            "a branch's weight of machine type 'm' is 1.5; expected a whole",
        ),
        (
            lambda: MachinesOfType({"m": "1"}),  # type: ignore[dict-item]
            "a branch's weight of machine type 'm' is '1'; expected a whole",
        ),
        (
            lambda: MachinesOfType({"m": True}),
            "a branch's weight of machine type 'm' is True; expected a whole",
        ),
        (lambda: BlocksOf(""), "a branch on a bad name: block name is ''"),
        (lambda: BlocksOfJob("b", ["x"]), "a branch on a bad name: job name is ['x']"),  # type: ignore[arg-type]
        (lambda: BlocksOfJob(None, "x"), "a branch on a bad name: block name is None"),  # type: ignore[arg-type]
        (lambda: MachinesOf("b"), "a branch on machines of 'b'; expected a Configuration"),  # type: ignore[arg-type]
        (lambda: MachinesWith("b"), "a branch on machines with 'b'; expected a Configuration"),  # type: ignore[arg-type]
        (lambda: MachinesOf(SizeBounded({"b": 1}, 1)), "a branch on machines of SizeBounded"),  # type: ignore[arg-type]
    ],
)
def test_quantities_that_are_none_are_refused(make: Callable[[], Quantity], message: str) -> None:
    assert refused(make).startswith(message)


class Everywhere(BlocksOf):
    """A quantity that is known to every problem."""

    def refuse_unknown(self, problem: MachineProblem) -> None:
        pass


class Turncoat(Configuration):
    """A configuration that is equal to any other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_a_quantity_of_ones_own_could_lie_and_is_refused() -> None:
    assert refused(Branch, Everywhere("b"), 0, LEAF, LEAF).startswith("a branch on ")
    assert refused(MachinesOf, Turncoat({"b": 3})).startswith("a branch on machines of ")


def test_a_configuration_may_be_worth_its_cost_and_no_hair_more() -> None:
    shapes = [Configuration({"a": 3, "b": n}) for n in (1, 2)]
    problem = Problem(configurations=shapes, jobs=[Job("j", 1, {"a": 1, "b": 1})])
    third, hair = Fraction(1, 3), Fraction(1, 10**40)
    assert BlockPrices({"a": third - 2 * hair, "b": 3 * hair}).bound(problem) == 3 * hair
    dear = BlockPrices({"a": third - 2 * hair, "b": 4 * hair})
    assert refused(dear.bound, problem).startswith("configuration 3 x a + 2 x b is worth 1.000")


@pytest.mark.parametrize(
    "quantity",
    [
        MachinesOf(Configuration({"b": 3}, "machine")),
        MachinesWith(Configuration({"b": 2}, "machine")),
    ],
)
def test_a_configuration_is_worth_what_branches_pay_for_it_as_well(quantity: Quantity) -> None:
    shapes = [Configuration({"b": 3}), Configuration({"b": 1})]
    problem = Problem(configurations=shapes, jobs=[Job("x", 4, {"b": 1})])

    def tree(price: str) -> Branch:
        above = BlockPrices({"b": price}, multipliers=["1/2"])
        return Branch(quantity, 0, BlockPrices({"b": "1/3"}, multipliers=[0]), above)

    assert tree("1/6").bound(problem) == Fraction(4, 6) + Fraction(1, 2)
    assert refused(tree("1/3").bound, problem).startswith("configuration 3 x b is worth 1.5 at ")
