"""What is scarce, in plain words: what one more of each instance would save."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ....values.words import count, decimal, fraction
from ..scarcity import worths
from .parts import Cell, Column, Grid, Part

if TYPE_CHECKING:
    from ....problem.machine_problem import MachineProblem
    from ....solving.solution import Solution

__all__ = ["worth_parts"]

_MOST_SENTENCES = 3


def worth_parts(
    solution: Solution, problem: MachineProblem, machine: str, scarcest: str = ""
) -> list[Part]:
    """Say what one more instance of each kind would save.

    By the prices of the proof: whoever were given one block more for nothing would still need at
    least the bound less its price, so that no more than its price can be saved.

    Parameters
    ----------
    solution : Solution
    problem : MachineProblem
        The one it solves.
    machine : str
        What the machines are called.
    scarcest : str
        A line about the one that is worth more than its slices.

    Returns
    -------
    list of Part
        Empty if there is nothing to say.
    """
    found = worths(solution, problem)
    if found is None:
        return []
    dearest = list(reversed(list(found.shares.items())))
    ranked = [(block, share) for block, share in dearest if share]
    parts: list[Part] = []
    if found.absolute:
        below = [entry for entry in ranked if entry[1] < 1] or ranked  # that a whole one is worth 1
        for block, share in below[:_MOST_SENTENCES]:
            parts.append(f"One more {block} would save up to {_saved(share)} {machine}.")
        source = "These are the prices of the proof: no plan can save more by it."
    else:
        source = f"A best-used {machine} is worth 1 here, since {machine}s differ in cost"
        if found.cases > 1:
            source = (
                f"By one of the {count(found.cases, 'case')} that the proof is made of, a "
                f"best-used {machine} being 1"
            )
        source += "."
    if scarcest:
        parts.append(f"{scarcest}.")
    parts.append(source)
    head = f"worth of one more, in {machine}s" if found.absolute else "worth"
    columns = Column("instance"), Column(head, number=True), Column("in the proof", number=True)
    rows = [
        [Cell(block), Cell(_saved(share), share), Cell(_priced(share), share)]
        for block, share in dearest
    ]
    return [*parts, Grid("What one more of each instance is worth", columns, rows)]


def _saved(share: Fraction) -> str:
    return decimal(share, 2, math.ceil) if share else "0"


def _priced(share: Fraction) -> str:
    text = fraction(share)
    return text if Fraction(text.replace(",", "")) == share else f"about {text}"
