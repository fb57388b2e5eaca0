"""gpulet's model of interference: linear in how much of cache and memory two batches use alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption
from ...files.source import StrPath
from ...files.tables import read_table
from .interference import Interference, Pair
from .operating_point import MPS_PREFIX, mps_share
from .table_guards import refuse_second_row

_PLACES = 9  # of a coefficient: a fit is no better than its measurements
_SHOWN_PLACES = 4  # of a predicted slowdown


class Batch(NamedTuple):
    """A batch of a model on a share of a GPU."""

    model: str
    device: str
    profile: str
    batch: int

    def __str__(self) -> str:
        return f"{self.model} on {self.device}, {self.profile}, batch {self.batch}"


class Utilisation(NamedTuple):
    """What a batch uses alone, both in the same unit, such as per cent of the whole GPU."""

    l2: Fraction
    dram: Fraction


Utilisations: TypeAlias = Mapping[Batch, Utilisation]


@dataclass(frozen=True, slots=True)
class LinearSlowdown:
    """A slowdown of ``c1 l2(own) + c2 l2(other) + c3 dram(own) + c4 dram(other) + c5``, >= 1.

    Coefficients do not carry over from one GPU to another: fit them on pairs of your own. What they
    say is a prediction, and a plan made with it keeps limits as far as that holds.

    References
    ----------
    Choi, Lee, Kim, Park, Kwon, Huh: Serving Heterogeneous Machine Learning Models on Multi-GPU
    Servers with Spatio-Temporal Sharing, USENIX ATC 2022.
    """

    c1: Fraction
    c2: Fraction
    c3: Fraction
    c4: Fraction
    c5: Fraction

    @classmethod
    def fit(cls, table: Interference, used: Utilisations) -> LinearSlowdown:
        """Fit the coefficients to measured pairs: least squares, exact but for 9 decimal places.

        `table` is of one GPU (:func:`predicted` fits tables of several, one by one), and `used` has
        both batches of every pair. InvalidOption if that is not so, or the pairs do not tell five
        coefficients.
        """
        if len(devices := sorted({pair.device for pair in table.pairs})) > 1:
            raise InvalidOption(
                f"the pairs are of {', '.join(devices)}, and coefficients do not carry over from "
                "one GPU to another; fit each one's pairs alone, as predicted() does"
            )
        rows = []
        for pair, slowdown in table.pairs.items():
            own = _known(used, Batch(*pair[:4]), pair)
            rows.append((*_features(own, _known(used, _beside(pair), pair)), slowdown))
        squares = [
            [sum((row[i] * row[j] for row in rows), Fraction(0)) for j in range(6)]
            for i in range(5)
        ]
        return cls(*(round(value, _PLACES) for value in _solved(squares, len(rows))))

    def factor(self, own: Utilisation, other: Utilisation) -> Fraction:
        """Return by which factor a batch takes longer beside another one."""
        coefficients = self.c1, self.c2, self.c3, self.c4, self.c5
        terms = zip(coefficients, _features(own, other), strict=True)
        return max(Fraction(1), sum((c * value for c, value in terms), Fraction(0)))

    def table(self, used: Utilisations) -> Interference:
        """Return the slowdowns of all pairs of these batches that can be on one GPU."""
        rest: dict[tuple[str, str], list[Batch]] = {}
        for batch in used:
            rest.setdefault((batch.device, batch.profile), []).append(batch)
        found = {}
        for batch in used:
            if (profile := _rest(batch.profile)) is None:
                continue
            for other in rest.get((batch.device, profile), ()):
                pair = Pair(*batch, other.model, other.batch)
                found[pair] = self.factor(used[batch], used[other])
        return Interference(found)


def predicted(table: Interference, used: Utilisations) -> tuple[Interference, tuple[str, ...]]:
    """Fill a table of pairs by the linear model, fitted on its own pairs, GPU by GPU.

    Parameters
    ----------
    table : Interference
        Measured pairs, which stay as they are.
    used : Utilisations
        What batches use alone: those of the pairs, and those to predict pairs of.

    Returns
    -------
    Interference
        Predictions are rounded up to four decimal places.
    tuple of str
        For each GPU: how many slowdowns are predictions, and how well the model fits the pairs.

    Raises
    ------
    InvalidOption
        If there are utilisations on a GPU without pairs, or as :meth:`LinearSlowdown.fit` says.
    """
    found, said = dict(table.pairs), []
    for device in dict.fromkeys(batch.device for batch in used):
        measured = {pair: value for pair, value in table.pairs.items() if pair.device == device}
        if not measured:
            raise InvalidOption(
                f"there are utilisations on {device} and no measured pair, and coefficients do not "
                "carry over from one GPU to another; measure pairs on it, or leave its rows out"
            )
        model = LinearSlowdown.fit(Interference(measured), used)
        own = {batch: each for batch, each in used.items() if batch.device == device}
        made = model.table(own).pairs
        found |= {pair: _up(made[pair]) for pair in made if pair not in measured}
        misses = [abs(made[pair] / max(value, Fraction(1)) - 1) for pair, value in measured.items()]
        number = len(made.keys() - measured.keys())
        said.append(
            f"{number} of {len(made)} slowdowns on {device} "
            f"{'is a prediction' if number == 1 else 'are predictions'} of a linear model, "
            f"fitted on {len(measured)} measured pairs, which it misses "
            f"by {_percent(sum(misses, Fraction(0)) / len(misses))} in the mean and by "
            f"{_percent(max(misses))} at most; limits are met as far as they hold"
        )
    return Interference(found), tuple(said)


def _up(factor: Fraction) -> Fraction:
    return Fraction(math.ceil(factor * 10**_SHOWN_PLACES), 10**_SHOWN_PLACES)


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.1f} %"


def read_utilisations(path: StrPath) -> dict[Batch, Utilisation]:
    """Read what batches use from a CSV table.

    Its columns are ``model,device,profile,batch,l2_util,dram_util``; others are left aside.
    """
    lines: dict[Batch, int] = {}
    found: dict[Batch, Utilisation] = {}
    names = ("model", "device", "profile", "batch", "l2_util", "dram_util")
    for row in read_table(path, names):
        batch = Batch(
            row["model"].word(),
            row["device"].word(),
            row["profile"].word(),
            row["batch"].integer(minimum=1),
        )
        refuse_second_row(row, lines, batch, str(batch), "batch")
        found[batch] = Utilisation(row["l2_util"].number(), row["dram_util"].number())
    return found


def _features(own: Utilisation, other: Utilisation) -> tuple[Fraction, ...]:
    return own.l2, other.l2, own.dram, other.dram, Fraction(1)


def _rest(profile: str) -> str | None:
    """The share beside this one; None if there is none."""
    share = mps_share(profile)
    return None if share in (None, 100) else f"{MPS_PREFIX}{100 - (share or 0)}"


def _beside(pair: Pair) -> Batch:
    return Batch(pair.beside_model, pair.device, _rest(pair.profile) or "", pair.beside_batch)


def _known(used: Utilisations, batch: Batch, pair: Pair) -> Utilisation:
    if batch not in used:
        raise InvalidOption(
            f"there is no utilisation of {batch}, which the pair {pair} needs; add it, or leave "
            "the pair out"
        )
    return used[batch]


def _solved(rows: list[list[Fraction]], pairs: int) -> list[Fraction]:
    """Solve five equations in five unknowns, exactly."""
    for i in range(5):
        pivot = next((r for r in range(i, 5) if rows[r][i]), None)
        if pivot is None:
            raise InvalidOption(
                f"{pairs} {'pair does' if pairs == 1 else 'pairs do'} not tell the five "
                "coefficients of the linear model; expected pairs of at least five "
                "batches whose utilisations are not in proportion"
            )
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(5):
            if r != i and rows[r][i]:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[5] for row in rows]
