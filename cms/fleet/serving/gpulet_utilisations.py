"""Measurements of gpulet: batches on shares of a GPU under MPS, and what they use."""

from __future__ import annotations

from collections.abc import Iterator

from ...files.source import StrPath
from ...files.tables import TableRow, read_headerless
from ..hardware import Gpu
from .interference import Batch, Utilisation
from .operating_point import MPS_PREFIX
from .table_guards import refuse_second_row

#: The first columns of each table.
OWN = ("model", "batch", "percent")


def read_gpulet_utilisations(path: StrPath, *, device: str | Gpu) -> dict[Batch, Utilisation]:
    """Read what batches use alone of cache and memory on a GPU, which the table does not name.

    Rows are ``model,batch,percent,mem_util,X,l2_util,Y,flag``; X is of the bandwidth of the memory,
    Y of the cache. A flag other than 1 marks what is no measurement. Such tables, without header or
    licence, come with a public re-implementation of gpulet (S. Choi et al., USENIX ATC '22).
    """
    columns = (*OWN, "mem_util", "mem", "l2_util", "l2", "flag")
    lines: dict[Batch, int] = {}
    found: dict[Batch, Utilisation] = {}
    for row, model, size, profile in read_measurements(path, columns, "mem_util", "l2_util"):
        batch = Batch(model, key_of(device), profile, size)
        refuse_second_row(row, lines, batch, str(batch), "point")
        found[batch] = Utilisation(row["l2"].number(), row["mem"].number())
    return found


def key_of(device: str | Gpu) -> str:
    """Return the key of a GPU that is given by key or device."""
    return device.key if isinstance(device, Gpu) else device


def read_measurements(
    path: StrPath, columns: tuple[str, ...], *words: str, most: int = 100
) -> Iterator[tuple[TableRow, str, int, str]]:
    """Iterate over rows of measurements with their model, batch and profile."""
    for row in read_headerless(path, columns):
        for word in words:
            if row[word].text != word:
                raise row[word].error(
                    f"this cell is {row[word].text or 'empty'!r}",
                    expected=f"the word {word}, after which its value stands",
                )
        if row["flag"].text != "1":
            continue
        model, batch = row["model"].word(), row["batch"].integer(minimum=1)
        share = row["percent"].integer(minimum=1)
        if share > most:
            raise row["percent"].error(
                f"the share is {share} %", expected=f"1 to {most}, in per cent of a GPU"
            )
        yield row, model, batch, f"{MPS_PREFIX}{share}"
