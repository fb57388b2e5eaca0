"""Which listed configurations another one makes superfluous."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ..problem.usable import counts_no_more
from ..running.stopping import look

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.machine_problem import MachineProblem
    from ..problem.parts import Block, Configuration

#: Numbers that are compared in all, some tenths of a second's work: of very many configurations
#: each is compared with the largest ones only.
_IN_ALL = 2**28


def beaten(
    shapes: Sequence[Configuration], problem: MachineProblem, stopped: Callable[[], bool]
) -> NDArray[np.bool_]:
    """Tell of each configuration whether another one has no fewer blocks of any type for no more.

    The machine type of the other one counts no more in any limit; of equals the first stays.
    """
    if not shapes:
        return np.zeros(0, dtype=np.bool_)
    types = problem.machine_types
    machine = np.array([problem.machine_index[shape.machine] for shape in shapes], dtype=np.int64)
    costs = sorted({m.cost for m in types}, reverse=True)
    cheap = np.array([costs.index(m.cost) for m in types])[machine]
    counted = [sum(problem.weights[m.name].values(), Fraction(0)) for m in types]
    heavy = np.array([sorted(counted).index(number) for number in counted])[machine]
    look(stopped)
    table = np.column_stack([_ranks(shapes, problem.block_index), cheap])
    strength = table.sum(axis=1)
    # Of equals the first stays, but one that limits count less before one that they count more.
    place = np.empty(len(table), dtype=np.int64)
    place[np.argsort(heavy, kind="stable")] = np.arange(len(table))
    gone, left = np.zeros(len(table), dtype=np.bool_), _IN_ALL
    for mine, rivals in _rivalries(problem, machine):
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


def _rivalries(
    problem: MachineProblem, machine: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield rivals that limits count alike, those counted least last, with what they may beat."""
    weights = [problem.weights[each.name] for each in problem.machine_types]
    alike: dict[tuple[tuple[str, Fraction], ...], list[int]] = {}
    for m, counted in enumerate(weights):
        alike.setdefault(tuple(sorted(counted.items())), []).append(m)
    for pattern in sorted(alike, key=lambda each: -sum(weight for _, weight in each)):
        beaten = [m for m, own in enumerate(weights) if counts_no_more(dict(pattern), own)]
        rivals = np.flatnonzero(np.isin(machine, alike[pattern]))
        yield np.flatnonzero(np.isin(machine, beaten)), rivals


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
