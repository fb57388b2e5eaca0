"""From counts to groups of machines: the sweep that realises any pair of counts (theory 1.2).

The machines are lined up by configuration, and their blocks of each type are handed out in the
order of their contents (the jobs they serve). Wherever a run of one content's blocks begins or ends
within a machine, or between two, a new group of equal machines begins; so their number depends on
the entries, not on the machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InvalidSchedule
from ..problem.parts import Block, Configuration
from ..values.names import nearest
from ..values.numbers import whole
from .columns import Columns, whole_array
from .contents import Content, Mix, checked_content, shown_content

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.machine_problem import MachineProblem

#: {(block, content): number of blocks} on one machine, or for a whole schedule. A problem's
#: contents are all jobs or all mixes, and who reads them knows which.
Assignment: TypeAlias = Mapping[tuple[Block, Any], int]


def checked_pair(pair: object, what: str) -> tuple[Block, Content]:
    """Return a pair of a block and a content; InvalidSchedule if it is none."""
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str):
        block, content = pair
        if isinstance(content, str) or type(content) is Mix:
            return str.__str__(block), checked_content(content, what)
    raise InvalidSchedule(f"{what} is {pair!r}; expected (block, job), two names, or (block, Mix)")


def sweep(
    problem: MachineProblem,
    machines: Mapping[Configuration, int],
    given: Assignment | tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    contents: Sequence[Content],
    place: Callable[[Any], int],
) -> Columns:
    """Build groups of machines; see :meth:`cms.Schedule.from_counts`.

    ``contents`` are what blocks are given to; ``place`` tells which of them one is, and raises
    KeyError if it is none.
    """
    configurations, counts = _machines(machines)
    where, blocks, amounts = _given(problem, given, len(contents), place)
    widest = max((max(c.blocks.values()) for c in configurations), default=1)
    huge = sum(counts) * widest >= 2**62
    dtype: Any = object if huge else np.int64
    starts = np.array([0, *np.cumsum(np.array(counts, dtype=object))], dtype=dtype)
    pieces = _pieces(problem, configurations, counts, where, blocks, amounts, dtype)
    base = starts[pieces.segment]
    low_machine = base + pieces.low // pieces.width
    high_machine = base - (-pieces.high // pieces.width)
    bounds = [
        starts,
        low_machine,
        base - (-pieces.low // pieces.width),
        base + pieces.high // pieces.width,
        high_machine,
    ]
    cuts, (_, first, _, _, last) = _merged(bounds, int(starts[-1]))
    # Every group between two cuts that a piece overlaps gets an entry.
    many = last - first
    piece = np.repeat(np.arange(len(many)), many)
    offsets = np.arange(len(piece)) - np.repeat(np.cumsum(many) - many, many)
    group = first[piece] + offsets
    width = pieces.width[piece]
    block_at = (cuts[group] - base[piece]) * width
    count = np.minimum(pieces.high[piece], block_at + width) - np.maximum(
        pieces.low[piece], block_at
    )
    # Pieces come sorted by block, and within a configuration's machines by job.
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(cuts) - 1)
    piece = piece[order]
    return Columns(
        problem.blocks,
        contents,
        tuple(configurations),
        np.searchsorted(starts, cuts[:-1], side="right") - 1,
        np.diff(cuts),
        np.concatenate([[0], np.cumsum(sizes)]),
        pieces.block[piece],
        pieces.content[piece],
        count[order],
    )


def _merged(
    bounds: Sequence[NDArray[Any]], most: int
) -> tuple[NDArray[Any], list[NDArray[np.int64]]]:
    """Return the distinct numbers from 0 to ``most``, sorted, and where each one is among them."""
    if most <= 4 * sum(map(len, bounds)):
        # Marking them on a line of all machines is several times faster than sorting.
        marked = np.zeros(most + 1, dtype=np.bool_)
        for numbers in bounds:
            marked[numbers.astype(np.int64)] = True
        rank = np.cumsum(marked) - 1
        cuts = np.flatnonzero(marked).astype(bounds[0].dtype)
        return cuts, [rank[numbers.astype(np.int64)] for numbers in bounds]
    cuts = np.sort(np.concatenate(bounds))
    cuts = cuts[np.concatenate([[True], cuts[1:] != cuts[:-1]])]
    return cuts, [np.searchsorted(cuts, numbers) for numbers in bounds]


def _machines(machines: Mapping[Configuration, int]) -> tuple[list[Configuration], list[int]]:
    if not isinstance(machines, Mapping):
        raise InvalidSchedule(f"machines is {machines!r}; expected {{configuration: count}}")
    configurations, counts = [], []
    for configuration, value in machines.items():
        if not isinstance(configuration, Configuration):
            raise InvalidSchedule(f"machines has {configuration!r}; expected Configuration objects")
        what = f"number of machines with configuration {configuration!r}"
        count = whole(value, what, least=0, error=InvalidSchedule)
        if count:
            configurations.append(configuration)
            counts.append(count)
    return configurations, counts


def _given(
    problem: MachineProblem,
    given: Assignment | tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    n: int,
    place: Callable[[Any], int],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return contents, blocks and counts > 0 of all entries, sorted by content."""
    parts: Any = given
    if isinstance(given, Mapping):
        triples = [_triple(problem, place, pair, count) for pair, count in given.items()]
        parts = tuple(zip(*triples, strict=True)) if triples else ((), (), ())
    if not (isinstance(parts, tuple | list) and len(parts) == 3):
        raise InvalidSchedule(
            f"given is {given!r}; expected {{(block, job): count}} or three arrays"
        )
    jobs, blocks, amounts = (
        whole_array(part, f"given {what}")
        for part, what in zip(parts, ("jobs", "blocks", "counts"), strict=True)
    )
    _refuse_misfits(jobs, n, blocks, len(problem.blocks), amounts)
    if not amounts.all():
        keep = np.flatnonzero(amounts)
        jobs, blocks, amounts = jobs[keep], blocks[keep], amounts[keep]
    if (jobs[1:] < jobs[:-1]).any():
        order = np.argsort(jobs, kind="stable")
        jobs, blocks, amounts = jobs[order], blocks[order], amounts[order]
    return jobs, blocks, amounts


def _triple(
    problem: MachineProblem, place: Callable[[Any], int], pair: object, count: object
) -> tuple[int, int, int]:
    block, content = checked_pair(pair, "a key of given")
    what = f"number of blocks {block!r} given to {shown_content(content)}"
    if block not in problem.block_index:
        raise InvalidSchedule(
            f"given names the block {block!r}, which the problem does not have"
            + nearest(block, problem.blocks)
        )
    try:
        j = place(content)
    except KeyError:
        raise InvalidSchedule(
            f"given names the job {content!r}, which the problem does not have"
        ) from None
    return j, problem.block_index[block], whole(count, what, least=0, error=InvalidSchedule)


def _refuse_misfits(
    jobs: NDArray[Any], n_jobs: int, blocks: NDArray[Any], n_blocks: int, amounts: NDArray[Any]
) -> None:
    if not len(jobs) == len(blocks) == len(amounts):
        raise InvalidSchedule(
            f"given has {len(jobs)} jobs, {len(blocks)} blocks and {len(amounts)} counts; expected "
            "as many of each"
        )
    if not len(jobs):
        return
    for what, values, limit in (("job", jobs, n_jobs), ("block", blocks, n_blocks)):
        if int(values.min()) < 0 or int(values.max()) >= limit:
            raise InvalidSchedule(f"given has a {what} index outside 0 ... {limit - 1}")
    if int(amounts.min()) < 0:
        raise InvalidSchedule(f"given has the count {int(amounts.min())}; expected counts >= 0")


class _Pieces(NamedTuple):
    """Runs of blocks of one type given to one content within the machines of one configuration."""

    block: NDArray[Any]
    content: NDArray[Any]
    segment: NDArray[Any]
    low: NDArray[Any]  # first block of the run, counted within the configuration's machines
    high: NDArray[Any]  # one past its last block
    width: NDArray[Any]  # blocks of this type on one machine


def _pieces(
    problem: MachineProblem,
    configurations: Sequence[Configuration],
    counts: Sequence[int],
    contents: NDArray[Any],
    blocks: NDArray[Any],
    amounts: NDArray[Any],
    dtype: Any,
) -> _Pieces:
    columns: list[list[NDArray[Any]]] = [[] for _ in _Pieces._fields]
    # Left to numpy, a number beyond int64 would be uint64, and floats beside int64.
    kinds = (np.int64, np.int64, np.int64, dtype, dtype, dtype)
    for i, block in enumerate(problem.blocks):
        mine = np.flatnonzero(blocks == i)
        if not len(mine):
            continue
        own = amounts[mine]
        if int(own.max()) * len(own) >= 2**62:
            own = own.astype(object)
        ends = np.cumsum(own)
        available = sum(
            c.blocks.get(block, 0) * x for c, x in zip(configurations, counts, strict=True)
        )
        if ends[-1] > available:
            raise InvalidSchedule(
                f"{ends[-1]} blocks {block!r} are given to jobs, the machines have {available}"
            )
        ends = ends.astype(dtype)
        begins = ends - own.astype(dtype)
        position = 0
        for segment, (configuration, x) in enumerate(zip(configurations, counts, strict=True)):
            width = configuration.blocks.get(block, 0)
            if not width:
                continue
            stop = position + width * x
            # runs are sorted and do not overlap: those that meet [position, stop) are adjacent
            left = int(np.searchsorted(ends, position, side="right"))
            right = int(np.searchsorted(begins, stop, side="left"))
            part = slice(left, right)
            size = right - left
            if size > 0:
                low = np.maximum(begins[part], position) - position
                high = np.minimum(ends[part], stop) - position
                values = (i, contents[mine][part], segment, low, high, width)
                for column, value, kind in zip(columns, values, kinds, strict=True):
                    column.append(np.broadcast_to(np.asarray(value, dtype=kind), (size,)))
            position = stop
    return _Pieces(
        *(
            np.concatenate([np.zeros(0, dtype=kind), *column])
            for column, kind in zip(columns, kinds, strict=True)
        )
    )
