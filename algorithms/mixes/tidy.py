"""Mixes without crumbs: no job takes a turn on a block that it can do without."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .columns import Columns

#: Mixes of so many jobs have all smaller ones taken into account.
_MOST_JOBS = 5


def tidied(columns: Columns, counts: Mapping[int, int]) -> dict[int, int]:
    """Leave jobs out of mixes, the smallest shares first, as long as all are served.

    A mix without one of its jobs has a shorter frame, which gives the others more.

    Parameters
    ----------
    columns : Columns
        The smaller mixes join them.
    counts : Mapping[int, int]
        How many of each mix there are.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms import Configuration, TimeSharedJob, TimeSharedProblem
    >>> from algorithms.mixes.columns import Columns
    >>> jobs = [TimeSharedJob(name, 1, 20, {"a": [(2, 1)]}) for name in "xy"]
    >>> columns = Columns(TimeSharedProblem(configurations=Configuration({"a": 2}), jobs=jobs))
    >>> both = columns.add(0, {0: Fraction(2), 1: Fraction(2)})
    >>> for number, count in tidied(columns, {both: 2}).items():
    ...     print(count, columns.listed[number].mix)
    1 y x 2
    1 x x 2
    """
    left = Counter({number: count for number, count in counts.items() if count})
    served: dict[int, Fraction] = defaultdict(Fraction)
    for number, count in left.items():
        for job, share in columns.listed[number].shares:
            served[job] += count * share
    pairs = [
        (share, number, job) for number in left for job, share in columns.listed[number].shares
    ]
    for share, number, job in sorted(pairs):
        # Of a mix that lost another job meanwhile its smaller self is looked at.
        spare = (served[job] - 1) // share
        without = min(left[number], int(spare))
        if without <= 0:
            continue
        left[number] -= without
        served[job] -= without * share
        smaller = _without(columns, number, job)
        if smaller is not None:
            left[smaller] += without
            old = dict(columns.listed[number].shares)
            for other, more in columns.listed[smaller].shares:
                served[other] += without * (more - old[other])
    return {number: count for number, count in left.items() if count}


def _without(columns: Columns, number: int, job: int) -> int | None:
    """Return a mix without one of its jobs; None if that leaves nobody."""
    column = columns.listed[number]
    index = columns.problem.job_index
    amounts = {j: a for name, a in column.mix.items() if (j := index(name)) != job}
    return columns.number(column.block, amounts) if amounts else None


def smaller_mixes(columns: Columns, numbers: Iterable[int]) -> Iterator[int]:
    """Iterate over some mixes and over all parts of those of few jobs."""
    index = columns.problem.job_index
    for number in numbers:
        yield number
        column = columns.listed[number]
        amounts = [(index(name), amount) for name, amount in column.mix.items()]
        if len(amounts) <= _MOST_JOBS:
            for size in range(1, len(amounts)):
                for part in combinations(amounts, size):
                    yield columns.number(column.block, dict(part))
