"""Safe reductions: an algorithm may work on a smaller problem, and translate schedules back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from ..certificate.certificate import BlockPrices
from ..knapsack.pricing import common_denominator
from ..problem.parts import (
    AnyConfiguration,
    Block,
    Configuration,
    SizeBoundedConfigurations,
    held_blocks,
)
from ..problem.problem import Problem
from ..problem.rows import Rows
from ..running.stopping import look, never
from ..schedule.schedule import Schedule
from .dominance import beaten
from .replacement import NOTHING_REPLACED, Replacement, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..shards.counts import Coded
    from ..shards.problem import ShardedProblem
    from ..shards.schedule import ShardedSchedule


#: Configurations handled between two looks at the budget.
_SHAPES = 2**12


@dataclass(frozen=True, slots=True)
class PresolvedProblem:
    """A reduced problem and the way back.

    Attributes
    ----------
    original, problem : Problem or ShardedProblem
        Before and after; jobs and blocks keep their names.
    lost : tuple of str
        Blocks that serve some job but that no machine can have.
    replacement : Replacement
        Blocks that other blocks replace, by the original's columns.
    """

    original: Any
    problem: Any
    lost: tuple[Block, ...]
    _origins: tuple[tuple[Configuration, Configuration], ...]
    replacement: Replacement = NOTHING_REPLACED

    def restore_prices(self, leaf: BlockPrices, worth: Fraction) -> BlockPrices:
        """Add prices for the blocks that went, so that no job prefers these.

        What replaces a block fits wherever that does, so that the block may cost as much.

        Parameters
        ----------
        leaf : BlockPrices
            Of the reduced problem, below no branch but on blocks of jobs; where blocks were
            replaced below none but on machines of a type. (Below another a configuration that was
            left out may be worth more than the one that beats it.)
        worth : Fraction
            What all jobs together pay at these prices; no job pays that much for one block.
        """
        if not self.lost and not self.replacement.gone:
            return leaf
        prices = {**leaf.prices, **dict.fromkeys(self.lost, Fraction(max(1, ceil(worth))))}
        blocks = self.original.blocks
        numbers, scale = common_denominator([prices.get(block, Fraction(0)) for block in blocks])
        for i, ways in self.replacement.ways:
            numbers[i] = max(numbers[i], *(n * numbers[p] for p, n in ways))
            if numbers[i]:
                prices[blocks[i]] = Fraction(numbers[i], scale)
        return BlockPrices(prices, leaf.limit_prices, leaf.multipliers, leaf.proper)

    @overload
    def restore(self, schedule: Schedule) -> Schedule: ...
    @overload
    def restore(self, schedule: ShardedSchedule) -> ShardedSchedule: ...
    def restore(self, schedule: Schedule | ShardedSchedule) -> Schedule | ShardedSchedule:
        """Translate a schedule of the reduced problem into one of the original."""
        origin = dict(self._origins)
        if not isinstance(schedule, Schedule):
            from ..shards.schedule import ShardedSchedule

            names = ((self.original.own(c), n) for c, n in schedule.machines.items())
            index = self.original.block_index
            places = [index[block] for block in self.problem.blocks]
            counts = (cast("Coded", each).widened(places, len(index)) for each in schedule.counts)
            return ShardedSchedule({origin.get(c, c): n for c, n in names}, tuple(counts))
        columns = schedule.columns
        named = map(self.original.own, columns.configurations)
        return Schedule.from_columns(
            columns._replace(configurations=tuple(origin.get(c, c) for c in named))
        )


def presolve(
    problem: Problem | ShardedProblem, stopped: Callable[[], bool] = never, *, fewer: bool = False
) -> PresolvedProblem:
    """Leave out what cannot matter.

    In this order: jobs without demand; supply beyond a job's demand (a single such block finishes
    the job anyway); blocks that serve no job or that no machine can have; configurations that
    another one beats (no fewer blocks of any type at no higher cost, on the same machine type or on
    one without a limit; of tens of thousands some of these stay).

    Parameters
    ----------
    problem : Problem or ShardedProblem
        In shards jobs without a demand stay, and buy nothing.
    stopped : callable, optional
        Asked a few times a second, however large the problem is.
    fewer : bool, default False
        Whether blocks of size-bounded sets go, too, that smaller ones replace: for every job some
        that give it no less. Not in shards, nor where jobs and blocks are very many.

    Returns
    -------
    PresolvedProblem
        Optima, feasibility and price bounds are those of the original.

    Examples
    --------
    >>> from cms import Job
    >>> problem = Problem(
    ...     configurations=[Configuration({"3g": 1}), Configuration({"3g": 1, "1g": 2})],
    ...     jobs=[Job("bert", 10, {"3g": 60}), Job("idle", 0, {"1g": 5})],
    ... )
    >>> small = presolve(problem)
    >>> small.problem.configurations, small.problem.blocks, list(small.problem.job_names)
    ((Configuration(3g on machine),), ('3g',), ['bert'])
    """
    held = set(held_blocks(problem.configurations))
    useful: list[int] = np.flatnonzero(problem.serving_blocks(stopped)).tolist()
    kept = [i for i in useful if problem.blocks[i] in held]
    replacement = NOTHING_REPLACED
    if fewer and isinstance(problem, Problem):
        replacement = replaced(problem, kept, stopped)
        kept = [i for i in kept if i not in replacement.gone]
    trimmed = [*_trimmed(problem, {problem.blocks[i] for i in kept}, stopped)]
    listed = [small for small, _ in trimmed if isinstance(small, Configuration)]
    gone = iter(beaten(listed, problem.machine_types, problem.block_index, stopped).tolist())
    alive = [pair for pair in trimmed if not (isinstance(pair[0], Configuration) and next(gone))]
    origins = tuple(
        (small, large)
        for small, large in alive
        if isinstance(small, Configuration) and isinstance(large, Configuration)
    )
    blocks = tuple(problem.blocks[i] for i in kept)
    head = blocks, tuple(small for small, _ in alive), problem.machine_types
    reduced: Problem | ShardedProblem
    if not isinstance(problem, Problem):
        reduced = problem.narrowed(Problem._rebuild(*head, (), Rows.joined((), len(kept))), kept)
    else:
        rows = problem.rows
        jobs = np.flatnonzero(rows.wants)
        names = problem.job_names
        if len(jobs) < problem.n_jobs:
            names = tuple(names[j] for j in jobs.tolist())
        reduced = Problem._rebuild(*head, names, rows.select(jobs, kept, cut=True, stopped=stopped))
    lost = tuple(problem.blocks[i] for i in useful if problem.blocks[i] not in held)
    reduction = PresolvedProblem(problem, reduced, lost, origins, replacement)
    if isinstance(reduced, Problem):
        let_stand_in(reduction, reduced)
    return reduction


def let_stand_in(reduction: PresolvedProblem, reduced: Problem) -> None:
    """Have machines of a reduced problem with as many blocks as fit, where these replace others.

    Of most blocks a machine needs no more than all jobs can use; those that replace others may be
    more, in the place of blocks of the original that jobs use to a small part.
    """
    parts = {p for _, ways in reduction.replacement.ways for p, _ in ways}
    if not parts:
        return
    useful = dict(zip(reduced.blocks, reduced.useful_blocks(), strict=True))
    for shape in reduced.size_bounded_configurations:
        for block in useful.keys() & shape.sizes.keys():
            if reduction.original.block_index[block] in parts:
                useful[block] = max(useful[block], shape.largest_count(block))
    reduced.__dict__["_useful_blocks"] = tuple(useful.values())


def _trimmed(
    problem: Problem | ShardedProblem, names: set[str], stopped: Callable[[], bool]
) -> Iterator[tuple[AnyConfiguration, AnyConfiguration]]:
    """Yield each configuration without its useless blocks, beside the original."""
    for number, shape in enumerate(problem.configurations):
        if not number % _SHAPES:
            look(stopped)
        if isinstance(shape, Configuration):
            blocks = {block: count for block, count in shape.blocks.items() if block in names}
            if len(blocks) == len(shape.blocks):
                yield shape, shape
            elif blocks:
                yield Configuration(blocks, shape.machine), shape
        else:
            sizes = {block: size for block, size in shape.sizes.items() if block in names}
            if sizes:
                bounds = shape.capacity, shape.machine, shape.max_blocks
                yield SizeBoundedConfigurations(sizes, *bounds), shape
