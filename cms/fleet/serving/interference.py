"""Interference: how much longer a batch takes beside another one on the same GPU.

Two shares of a GPU under MPS have processors of their own, but one cache and one memory. What that
costs is measured in pairs: a batch on one share, while another keeps the other share busy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from operator import mul
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption, InvalidProblem
from ...files.source import StrPath
from ...files.tables import TableRow, read_table
from ...values.frozen import FrozenMap
from ...values.numbers import Number, exact, whole
from ..hardware import Gpu
from ..hardware.catalogue import is_called
from .operating_point import MPS_PREFIX, mps_share
from .table_guards import read_keyed


class Pair(NamedTuple):
    """A batch of one process on a share of a GPU, beside another batch on the rest of it."""

    model: str
    device: str
    profile: str
    batch: int
    beside_model: str
    beside_batch: int

    def __str__(self) -> str:
        return f"{Batch(*self[:4])}, beside {self.beside_model}, batch {self.beside_batch}"


INTERFERENCE_COLUMNS = (*Pair._fields, "slowdown")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Interference:
    """Slowdowns of pairs of batches on the two shares of a GPU; refuses a pair that cannot be.

    Of several neighbours in turn the one that slows most counts, as in gpulet (USENIX ATC '22;
    Choi et al., Serving Heterogeneous Machine Learning Models on Multi-GPU Servers).

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> pair = Pair("bert", "a100-80gb", "mps:60", 8, "vgg", 4)
    >>> Interference({pair: "1.25"}).on(get_gpu("a100-80gb")).factor(pair)
    Fraction(5, 4)
    """

    #: How many times as long a batch takes beside the other one as without it, > 0. A factor below
    #: 1 is kept as it was measured and counts as 1: nothing is taken to get faster by a neighbour.
    pairs: FrozenMap[Pair, Fraction]

    def __init__(self, pairs: Mapping[Pair, Number]) -> None:
        found = {}
        for given, value in pairs.items():
            pair = _checked(Pair(*given))
            what = f"the slowdown of {pair}"
            factor = exact(value, what, error=InvalidOption)
            if not factor:
                raise InvalidOption(f"{what} is 0; expected a factor > 0, such as 1.3")
            found[pair] = factor
        object.__setattr__(self, "pairs", FrozenMap(found))

    def on(self, gpu: Gpu) -> Interference:
        """Return what was measured on one GPU, under its key, and no factor below 1.

        InvalidProblem if a pair has two of its names.
        """
        found: dict[Pair, Fraction] = {}
        own = {each for each in {pair.device for pair in self.pairs} if is_called(gpu, each)}
        for given, factor in self.pairs.items():
            if given.device not in own:
                continue
            if (pair := given._replace(device=gpu.key)) in found:
                said = f"is there twice, under two names of {gpu.key}; keep one"
                raise InvalidProblem(f"the slowdown of {given} {said}")
            found[pair] = max(factor, Fraction(1))
        return Interference(found)

    def factor(self, pair: Pair) -> Fraction:
        """Return by which factor a batch takes longer; InvalidProblem if it was not measured."""
        if pair not in self.pairs:
            raise InvalidProblem(
                f"the table of interference has no slowdown of {pair}; measure this pair, or leave "
                "one of the two operating points out"
            )
        return max(self.pairs[pair], Fraction(1))

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Interference({len(self.pairs)} {'pair' if len(self.pairs) == 1 else 'pairs'})"


def read_interference(path: StrPath) -> Interference:
    """Read slowdowns of pairs from a CSV table.

    Columns are ``model,device,profile,batch,beside_model,beside_batch,slowdown``: a batch of
    ``model`` on the share ``profile`` (``mps:60``) takes ``slowdown`` times as long while the rest
    of the GPU runs batches of ``beside_batch`` of ``beside_model``. Other columns are left aside. A
    FileError has file, line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text(",".join(INTERFERENCE_COLUMNS) + "\\nm,a30-24gb,mps:60,8,m,4,1.25\\n")
    >>> read_interference(path)
    Interference(1 pair)
    """

    def make(row: TableRow) -> tuple[Pair, Fraction]:
        model, device, profile = (row[name].word() for name in ("model", "device", "profile"))
        batch, beside = row["batch"].integer(minimum=1), row["beside_model"].word()
        other = row["beside_batch"].integer(minimum=1)
        try:
            pair = _checked(Pair(model, device, profile, batch, beside, other))
        except (InvalidOption, InvalidProblem) as fault:
            raise row["profile"].error(str(fault)) from None
        return pair, row["slowdown"].number(above=0)

    return Interference(read_keyed(read_table(path, INTERFERENCE_COLUMNS), make, "pair"))


def _checked(pair: Pair) -> Pair:
    """Refuse a pair that cannot be."""
    for what, batch in (("batch", pair.batch), ("beside_batch", pair.beside_batch)):
        whole(batch, f"{what} of a pair of {pair.model}", least=1, error=InvalidOption)
    share = mps_share(pair.profile)
    if share is None or share == 100:
        raise InvalidOption(
            f"a pair of {pair.model!r} is on the profile {pair.profile!r}, which shares its GPU "
            "with no other; expected a share under MPS: mps:1 to mps:99"
        )
    return pair


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


class LinearSlowdown(NamedTuple):
    """A slowdown of ``c1 l2(own) + c2 l2(other) + c3 dram(own) + c4 dram(other) + c5``, >= 1.

    Coefficients do not carry over from one GPU to another: fit them on pairs of your own. What they
    say is a prediction, and a plan made with it keeps limits as far as that holds (gpulet, USENIX
    ATC '22).
    """

    c1: Fraction
    c2: Fraction
    c3: Fraction
    c4: Fraction
    c5: Fraction

    @classmethod
    def fit(cls, table: Interference, used: Utilisations) -> LinearSlowdown:
        """Fit the coefficients to measured pairs: least squares, exact but for 9 decimal places.

        InvalidOption if the table is of several GPUs (see :func:`predicted`), `used` lacks a batch
        of a pair, or the pairs do not tell five coefficients.
        """
        if len(devices := sorted({pair.device for pair in table.pairs})) > 1:
            raise InvalidOption(
                f"the pairs are of {', '.join(devices)}, and coefficients do not carry over from "
                "one GPU to another; fit each one's pairs alone, as predicted() does"
            )
        rows = []
        for pair, slowdown in table.pairs.items():
            rest = _rest(pair.profile) or ""
            batches = Batch(*pair[:4]), Batch(pair.beside_model, pair.device, rest, pair[-1])
            for batch in batches:
                if batch not in used:
                    raise InvalidOption(
                        f"there is no utilisation of {batch}, which the pair {pair} needs; add it, "
                        "or leave the pair out"
                    )
            rows.append((*_features(*(used[batch] for batch in batches)), slowdown))
        zero, pairs = Fraction(0), len(rows)
        squares = [[sum((r[i] * r[j] for r in rows), zero) for j in range(6)] for i in range(5)]
        from sympy import Matrix  # takes half a second: only to fit

        left, right = Matrix(squares)[:, :5], Matrix(squares)[:, 5]
        if left.rank() < 5:
            raise InvalidOption(
                f"{pairs} {'pair does' if pairs == 1 else 'pairs do'} not tell the five "
                "coefficients of the linear model; expected pairs of at least five "
                "batches whose utilisations are not in proportion"
            )
        solved = (Fraction(each.p, each.q) for each in left.LUsolve(right))
        return cls(*(round(value, _PLACES) for value in solved))

    def factor(self, own: Utilisation, other: Utilisation) -> Fraction:
        """Return by which factor a batch takes longer beside another one."""
        return max(Fraction(1), sum(map(mul, self, _features(own, other)), Fraction(0)))

    def table(self, used: Utilisations) -> Interference:
        """Return the slowdowns of all pairs of these batches that can be on one GPU."""
        return Interference({
            Pair(*batch, other.model, other.batch): self.factor(used[batch], used[other])
            for batch, other in product(used, used)
            if (other.device, other.profile) == (batch.device, _rest(batch.profile))
        })  # fmt: skip


def predicted(table: Interference, used: Utilisations) -> tuple[Interference, tuple[str, ...]]:
    """Fill a table of pairs by the linear model, fitted on its own pairs, GPU by GPU.

    `used` says what the batches use alone. Measured pairs stay as they are; predictions are rounded
    up to four decimal places. Besides stands for each GPU how many are predictions, and how well
    the model fits. InvalidOption if there are utilisations on a GPU without pairs.
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
        made = model.table({batch: each for batch, each in used.items() if batch.device == device})
        new = {pair: value for pair, value in made.pairs.items() if pair not in measured}
        parts = 10**_SHOWN_PLACES
        found |= {pair: Fraction(math.ceil(value * parts), parts) for pair, value in new.items()}
        one = Fraction(1)
        misses = [abs(made.pairs[pair] / max(value, one) - 1) for pair, value in measured.items()]
        mean, most = (f"{float(100 * m):.1f} %" for m in (sum(misses) / len(misses), max(misses)))
        said.append(
            f"{len(new)} of {len(made)} slowdowns on {device} "
            f"{'is a prediction' if len(new) == 1 else 'are predictions'} of a linear model, "
            f"fitted on {len(measured)} measured pairs, which it misses by {mean} in the mean and "
            f"by {most} at most; limits are met as far as they hold"
        )
    return Interference(found), tuple(said)


def read_utilisations(path: StrPath) -> dict[Batch, Utilisation]:
    """Read what batches use from a CSV table: ``model,device,profile,batch,l2_util,dram_util``."""
    names = ("model", "device", "profile", "batch", "l2_util", "dram_util")

    def make(row: TableRow) -> tuple[Batch, Utilisation]:
        model, device, profile = (row[name].word() for name in names[:3])
        used = Utilisation(row["l2_util"].number(), row["dram_util"].number())
        return Batch(model, device, profile, row["batch"].integer(minimum=1)), used

    return read_keyed(read_table(path, names), make, "point")


def _features(own: Utilisation, other: Utilisation) -> tuple[Fraction, ...]:
    return own.l2, other.l2, own.dram, other.dram, Fraction(1)


def _rest(profile: str) -> str | None:
    """The share beside this one; None if there is none."""
    share = mps_share(profile)
    return None if share in (None, 100) else f"{MPS_PREFIX}{100 - (share or 0)}"
