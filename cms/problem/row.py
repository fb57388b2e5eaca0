"""One job's numbers as integers, and what the blocks that serve it must be."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from ..errors import InvalidProblem
from ..values.numbers import LARGEST_DIGITS, has_too_many_digits


class BundleRule(NamedTuple):
    """What a job's bundle must be beside enough, whatever the job's numbers are.

    At least ``number`` of its blocks each satisfy at least the part ``share`` of the demand. Under
    the routing ``equal`` every block of the bundle counts as the smallest one.
    """

    number: int
    share: Fraction
    routing: str


class Row(NamedTuple):
    """One job's integers: its demand is ``demand / denominator``, its supply likewise."""

    demand: int
    supply: tuple[int, ...]
    denominator: int
    rule: BundleRule | None = None

    @property
    def is_equal(self) -> bool:
        """Whether its blocks get equal shares."""
        return self.rule is not None and self.rule.routing == "equal"

    @property
    def carriers(self) -> list[int]:
        """The places of the blocks of which enough serve the job by themselves."""
        part, whole = (0, 1) if self.rule is None else self.rule.share.as_integer_ratio()
        return [i for i, f in enumerate(self.supply) if f and f * whole >= part * self.demand]

    @property
    def enough(self) -> list[int]:
        """How many blocks of each type a minimal bundle has at most; 0 of those without use."""
        counts = [-(-self.demand // f) if f else 0 for f in self.supply]
        if self.rule is not None and self.demand:
            able, others = {*self.carriers}, not self.is_equal
            return [
                max(n, self.rule.number) if i in able else n * others for i, n in enumerate(counts)
            ]
        return counts

    @property
    def alternatives(self) -> list[tuple[int, list[int]]]:
        """The numbers of blocks of which a bundle by the rule has one, and blocks that count.

        In equal shares it has exactly so many, and no other blocks; else at least so many.
        """
        if self.rule is None or not self.demand:
            return []
        if not self.is_equal:
            return [(self.rule.number, self.carriers)]
        able = [(n, i) for i, n in enumerate(self.enough) if n]
        return [(most, [i for n, i in able if n <= most]) for most in sorted({n for n, _ in able})]

    def served(self, bundle: Sequence[int]) -> int:
        """Return how much of the demand a bundle satisfies."""
        if self.is_equal:
            there = [f for f, n in zip(self.supply, bundle, strict=True) if n]
            return sum(bundle) * min(there, default=0)
        return sum(f * n for f, n in zip(self.supply, bundle, strict=True) if n)

    def replicas(self, bundle: Sequence[int]) -> int:
        """Return how many blocks of a bundle satisfy the share that the rule asks for."""
        able = sum(bundle[i] for i in self.carriers)
        return able if not self.is_equal or able == sum(bundle) else 0


def reduced(
    demand: Fraction, supply: Sequence[Fraction], job: str, rule: BundleRule | None = None
) -> Row:
    """Scale a job's numbers by the smallest integer that makes all of them whole."""
    denominator = 1
    for f in (demand, *supply):
        denominator = lcm(denominator, f.denominator)
        # not only at the end: what is refused must not first grow as long as the whole row
        if has_too_many_digits(denominator):
            break
    else:
        wanted, *given = (f.numerator * (denominator // f.denominator) for f in (demand, *supply))
        if not has_too_many_digits(max(wanted, *given, 0)):
            return Row(wanted, tuple(given), denominator, rule)
    raise InvalidProblem(
        f"the numbers of {job} have more than {LARGEST_DIGITS} digits over their common "
        "denominator; round them"
    )
