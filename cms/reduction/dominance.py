"""Which listed configurations another one makes superfluous."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..running.stopping import look

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.parts import Block, Configuration, MachineType

#: Numbers that are compared at once.
_AT_ONCE = 2**22
#: Numbers that are compared in all, some tenths of a second's work: of very many configurations
#: each is compared with the largest ones only.
_IN_ALL = 2**28


def beaten(
    shapes: Sequence[Configuration],
    machine_types: Sequence[MachineType],
    block_index: Mapping[Block, int],
    stopped: Callable[[], bool],
) -> NDArray[np.bool_]:
    """Tell of each configuration whether another one has no fewer blocks of any type for no more.

    The other one is of the same machine type, or of one without a limit; of equals the first stays.
    """
    if not shapes:
        return np.zeros(0, dtype=np.bool_)
    number = {machine.name: m for m, machine in enumerate(machine_types)}
    machine = np.array([number[shape.machine or ""] for shape in shapes], dtype=np.int64)
    costs = sorted({m.cost for m in machine_types}, reverse=True)
    cheap = np.array([costs.index(m.cost) for m in machine_types])[machine]
    limited = np.array([m.limit is not None for m in machine_types])[machine]
    look(stopped)
    table = np.column_stack([_ranks(shapes, block_index), cheap])
    # Of equals the first stays, but one without a limit before one with.
    place = np.empty(len(table), dtype=np.int64)
    place[np.argsort(limited, kind="stable")] = np.arange(len(table))
    search = _Search(table, place, stopped)
    order = np.argsort(machine, kind="stable")
    begins = np.flatnonzero(np.diff(machine[order], prepend=-1))
    for mine in np.split(order, begins[1:]):
        if limited[mine[0]] and len(mine) > 1:
            search.compare(mine, mine)
    search.compare(order, np.flatnonzero(~limited))
    return search.gone


def _ranks(shapes: Sequence[Configuration], block_index: Mapping[Block, int]) -> NDArray[np.int32]:
    """Return a row a configuration; numbers of blocks, of any size, by their places among all."""
    table = np.zeros((len(shapes), len(block_index)), dtype=np.int32)
    sizes = [len(shape.blocks) for shape in shapes]
    column = dict(block_index.items())
    blocks = [column[block] for shape in shapes for block in shape.blocks]
    counts = [count for shape in shapes for count in shape.blocks.values()]
    kind = np.int64 if max(counts, default=0) < 2**63 else object
    ranks = np.unique(np.array(counts, dtype=kind), return_inverse=True)[1]
    table[np.repeat(np.arange(len(shapes)), sizes), blocks] = ranks.ravel() + 1
    return table


class _Search:
    """Compares rows; ``gone`` are those beaten so far."""

    def __init__(
        self, table: NDArray[np.int64], place: NDArray[np.int64], stopped: Callable[[], bool]
    ) -> None:
        self._columns, self._place = np.ascontiguousarray(table.T), place
        self._strength = table.sum(axis=1)
        self._stopped = stopped
        self._left = _IN_ALL
        self.gone = np.zeros(len(table), dtype=np.bool_)

    def compare(self, mine: NDArray[np.int64], rivals: NDArray[np.int64]) -> None:
        """Find those among ``mine`` that one of the rivals beats; the strongest rivals first."""
        rivals = rivals[np.argsort(-self._strength[rivals], kind="stable")]
        while len(rivals) and self._left > 0:
            mine, rivals = mine[~self.gone[mine]], rivals[~self.gone[rivals]]
            if not len(mine):
                return
            some = rivals[: max(1, _AT_ONCE // len(mine))]
            rows = max(1, _AT_ONCE // max(1, len(some)))
            for start in range(0, len(mine), rows):
                look(self._stopped)
                part = mine[start : start + rows]
                self.gone[part[self._any_beats(part, some)]] = True
            self._left -= len(mine) * len(some) * len(self._columns)
            rivals = rivals[len(some) :]

    def _any_beats(self, mine: NDArray[np.int64], rivals: NDArray[np.int64]) -> NDArray[np.bool_]:
        beats = self._strength[rivals][None] > self._strength[mine][:, None]
        beats |= self._place[rivals][None] < self._place[mine][:, None]
        for column in self._columns:
            own = column[mine]
            if own.any():  # nobody has fewer blocks than none
                beats &= column[rivals][None] >= own[:, None]
        found: NDArray[np.bool_] = beats.any(axis=1)
        return found
