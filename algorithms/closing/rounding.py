"""From the fractional schedule to one option a job: error diffusion (theory 6.6).

Only few groups of kinds take a share of more than one pass, and in these only the jobs whose
options differ are undecided. Each takes one of its options so that what all of them take together
stays near the mixture: the error of one choice is carried to the next. Where a job's options are
far apart (thousands of blocks of one type, or of another) none of them would do; such a job is left
for the integer program, with a *box* around its mixture.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator

from ..prices.choices import Choices
from ..solvers.floats import near

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..prices.fraction import Fractional
    from ..prices.search import PriceSearch

#: Options that differ by more blocks of a type are far apart.
_FAR = 3
#: Half the width of a box, in blocks.
_WIDTH = 12
#: Boxes are for few jobs; the others are rounded.
MOST_BOXES = 12


class Box(NamedTuple):
    """One job of a kind whose blocks are looked for between ``lows`` and ``highs``."""

    kind: int
    lows: tuple[int, ...]
    highs: tuple[int, ...]


class Rounded(NamedTuple):
    """Every job has an option in ``choices``, or is in a box."""

    choices: Choices
    boxes: tuple[Box, ...]


def rounded(
    search: PriceSearch, mixture: Fractional, seed: int, *, most_boxes: int = MOST_BOXES
) -> Rounded:
    """Round a fractional schedule.

    Parameters
    ----------
    search : PriceSearch
        Without branches on jobs, at its end.
    mixture : Fractional
        Of that search.
    seed : int
        The order in which undecided jobs are gone through.
    most_boxes : int, optional
        Further jobs are rounded.
    """
    return _Rounding(search, seed, most_boxes).run(mixture)


class _Rounding:
    def __init__(self, search: PriceSearch, seed: int, most_boxes: int) -> None:
        self._search, self._most_boxes = search, most_boxes
        self._random = np.random.default_rng(seed)
        # Numbers of any size become floats in this unit.
        largest = max((int(options.max(initial=0)) for options in search.options), default=0)
        self._unit = 2 ** max(0, largest.bit_length() - 60)
        # What the load lacks so far.
        self._error = np.zeros(len(search.region.blocks))
        self._boxes: list[Box] = []
        self._kinds: list[NDArray[np.int64]] = []
        self._options: list[NDArray[Any]] = []
        self._counts: list[NDArray[np.int64]] = []

    def run(self, mixture: Fractional) -> Rounded:
        search = self._search
        n = len(search.jobs)
        numbers = np.zeros(n, dtype=np.int64)
        for group, shares in enumerate(mixture.shares):
            numbers[search.kinds_of_group(group)] = max(shares, key=lambda share: share[1])[0]
        options = self._picked(numbers)
        decided = np.ones(n, dtype=np.bool_)
        for group, shares in enumerate(mixture.shares):
            if len(shares) > 1:
                decided[self._diffuse(group, shares)] = False
        stay = np.flatnonzero(decided)
        kinds = np.concatenate([stay, *self._kinds])
        order = np.argsort(kinds, kind="stable")
        taken = np.concatenate([options[stay], *self._options])[order]
        counts = np.concatenate([search.weights[stay], *self._counts])[order]
        return Rounded(Choices(kinds[order], taken, counts), tuple(self._boxes))

    def _picked(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return each kind's option in the pass of the given number."""
        passes = self._search.options
        wanted = np.unique(numbers).tolist()
        if len(wanted) == 1:
            only: NDArray[Any] = passes[wanted[0]]
            return only
        options: NDArray[Any] = passes[wanted[0]].astype(
            np.result_type(*(passes[at].dtype for at in wanted))
        )
        for at in wanted[1:]:
            mine = numbers == at
            options[mine] = passes[at][mine]
        return options

    def _diffuse(self, group: int, shares: list[tuple[int, Fraction]]) -> NDArray[np.int64]:
        """Decide the undecided kinds of one group; returns them."""
        search = self._search
        part = search.kinds_of_group(group)
        stack = np.stack([search.options[number][part] for number, _ in shares], axis=1)
        differ: NDArray[np.int64] = np.flatnonzero((stack != stack[:, :1]).any(axis=(1, 2)))
        if not len(differ):
            return differ
        weights = [weight for _, weight in shares]
        T, k = stack.shape[1:]
        # Kinds that are undecided between the same options are decided together.
        patterns, member = _distinct(stack[differ].reshape(len(differ), T * k))
        amounts = search.weights[part][differ]
        order = np.argsort(member, kind="stable")
        ends = np.cumsum(np.bincount(member, minlength=len(patterns)))
        for at in self._random.permutation(len(patterns)).tolist():
            mine = order[(ends[at - 1] if at else 0) : ends[at]]
            self._decide(
                differ[mine] + part.start, amounts[mine], patterns[at].reshape(T, k), weights
            )
        decided: NDArray[np.int64] = differ + part.start
        return decided

    def _decide(
        self,
        kinds: NDArray[np.int64],
        amounts: NDArray[np.int64],
        options: NDArray[Any],
        weights: list[Fraction],
    ) -> None:
        """Split equal jobs among options: whole parts first, then one by one, erring least."""
        amount = int(amounts.sum())
        split = [floor(weight * amount) for weight in weights]
        left = amount - sum(split)
        parts = [weight * amount - whole for weight, whole in zip(weights, split, strict=True)]
        far = int((options.max(axis=0) - options.min(axis=0)).max()) > _FAR
        if far and left and len(self._boxes) + left <= self._most_boxes:
            box = _box(options, [part / left for part in parts])
            # The last members of the row of jobs are those in boxes.
            self._boxes += [Box(int(kind), *box) for kind in np.repeat(kinds, amounts)[-left:]]
        elif far and not self._most_boxes and 0 < left <= MOST_BOXES:
            # Nothing is left to a program, and the jobs are few: their mixture, rounded up, costs
            # less than another option of theirs. Where the error is carried on, that costs more.
            mean = [
                ceil(sum(p * int(n) for p, n in zip(parts, c, strict=True)) / left)
                for c in options.T
            ]
            mine, number = np.unique(np.repeat(kinds, amounts)[-left:], return_counts=True)
            self._kinds.append(mine)
            self._counts.append(number)
            self._options.append(
                np.repeat(np.array([mean], dtype=options.dtype), len(mine), axis=0)
            )
        elif left:
            # a unit beyond the floats divides whole numbers of Python, but none of numpy
            vectors = (options.astype(object) / self._unit).astype(np.float64)
            self._error += np.array([near(part) for part in parts]) @ vectors
            for _ in range(left):
                at = int(np.argmin(((self._error - vectors) ** 2).sum(axis=1)))
                split[at] += 1
                self._error -= vectors[at]
        ends = np.cumsum(amounts)
        starts = ends - amounts
        first = 0
        for option, size in enumerate(split):
            number = np.minimum(ends, first + size) - np.maximum(starts, first)
            hit = number > 0
            self._kinds.append(kinds[hit])
            self._counts.append(number[hit])
            self._options.append(np.repeat(options[option][None], int(hit.sum()), axis=0))
            first += size


def _distinct(table: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct rows, and which of them each row is."""
    if table.dtype.kind != "O":
        rows, which = np.unique(table, axis=0, return_inverse=True)
        return rows, which.ravel()
    found: dict[tuple[int, ...], int] = {}
    numbers = [found.setdefault(tuple(row), len(found)) for row in table.tolist()]
    return np.array(list(found), dtype=object), np.array(numbers, dtype=np.int64)


def _box(options: NDArray[Any], weights: list[Fraction]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the bounds of a box around a mixture of options."""
    scaled, denominator = common_denominator(weights)
    mean = [
        sum(w * int(blocks) for w, blocks in zip(scaled, column, strict=True)) // denominator
        for column in options.T
    ]
    return tuple(max(0, m - _WIDTH) for m in mean), tuple(m + _WIDTH for m in mean)
