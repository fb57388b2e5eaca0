"""From the fractional schedule to one option a job: error diffusion (theory 6.6).

Only few groups of kinds take a share of more than one pass, and in these only the jobs whose
options differ are undecided. Those of a group whose options differ in the same way are a *pool*:
which of them takes which pass's option changes nothing in what all take together. Each takes one of
its options so that this stays near the mixture: the error of one pool is carried to the next. Where
a job's options are far apart (thousands of blocks of one type, or of another) none of them would
do; such a job is left for the integer program, with a *box* around its mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator

from ..prices.choices import AnyChoices, Choices, Taken, choices_of
from ..prices.sharded_jobs import Pool, ShardedJobs
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

    choices: AnyChoices
    boxes: tuple[Box, ...]


def rounded(
    search: PriceSearch, mixture: Fractional, seed: int, *, most_boxes: int = MOST_BOXES
) -> Rounded:
    """Round a fractional schedule."""
    diffusion = _Diffusion(len(search.region.blocks), seed, most_boxes)
    if isinstance(search.jobs, ShardedJobs):
        return _taken(search, search.jobs, mixture, diffusion)
    return _Listed(search, diffusion).run(mixture)


class _Split(NamedTuple):
    """How a pool's jobs are split, in their order."""

    ends: tuple[int, ...]
    own: list[tuple[int, int, tuple[int, ...]]]
    boxed: list[int]


class _Diffusion:
    """Splits pools one after the other; what the load lacks so far is carried on."""

    def __init__(self, n_blocks: int, seed: int, most_boxes: int) -> None:
        self.most_boxes = most_boxes
        self.random = np.random.default_rng(seed)
        self.boxes: list[Box] = []
        self._error = np.zeros(n_blocks)
        # Numbers of any size become floats in this unit.
        self.unit = 1

    def split(
        self,
        amount: int,
        differences: NDArray[Any],
        weights: list[Fraction],
        last: Callable[[int], list[tuple[int, NDArray[Any]]]],
    ) -> _Split:
        """Split a pool: whole parts first, then one by one, erring least."""
        split = [floor(weight * amount) for weight in weights]
        left = amount - sum(split)
        parts = [weight * amount - whole for weight, whole in zip(weights, split, strict=True)]
        far = int((differences.max(axis=0) - differences.min(axis=0)).max()) > _FAR
        own: list[tuple[int, int, tuple[int, ...]]] = []
        boxed: list[int] = []
        if far and left and len(self.boxes) + left <= self.most_boxes:
            for kind, options in last(left):
                boxed.append(kind)
                self.boxes.append(Box(kind, *_box(options, [part / left for part in parts])))
        elif far and not self.most_boxes and 0 < left <= MOST_BOXES:
            # Nothing is left to a program, and the jobs are few: their mixture, rounded up, costs
            # less than another option of theirs. Where the error is carried on, that costs more.
            for kind, options in last(left):
                mean = (
                    ceil(sum(p * int(n) for p, n in zip(parts, column, strict=True)) / left)
                    for column in options.T
                )
                own.append((kind, 1, tuple(mean)))
        elif left:
            # a unit beyond the floats divides whole numbers of Python, but none of numpy
            vectors = (differences.astype(object) / self.unit).astype(np.float64)
            self._error += np.array([near(part) for part in parts]) @ vectors
            for _ in range(left):
                at = int(np.argmin(((self._error - vectors) ** 2).sum(axis=1)))
                split[at] += 1
                self._error -= vectors[at]
        return _Split(tuple(accumulate(split)), own, boxed)


class _Listed:
    """Rounds what a search with a table of options came to."""

    def __init__(self, search: PriceSearch, diffusion: _Diffusion) -> None:
        self._search, self._diffusion = search, diffusion
        largest = max((int(options.max(initial=0)) for options in search.options), default=0)
        diffusion.unit = 2 ** max(0, largest.bit_length() - 60)
        self._parts: list[Choices] = []

    def run(self, mixture: Fractional) -> Rounded:
        search = self._search
        n = len(search.jobs)
        numbers, decided = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.bool_)
        for group, shares in enumerate(mixture.shares):
            numbers[search.kinds_of_group(group)] = max(shares, key=lambda share: share[1])[0]
            if len(shares) > 1:
                decided[self._diffuse(group, shares)] = False
        passes = np.unique(numbers).tolist()
        kind = np.result_type(*(search.options[at].dtype for at in passes))
        options = search.options[passes[0]].astype(kind)
        for at in passes[1:]:
            mine = numbers == at
            options[mine] = search.options[at][mine]
        stay = np.flatnonzero(decided)
        parts = [Choices(stay, options[stay], search.weights[stay]), *self._parts]
        kinds, taken, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(kinds, kind="stable")
        choices = Choices(kinds[order], taken[order], counts[order])
        return Rounded(choices, tuple(self._diffusion.boxes))

    def _diffuse(self, group: int, shares: list[tuple[int, Fraction]]) -> NDArray[np.int64]:
        """Decide the undecided kinds of one group; returns them."""
        search = self._search
        part = search.kinds_of_group(group)
        stack = np.stack([search.options[number][part] for number, _ in shares], axis=1)
        wide = stack if stack.dtype.kind == "O" else stack.astype(np.int64)
        apart = wide - wide[:, :1]
        differ: NDArray[np.int64] = np.flatnonzero(apart.any(axis=(1, 2)))
        if not len(differ):
            return differ
        weights = [weight for _, weight in shares]
        T, k = stack.shape[1:]
        pools, member = _distinct(apart[differ].reshape(len(differ), T * k))
        amounts = search.weights[part][differ]
        order = np.argsort(member, kind="stable")
        ends = np.cumsum(np.bincount(member, minlength=len(pools)))
        for at in self._diffusion.random.permutation(len(pools)).tolist():
            mine = order[(ends[at - 1] if at else 0) : ends[at]]
            self._decide(
                differ[mine] + part.start,
                amounts[mine],
                stack[differ[mine]],
                pools[at].reshape(T, k),
                weights,
            )
        decided: NDArray[np.int64] = differ + part.start
        return decided

    def _decide(
        self,
        kinds: NDArray[np.int64],
        amounts: NDArray[np.int64],
        options: NDArray[Any],
        differences: NDArray[Any],
        weights: list[Fraction],
    ) -> None:
        """Split the kinds of one pool among their options."""

        def last(left: int) -> list[tuple[int, NDArray[Any]]]:
            at = np.repeat(np.arange(len(kinds)), amounts)[-left:].tolist()
            return [(int(kinds[number]), options[number]) for number in at]

        found = self._diffusion.split(int(amounts.sum()), differences, weights, last)
        for kind, count, chosen in found.own:
            option = np.array([chosen], dtype=options.dtype)
            self._parts.append(Choices(np.array([kind]), option, np.array([count])))
        ends = np.cumsum(amounts)
        starts = ends - amounts
        first = 0
        for at, after in enumerate(found.ends):
            number = np.minimum(ends, after) - np.maximum(starts, first)
            hit = number > 0
            self._parts.append(Choices(kinds[hit], options[hit, at], number[hit]))
            first = after


def _taken(
    search: PriceSearch, jobs: ShardedJobs, mixture: Fractional, diffusion: _Diffusion
) -> Rounded:
    """Round what a search without a table of options came to."""
    dealt = jobs.take(
        search.starts,
        [[search.vectors[number] for number, _ in shares] for shares in mixture.shares],
        [[weight for _, weight in shares] for shares in mixture.shares],
    )
    taken, pools = Taken(jobs, dealt.counts, dealt.total, {}, dealt.left), dealt.pools
    largest = max((abs(n) for pool in pools for row in pool.differences for n in row), default=0)
    diffusion.unit = 2 ** max(0, largest.bit_length() - 60)
    rows: list[tuple[int, tuple[int, ...], int]] = []
    for at in diffusion.random.permutation(len(pools)).tolist():
        pool = pools[at]

        def last(left: int, pool: Pool = pool) -> list[tuple[int, NDArray[Any]]]:
            del left
            return [(kind, np.array(options, dtype=object)) for kind, options in pool.left]

        # as they are: numpy makes floats of numbers on both sides of 2**63
        differences = np.array(pool.differences, dtype=object)
        split = diffusion.split(pool.amount, differences, list(pool.weights), last)
        rows += [(kind, option, 1) for kind, _, option in split.own]
        if not split.own and not split.boxed:
            more = np.diff(split.ends, prepend=0) - pool.given
            passes = np.repeat(np.arange(len(more)), more.astype(np.int64)).tolist()
            for (kind, options), chosen in zip(pool.left, passes, strict=True):
                rows.append((kind, options[chosen], 1))
    return Rounded(
        taken.joined(choices_of(rows, len(search.region.blocks))), tuple(diffusion.boxes)
    )


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
