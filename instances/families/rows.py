"""Rows of random jobs as arrays of integers, drawn a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
#: Draws the demands (count,) and the supply (count, k) of so many jobs.
Draw: TypeAlias = "Callable[[int], tuple[Integers, Integers]]"

# Pieces fit into a cache; their size is part of what a seed means.
_PIECE = 2**15


def pieces(n: int) -> Iterator[slice]:
    """Cut n jobs into pieces, so that what is computed on the way stays small.

    Examples
    --------
    >>> list(pieces(40_000))
    [slice(0, 32768, None), slice(32768, 40000, None)]
    """
    for start in range(0, n, _PIECE):
        yield slice(start, min(start + _PIECE, n))


def drawn(n: int, k: int, draw: Draw) -> tuple[Integers, Integers]:
    """Draw n jobs.

    Parameters
    ----------
    n, k : int
        Jobs and block types.
    draw : callable
        Draws so many jobs.

    Returns
    -------
    demands : ndarray of int64, shape (n,)
    supply : ndarray of int64, shape (n, k)
    """
    demands, supply = np.empty(n, dtype=np.int64), np.empty((n, k), dtype=np.int64)
    for piece in pieces(n):
        demands[piece], supply[piece] = draw(piece.stop - piece.start)
    return demands, supply


def whole_machine(supply: Integers, counts: Integers) -> Integers:
    """Return the most that one machine, all of it, can give to each job.

    Parameters
    ----------
    supply : ndarray of int64, shape (n, k)
    counts : ndarray of int64, shape (c, k)
        Blocks of each machine that comes into question.

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> whole_machine(np.array([[2, 9], [5, 9]]), np.array([[3, 0], [0, 1]]))
    array([ 9, 15])
    """
    most = np.zeros(len(supply), dtype=np.int64)
    for shape in counts:
        held = np.flatnonzero(shape)
        amount = supply[:, held[0]] * shape[held[0]]
        for i in held[1:]:
            amount += supply[:, i] * shape[i]
        np.maximum(most, amount, out=most)
    return most


def power_law(
    rng: np.random.Generator,
    count: int,
    slices: Integers,
    exponents: tuple[float, float],
    noise: float,
    units: NDArray[np.float64] | None = None,
) -> Integers:
    """Draw supply that grows like a power of the block's size, with an exponent a job.

    Parameters
    ----------
    rng : Generator
    count : int
        Jobs.
    slices : ndarray of int64, shape (k,)
        Sizes of the blocks.
    exponents : pair of float
        Each job's exponent is uniform between the two.
    noise : float
        The standard deviation of each entry's logarithm around the power law.
    units : ndarray of float64, shape (count,), optional
        What a block of size 1 gives, but for noise; by default the logarithm is uniform between
        those of 100 and 1,000.

    Returns
    -------
    ndarray of int64, shape (count, k)
        Every entry is at least 1.
    """
    exponent = rng.uniform(*exponents, count)
    if units is None:
        units = 100 * 10 ** rng.random(count)
    smooth = units[:, None] * slices ** exponent[:, None]
    supply = smooth * rng.lognormal(0.0, noise, smooth.shape)
    return np.maximum(np.rint(supply), 1).astype(np.int64)


def table(rng: np.random.Generator, count: int, k: int, largest: int) -> Integers:
    """Draw an arbitrary table, entries 0 to `largest`, at least one of each row positive.

    Returns
    -------
    ndarray of int64, shape (count, k)
    """
    supply = rng.integers(0, largest, (count, k), endpoint=True)
    empty = np.flatnonzero(~supply.any(axis=1))
    columns = rng.integers(0, k, len(empty))
    supply[empty, columns] = rng.integers(1, largest, len(empty), endpoint=True)
    return supply
