"""The machines of an abstract schedule as bars: one cell a block, as wide as its size."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from ...problem.parts import Configuration
from ...schedule.contents import Mix
from ...time_sharing.problem import TimeSharedProblem
from .bars import Bar, Cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...problem.machine_problem import MachineProblem
    from ...problem.parts import Block
    from ...schedule.contents import Content
    from ...schedule.schedule import MachineGroup, Schedule


_FINE = 1000  # so finely the slots of a frame are drawn
_MOST_CELLS = 200  # a machine of more blocks would be a grey smear, or fill memory


def machine_bars(problem: MachineProblem, schedule: Schedule, most: int) -> list[Bar]:
    """Return bars of the groups with most machines, the largest first.

    Parameters
    ----------
    problem : MachineProblem
    schedule : Schedule
        A checked one of this problem.
    most : int
        At most so many bars, whatever the size of the schedule; a machine of more than 200 blocks
        has none.

    Examples
    --------
    >>> from cms import Job, MachineGroup, Problem, Schedule
    >>> pair = Configuration({"half": 2}, "machine")
    >>> problem = Problem(configurations=pair, jobs=[Job("a", 1, {"half": 1})])
    >>> schedule = Schedule([MachineGroup(pair, {("half", "a"): 1}, 3)])
    >>> (bar,) = machine_bars(problem, schedule, 10)
    >>> bar.count, bar.slices, [(cell.profile, cell.service) for cell in bar.cells]
    (3, 2, [('half', 'a'), ('half', None)])
    """
    order = np.argsort(-schedule.columns.group_count, kind="stable")[:most]
    groups = (schedule.groups[index] for index in order.tolist())
    return [
        _bar(problem, group)
        for group in groups
        if sum(group.configuration.blocks.values()) <= _MOST_CELLS
    ]


def _bar(problem: MachineProblem, group: MachineGroup) -> Bar:
    sizes, capacity = _sizes(problem, group.configuration)
    # Whole numbers, so that the cells of a bar cannot fail to meet.
    scale = lcm(*(size.denominator for size in chain(sizes.values(), (capacity,))))
    cells, at = [], 0
    if any(isinstance(content, Mix) for _, content in group.assignment):
        scale *= _FINE
    for block, content in _instances(problem, group):
        width = int(sizes[block] * scale)
        for job, low, high in _slots(problem, block, content, width):
            cells.append(Cell(at + low, high - low, block, job))
        at += width
    if at < (whole := int(capacity * scale)):
        cells.append(Cell(at, whole - at))
    return Bar(group.configuration.machine or "", whole, tuple(cells), group.count)


def _slots(
    problem: MachineProblem, block: Block, content: Content | None, width: int
) -> Iterator[tuple[str | None, int, int]]:
    """The jobs of a block, each with the part of its width in proportion to its time."""
    if not isinstance(content, Mix):
        yield content, 0, width
        return
    assert isinstance(problem, TimeSharedProblem)  # a checked schedule has mixes there alone
    frame, past = problem.frame(block, content), Fraction(0)
    for name, amount in content.items():
        point = problem.job(name).point(block, amount)
        assert point is not None  # or it would have no frame
        low, past = int(past * width), past + point.length / frame.length
        yield name, low, int(past * width)


def _instances(
    problem: MachineProblem, group: MachineGroup
) -> Iterator[tuple[Block, Content | None]]:
    """The blocks of one machine in the order of the problem, each with its job or mix."""
    for block in sorted(group.configuration.blocks, key=lambda block: problem.block_index[block]):
        idle = group.configuration.blocks[block]
        for (given, content), count in group.assignment.items():
            if given == block:
                idle -= count
                for _ in range(count):
                    yield block, content
        for _ in range(idle):
            yield block, None


def _sizes(problem: MachineProblem, shape: Configuration) -> tuple[dict[str, Fraction], Fraction]:
    """The blocks' sizes and the machine's; blocks of a listed configuration are of equal size."""
    if problem.own(shape) not in problem.listed_configurations:
        for bounded in problem.sets_with(shape):
            return {block: bounded.sizes[block] for block in shape.blocks}, bounded.capacity
    return dict.fromkeys(shape.blocks, Fraction(1)), Fraction(sum(shape.blocks.values()))
