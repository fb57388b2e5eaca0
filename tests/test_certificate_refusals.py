"""What a certificate may not say, and what is no certificate at all."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from cms.certificate.certificate import BlockPrices, Branch, Certificate
from cms.certificate.quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
    Quantity,
)
from cms.errors import InvalidCertificate
from cms.problem.parts import Configuration, Job
from cms.problem.parts import SizeBoundedConfigurations as SizeBounded
from cms.problem.problem import Problem
from tests.samples import refusal, two_types

refused = partial(refusal, InvalidCertificate)
LEAF = BlockPrices(multipliers=[0])


def on(quantity: Quantity) -> Branch:
    return Branch(quantity, 0, LEAF, LEAF)


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (BlockPrices({"B": 1}), "block 'B'"),
        (BlockPrices(proper={"b": 1}), "proper count of 1 for the block 'b'"),
        (BlockPrices({}, {"Dear": 0}), "machine type 'Dear'"),
        (BlockPrices({}, {"dear": "1/7"}), "limit price 1/7 on machine type 'dear'"),
        (BlockPrices(multipliers=[1]), "1 multipliers"),
        (BlockPrices({"b": "2.5"}, {"cheap": 1}), "b on 'cheap' is worth 2.5"),
        (on(MachinesOfType("DEAR")), "machine type 'DEAR'"),
        (on(BlocksOfType("c")), "block 'c'"),
        (on(BlocksOfJob("b", "z")), "job 'z'"),
        (on(MachinesWithBlocks(Configuration({"c": 1}, "dear"))), "block 'c'"),
        (on(MachinesWithBlocks(Configuration({"b": 1}))), "Configuration(b)"),
        (on(MachinesOfConfiguration(Configuration({"b": 1}))), "Configuration(b)"),
        (
            on(MachinesOfConfiguration(Configuration({"b": 2}, "dear"))),
            "Configuration(2 x b on dear)",
        ),
    ],
)
def test_a_breach_is_named(certificate: Certificate, words: str) -> None:
    assert words in refused(certificate.bound, two_types())
    assert words in refused(certificate.proves_infeasible, two_types())
    assert BlockPrices({"b": 2}, {"cheap": 1}, proper={"b": 2}).bound(two_types()) == 4 - 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *((({"b": price},), f"price of block 'b' is {price}") for price in (-1, None, True)),
        (({"b": float("nan")},), "price of block 'b' is nan"),
        *((({}, {}, (), {"b": n}), f"count of block 'b' is {n!r}") for n in (-1, 1.5, "2")),
        (({}, {}, (), ["b"]), "['b']"),
        (({}, {}, (), {"": 1}), "''"),
        ((0,), "price of every block is"),
        (({}, 0), "limit of machine type is 0"),
        (({}, {}, (), 0), "proper count of every block is 0"),
        (({}, {"m": -1}), "limit of machine type 'm' is -1"),
        (({}, {}, [-1]), "multiplier is -1"),
        (({}, {}, "12"), "multipliers is '12'"),
    ],
)
def test_prices_that_are_none_are_refused(arguments: Any, words: str) -> None:
    assert words in refused(BlockPrices, *arguments)


class Everywhere(BlocksOfType):
    """A quantity of one's own, that could be known to every problem."""


class Turncoat(Configuration):
    """A configuration that could be equal to any other."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Branch("b", 0, LEAF, LEAF), "'b'"),  # type: ignore[arg-type]
        (lambda: Branch(Everywhere("b"), 0, LEAF, LEAF), "Everywhere"),
        (lambda: Branch(BlocksOfType("b"), 0.5, LEAF, LEAF), "at_most is 0.5"),  # type: ignore[arg-type]
        (lambda: Branch(BlocksOfType("b"), 0, None, LEAF), "None"),  # type: ignore[arg-type]
        (lambda: MachinesOfType(5), "5"),  # type: ignore[arg-type]
        (lambda: MachinesOfType({}), "no type"),
        (lambda: MachinesOfType({"m": 0}), "machine type 'm' is 0"),
        (lambda: BlocksOfType(""), "''"),
        (lambda: BlocksOfJob("b", ["x"]), "['x']"),  # type: ignore[arg-type]
        (lambda: MachinesOfConfiguration(Turncoat({"b": 3})), "3 x b"),
        (lambda: MachinesOfConfiguration(SizeBounded({"b": 1}, 1)), "SizeBounded"),  # type: ignore[arg-type]
        (lambda: MachinesWithBlocks("b"), "'b'"),  # type: ignore[arg-type]
    ],
)
def test_branches_and_quantities_that_are_none_are_refused(
    make: Callable[[], object], words: str
) -> None:
    assert words in refused(make)


def test_a_configuration_may_be_worth_its_cost_and_no_hair_more() -> None:
    shapes = [Configuration({"a": 3, "b": n}) for n in (1, 2)]
    problem = Problem(configurations=shapes, jobs=[Job("j", 1, {"a": 1, "b": 1})])
    third, hair = Fraction(1, 3), Fraction(1, 10**40)
    assert BlockPrices({"a": third - 2 * hair, "b": 3 * hair}).bound(problem) == 3 * hair
    dear = BlockPrices({"a": third - 2 * hair, "b": 4 * hair})
    assert "3 x a + 2 x b is worth 1.000" in refused(dear.bound, problem)


@pytest.mark.parametrize(
    "quantity",
    [
        MachinesOfConfiguration(Configuration({"b": 3}, "machine")),
        MachinesWithBlocks(Configuration({"b": 2}, "machine")),
    ],
)
def test_a_configuration_is_worth_what_branches_pay_for_it_as_well(quantity: Quantity) -> None:
    shapes = [Configuration({"b": 3}), Configuration({"b": 1})]
    problem = Problem(configurations=shapes, jobs=[Job("x", 4, {"b": 1})])

    def tree(price: str) -> Branch:
        above = BlockPrices({"b": price}, multipliers=["1/2"])
        return Branch(quantity, 0, BlockPrices({"b": "1/3"}, multipliers=[0]), above)

    assert tree("1/6").bound(problem) == Fraction(4, 6) + Fraction(1, 2)
    assert "3 x b is worth 1.5" in refused(tree("1/3").bound, problem)
