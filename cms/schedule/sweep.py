"""From counts to groups of machines: the sweep that realises any pair of counts (theory 1.2).

The machines are lined up by configuration, and their blocks of each type are handed out in the
order of their contents (the jobs they serve). Wherever a run of one content's blocks begins or ends
within a machine, or between two, a new group of equal machines begins; so their number depends on
the entries, not on the machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InvalidSchedule
from ..problem.parts import Block, Configuration
from ..values.arrays import roomy
from ..values.names import nearest
from ..values.numbers import whole
from .columns import Columns, refuse_outside, whole_array
from .contents import Content, Mix, checked_content, shown_content

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.machine_problem import MachineProblem

#: {(block, content): number of blocks} on one machine, or for a whole schedule. A problem's
#: contents are all jobs or all mixes, and the reader knows which.
Assignment: TypeAlias = Mapping[tuple[Block, Any], int]
_STRANGE = "which the problem does not have"


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
    kind: Any = object if sum(counts) * widest >= 2**62 else np.int64
    starts = np.array([0, *accumulate(counts)], dtype=kind)
    holders: dict[Block, list[tuple[int, int]]] = {}
    for at, configuration in enumerate(configurations):
        for name, number in configuration.blocks.items():
            holders.setdefault(name, []).append((at, number))
    runs, each = [], np.array(counts, dtype=kind)
    for i, name in enumerate(problem.blocks):
        if not len(mine := np.flatnonzero(blocks == i)):
            continue
        widths = np.zeros(len(configurations), dtype=kind)
        for at, number in holders.get(name, ()):
            widths[at] = number
        begins = np.concatenate([np.zeros(1, dtype=kind), np.cumsum(widths * each)])
        own = roomy(amounts[mine], len(mine))
        ends = np.cumsum(own)
        if ends[-1] > begins[-1]:
            raise InvalidSchedule(
                f"{ends[-1]} blocks {name!r} are given to jobs, the machines have {begins[-1]}"
            )
        runs.append(_Run(i, widths, begins, where[mine], ends.astype(kind), own.astype(kind)))
    # Wherever a run of one content's blocks ends, in a machine or after it, a group may end.
    bounds = [starts]
    for run in runs:
        segment = np.searchsorted(run.begins, run.ends, side="left") - 1
        inside, width = run.ends - run.begins[segment], run.widths[segment]
        bounds += [starts[segment] + inside // width, starts[segment] - (-inside // width)]
    cuts = np.sort(np.concatenate(bounds), kind="stable")  # merges sorted runs
    cuts = cuts[np.concatenate([[True], cuts[1:] != cuts[:-1]])]
    segment = np.searchsorted(starts, cuts[:-1], side="right") - 1
    entries = [(np.zeros(0, dtype=np.int64),) * 4]
    for run in runs:
        groups = np.flatnonzero(run.widths[segment])
        at_home = segment[groups]
        width = run.widths[at_home]
        # The blocks on the first machine of each group, as they are counted along the line.
        low = run.begins[at_home] + (cuts[groups] - starts[at_home]) * width
        high = low + width
        first = np.searchsorted(low, run.ends - run.amounts, side="right") - 1
        many = np.searchsorted(low, run.ends, side="left") - first
        piece = np.repeat(np.arange(len(many)), many)
        at = first[piece] + np.arange(len(piece)) - np.repeat(np.cumsum(many) - many, many)
        count = np.minimum(run.ends[piece], high[at]) - np.maximum(
            (run.ends - run.amounts)[piece], low[at]
        )
        block = np.full(len(piece), run.block)
        entries.append((groups[at], block, run.contents[piece], count))
    group, block, content, count = map(np.concatenate, zip(*entries, strict=True))
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(cuts) - 1)
    return Columns(
        problem.blocks,
        contents,
        tuple(configurations),
        segment,
        np.diff(cuts),
        np.concatenate([[0], np.cumsum(sizes)]),
        block[order],
        content[order],
        count[order],
    )


class _Run(NamedTuple):
    """The blocks of one type: where each configuration's begin, and the contents of each."""

    block: int
    widths: NDArray[Any]  # blocks on one machine of each configuration
    begins: NDArray[Any]  # of each configuration's blocks, and the end of the last
    contents: NDArray[Any]
    ends: NDArray[Any]
    amounts: NDArray[Any]


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
        triples = []
        for pair, count in given.items():
            block, content = checked_pair(pair, "a key of given")
            what = f"number of blocks {block!r} given to {shown_content(content)}"
            if block not in problem.block_index:
                hint = nearest(block, problem.blocks)
                raise InvalidSchedule(f"given names the block {block!r}, {_STRANGE}{hint}")
            try:
                j = place(content)
            except KeyError:
                raise InvalidSchedule(f"given names the job {content!r}, {_STRANGE}") from None
            amount = whole(count, what, least=0, error=InvalidSchedule)
            triples.append((j, problem.block_index[block], amount))
        parts = tuple(zip(*triples, strict=True)) if triples else ((), (), ())
    if not (isinstance(parts, tuple | list) and len(parts) == 3):
        raise InvalidSchedule(
            f"given is {given!r}; expected {{(block, job): count}} or three arrays"
        )
    jobs, blocks, amounts = (
        whole_array(part, f"given {what}")
        for part, what in zip(parts, ("jobs", "blocks", "counts"), strict=True)
    )
    if not len(jobs) == len(blocks) == len(amounts):
        raise InvalidSchedule(
            f"given has {len(jobs)} jobs, {len(blocks)} blocks and {len(amounts)} counts; expected "
            "as many of each"
        )
    refuse_outside(jobs, n, "job")
    refuse_outside(blocks, len(problem.blocks), "block")
    if int(amounts.min(initial=0)) < 0:
        raise InvalidSchedule(f"given has the count {int(amounts.min())}; expected counts >= 0")
    if not amounts.all():
        keep = np.flatnonzero(amounts)
        jobs, blocks, amounts = jobs[keep], blocks[keep], amounts[keep]
    if (jobs[1:] < jobs[:-1]).any():
        order = np.argsort(jobs, kind="stable")
        jobs, blocks, amounts = jobs[order], blocks[order], amounts[order]
    return jobs, blocks, amounts
