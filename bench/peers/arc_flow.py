"""The arc-flow program: the ways to fill a machine of a size-bounded set are paths, not listed."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem
from cms.knapsack.pricing import common_denominator
from cms.problem.parts import Configuration, SizeBoundedConfigurations

from .program import Jobs, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.problem import Problem

#: Nodes of one set's graph, and variables of a program, beyond which it is not built.
MOST_NODES, MOST_VARIABLES = 1_000_000, 300_000


class _Arcs(NamedTuple):
    """The arcs of one size-bounded set: nodes, and the place in ``blocks`` of the block it places.

    Node 0 is the empty machine.
    """

    shape: SizeBoundedConfigurations
    blocks: tuple[str, ...]
    tails: NDArray[np.int64]
    heads: NDArray[np.int64]
    kinds: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ArcFlowProgram(Program):
    """The program whose variables x are listed configurations, and arcs of size-bounded sets.

    A node is how much of a machine is taken (and, where the set bounds the number of blocks more
    tightly than its capacity does, how many blocks), an arc places a block there. Blocks come in
    the order of decreasing size, at most as many of a type in a row as all jobs can use; a machine
    is a unit of flow from the empty machine to wherever it ends.

    References
    ----------
    J. M. Valerio de Carvalho, Exact solution of bin-packing problems using column generation and
    branch-and-bound, Annals of Operations Research 86 (1999).
    """

    shapes: tuple[Configuration, ...]
    sets: tuple[_Arcs, ...]

    @classmethod
    def of(cls, problem: Problem) -> ArcFlowProgram:
        """Build the program of a problem."""
        jobs = Jobs.of(problem)
        small = jobs.reduction.problem
        shapes = small.listed_configurations
        useful = dict(zip(small.blocks, jobs.useful.tolist(), strict=True))
        total = len(jobs.jobs) + len(shapes)
        sets = []
        for shape in small.size_bounded_configurations:
            if not any(map(shape.largest_count, shape.sizes)):
                continue
            found = _arcs(shape, useful, MOST_VARIABLES - total)
            total += len(found.tails)
            sets.append(found)
        machines: list[str | None] = [small.machine_type(s.machine).name for s in shapes]
        index = small.block_index
        has = [
            (index[block], at, count)
            for at, shape in enumerate(shapes)
            for block, count in shape.blocks.items()
        ]
        entries = [np.array(has, dtype=np.int64).reshape(-1, 3)]
        own = [np.empty((0, 3), dtype=np.int64)]
        highs = [np.full(len(shapes), jobs.useful.sum())]
        rows = 0
        for arcs in sets:
            name = small.machine_type(arcs.shape.machine).name
            blocks = np.array([index[block] for block in arcs.blocks], dtype=np.int64)[arcs.kinds]
            column = len(machines) + np.arange(len(arcs.tails))
            one = np.ones(len(column), dtype=np.int64)
            entries.append(np.column_stack([blocks, column, one]))
            # what leaves a node has come to it; a machine may end anywhere
            inner = arcs.tails > 0
            reached, at = np.unique(arcs.tails[inner], return_inverse=True)
            into = np.isin(arcs.heads, reached)
            places = np.searchsorted(reached, arcs.heads[into])
            own += [
                np.column_stack([rows + at, column[inner], -one[inner]]),
                np.column_stack([rows + places, column[into], one[into]]),
            ]
            rows += len(reached)
            highs.append(jobs.useful[blocks])
            machines += [None if tail else name for tail in arcs.tails.tolist()]
        triples = [np.concatenate(part).T for part in (entries, own)]
        fields = jobs.program(
            machines, tuple(triples[0]), np.concatenate(highs), tuple(triples[1]), rows
        )
        return cls(shapes=tuple(shapes), sets=tuple(sets), **fields)

    def machines(self, whole: NDArray[np.int64]) -> dict[Configuration, int]:
        """Take the flows apart into paths, each a machine's content."""
        found = {
            shape: int(count)
            for shape, count in zip(self.shapes, whole[: len(self.shapes)], strict=True)
            if count
        }
        start = len(self.shapes)
        for arcs in self.sets:
            flow = whole[start : start + len(arcs.tails)]
            start += len(arcs.tails)
            for blocks, count in _paths(arcs, flow):
                content = Configuration(blocks, arcs.shape.machine)
                found[content] = found.get(content, 0) + count
        return found


def _arcs(shape: SizeBoundedConfigurations, useful: dict[str, float], most: int) -> _Arcs:
    """Build the graph of a set that holds some block, of at most so many arcs."""
    blocks = tuple(
        sorted(
            (block for block in shape.sizes if shape.largest_count(block)),
            key=lambda block: -shape.sizes[block],
        )
    )
    numbers, _ = common_denominator([shape.capacity, *(shape.sizes[block] for block in blocks)])
    scale = gcd(*numbers[1:])
    capacity, *sizes = (number // scale for number in numbers)
    bounded = shape.max_blocks is not None and shape.max_blocks < capacity // sizes[-1]
    layers = 1 + (shape.max_blocks or 0) if bounded else 1
    if (capacity + 1) * layers > MOST_NODES:
        raise UnsupportedProblem(f"the arc-flow graph would have more than {MOST_NODES} nodes")
    # A node is so much of the capacity and, if they are bounded, so many blocks.
    reached = np.zeros((capacity + 1, layers), dtype=bool)
    reached[0, 0] = True
    deeper = int(bounded)
    parts = []
    total = 0
    for kind, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        tails = np.zeros_like(reached)
        here = reached.copy()
        for _ in range(min(int(useful[block]), capacity // size)):
            here[capacity + 1 - size :] = False
            here[:, layers - deeper :] = False
            here &= ~tails
            if not here.any():
                break
            tails |= here
            there = np.zeros_like(here)
            there[size:, deeper:] = here[: capacity + 1 - size, : layers - deeper]
            here = there
        found = np.flatnonzero(tails)
        total += len(found)
        if total > most:
            raise UnsupportedProblem(
                f"the arc-flow program would have more than {MOST_VARIABLES} variables"
            )
        heads = found + size * layers + deeper
        reached.ravel()[heads] = True
        parts.append((found, heads, np.full(len(found), kind)))
    tails_, heads_, kinds = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _Arcs(shape, blocks, tails_, heads_, kinds)


def _paths(arcs: _Arcs, flow: NDArray[np.int64]) -> list[tuple[dict[str, int], int]]:
    """Take a flow apart: paths from the empty machine, and how many machines each stands for.

    A path goes on as long as there is flow, so that none is left over that began nowhere.
    """
    left = {at: int(flow[at]) for at in np.flatnonzero(flow).tolist()}
    leaving: dict[int, list[int]] = {}
    for at in left:
        leaving.setdefault(int(arcs.tails[at]), []).append(at)
    found = []
    while leaving.get(0):
        path, node = [], 0
        while leaving.get(node):
            path.append(leaving[node][-1])
            node = int(arcs.heads[path[-1]])
        count = min(left[at] for at in path)
        blocks: dict[str, int] = {}
        for at in path:
            block = arcs.blocks[arcs.kinds[at]]
            blocks[block] = blocks.get(block, 0) + 1
            left[at] -= count
            if not left[at]:
                leaving[int(arcs.tails[at])].pop()
        found.append((blocks, count))
    return found
