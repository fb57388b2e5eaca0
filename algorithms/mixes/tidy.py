"""Mixes without crumbs: no job takes a turn on a block that it can do without."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .columns import Columns


def tidied(columns: Columns, counts: Mapping[int, int]) -> dict[int, int]:
    """Leave jobs out of mixes, the smallest shares first, as long as all are served.

    A mix without one of its jobs has a shorter frame, which gives the others more. ``counts`` says
    how many of each mix there are; the smaller mixes join the columns.
    """
    index = columns.problem.job_index
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
        without = min(left[number], int((served[job] - 1) // share))
        if without <= 0:
            continue
        left[number] -= without
        served[job] -= without * share
        places = ((index(name), amount) for name, amount in columns.listed[number].mix.items())
        amounts = {j: amount for j, amount in places if j != job}
        if amounts:
            smaller = columns.add(columns.listed[number].block, amounts)
            left[smaller] += without
            old = dict(columns.listed[number].shares)
            for other, more in columns.listed[smaller].shares:
                served[other] += without * (more - old[other])
    return {number: count for number, count in left.items() if count}
