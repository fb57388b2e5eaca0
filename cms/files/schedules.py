"""Schedules as part of a JSON document: one group of machines a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..problem.parts import Configuration
from ..schedule.contents import Content, shown_content
from ..schedule.schedule import MachineGroup, Schedule
from .node import Node
from .time_shared import content_from_json, content_to_json


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Turn a schedule into the value that :func:`schedule_from_json` reads.

    Examples
    --------
    >>> group = MachineGroup(Configuration({"3g": 2}, "a100"), {("3g", "bert"): 1}, 5)
    >>> schedule_to_json(Schedule([group]))["groups"][0]["assignment"]
    [['3g', 'bert', 1]]
    """
    return {
        "groups": [
            {
                "machine": group.configuration.machine,
                "configuration": dict(group.configuration.blocks),
                "count": group.count,
                "assignment": [
                    [block, content_to_json(content), count]
                    for (block, content), count in group.assignment.items()
                ],
            }
            for group in schedule.groups
        ]
    }


def schedule_from_json(value: Node | Mapping[str, Any]) -> Schedule:
    """Turn a parsed value into a schedule.

    Whether the schedule serves a problem is for :func:`cms.check` to say: blocks and jobs that a
    problem does not have, counts below 1, and a job where a mix belongs are read as they are.

    Raises
    ------
    FileError
        If the value is no schedule at all.
    """
    node = value if isinstance(value, Node) else Node(value)
    groups = node.object(("groups",))["groups"]
    return groups.build(Schedule, [_group(entry) for entry in groups.array()])


def configuration_from_json(machine: str | None, blocks: Node) -> Configuration:
    """Read the configuration of a machine from its blocks.

    Raises
    ------
    FileError
        If a count is no whole number >= 0, or all are 0.
    """
    counts = {block: count.integer() for block, count in blocks.names("block")}
    if not any(counts.values()):
        raise blocks.error(f"{blocks.label} has no block", expected="at least one")
    return blocks.build(Configuration, counts, machine)


def _group(entry: Node) -> MachineGroup:
    fields = entry.object(("machine", "configuration", "count", "assignment"))
    machine = fields["machine"].name_or_null("machine type")
    assignment: dict[tuple[str, Content], int] = {}
    for triple in fields["assignment"].array():
        block, content, count = triple.array(length=3)
        pair = block.name("block"), content_from_json(content)
        if pair in assignment:
            given = f"gives blocks {pair[0]!r} to {shown_content(pair[1])} a second time"
            raise triple.error(
                f"{triple.label} {given}",
                expected="one entry for each block and job",
                fix="add the counts up",
            )
        assignment[pair] = count.integer(minimum=None)
    configuration = configuration_from_json(machine, fields["configuration"])
    return MachineGroup(configuration, assignment, fields["count"].integer(minimum=None))
