"""From the fractional schedule to one option a job: error diffusion (theory 6.6).

Jobs of a group whose options differ in the same way are a *pool*: which of them takes which pass's
option changes nothing in what all take together. Each takes one of its options so that this stays
near the mixture: the error of one pool is carried to the next. Where a job's options are far apart
none of them would do; it is left for the integer program, with a *box* around its mixture.
"""

from __future__ import annotations

from itertools import accumulate
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.shards.counts import Coded

from ..prices.sharded_jobs import ShardedJobs
from ..prices.taken_options import AnyChoices, Choices, Taken, choices_of
from ..solvers.floats import near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from ..prices.fraction import Fractional
    from ..prices.jobs import Jobs
    from ..prices.search import PriceSearch

#: Options that differ by more blocks of a type are far apart.
_FAR = 3
#: Half the width of a box, in blocks.
_WIDTH = 12
#: Boxes are for few jobs; the others are rounded.
MOST_BOXES = 12
#: A kind of jobs and one of its options.
Pick = tuple[int, tuple[int, ...]]


class Undecided(NamedTuple):
    """What jobs take that have an option already, and options of the kinds still to choose."""

    decided: AnyChoices
    open: Mapping[int, tuple[tuple[int, ...], ...]]

    @classmethod
    def of(cls, search: PriceSearch, mixture: Fractional) -> Undecided:
        """Read off a fractional schedule which kinds it mixes options of."""
        jobs = search.jobs
        taken: dict[int, dict[tuple[int, ...], None]] = {}
        for group, shares in enumerate(mixture.shares):
            part = search.kinds_of_group(group)
            for number, _ in shares:
                for kind, option in enumerate(search.options[number][part].tolist(), part.start):
                    taken.setdefault(kind, {})[tuple(option)] = None
        decided = [(k, next(iter(o)), jobs.weight(k)) for k, o in taken.items() if len(o) == 1]
        several = {k: tuple(each) for k, each in taken.items() if len(each) > 1}
        return cls(choices_of(decided, len(search.region.blocks)), several)

    def most_blocks(self, jobs: Jobs) -> int:
        """Return how many blocks all jobs together may take, at most."""
        each = (max(map(sum, options)) * jobs.weight(kind) for kind, options in self.open.items())
        return sum(self.decided.load()) + sum(each)


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
    jobs, n_blocks = search.jobs, len(search.region.blocks)
    # Numbers of any size become floats in this unit.
    unit = 2 ** max(0, jobs.longest - 60)
    diffusion = _Diffusion(n_blocks, seed, most_boxes, unit, jobs.ruled)
    weights = [[weight for _, weight in shares] for shares in mixture.shares]
    if not isinstance(jobs, ShardedJobs):
        parts = []
        for group, shares in enumerate(mixture.shares):
            part = search.kinds_of_group(group)
            passes = [search.options[number][part] for number, _ in shares]
            parts.append(diffusion.deal(passes, weights[group], search.weights[part], part.start))
        choices = Choices.of(parts) if parts else choices_of([], n_blocks)
        return Rounded(choices, tuple(diffusion.boxes))
    vectors = [[search.vectors[number] for number, _ in shares] for shares in mixture.shares]
    taken = []
    for bought in jobs.bought(search.starts, vectors):
        pieces: list[Coded] = []
        for group, first, coded in bought:
            if len(coded) > 1:
                tables = [each.table() for each in coded]
                ones = search.weights[first : first + len(tables[0])]
                dealt = diffusion.deal(tables, weights[group], ones, first)
                table = tables[0].astype(dealt.options.dtype)
                table[dealt.kinds - first] = dealt.options
                coded = [Coded.of_table(table)]
            pieces += coded
        taken.append(Coded.joined(pieces, n_blocks))
    boxed = np.array([box.kind for box in diffusion.boxes], dtype=np.int64)
    return Rounded(Taken.of(jobs, taken).without(boxed), tuple(diffusion.boxes))


class _Diffusion:
    """Splits pools one after the other; what the load lacks so far is carried on."""

    def __init__(
        self, n_blocks: int, seed: int, most_boxes: int, unit: int, ruled: frozenset[int]
    ) -> None:
        self._most_boxes, self._unit, self._ruled = most_boxes, unit, ruled
        self._random = np.random.default_rng(seed)
        self.boxes: list[Box] = []
        self._error = np.zeros(n_blocks)

    def deal(
        self,
        passes: Sequence[NDArray[Any]],
        weights: list[Fraction],
        amounts: NDArray[np.int64],
        first: int,
    ) -> Choices:
        """Return the choices of consecutive kinds of a group.

        Each of `passes`, which have these weights, has an option of every kind; of those that
        get a box, some jobs are missing.
        """
        kinds = first + np.arange(len(amounts))
        if len(passes) == 1:
            return Choices(kinds, passes[0], amounts)
        differ = np.flatnonzero(np.any([(p != passes[0]).any(axis=1) for p in passes[1:]], axis=0))
        stack = np.stack([options[differ] for options in passes], axis=1)
        wide = stack if stack.dtype.kind == "O" else stack.astype(np.int64)
        apart = (wide - wide[:, :1]).reshape(len(differ), len(passes) * passes[0].shape[1])
        member, pools = Coded.of_table(apart)
        stay = np.ones(len(amounts), dtype=np.bool_)
        stay[differ] = False
        found = [Choices(kinds[stay], passes[0][stay], amounts[stay])]
        order = np.argsort(member, kind="stable")
        ends = np.cumsum(np.bincount(member, minlength=len(pools)))
        for at in self._random.permutation(len(pools)).tolist():
            mine = order[(ends[at - 1] if at else 0) : ends[at]]
            of = kinds[differ[mine]], amounts[differ[mine]], stack[mine]
            found += self._decided(*of, pools[at].reshape(stack.shape[1:]), weights)
        return Choices.of(found)

    def _decided(
        self,
        kinds: NDArray[np.int64],
        amounts: NDArray[np.int64],
        options: NDArray[Any],
        differences: NDArray[Any],
        weights: list[Fraction],
    ) -> Iterator[Choices]:
        """Split the kinds of one pool: whole parts first, then job by job, erring least."""
        amount = int(amounts.sum())
        split = [floor(weight * amount) for weight in weights]
        left = amount - sum(split)
        parts = [weight * amount - whole for weight, whole in zip(weights, split, strict=True)]
        far = int((differences.max(axis=0) - differences.min(axis=0)).max()) > _FAR
        far = far and self._ruled.isdisjoint(kinds.tolist())  # these take whole bundles
        boxed = far and len(self.boxes) + left <= self._most_boxes
        # Where nothing is left to a program, and the jobs are few, their mixture, rounded up, costs
        # less than another option of theirs. Where the error is carried on, that costs more.
        mixed = far and not self._most_boxes and left <= MOST_BOXES
        if left and (boxed or mixed):
            for at in np.repeat(np.arange(len(kinds)), amounts)[-left:].tolist():
                mean = [
                    sum(p * int(n) for p, n in zip(parts, column, strict=True)) / left
                    for column in options[at].T
                ]
                if boxed:
                    near_to = [floor(blocks) for blocks in mean]
                    lows = tuple(max(0, blocks - _WIDTH) for blocks in near_to)
                    highs = tuple(blocks + _WIDTH for blocks in near_to)
                    self.boxes.append(Box(int(kinds[at]), lows, highs))
                else:
                    option = np.array([[*map(ceil, mean)]], dtype=options.dtype)
                    yield Choices(kinds[at : at + 1], option, np.ones(1, dtype=np.int64))
        elif left:
            # a unit beyond the floats divides whole numbers of Python, but none of numpy
            vectors = (differences.astype(object) / self._unit).astype(np.float64)
            self._error += np.array([near(part) for part in parts]) @ vectors
            for _ in range(left):
                chosen = int(np.argmin(((self._error - vectors) ** 2).sum(axis=1)))
                split[chosen] += 1
                self._error -= vectors[chosen]
        ends = np.cumsum(amounts)
        starts = ends - amounts
        first = 0
        for option_at, after in enumerate(accumulate(split)):
            number = np.minimum(ends, after) - np.maximum(starts, first)
            hit = number > 0
            yield Choices(kinds[hit], options[hit, option_at], number[hit])
            first = after
