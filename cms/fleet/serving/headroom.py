"""Head-room: what is planned for is more than what is stated, since arrivals are not even.

The rules of cycles are exact for evenly spaced arrivals. Burstiness is a stated change of the
input, never part of a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from ...errors import InvalidOption
from ...files.source import StrPath
from ...files.tables import read_table
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import Number, exact, whole
from .table_guards import refuse_second_row

#: The kinds of head-room there are, in words.
HEADROOMS: Mapping[str, str] = {
    "gpulet": "rates up to 550/s: the 99 % quantile of a Poisson count of one second, and 1; "
    "higher ones x 1.1; lengths x 1.1"
}
_SHARE = Fraction(99, 100)
_COUNTED_UP_TO = 550
_MORE = Fraction(11, 10)


@dataclass(frozen=True, slots=True, init=False)
class Headroom:
    """How rates and lengths of batches are raised before planning.

    Source: Choi, Lee, Kim, Park, Kwon, Huh, Serving Heterogeneous Machine Learning Models on
    Multi-GPU Servers with Spatio-Temporal Sharing, USENIX ATC '22. InvalidOption names a wrong one.

    Examples
    --------
    >>> [int(Headroom("gpulet").planned_rps(Fraction(rate))) for rate in (0, 50, 500, 600)]
    [0, 68, 554, 660]
    >>> Headroom("gpulet", {8: "2.5"}).length_ms(Fraction(10), batch=8)
    Fraction(27, 2)
    """

    name: str  #: of :data:`HEADROOMS`: ``gpulet``, as the published scheduler inflates its input
    #: ``{batch: milliseconds}``: what making up a batch takes, added to its length. Without it,
    #: nothing is; with it, every batch that was measured must have one.
    overheads_ms: FrozenMap[int, Fraction] | None

    def __init__(self, name: str, overheads_ms: Mapping[int, Number] | None = None) -> None:
        if name not in HEADROOMS:
            known = "; ".join(f"{known} ({what})" for known, what in HEADROOMS.items())
            raise InvalidOption(
                f"there is no head-room {name!r}; expected {known}{nearest(str(name), HEADROOMS)}"
            )
        object.__setattr__(self, "name", name)
        table = None
        if overheads_ms is not None:
            table = FrozenMap(
                {
                    whole(batch, "a batch in the overheads", least=1, error=InvalidOption): exact(
                        value, f"the overhead of a batch of {batch}", error=InvalidOption
                    )
                    for batch, value in overheads_ms.items()
                }
            )
        object.__setattr__(self, "overheads_ms", table)

    def planned_rps(self, rate: Fraction) -> Fraction:
        """Return the rate to plan for instead of this one; 0 for 0."""
        if not rate:
            return rate
        if rate > _COUNTED_UP_TO:
            return rate * _MORE
        return Fraction(poisson_quantile(rate, _SHARE) + 1)

    def length_ms(self, length: Fraction, batch: int) -> Fraction:
        """Return how long a batch of one process is taken to occupy its instance."""
        overhead = Fraction(0)
        if self.overheads_ms is not None:
            if batch not in self.overheads_ms:
                known = ", ".join(map(str, self.overheads_ms)) or "none"
                raise InvalidOption(
                    f"there is no overhead of a batch of {batch}, which was measured; there are "
                    f"overheads of {known}: add it to the table"
                )
            overhead = self.overheads_ms[batch]
        return length * _MORE + overhead

    def __str__(self) -> str:
        more = "" if self.overheads_ms is None else ", and an overhead a batch"
        return f"head-room {self.name!r}: {HEADROOMS[self.name]}{more}"


def read_overheads(path: StrPath) -> dict[int, Fraction]:
    """Read what making up a batch takes from a CSV table: columns ``batch,overhead_ms``."""
    lines: dict[int, int] = {}
    found: dict[int, Fraction] = {}
    for row in read_table(path, ["batch", "overhead_ms"]):
        batch = row["batch"].integer(minimum=1)
        refuse_second_row(row, lines, batch, f"a batch of {batch}", "batch")
        found[batch] = row["overhead_ms"].number()
    return found


def poisson_quantile(mean: Fraction, share: Fraction) -> int:
    """Return the least count that a Poisson count exceeds with a probability below 1 - share.

    Exact: the sum of mean^i / i! is compared with share x e^mean, which is irrational, in
    enough digits to tell them apart. The mean is > 0 and at most some thousands.
    """
    digits = 60
    while True:
        with localcontext() as context:
            context.prec = digits
            value = Decimal(mean.numerator) / mean.denominator
            wanted = value.exp() * share.numerator / share.denominator
            term = total = Decimal(1)
            # each step is off by less than 2 units of the last digit of a sum of positive terms,
            # and e^mean by the error of the mean as well
            doubt = wanted * (10 + value).scaleb(6 - digits)
            count = 0
            while abs(total - wanted) > doubt * (1 + count):
                if total > wanted:
                    return count
                count += 1
                term = term * value / count
                total += term
        digits *= 2
