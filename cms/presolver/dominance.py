"""Which listed configurations another one makes superfluous."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..running.stopping import look

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.parts import Block, Configuration, MachineType

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
    strength = table.sum(axis=1)
    # Of equals the first stays, but one without a limit before one with.
    place = np.empty(len(table), dtype=np.int64)
    place[np.argsort(limited, kind="stable")] = np.arange(len(table))
    groups = [np.flatnonzero(machine == m) for m in np.unique(machine[limited])]
    gone, left = np.zeros(len(table), dtype=np.bool_), _IN_ALL
    for mine, rivals in [(m, m) for m in groups] + [
        (np.arange(len(table)), np.flatnonzero(~limited))
    ]:
        # The strongest rivals first.
        for rival in rivals[np.argsort(-strength[rivals], kind="stable")].tolist():
            look(stopped)
            if left < 0:
                break
            if gone[rival]:
                continue
            mine = mine[~gone[mine]]
            rows = table[mine]
            left -= rows.size
            worse = (strength[mine] < strength[rival]) | (place[mine] > place[rival])
            gone[mine[worse & (rows <= table[rival]).all(axis=1)]] = True
    return gone


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
