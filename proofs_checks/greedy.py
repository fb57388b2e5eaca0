"""The plain greedy of theory 2, which opens the best machine again and again.

A machine is a configuration and an assignment, blocks given[j][i]; it gains what it adds to the
weighted part of the targets that is covered. The best assignment of one configuration is found by
trying all (factor 1), or block by block, the best pair first (factor 1/2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import lcm
from operator import add, mul
from typing import NamedTuple, TypeAlias

from .tiny import Tiny, dot

Numbers: TypeAlias = Sequence[Fraction]
#: Blocks given[j][i] on one machine.
Assignment: TypeAlias = tuple[tuple[int, ...], ...]


class Machine(NamedTuple):
    """A machine that greedy may open: what it gains, its configuration and its assignment."""

    gain: Fraction
    configuration: int
    given: Assignment


class Step(NamedTuple):
    """A step of a run: the potential (the weighted targets left) before it, and the machine."""

    potential: Fraction
    machine: Machine


#: From a problem, a configuration, weights and residual targets to an assignment.
Inner: TypeAlias = Callable[[Tiny, int, Numbers, Numbers], Assignment]


def brought(tiny: Tiny, given: Sequence[Sequence[int]]) -> list[Fraction]:
    """Return how much each job gets from its blocks."""
    return [dot(row, blocks) for row, blocks in zip(tiny.supply, given, strict=True)]


def gain(weights: Numbers, residual: Numbers, amounts: Numbers) -> Fraction:
    """Return how much of the weighted residual targets these amounts cover."""
    return dot(weights, [min(r, v) for r, v in zip(residual, amounts, strict=True)])


def by_trying_all(tiny: Tiny, C: int, weights: Numbers, residual: Numbers) -> Assignment:
    """Return the best assignment of a configuration."""
    (worth,) = _whole(weights)
    most, *supply = _whole(residual, *tiny.supply)
    # Ways to assign the types so far, by what every job has got: of equal ones the first is kept.
    ways: dict[tuple[int, ...], Assignment] = {(0,) * tiny.n: ()}
    for i, count in enumerate(tiny.configurations[C]):
        shares = [
            (share, [y * row[i] for y, row in zip(share, supply, strict=True)])
            for share in _shares(count, tiny.n)
        ]
        after: dict[tuple[int, ...], Assignment] = {}
        for amounts, by_type in ways.items():
            for share, brings in shares:
                more = tuple(map(min, most, map(add, amounts, brings)))
                after.setdefault(more, (*by_type, share))
        ways = after
    best = max(ways, key=lambda amounts: sum(map(mul, worth, amounts)))
    return tuple(zip(*ways[best], strict=True))


def _whole(*rows: Numbers) -> list[list[int]]:
    """Return the numbers in steps of which all are whole multiples: integers are added faster."""
    steps = lcm(*(number.denominator for row in rows for number in row))
    return [[int(number * steps) for number in row] for row in rows]


def best_pair_first(tiny: Tiny, C: int, weights: Numbers, residual: Numbers) -> Assignment:
    """Return an assignment worth at least half of the best: one block at a time."""
    left, counts = list(residual), list(tiny.configurations[C])
    given = [[0] * tiny.k for _ in range(tiny.n)]
    while any(counts):
        pairs = ((j, i) for j in range(tiny.n) for i in range(tiny.k) if counts[i])
        # Of equals the first pair.
        j, i = max(
            pairs, key=lambda ji: weights[ji[0]] * min(left[ji[0]], tiny.supply[ji[0]][ji[1]])
        )
        given[j][i] += 1
        counts[i] -= 1
        left[j] -= min(left[j], tiny.supply[j][i])
    return tuple(tuple(row) for row in given)


def choose(tiny: Tiny, machines: Sequence[Machine]) -> Machine:
    """Return the machine of the largest gain for its cost; of equals the one listed first."""
    return max(machines, key=lambda machine: machine.gain / tiny.costs[machine.configuration])


def enough(tiny: Tiny, amounts: Numbers) -> bool:
    """Whether the original demands hold, so that greedy may stop."""
    return all(v >= d for v, d in zip(amounts, tiny.demands, strict=True))


def run(tiny: Tiny, weights: Numbers, targets: Numbers, inner: Inner) -> list[Step]:
    """Open machines until the demands hold; what is gained beyond the targets does not count."""
    residual, amounts = list(targets), [Fraction(0)] * tiny.n
    steps = []
    while not enough(tiny, amounts):
        machines = []
        for C in range(tiny.c):
            given = inner(tiny, C, weights, residual)
            machines.append(Machine(gain(weights, residual, brought(tiny, given)), C, given))
        taken = choose(tiny, machines)
        steps.append(Step(dot(weights, residual), taken))
        if not taken.gain:
            break  # only a faulty choice gains nothing; what was opened is not enough
        got = brought(tiny, taken.given)
        amounts = [a + v for a, v in zip(amounts, got, strict=True)]
        residual = [r - min(r, v) for r, v in zip(residual, got, strict=True)]
    return steps


def schedule(tiny: Tiny, steps: Sequence[Step]) -> tuple[list[int], list[list[int]]]:
    """Return the machines of each configuration and the blocks given[j][i] of a whole run."""
    machines = [0] * tiny.c
    given = [[0] * tiny.k for _ in range(tiny.n)]
    for _, (_, C, assignment) in steps:
        machines[C] += 1
        for j, row in enumerate(assignment):
            for i, blocks in enumerate(row):
                given[j][i] += blocks
    return machines, given


def _shares(count: int, n: int) -> Iterator[tuple[int, ...]]:
    """The ways to divide equal blocks among jobs, none left over: more never hurts."""
    if n == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in _shares(count - first, n - 1):
            yield (first, *rest)
