"""Which machine types a best schedule can use: what costs add up from (theory 6.9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

from .parts import AnyConfiguration, Block, Configuration, MachineType

#: Numbers that are compared at once.
_AT_ONCE = 2**22


def usable_types(
    machine_types: Sequence[MachineType],
    configurations: Iterable[AnyConfiguration],
    blocks: list[Block],
) -> tuple[MachineType, ...]:
    """Return the machine types that a cheapest schedule can have machines of.

    ``blocks`` are those that serve somebody.

    A type is usable unless its limit is 0, or each of its configurations either has no block that
    serves anybody or is held by a configuration of a cheaper type without a limit: a schedule with
    such a machine has a cheaper one beside it. Blocks that serve nobody do not count. A
    configuration holds another

    * listed, a listed one: if it has no fewer blocks of any type;
    * listed, a set: if it has no fewer blocks of each type than the set has on a machine
      without others;
    * a set, a listed one: if that is one of the set;
    * a set, a set: if capacity / size is no smaller for any block that fits into the other, nor the
      largest number of blocks.

    Every optimum is a sum of costs of usable types; lower bounds are rounded up by them.
    """
    contents: dict[str | None, list[_Content]] = {machine.name: [] for machine in machine_types}
    if len(machine_types) == 1:
        contents[None] = contents[machine_types[0].name]  # where there is one, none need be named
    serving = frozenset(blocks)
    for shape in configurations:
        content = _Content(shape, serving)
        if content.most:
            contents[shape.machine].append(content)
    typed = [(machine, contents[machine.name]) for machine in machine_types]
    endless = [(machine.cost, own) for machine, own in typed if machine.limit is None]
    return tuple(
        machine
        for machine, own in typed
        if machine.limit != 0
        and not _all_held(
            own, [one for cost, many in endless if cost < machine.cost for one in many]
        )
    )


class _Content:
    """A configuration without the blocks that serve nobody or do not fit.

    ``most`` are the blocks of each type that a machine can have if it has no others; positive.
    """

    def __init__(self, shape: AnyConfiguration, blocks: frozenset[Block]) -> None:
        self._shape, self.is_listed = shape, isinstance(shape, Configuration)
        if isinstance(shape, Configuration):
            counts = dict(shape.blocks)
        else:
            counts = {block: shape.largest_count(block) for block in shape.sizes}
        self.most = {b: count for b, count in counts.items() if count and b in blocks}

    def holds(self, other: _Content) -> bool:
        """Whether a machine of this kind has all blocks that any machine of the other has."""
        if any(self.most.get(block, 0) < count for block, count in other.most.items()):
            return False
        mine, theirs = self._shape, other._shape
        if isinstance(mine, Configuration):
            return True
        if isinstance(theirs, Configuration):
            return mine.allows(other.most)
        if mine.max_blocks is not None and (
            theirs.max_blocks is None or theirs.max_blocks > mine.max_blocks
        ):
            return False
        return all(
            mine.capacity * theirs.sizes[block] >= theirs.capacity * mine.sizes[block]
            for block in other.most
        )


def _table(contents: Sequence[_Content], blocks: Sequence[Block]) -> NDArray[Any]:
    # Of counts that are too long for 64 bits numpy makes objects, and compares them as well.
    counts = [one.most.get(block, 0) for one in contents for block in blocks]
    return np.array(counts).reshape(len(contents), len(blocks))


def _all_held(contents: Sequence[_Content], rivals: Sequence[_Content]) -> bool:
    """Whether each content is held by a rival; listed ones are compared all at once."""
    sets, listed = ([r for r in rivals if r.is_listed is kind] for kind in (False, True))
    left = [one for one in contents if not any(rival.holds(one) for rival in sets)]
    blocks = sorted({block for one in left for block in one.most})
    own, theirs = (_table(many, blocks) for many in (left, listed))
    some = max(1, _AT_ONCE // max(1, theirs.size))
    return all(
        bool(np.all(np.any(np.all(own[start : start + some, None] <= theirs, axis=2), axis=1)))
        for start in range(0, len(own), some)
    )
