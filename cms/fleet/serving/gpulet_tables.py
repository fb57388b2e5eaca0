"""Tables of the kind that gpulet's measurements come in: batches on shares of a GPU under MPS.

S. Choi et al., Serving Heterogeneous Machine Learning Models on Multi-GPU Servers with
Spatio-Temporal Sharing, USENIX ATC '22. A public re-implementation of its scheduler comes with
tables of this form. They have no header and no licence, and do not name the GPU: bring your own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from ...files.source import StrPath
from ...files.tables import Cell, TableRow, read_headerless
from ..hardware import Gpu
from .interference import Interference, Pair
from .linear_slowdown import Batch, Utilisation
from .operating_point import MPS_PREFIX, OperatingPoint
from .table_guards import refuse_second_row

_COLUMNS = ("model", "batch", "percent", "throughput", "rate", "latency", "seconds", "flag")
_PAIR_COLUMNS = (
    "model", "batch", "percent", "beside_model", "beside_batch", "throughput", "rate", "latency",
    "seconds", "flag",
)  # fmt: skip
_USED_COLUMNS = ("model", "batch", "percent", "mem_util", "mem", "l2_util", "l2", "flag")
_MEASURED = "1"
_PLACES = 4  # of a slowdown: latencies are measured in three digits


def read_gpulet_table(path: StrPath, *, device: str | Gpu) -> tuple[OperatingPoint, ...]:
    """Read batches that were measured on shares of a GPU: one process each, ``mps:<percent>``.

    Parameters
    ----------
    path : path
        Rows ``model,batch,percent,throughput,X,latency,Y,flag`` without a header: the words
        ``throughput`` and ``latency`` stand in every row, X is in items per second, Y in seconds,
        and a flag other than 1 marks a row that is no measurement. A FileError has file, line and
        column.
    device : str or Gpu
        The GPU they were measured on, which the table does not say.
    """
    name = device.key if isinstance(device, Gpu) else device
    return tuple(_points(path, name))


def read_gpulet_pairs(
    path: StrPath, alone: Iterable[OperatingPoint], *, device: str | Gpu
) -> Interference:
    """Read what batches take beside others: latency over latency alone, to four decimal places.

    Parameters
    ----------
    path : path
        Rows ``model,batch,percent,beside_model,beside_batch,throughput,X,latency,Y,flag`` without a
        header, as of :func:`read_gpulet_table`; the other model is on the rest of the GPU.
    alone : iterable of OperatingPoint
        The same batches alone, as :func:`read_gpulet_table` reads them; one that was not measured
        alone is refused.
    device : str or Gpu
        The GPU they were measured on.
    """
    name = device.key if isinstance(device, Gpu) else device
    took = {(p.model, p.batch, p.profile): p.latency_ms for p in alone}
    lines: dict[Pair, int] = {}
    found: dict[Pair, Fraction] = {}
    for row in _measured_rows(path, _PAIR_COLUMNS):
        model, batch = row["model"].word(), batch_of(row["batch"])
        profile = f"{MPS_PREFIX}{share_of(row['percent'], most=99)}"
        other = row["beside_model"].word(), batch_of(row["beside_batch"])
        pair = Pair(model, name, profile, batch, *other)
        refuse_second_row(row, lines, pair, str(pair), "pair")
        if (model, batch, profile) not in took:
            raise row.error(
                f"{model} on {profile}, batch {batch}, was not measured alone",
                expected="an operating point of it, against which it is slowed",
            )
        seconds = seconds_of(row["seconds"])
        found[pair] = round(1000 * seconds / took[model, batch, profile], _PLACES)
    return Interference(found)


def read_gpulet_utilisations(path: StrPath, *, device: str | Gpu) -> dict[Batch, Utilisation]:
    """Read what batches use alone of cache and memory on a GPU.

    Parameters
    ----------
    path : path
        Rows ``model,batch,percent,mem_util,X,l2_util,Y,flag`` without a header, as of
        :func:`read_gpulet_table`; X is of the bandwidth of the memory, Y of the cache.
    device : str or Gpu
    """
    name = device.key if isinstance(device, Gpu) else device
    lines: dict[Batch, int] = {}
    found: dict[Batch, Utilisation] = {}
    for row in _measured_rows(path, _USED_COLUMNS, "mem_util", "l2_util"):
        profile = f"{MPS_PREFIX}{share_of(row['percent'])}"
        batch = Batch(row["model"].word(), name, profile, batch_of(row["batch"]))
        refuse_second_row(row, lines, batch, str(batch), "batch")
        found[batch] = Utilisation(row["l2"].number(), row["mem"].number())
    return found


def _measured_rows(path: StrPath, columns: Sequence[str], *words: str) -> Iterator[TableRow]:
    """Iterate over the rows of measurements, after their words were checked."""
    for row in read_headerless(path, columns):
        require_words(row, *(words or ("throughput", "latency")))
        if row["flag"].text == _MEASURED:
            yield row


def _points(path: StrPath, device: str) -> Iterator[OperatingPoint]:
    lines: dict[tuple[str, int, int], int] = {}
    for row in _measured_rows(path, _COLUMNS):
        model, batch, share = row["model"].word(), batch_of(row["batch"]), share_of(row["percent"])
        said = f"{model}, batch {batch} on {share} %"
        refuse_second_row(row, lines, (model, batch, share), said, "point")
        yield OperatingPoint(
            model, device, f"{MPS_PREFIX}{share}", 1, batch, row["rate"].number(above=0),
            1000 * seconds_of(row["seconds"]), origin=f"{path}:{row.line}",
        )  # fmt: skip


def require_words(row: TableRow, *names: str) -> None:
    """Refuse a row in whose columns of these names other words stand."""
    for name in names:
        if row[name].text != name:
            raise row[name].error(
                f"this cell is {row[name].text or 'empty'!r}",
                expected=f"the word {name}, after which its value stands",
            )


def batch_of(cell: Cell) -> int:
    """Read a batch."""
    return cell.integer(minimum=1)


def seconds_of(cell: Cell) -> Fraction:
    """Read a time in seconds."""
    return cell.number(above=0)


def share_of(cell: Cell, *, most: int = 100) -> int:
    """Read a share of a GPU in per cent."""
    share = cell.integer(minimum=1)
    if share > most:
        raise cell.error(f"the share is {share} %", expected=f"1 to {most}, in per cent of a GPU")
    return share
