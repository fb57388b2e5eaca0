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
from . import fields as f
from .node import Node

_PRICES = f.Field(lambda node: {key: entry.number() for key, entry in node.entries()}, dict)
_FUNCTION = f.record(
    PriceFunction, slope=f.NUMBER, steps=f.array(f.pair(f.NUMBER, f.NUMBER)).or_else(())
)
_LEAF = {
    "prices": _PRICES,
    "limit_prices": _PRICES.or_else({}),
    "multipliers": f.array(f.NUMBER).or_else(()),
    "proper": f.table("block", f.COUNT).or_else({}),
    "functions": f.table("job", _FUNCTION).or_else(None),
}


def certificate_from_json(tree: Node | Mapping[str, Any]) -> Certificate:
    """Turn a parsed tree into a certificate; :meth:`Certificate.to_json` is the way back.

    Whether it holds for a problem is for its ``bound`` to say.

    Examples
    --------
    >>> certificate_from_json({"prices": {"1g": "1/7"}}).to_json()["prices"]
    {'1g': '1/7'}
    """
    return _tree(tree if isinstance(tree, Node) else Node(tree), 0)


def _tree(node: Node, depth: int) -> Certificate:
    if not (isinstance(node.value, dict) and "branch" in node.value):
        found = f.read_object(node, _LEAF)
        functions = found.pop("functions")
        if functions is None:
            return node.build(BlockPrices, **found)
        return node.build(MixPrices, **found, functions=functions)
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


def _machines_of_type(node: Node) -> MachinesOfType:
    weighted = isinstance(node.value, dict)
    types = f.table("machine type", f.AT_LEAST_ONE) if weighted else f.name("machine type")
    return node.build(MachinesOfType, types.read(node))


def _content(node: Node) -> Configuration:
    blocks, machine = f.table("block", f.COUNT), f.nullable(f.name("machine type")).or_else(None)
    found: Configuration = f.record(Configuration, own=False, blocks=blocks, machine=machine).read(
        node
    )
    return found


_QUANTITIES = {
    "machines_of_type": _machines_of_type,
    "machines_of": lambda node: MachinesOf(_content(node)),
    "machines_with": lambda node: MachinesWith(_content(node)),
    "blocks_of": lambda node: node.build(BlocksOf, node.name("block")),
    "blocks_of_job": f.record(
        BlocksOfJob,
        own=False,
        block=f.name("block"),
        job=f.name("job"),
    ).read,
}


def _quantity(node: Node) -> Quantity:
    fields = node.object((), _QUANTITIES, own=False)
    if len(fields) != 1:
        raise node.error(
            f"{node.label} has {len(fields)} quantities",
            expected=f"exactly one of {', '.join(_QUANTITIES)}",
        )
    ((kind, what),) = fields.items()
    found: Quantity = node.build(_QUANTITIES[kind], what)
    return found
