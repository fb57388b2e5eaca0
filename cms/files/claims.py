"""Schedules and certificates as parts of a document, numbers read exactly."""

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
from ..problem.parts import Configuration
from ..schedule.contents import Content, Mix, shown_content
from ..schedule.schedule import MachineGroup, Schedule
from ..time_sharing.functions import PriceFunction
from ..time_sharing.prices import MixPrices
from . import fields as f
from .node import Node

_BLOCK, _JOB, _TYPE = f.name("block"), f.name("job"), f.name("machine type")
_BLOCKS, _AMOUNTS = f.table("block", f.COUNT), f.table("job", f.POSITIVE)


def _read_content(node: Node) -> Content:
    if not isinstance(node.value, dict | str):
        raise node.wrong("the name of a job, or an object with the amount of each job of a mix")
    if isinstance(node.value, str):
        return node.name("job")
    if not (amounts := _AMOUNTS.read(node)):
        raise node.error(f"{node.label} has no job", expected="at least one", fix="leave it out")
    return node.build(Mix, amounts)


def _write_content(content: Content) -> Any:
    return content if isinstance(content, str) else _AMOUNTS.write(dict(content))


_GIVEN = f.row(_BLOCK, f.Field(_read_content), f.ANY_INTEGER)


def _read_assignment(node: Node) -> dict[tuple[str, Content], int]:
    assignment: dict[tuple[str, Content], int] = {}
    for triple in node.array():
        block, content, count = _GIVEN.read(triple)
        if (block, content) in assignment:
            to = f"gives blocks {block!r} to {shown_content(content)} a second time"
            raise triple.error(
                f"{triple.label} {to}",
                expected="one entry for each block and job",
                fix="add the counts up",
            )
        assignment[block, content] = count
    return assignment


_ASSIGNMENT = f.Field(
    _read_assignment,
    lambda given: [
        [block, _write_content(content), count] for (block, content), count in given.items()
    ],
)


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Turn a schedule into the value that :func:`schedule_from_json` reads."""
    return {
        "groups": [
            machines_to_json(group.configuration, group.count)
            | {"assignment": _ASSIGNMENT.write(group.assignment)}
            for group in schedule.groups
        ]
    }


def schedule_from_json(value: Node | Mapping[str, Any]) -> Schedule:
    """Turn a parsed value into a schedule; whether it serves a problem is for :func:`cms.check`."""
    node = value if isinstance(value, Node) else Node(value)
    groups = node.object(("groups",))["groups"]
    return groups.build(Schedule, [_group(entry) for entry in groups.array()])


def _group(entry: Node) -> MachineGroup:
    shape, count, others = machines_from_json(entry, f.ANY_INTEGER, assignment=_ASSIGNMENT)
    return MachineGroup(shape, others["assignment"], count)


def machines_to_json(shape: Configuration, count: int) -> dict[str, Any]:
    """Write how many machines have a configuration; :func:`machines_from_json` reads it."""
    return {"machine": shape.machine, "configuration": dict(shape.blocks), "count": count}


def machines_from_json(
    entry: Node, count: f.Field, **others: f.Field
) -> tuple[Configuration, int, dict[str, Any]]:
    """Read a configuration, how many machines have it, and the other fields."""
    keys = {"machine": f.nullable(_TYPE), "configuration": _BLOCKS, "count": count}
    found = f.read_object(entry, keys | others)
    blocks, machine = found.pop("configuration"), found.pop("machine")
    if not any(blocks.values()):
        raise no_block(entry.at("configuration"))
    shape = entry.at("configuration").build(Configuration, blocks, machine)
    return shape, found.pop("count"), found


def no_block(blocks: Node, fix: str | None = None) -> Exception:
    """Build the error that a configuration has no block."""
    return blocks.error(f"{blocks.label} has no block", expected="at least one", fix=fix)


_PRICES = f.Field(lambda node: {key: entry.number() for key, entry in node.entries()})
_STEPS = f.array(f.row(f.NUMBER, f.NUMBER))
_FUNCTION = f.record(PriceFunction, slope=f.NUMBER, steps=_STEPS.or_else(()))
_LEAF = {
    "prices": _PRICES,
    "limit_prices": _PRICES.or_else({}),
    "multipliers": f.array(f.NUMBER).or_else(()),
    "proper": _BLOCKS.or_else({}),
    "functions": f.table("job", _FUNCTION).or_else(None),
}


def certificate_from_json(tree: Node | Mapping[str, Any]) -> Certificate:
    """Turn a parsed tree into a certificate; :meth:`Certificate.to_json` is the way back."""
    return _tree(tree if isinstance(tree, Node) else Node(tree), 0)


def _tree(node: Node, depth: int) -> Certificate:
    if not (isinstance(node.value, dict) and "branch" in node.value):
        found = f.read_object(node, _LEAF)
        if found["functions"] is not None:
            return node.build(MixPrices, **found)
        del found["functions"]
        return node.build(BlockPrices, **found)
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
    types = f.table("machine type", f.AT_LEAST_ONE) if isinstance(node.value, dict) else _TYPE
    return node.build(MachinesOfType, types.read(node))


_SHAPE = f.record(Configuration, own=False, blocks=_BLOCKS, machine=f.nullable(_TYPE).or_else(None))
_QUANTITIES = {
    "machines_of_type": _machines_of_type,
    "machines_of": lambda node: MachinesOf(_SHAPE.read(node)),
    "machines_with": lambda node: MachinesWith(_SHAPE.read(node)),
    "blocks_of": lambda node: BlocksOf(_BLOCK.read(node)),
    "blocks_of_job": f.record(BlocksOfJob, own=False, block=_BLOCK, job=_JOB).read,
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
