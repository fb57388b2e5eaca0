"""Rows that are safe for compiled arithmetic.

Compiled code that multiplies within a row needs supply x (demand + largest supply) to fit into 63
bits. Rows that are too large for that even without common divisors get two integer *images*: the
inner one (supply rounded down) for building schedules, the outer one (supply rounded up, demand
down) for bounds; what holds for an image then holds for the row itself. A job that needs more than
2^20 of its best block has only a coarse image, or none (*far* rows): it is worked out by hand, on
its exact row, as all are that had to shrink if they are few.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..values.arrays import read_only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

#: Compiled code may form products up to this size (exclusive) in int64 without overflow.
SAFE = 2**62
# Beyond this ratio of demand to supply an image has less than 20 bits for the best block's supply;
# and while only few rows had to shrink at all, they may as well be priced exactly.
_FAR, FEW = 2**20, 4_000
# An image's supply x (demand + largest supply) has this many bits, rounding included one more.
_IMAGE_BITS = 61


class Row(NamedTuple):
    """One job's integers: its demand is ``demand / denominator``, its supply likewise."""

    demand: int
    supply: tuple[int, ...]
    denominator: int


class Image(NamedTuple):
    """Integer rows that are safe for compiled arithmetic; supply is cut at the demand."""

    demand: NDArray[np.int64]
    supply: NDArray[np.int64]


class Images(NamedTuple):
    """Rows to build schedules on, rows to compute bounds on, and the jobs to work out by hand."""

    inner: Image
    outer: Image
    far: frozenset[int]


def images_of(
    demand: NDArray[np.int64], supply: NDArray[np.int64], wide: Mapping[int, Row]
) -> Images:
    """Shrink what is too large for compiled code."""
    largest, useless = np.zeros(len(demand), dtype=np.int64), False
    for column in supply.T:
        useless = useless or bool((column > demand).any())
        np.maximum(largest, column, out=largest)
    if useless:
        supply = np.minimum(supply, demand[:, None])
        np.minimum(largest, demand, out=largest)
    shrink = np.flatnonzero(_is_long(demand, largest))
    if len(shrink):
        # Without a common divisor some are short.
        common = np.gcd(np.gcd.reduce(supply[shrink], axis=1, initial=0), demand[shrink])
        demand, supply = demand.copy(), supply.copy()
        demand[shrink] //= common
        supply[shrink] //= common[:, None]
        largest[shrink] //= common
        shrink = shrink[_is_long(demand[shrink], largest[shrink])]
    if not len(shrink) and not wide:
        image = Image(read_only(demand), read_only(supply))
        return Images(image, image, frozenset())
    everything = len(shrink) + len(wide) <= FEW
    far = shrink if everything else shrink[demand[shrink] // _FAR > largest[shrink]]
    by_hand = set(far.tolist())
    inner, outer = ((demand.copy(), supply.copy()) for _ in range(2))
    # frexp's exponents are bit lengths, or one more where a float was rounded up.
    reach = demand[shrink].astype(np.float64) + largest[shrink]
    bits = np.frexp(largest[shrink])[1] + np.frexp(reach)[1]
    shift = np.maximum(0, (bits.astype(np.int64) - _IMAGE_BITS + 1) // 2)
    inner[0][shrink] = -(-demand[shrink] >> shift)
    inner[1][shrink] = supply[shrink] >> shift[:, None]
    outer[0][shrink] = demand[shrink] >> shift
    outer[1][shrink] = -(-supply[shrink] >> shift[:, None])
    for j, row in wide.items():
        cut = [min(f, row.demand) for f in row.supply]
        divisor = gcd(row.demand, *cut) or 1
        wanted, cut = row.demand // divisor, [f // divisor for f in cut]
        most = max(cut, default=0)
        down = max(0, (most.bit_length() + (wanted + most).bit_length() - _IMAGE_BITS + 1) // 2)
        inner[0][j], inner[1][j] = _safe_inner(-(-wanted >> down), [f >> down for f in cut])
        outer[0][j], outer[1][j] = _safe_outer(wanted >> down, [-(-f >> down) for f in cut])
        if down and (everything or wanted > most * _FAR):
            by_hand.add(j)
    images = [Image(read_only(d), read_only(f)) for d, f in (inner, outer)]
    return Images(images[0], images[1], frozenset(by_hand))


def _is_long(demand: NDArray[np.int64], largest: NDArray[np.int64]) -> NDArray[np.bool_]:
    # In floats, which are at most a little too large or too small: so the limit is half of SAFE.
    return np.asarray(largest * (demand.astype(np.float64) + largest) >= SAFE / 2)


def _safe_inner(demand: int, supply: list[int]) -> tuple[int, list[int]]:
    """Leave the supply of a row out that does not fit even so: no schedule then relies on it."""
    most = max(supply, default=0)
    if most and most * (demand + most) < SAFE:
        return demand, supply
    return min(demand, 1), [0] * len(supply)


def _safe_outer(demand: int, supply: list[int]) -> tuple[int, list[int]]:
    """Cut the demand of a row that does not fit even so: a bound only gets lower."""
    return min(demand, SAFE // 2 // max([*supply, 1])), supply
