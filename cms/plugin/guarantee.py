"""What an algorithm promises about every schedule it finishes with, and whether a run kept it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from ..values.numbers import Number, exact, shown


class Reference(StrEnum):
    """The value a guarantee is proved against; none of them is above the optimum.

    ``LP_AGG <= LP_STAR <= MILP_C <= OPT`` and ``LP_AGG <= LP_DW <= OPT``: the aggregated linear
    program, the one over configurations, the same with integer machines, the Dantzig-Wolfe bound.
    """

    OPT = "OPT"
    LP_AGG = "LP_AGG"
    LP_STAR = "LP_STAR"
    MILP_C = "MILP_C"
    LP_DW = "LP_DW"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """``cost <= factor * value(against) + additive``, for one problem and one set of options.

    Parameters
    ----------
    factor, additive : number
        >= 0; kept as exact rationals.
    against : Reference or str
    theorem : str
        Its name.

    Examples
    --------
    >>> print(Guarantee(2, "1/2", "LP_AGG", "T-2"))
    cost <= 2 LP_AGG + 0.5 (T-2)
    """

    factor: Fraction
    additive: Fraction
    against: Reference
    theorem: str

    def __init__(
        self, factor: Number, additive: Number, against: Reference | str, theorem: str
    ) -> None:
        for name, value in ("factor", factor), ("additive", additive):
            number = exact(value, f"{name} of a guarantee", computed=True, error=ValueError)
            object.__setattr__(self, name, number)
        if against not in list(Reference):
            known = ", ".join(Reference)
            raise ValueError(f"a guarantee against {against!r}; expected one of {known}")
        object.__setattr__(self, "against", Reference(against))
        object.__setattr__(self, "theorem", theorem)

    def allows(self, value: Fraction) -> Fraction:
        """Return the largest cost that keeps the guarantee if the reference has this value."""
        return self.factor * value + self.additive

    def __str__(self) -> str:
        factor, term = shown(self.factor), shown(self.additive)
        right = self.against if self.factor == 1 else f"{factor} {self.against}"
        return f"cost <= {right}{f' + {term}' if self.additive else ''} ({self.theorem})"


class Verdict(StrEnum):
    """Whether a finished run kept its guarantee.

    ``VERIFIED``: the cost is at most ``factor * checked bound + additive``. ``BREACHED``: it is
    above what an upper value of the reference allows. ``OPEN``: the bound is too weak to tell.
    """

    VERIFIED = "verified"
    BREACHED = "breached"
    OPEN = "open"


class GuaranteeVerdict(NamedTuple):
    """A guarantee and what a finished run has shown of it."""

    guarantee: Guarantee
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.verdict}"


def judge(
    guarantee: Guarantee, *, cost: Fraction, lower_bound: Fraction, upper_value: Fraction
) -> GuaranteeVerdict:
    """Compare a finished run's cost with its guarantee, its reference being <= ``upper_value``."""
    verdict = Verdict.OPEN
    if cost > guarantee.allows(upper_value):
        verdict = Verdict.BREACHED
    elif cost <= guarantee.allows(lower_bound):
        verdict = Verdict.VERIFIED
    return GuaranteeVerdict(guarantee, verdict)
