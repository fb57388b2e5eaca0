"""The optimum of a tiny problem by enumeration, from the definition alone.

Every job has its minimal *options*, the vectors of blocks that meet its demand and have no block
too many. Machines are added one by one, cheapest fleet first, until their blocks hold an option of
every job; whether they do is tried out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import ceil
from typing import NamedTuple

from .tiny import Blocks, Tiny, dot


class Optimum(NamedTuple):
    """An optimal schedule: its cost, machines x[C], and the option each job takes."""

    cost: Fraction
    machines: tuple[int, ...]
    given: tuple[Blocks, ...]


@cache
def options(tiny: Tiny, j: int) -> tuple[Blocks, ...]:
    """Return the minimal options of a job, of types that some configuration holds."""
    supply, demand = tiny.supply[j], tiny.demands[j]
    useful = [i for i in tiny.held if supply[i]]

    def taken(at: int, left: Fraction) -> Iterator[tuple[int, ...]]:
        """Any number of the types from here on, and as many of the last as it then takes."""
        f = supply[useful[at]]
        most = max(0, ceil(left / f))
        if at == len(useful) - 1:
            yield (most,)
            return
        for number in range(most + 1):
            for rest in taken(at + 1, left - number * f):
                yield (number, *rest)

    found = []
    for counts in taken(0, demand) if useful else ():
        got = dot(counts, [supply[i] for i in useful])
        least = min(supply[i] for n, i in zip(counts, useful, strict=True) if n)
        if got - least < demand:
            option = [0] * tiny.k
            for n, i in zip(counts, useful, strict=True):
                option[i] = n
            found.append(tuple(option))
    return tuple(found)


def within(small: Sequence[int | Fraction], large: Sequence[int | Fraction]) -> bool:
    """Whether no entry of one vector exceeds the other's."""
    return all(one <= two for one, two in zip(small, large, strict=True))


@cache
def optimum(tiny: Tiny) -> Optimum:
    """Find an optimal schedule."""
    choices = [options(tiny, j) for j in range(tiny.n)]
    if not all(choices):
        raise ValueError("some job has no block that any machine holds")
    service = _Service(choices, tiny.k)
    # Machines are added in the order of the configurations, so that each fleet comes up once.
    waiting: list[tuple[Fraction, tuple[int, ...], int]] = [(Fraction(0), (0,) * tiny.c, 0)]
    while True:
        cost, machines, last = heapq.heappop(waiting)
        blocks = tiny.held_by(machines)
        given = service.within(blocks) if _could_serve(tiny, blocks) else None
        if given is not None:
            return Optimum(cost, machines, given)
        for C in range(last, tiny.c):
            more = (*machines[:C], machines[C] + 1, *machines[C + 1 :])
            heapq.heappush(waiting, (cost + tiny.costs[C], more, C))


def _could_serve(tiny: Tiny, blocks: Sequence[Fraction]) -> bool:
    """Whether every job by itself could be served, which is quickly seen."""
    return all(
        dot(row, blocks) >= demand for row, demand in zip(tiny.supply, tiny.demands, strict=True)
    )


class _Service:
    """Whether some blocks can serve all jobs; what cannot be done is remembered."""

    def __init__(self, choices: Sequence[tuple[Blocks, ...]], k: int) -> None:
        self._choices = choices
        self._most = [sum(max(o[i] for o in enough) for enough in choices) for i in range(k)]
        self._failed: set[tuple[int, Blocks]] = set()

    def within(self, blocks: Sequence[Fraction]) -> tuple[Blocks, ...] | None:
        left = tuple(min(int(b), most) for b, most in zip(blocks, self._most, strict=True))
        return self._from(0, left)

    def _from(self, j: int, left: Blocks) -> tuple[Blocks, ...] | None:
        if j == len(self._choices):
            return ()
        if (j, left) in self._failed:
            return None
        for option in self._choices[j]:
            if within(option, left):
                after = tuple(a - b for a, b in zip(left, option, strict=True))
                rest = self._from(j + 1, after)
                if rest is not None:
                    return (option, *rest)
        self._failed.add((j, left))
        return None
