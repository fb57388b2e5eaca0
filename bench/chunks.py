"""Problems drawn a chunk at a time: in memory, or packed into a folder that no memory holds.

A chunk is a problem of the same family and parameters whose seed counts on, so that the jobs of
all chunks are those of one problem, however it is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cms
from cms.errors import InvalidOption
from cms.problem.problem import Problem

from .task import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Jobs of a chunk, but for the last one.
CHUNK = 500_000
#: Seeds between two instances: more than either has chunks.
_SEEDS = 10_000


def generate(name: str, *, n: int, seed: int, families: str, **parameters: Any) -> Problem:
    """Make a problem of chunks in memory.

    The family's machines are the same for every seed, and its numbers are whole; ``families`` is
    the module of generators.
    """
    drawn = chunks(name, n=n, seed=seed, families=families, **parameters)
    first = next(drawn)
    demands, supplies = zip(*map(_table, chain([first], drawn)), strict=True)
    return Problem.from_arrays(
        demands=np.concatenate(demands),
        supply=np.concatenate(supplies),
        configurations=first.configurations,
        blocks=first.blocks,
        machine_types=first.machine_types,
    )


def chunks(name: str, *, n: int, seed: int, families: str, **parameters: Any) -> Iterator[Problem]:
    """Yield problems whose jobs are, one after another, those of :func:`generate`."""
    draw = import_module(families).generate
    head: tuple[Any, ...] | None = None
    for number, first in enumerate(range(0, n, CHUNK)):
        size = min(CHUNK, n - first)
        part: Problem = draw(name, n=size, seed=_SEEDS * seed + number, **parameters)
        mine = part.blocks, part.configurations, part.machine_types
        if head is not None and mine != head:
            raise InvalidOption(f"{name!r} draws its machines anew for every chunk of jobs")
        head = mine
        yield part


def _table(part: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows = part.rows
    if rows.wide or (rows.denominators != 1).any():
        raise InvalidOption("a family drawn in chunks has whole numbers below 2**63 alone")
    return rows.demands, rows.supplies


def pack(source: Source, folder: Path) -> float:
    """Pack the problem of :func:`generate` into a folder, holding a chunk at a time.

    Return the seconds of processor time that this took, drawing the jobs not counted.
    """
    drawing = 0.0

    def timed() -> Iterator[Problem]:
        nonlocal drawing
        drawn = chunks(source.family, **source.arguments)
        while True:
            started = time.process_time()
            part = next(drawn, None)
            drawing += time.process_time() - started
            if part is None:
                return
            yield part

    started = time.process_time()
    parts = timed()
    first = next(parts)
    head = first.replace(rows=first.rows.part(0, 0), job_names=())
    cms.pack(head, map(_table, chain([first], parts)), folder)
    return time.process_time() - started - drawing


def pack_elsewhere(source: Source, folder: Path) -> float:
    """The same in a process of its own, whose memory nobody sees afterwards."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(pack, source, folder).result()
