"""Limits on machines, as rows over whole numbers: what they leave room for, and what they cost."""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Self

from cms.values.numbers import common_step

from ..solvers.simplex import cheapest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cms.problem.machine_problem import MachineProblem

ZERO = Fraction(0)


class Limit(NamedTuple):
    """The machines of some types, each times its weight, add up to a number at most.

    Types are given by their numbers; 1 of the weights here is ``unit`` of the problem's own.
    """

    name: str
    weights: Mapping[int, int]
    at_most: int
    unit: Fraction = Fraction(1)

    @property
    def size(self) -> int:
        """The largest weight, in which floating-point programs count."""
        return max(self.weights.values())


def limits_of(problem: MachineProblem) -> list[Limit]:
    """Return all limits of a problem, over whole numbers."""
    found = []
    for limit in problem.limits:
        unit = common_step(limit.weights.values())
        pairs = ((problem.machine_index[m], int(n / unit)) for m, n in limit.weights.items())
        found.append(Limit(limit.name, dict(pairs), int(limit.at_most // unit), unit))
    return found


class Room:
    """What limits leave for more machines; ``left`` has a number for each limit."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self.limits = limits
        self.left = [limit.at_most for limit in limits]
        self._counting: dict[int, list[tuple[int, int]]] = {}
        for at, limit in enumerate(limits):
            for machine, weight in limit.weights.items():
                self._counting.setdefault(machine, []).append((at, weight))

    def copy(self) -> Self:
        """Return the same room, to be taken by others."""
        other = copy(self)
        other.left = list(self.left)
        return other

    def counting(self, machine: int) -> Sequence[tuple[int, int]]:
        """Return the numbers of the limits that count a machine of a type, and its weights."""
        return self._counting.get(machine, ())

    def most(self, machine: int) -> int | None:
        """Return how many machines of a type there is room for; None if no limit counts them."""
        counting = self.counting(machine)
        return min([self.left[at] // n for at, n in counting]) if counting else None

    def take(self, machine: int, number: int) -> None:
        """Count machines of a type, or no longer if the number is negative."""
        for at, n in self.counting(machine):
            self.left[at] -= n * number

    def cheapest_prices(self, over: Mapping[int, Fraction]) -> tuple[Fraction, ...]:
        """Return prices of the limits that pay for what machines are worth beyond their costs.

        The prices of the limits that count a type add up to what it has ``over``; the room that is
        left costs least. Types that no limit counts are left out.
        """
        owed = {m: more for m, more in over.items() if more > 0 and self.counting(m)}
        if any(len(self.counting(m)) > 1 for m in owed):
            rows = [[limit.weights.get(m, 0) for limit in self.limits] for m in owed]
            found = cheapest([Fraction(n) for n in self.left], rows, [*owed.values()])
            if found is None:
                raise AssertionError("a program that nobody stops has an end")
            return tuple(found.values)
        prices = [ZERO] * len(self.limits)
        for m, more in owed.items():
            at, n = self.counting(m)[0]
            prices[at] = max(prices[at], more / n)
        return tuple(prices)

    def worth(self, prices: Sequence[Fraction]) -> Fraction:
        """Return what the room that is left costs."""
        return sum((n * price for n, price in zip(self.left, prices, strict=True) if price), ZERO)
