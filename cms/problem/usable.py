"""Which machine types a best schedule can use: what costs add up from (theory 6.9)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .parts import AnyConfiguration, Block, Configuration, MachineType

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

#: Configurations that are compared with all others at once: a bit for each pair is kept.
_CONTENTS_AT_ONCE = 2**12


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

    Examples
    --------
    >>> types = [MachineType("plain"), MachineType("dear", "4/3"), MachineType("spare", "1/7")]
    >>> shapes = [Configuration({"a": 2}, "plain"), Configuration({"a": 1}, "dear")]
    >>> [machine.name for machine in usable_types(types, shapes, ["a"])]
    ['plain']
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
    dearest = max((machine.cost for machine in machine_types), default=0)
    rivals = _Rivals(
        (machine.cost, content)
        for machine, own in sorted(typed, key=lambda pair: pair[0].cost)
        if machine.limit is None and machine.cost < dearest
        for content in own
    )
    return tuple(
        machine
        for machine, own in typed
        if machine.limit != 0 and not rivals.hold(own, machine.cost)
    )


class _Content:
    """A configuration without the blocks that serve nobody or do not fit.

    Attributes
    ----------
    most : dict of int
        How many blocks of each type a machine can have if it has no others; positive.
    """

    def __init__(self, shape: AnyConfiguration, blocks: frozenset[Block]) -> None:
        self._shape = shape
        self.most: Mapping[Block, int]
        if isinstance(shape, Configuration):
            self.most = {b: count for b, count in shape.blocks.items() if b in blocks}
        else:
            counts = {b: shape.largest_count(b) for b in shape.sizes if b in blocks}
            self.most = {b: count for b, count in counts.items() if count}

    @property
    def is_listed(self) -> bool:
        """Whether it is a single configuration, which holds whatever has no more blocks."""
        return isinstance(self._shape, Configuration)

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


class _Rivals:
    """The configurations of which there is no end, by rising cost."""

    def __init__(self, priced: Iterable[tuple[Fraction, _Content]]) -> None:
        self._sets: list[tuple[Fraction, _Content]] = []
        listed: list[tuple[Fraction, _Content]] = []
        for cost, content in priced:
            (listed if content.is_listed else self._sets).append((cost, content))
        self._costs = [cost for cost, _ in listed]
        self._listed = [content for _, content in listed]
        # The most of each type that one of them has.
        self._largest: dict[Block, int] = {}
        for content in self._listed:
            for block, count in content.most.items():
                if count > self._largest.get(block, 0):
                    self._largest[block] = count
        self._blocks = sorted(self._largest)

    @cached_property
    def _table(self) -> NDArray[Any]:
        return self._rows(self._listed)

    def _rows(self, contents: Sequence[_Content]) -> NDArray[Any]:
        """Put contents into a table, of Python's integers where one needs more than 63 bits."""
        rows = [[content.most.get(block, 0) for block in self._blocks] for content in contents]
        largest = max((max(row, default=0) for row in rows), default=0)
        kind = np.int64 if largest < 2**63 else object
        return np.array(rows, dtype=kind).reshape(len(rows), len(self._blocks))

    def hold(self, contents: Sequence[_Content], cost: Fraction) -> bool:
        """Whether each content is held by a rival cheaper than ``cost``."""
        sets = [rival for below, rival in self._sets if below < cost]
        left = [one for one in contents if not any(rival.holds(one) for rival in sets)]
        largest, cheaper = self._largest, bisect_left(self._costs, cost)
        if left and not cheaper:
            return False
        if any(n > largest.get(block, 0) for one in left for block, n in one.most.items()):
            return False
        rivals = self._table[:cheaper]
        starts = range(0, len(left), _CONTENTS_AT_ONCE)
        return all(
            _held(self._rows(left[start : start + _CONTENTS_AT_ONCE]), rivals).all()
            for start in starts
        )


def _held(rows: NDArray[Any], rivals: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell of each row whether some rival has no smaller entry in any column.

    A row has a bit for each rival: whether its entries so far are no smaller. In a column the
    rivals that reach a row are the last ones by size: rows and rivals are sorted, not paired.
    """
    held = np.full((len(rows), -(-len(rivals) // 8)), 255, dtype=np.uint8)
    for mine, theirs in zip(rows.T, rivals.T, strict=True):
        order = np.argsort(theirs, kind="stable")
        smaller, which = np.unique(np.searchsorted(theirs[order], mine), return_inverse=True)
        reach, masks = np.zeros(len(rivals), dtype=np.bool_), []
        for first, end in zip(smaller[::-1], [len(rivals), *smaller[:0:-1]], strict=True):
            reach[order[first:end]] = True
            masks.append(np.packbits(reach))
        held &= np.array(masks[::-1], dtype=np.uint8).reshape(len(smaller), -1)[which]
    # The last byte may be longer than there are rivals.
    return np.asarray(np.unpackbits(held, axis=1, count=len(rivals)).any(axis=1))
