"""Interference: how much longer a batch takes beside another one on the same GPU.

Two shares of a GPU under MPS have processors of their own, but one cache and one memory. What that
costs is measured in pairs: a batch on one share, while another keeps the other share busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption, InvalidProblem
from ...files.source import StrPath
from ...files.tables import TableRow, read_table
from ...values.frozen import FrozenMap
from ...values.numbers import Number, exact, whole
from ..hardware import Gpu
from ..hardware.catalogue import is_called
from .operating_point import mps_share
from .table_guards import refuse_second_row

INTERFERENCE_COLUMNS = (
    "model",
    "device",
    "profile",
    "batch",
    "beside_model",
    "beside_batch",
    "slowdown",
)


class Pair(NamedTuple):
    """A batch on a share of a GPU, beside another batch on the rest of it.

    What is slowed is as of an operating point of one process; the profile is a share below 100 %.
    """

    model: str
    device: str
    profile: str
    batch: int
    beside_model: str
    beside_batch: int

    def __str__(self) -> str:
        return (
            f"{self.model} on {self.device}, {self.profile}, batch {self.batch}, beside "
            f"{self.beside_model}, batch {self.beside_batch}"
        )


class Slowdowns(NamedTuple):
    """What a table says of one GPU, by its key.

    `factors`: ``{(model, profile, batch, beside_model, beside_batch): factor}``, none below 1.
    """

    gpu: str
    factors: dict[tuple[str, str, int, str, int], Fraction]

    def factor(
        self, model: str, profile: str, batch: int, beside_model: str, beside_batch: int
    ) -> Fraction:
        """Return by which factor a batch takes longer.

        InvalidProblem if the table has no such pair.
        """
        key = model, profile, batch, beside_model, beside_batch
        found = self.factors.get(key)
        if found is None:
            pair = Pair(model, self.gpu, profile, batch, beside_model, beside_batch)
            raise InvalidProblem(
                f"the table of interference has no slowdown of {pair}; measure this pair, or leave "
                "one of the two operating points out"
            )
        return found


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Interference:
    """Slowdowns of pairs of batches on the two shares of a GPU; refuses a pair that cannot be.

    References
    ----------
    Choi, Lee, Kim, Park, Kwon, Huh: Serving Heterogeneous Machine Learning Models on Multi-GPU
    Servers with Spatio-Temporal Sharing, USENIX ATC 2022: a slowdown a pair; of several
    neighbours in turn the one that slows most counts.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> pair = Pair("bert", "a100-80gb", "mps:60", 8, "vgg", 4)
    >>> table = Interference({pair: "1.25"})
    >>> table.on(get_gpu("a100-80gb")).factor("bert", "mps:60", 8, "vgg", 4)
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

    def on(self, gpu: Gpu) -> Slowdowns:
        """Return what was measured on one GPU, whatever the table calls it.

        InvalidProblem if a pair is there twice, under two names of the GPU.
        """
        found: dict[tuple[str, str, int, str, int], Fraction] = {}
        mine: dict[str, bool] = {}
        for pair, factor in self.pairs.items():
            if pair.device not in mine:
                mine[pair.device] = is_called(gpu, pair.device)
            if not mine[pair.device]:
                continue
            key = pair.model, pair.profile, pair.batch, pair.beside_model, pair.beside_batch
            if key in found:
                raise InvalidProblem(
                    f"the slowdown of {pair} is there twice, under two names of {gpu.key}; keep one"
                )
            found[key] = max(factor, Fraction(1))
        return Slowdowns(gpu.key, found)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Interference({len(self.pairs)} {'pair' if len(self.pairs) == 1 else 'pairs'})"


def read_interference(path: StrPath) -> Interference:
    """Read slowdowns of pairs from a CSV table.

    Parameters
    ----------
    path : str or path-like
        Columns ``model,device,profile,batch,beside_model,beside_batch,slowdown``: a batch of
        ``model`` on the share ``profile`` (``mps:60``) takes ``slowdown`` times as long while the
        rest of the GPU runs batches of ``beside_batch`` of ``beside_model``. Other columns are
        left aside.

    Raises
    ------
    FileError
        With file, line and column: a number that is none, a pair that is there twice, ...
    """
    lines: dict[Pair, int] = {}
    found: dict[Pair, Fraction] = {}
    for row in read_table(path, INTERFERENCE_COLUMNS):
        pair = _pair(row)
        refuse_second_row(row, lines, pair, str(pair), "pair")
        found[pair] = row["slowdown"].number(above=0)
    return Interference(found)


def _pair(row: TableRow) -> Pair:
    pair = Pair(
        row["model"].word(),
        row["device"].word(),
        row["profile"].word(),
        row["batch"].integer(minimum=1),
        row["beside_model"].word(),
        row["beside_batch"].integer(minimum=1),
    )
    try:
        return _checked(pair)
    except (InvalidOption, InvalidProblem) as fault:
        raise row["profile"].error(str(fault)) from None


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
