"""Certificates as part of a JSON document: the tree of prices, numbers read exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..certificate.certificate import LARGEST_DEPTH, BlockPrices, Branch, Certificate
from ..certificate.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    MachinesWith,
    Quantity,
)
from ..mixes.functions import PriceFunction
from ..mixes.prices import MixPrices
from ..problem.parts import Configuration
from .node import Node

_QUANTITIES = ("machines_of_type", "machines_of", "machines_with", "blocks_of", "blocks_of_job")


def certificate_from_json(tree: Node | Mapping[str, Any]) -> Certificate:
    """Turn a parsed tree into a certificate; :meth:`Certificate.to_json` is the way back.

    Whether it holds for a problem is for its ``bound`` to say.

    Raises
    ------
    FileError
        If the tree is malformed, with the line and column of the price or branch at fault.

    Examples
    --------
    >>> certificate_from_json({"prices": {"1g": "1/7"}}).to_json()["prices"]
    {'1g': '1/7'}
    """
    return _tree(tree if isinstance(tree, Node) else Node(tree), 0)


def _tree(node: Node, depth: int) -> Certificate:
    if not (isinstance(node.value, dict) and "branch" in node.value):
        return _leaf(node)
    if depth >= LARGEST_DEPTH:
        raise node.error(f"a certificate has more than {LARGEST_DEPTH} branches above one another")
    fields = node.object(("branch", "at_most", "below", "above"))
    return node.build(
        Branch,
        _quantity(fields["branch"]),
        fields["at_most"].integer(minimum=None),
        _tree(fields["below"], depth + 1),
        _tree(fields["above"], depth + 1),
    )


def _quantity(node: Node) -> Quantity:
    fields = node.object((), _QUANTITIES, own=False)
    if len(fields) != 1:
        raise node.error(
            f"{node.label} has {len(fields)} quantities",
            expected=f"exactly one of {', '.join(_QUANTITIES)}",
        )
    ((kind, what),) = fields.items()
    if kind == "machines_of_type":
        if not isinstance(what.value, dict):
            return node.build(MachinesOfType, what.name("machine type"))
        weights = {name: times.integer(minimum=1) for name, times in what.names("machine type")}
        return what.build(MachinesOfType, weights)
    if kind == "blocks_of":
        return node.build(BlocksOf, what.name("block"))
    if kind == "blocks_of_job":
        parts = what.object(("block", "job"), ("amount",), own=False)
        amount = parts["amount"].number() if "amount" in parts else None
        block, job = parts["block"].name("block"), parts["job"].name("job")
        return what.build(BlocksOfJob, block, job, amount)
    parts = what.object(("blocks",), ("machine",), own=False)
    machine = parts["machine"].name_or_null("machine type") if "machine" in parts else None
    counts = {block: count.integer() for block, count in parts["blocks"].names("block")}
    content = what.build(Configuration, counts, machine)
    if kind == "machines_with":
        return node.build(MachinesWith, content)
    return node.build(MachinesOf, content)


def _leaf(node: Node) -> BlockPrices | MixPrices:
    fields = node.object(("prices",), ("limit_prices", "multipliers", "proper", "functions"))
    limit_prices = fields["limit_prices"].entries() if "limit_prices" in fields else ()
    multipliers = fields["multipliers"].array() if "multipliers" in fields else ()
    proper = fields["proper"].names("block") if "proper" in fields else ()
    numbers = (
        {block: price.number() for block, price in fields["prices"].entries()},
        {machine: price.number() for machine, price in limit_prices},
        [entry.number() for entry in multipliers],
        {block: count.integer() for block, count in proper},
    )
    if "functions" not in fields:
        return node.build(BlockPrices, *numbers)
    functions = {job: _function(entry) for job, entry in fields["functions"].names("job")}
    return node.build(MixPrices, *numbers, functions)


def _function(node: Node) -> PriceFunction:
    fields = node.object(("slope",), ("steps",))
    steps = []
    for entry in fields["steps"].array() if "steps" in fields else ():
        times, height = entry.array(length=2)
        steps.append((times.number(), height.number()))
    return node.build(PriceFunction, fields["slope"].number(), steps)
