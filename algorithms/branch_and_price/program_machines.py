"""The machines of an integer program: how many of each configuration, their limits, their cost."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..solvers.integer import Program
    from .shapes import Shapes


class MachineVariables:
    """Variables for machines above their least numbers; adds them and their limits to a program."""

    def __init__(
        self, shapes: Shapes, program: Program, lows: Sequence[int], highs: Sequence[int]
    ) -> None:
        self._shapes, self._program, self.lows = shapes, program, lows
        self.variables = [
            program.variable(max(0, high - low)) for low, high in zip(lows, highs, strict=True)
        ]
        for limit, mine in shapes.limited:
            room = limit - sum(lows[c] for c in mine)
            if room < sum(highs[c] - lows[c] for c in mine):
                program.at_most({self.variables[c]: 1 for c in mine}, room)

    def held(self, i: int, *, enough: int) -> list[tuple[int, int]]:
        """Return the terms of the blocks of a type; more than ``enough`` are not told apart."""
        return [
            (variable, min(counts[i], enough))
            for variable, counts in zip(self.variables, self._shapes.counts, strict=True)
            if counts[i]
        ]

    def have(self, i: int) -> int:
        """Return the blocks of a type on the machines there are at least."""
        pairs = zip(self.lows, self._shapes.counts, strict=True)
        return sum(low * counts[i] for low, counts in pairs)

    def keep_cost(self, least: Fraction, target: Fraction | None) -> dict[int, int]:
        """Keep the cost between a bound and a target; return its terms, in the shapes' step."""
        shapes = self._shapes
        terms = {self.variables[c]: steps for c, steps in enumerate(shapes.steps) if steps}
        if terms:
            lowest = int(-(-least // shapes.step)) - self._spent
            if lowest > 0:
                self._program.at_least(terms, lowest)
            if target is not None:
                self._program.at_most(terms, floor(target / shapes.step) - self._spent)
        return terms

    def cost_of(self, aim: int) -> Fraction:
        """Return the cost behind a value of the terms of :meth:`keep_cost`."""
        return (aim + self._spent) * self._shapes.step

    @property
    def _spent(self) -> int:
        pairs = zip(self._shapes.steps, self.lows, strict=True)
        return sum(steps * low for steps, low in pairs)

    def numbers(self, values: Sequence[int]) -> tuple[int, ...]:
        """Return how many machines of each configuration a solution has."""
        pairs = zip(self.lows, self.variables, strict=True)
        return tuple(low + values[variable] for low, variable in pairs)


def within_limits(shapes: Shapes, lows: Sequence[int], highs: list[int], largest: int) -> None:
    """Lower the largest numbers of machines that reach ``largest`` to what their types' limits are.

    So that a program can be built where only a limit bounds them.
    """
    for limit, mine in shapes.limited:
        for c in mine:
            if highs[c] >= largest:
                highs[c] = min(highs[c], max(limit, lows[c]))
