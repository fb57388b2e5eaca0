"""How many machines of each configuration hold given blocks, roughly."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from ..solvers.floats import near
from ..solvers.linear import ITERATIONS, LinearProgram
from .shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Limits on machines that are so many times larger than all blocks needed do not matter.
_NEVER_BINDS = 10**9


def covering(shapes: Shapes, load: Sequence[int]) -> list[Fraction] | None:
    """Return cheapest fractional numbers of machines; None if the limits do not allow any.

    Parameters
    ----------
    shapes : Shapes
    load : sequence of k ints
        Blocks of each type needed.
    """
    scale = max(1, *load) if load else 1
    dearest = max(shapes.costs, default=Fraction(0)) or Fraction(1)
    program = LinearProgram()
    x = [program.variable(near(cost / dearest)) for cost in shapes.costs]
    for i, need in enumerate(load):
        pairs = zip(x, shapes.counts, strict=True)
        held = [(variable, near(counts[i])) for variable, counts in pairs if counts[i]]
        program.row(held, low=near(need, scale))
    for limit, mine in shapes.limited:
        if limit // scale <= _NEVER_BINDS:
            program.row([(x[c], 1.0) for c in mine], high=near(limit, scale))
    answer = program.solve(None, (ITERATIONS,))
    if answer is None:
        return None
    return [Fraction(max(0.0, value)) * scale for value in answer.values]


def filled(
    shapes: Shapes, load: Sequence[int], around: Sequence[Fraction] | None
) -> tuple[int, ...] | None:
    """Return enough machines, in integers of any size; None if that breaks a limit.

    For numbers that no integer program can take: fractional machines rounded down, then block by
    block the machines that hold what is missing most cheaply.

    Parameters
    ----------
    shapes : Shapes
    load : sequence of k ints
    around : sequence of numbers, optional
        Fractional machines.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 10**40, {"a": 1})])
    >>> filled(Shapes(problem, ()), [10**40], None) == (5 * 10**39,)
    True
    """
    machines = [floor(x) for x in around] if around is not None else [0] * len(shapes)
    for limit, mine in shapes.limited:
        # Of very large numbers a float may be some machines too many.
        over = sum(machines[c] for c in mine) - limit
        for c in mine:
            less = max(0, min(over, machines[c]))
            machines[c] -= less
            over -= less
    for i, need in enumerate(load):
        pairs = zip(machines, shapes.counts, strict=True)
        left = need - sum(number * counts[i] for number, counts in pairs)
        holders = [c for c, counts in enumerate(shapes.counts) if counts[i]]
        if left <= 0 or not holders:
            continue
        # The cheapest for all that is missing first, as far as the limits go.
        for c in sorted(holders, key=lambda c: shapes.costs[c] * -(-left // shapes.counts[c][i])):
            more = -(-left // shapes.counts[c][i])
            room = _room(shapes, machines, c)
            more = more if room is None else min(more, room)
            machines[c] += more
            left -= more * shapes.counts[c][i]
            if left <= 0:
                break
    for i, need in enumerate(load):
        if sum(n * counts[i] for n, counts in zip(machines, shapes.counts, strict=True)) < need:
            return None
    if any(sum(machines[c] for c in mine) > limit for limit, mine in shapes.limited):
        return None
    return tuple(machines)


def _room(shapes: Shapes, machines: Sequence[int], c: int) -> int | None:
    """Return how many more machines of a configuration its type allows; None for any number."""
    for limit, mine in shapes.limited:
        if c in mine:
            return max(0, limit - sum(machines[other] for other in mine))
    return None
