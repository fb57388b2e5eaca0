"""One job's numbers as integers over a common denominator."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import NamedTuple

from ..errors import InvalidProblem
from ..values.numbers import LARGEST_DIGITS, has_too_many_digits


class Row(NamedTuple):
    """One job's integers: its demand is ``demand / denominator``, its supply likewise."""

    demand: int
    supply: tuple[int, ...]
    denominator: int


def fits_int64(row: Row) -> bool:
    """Whether a row's integers are int64."""
    return max(row.demand, row.denominator, *row.supply, 0) < 2**63


def reduced(demand: Fraction, supply: Sequence[Fraction], job: str) -> Row:
    """Scale a job's numbers by the smallest integer that makes all of them whole."""
    denominator = 1
    integers: list[int] = []
    for f in chain((demand,), supply):
        if denominator % f.denominator:
            # not all at once: what is refused must not first grow as long as the whole row
            denominator = lcm(denominator, f.denominator)
            if has_too_many_digits(denominator):
                break
    else:
        integers = [f.numerator * (denominator // f.denominator) for f in (demand, *supply)]
    if not integers or has_too_many_digits(max(integers)):
        raise InvalidProblem(
            f"the numbers of {job} have more than {LARGEST_DIGITS} digits over their common "
            "denominator; round them"
        )
    return Row(integers[0], tuple(integers[1:]), denominator)
