"""Which machine types a best schedule can use: what costs add up from (theory 6.9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..values.arrays import integers
from .parts import AnyConfiguration, Block, Configuration, MachineType, SizeBoundedConfigurations


def usable_types(
    machine_types: Sequence[MachineType],
    configurations: Iterable[AnyConfiguration],
    blocks: list[Block],
) -> tuple[MachineType, ...]:
    """Return the machine types that a cheapest schedule can have machines of.

    ``blocks`` are those that serve some job.

    A type is usable unless its limit is 0, or each of its configurations either has no block that
    serves anybody or is held by a configuration of a cheaper type without a limit: a schedule with
    such a machine has a cheaper one beside it. Every optimum is a sum of costs of usable types;
    lower bounds are rounded up by them.
    """
    serving = frozenset(blocks)
    contents: dict[str | None, list[_Content]] = {machine.name: [] for machine in machine_types}
    for shape in configurations:
        if isinstance(shape, Configuration):
            counts = dict(shape.blocks)
        else:
            counts = {block: shape.largest_count(block) for block in shape.sizes}
        most = {block: n for block, n in counts.items() if n and block in serving}
        if most:
            contents[shape.machine].append(_Content(shape, most))
    endless = [machine for machine in machine_types if machine.limit is None]
    return tuple(
        machine
        for machine in machine_types
        if machine.limit != 0
        and not _all_held(
            contents[machine.name],
            [one for m in endless if m.cost < machine.cost for one in contents[m.name]],
        )
    )


class _Content(NamedTuple):
    """A configuration, and the blocks of each serving type that it has where it has no others."""

    shape: AnyConfiguration
    most: dict[Block, int]


def _set_holds(mine: SizeBoundedConfigurations, other: _Content) -> bool:
    """Whether a machine of a set has all blocks that any machine of the other has."""
    theirs = other.shape
    if isinstance(theirs, Configuration):
        return mine.allows(other.most)
    if mine.max_blocks is not None and (
        theirs.max_blocks is None or theirs.max_blocks > mine.max_blocks
    ):
        return False
    return all(
        block in mine.sizes
        and mine.capacity * theirs.sizes[block] >= theirs.capacity * mine.sizes[block]
        for block in other.most
    )


def _all_held(contents: Sequence[_Content], rivals: Sequence[_Content]) -> bool:
    sets = [one.shape for one in rivals if isinstance(one.shape, SizeBoundedConfigurations)]
    left = [one for one in contents if not any(_set_holds(rival, one) for rival in sets)]
    if not left:
        return True
    blocks = sorted({block for one in left for block in one.most})
    listed = [one for one in rivals if isinstance(one.shape, Configuration)]
    theirs, mine = (
        integers([[one.most.get(block, 0) for block in blocks] for one in some])
        for some in (listed, left)
    )
    theirs = theirs.reshape(-1, len(blocks))
    return all(bool((theirs >= row).all(axis=1).any()) for row in mine)
