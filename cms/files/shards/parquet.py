"""Jobs from Parquet files: a column ``demand``, and one for each block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FileError, InvalidOption, InvalidProblem
from ...problem.problem import Problem
from ...values.arrays import described
from ...values.names import nearest
from ...values.numbers import exact

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


#: Rows that are read at once.
_ROWS = 2**17
#: So many digits come back from a float as they were.
_EXACT_DIGITS = 15


def parquet_chunks(
    paths: Iterable[str | Path], problem: Problem
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the jobs of Parquet files, one after the other, as :func:`cms.pack` takes them."""
    wanted, jobs, paths = ["demand", *problem.blocks], 0, list(paths)
    for path in paths:  # what is wrong with the last file is told before hours of reading
        with _opened(path) as file:
            _refuse_columns(path, file.schema_arrow.names, wanted)
    for path in paths:
        with _opened(path) as file:
            for chunk in _chunks(path, file, wanted, jobs):
                yield chunk
                jobs += len(chunk[0])


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InvalidOption("Parquet files need the extra: `pip install '.[parquet]'`") from None
    try:
        with ParquetFile(path) as file:
            yield file
    except FileNotFoundError:
        raise FileError(path, "there is no such file") from None
    except (OSError, ArrowException) as fault:
        raise FileError(path, f"cannot be read as Parquet: {fault}") from None


def _chunks(
    path: str | Path, file: Any, wanted: list[str], first: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    row = 0
    for batch in file.iter_batches(batch_size=_ROWS, columns=wanted):
        columns = []
        for name in wanted:
            column = batch.column(name)
            if column.null_count:
                at = row + int(np.flatnonzero(column.is_null().to_numpy(False))[0])
                raise FileError(
                    path,
                    f"row {at}: job 'j{first + at}' has no {name!r}",
                    expected="a number; 0 for a block that gives nothing",
                )
            block = None if name == "demand" else name
            values = _values(path, name, column)
            columns.append(_numbers(path, row, first + row, values, block))
        row += len(batch)
        yield columns[0], _side_by_side(columns[1:], len(columns[0]))


def _numbers(
    path: str | Path, row: int, job: int, values: NDArray[Any], block: str | None
) -> NDArray[Any]:
    """Return numbers >= 0, and those of texts: here the row and file of each are known."""
    suspects: Iterable[int] = range(len(values))
    if values.dtype.kind != "O":
        suspects = np.flatnonzero(~((values >= 0) & np.isfinite(values)))[:1].tolist()
    for at in suspects:
        try:
            number = exact(values[at], described(f"j{job + at}", block))
        except InvalidProblem as fault:
            raise FileError(path, f"row {row + at}: {fault}") from None
        values[at] = number
    return values


def _refuse_columns(path: str | Path, found: list[str], wanted: list[str]) -> None:
    if "demand" in wanted[1:]:
        what = "has one column 'demand', for a block of that name and for what jobs demand"
        raise FileError(path, what, fix="give the block another name")
    for name in wanted:
        if (times := found.count(name)) != 1:
            what = f"several columns {name!r}" if times else f"no column {name!r}"
            hint = "" if times else nearest(name, found)
            expected = "columns " + ", ".join(map(repr, wanted))
            raise FileError(path, f"has {what}{hint}", expected=expected)
    for name in found:
        if name not in wanted:
            what = f"has a column {name!r}, which is no block of the head" + nearest(name, wanted)
            fix = "leave it out (jobs of a folder are called j0, j1, ...), or name the block there"
            raise FileError(path, what, fix=fix)


def _values(path: str | Path, name: str, column: Any) -> NDArray[Any]:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_integer(kind) or types.is_float64(kind) or types.is_float32(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if types.is_decimal(kind) and kind.precision <= _EXACT_DIGITS and kind.scale >= 0:
        return _floats(column)
    if types.is_decimal(kind) or types.is_string(kind) or types.is_large_string(kind):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    raise FileError(
        path,
        f"column {name!r} holds {kind}",
        expected="whole numbers, floats, decimals, or texts like '1/3'",
    )


def _floats(column: Any) -> NDArray[Any]:
    """Return decimals of few digits as the floats whose shortest decimals they are.

    Arrow's own cast multiplies by a rounded power of ten: 0.3 becomes 0.30000000000000004.
    """
    from pyarrow import decimal128

    scale = column.type.scale
    wide = column.cast(decimal128(column.type.precision, scale))
    # of 16 bytes a number the lower 8 are all that so few digits need
    words = np.frombuffer(wide.buffers()[1], "<i8")
    whole = words[2 * wide.offset : 2 * (wide.offset + len(wide)) : 2]
    return np.asarray(whole / 10.0**scale)  # correctly rounded, as both are exact


def _side_by_side(columns: list[NDArray[Any]], n: int) -> NDArray[Any]:
    if not columns:
        return np.zeros((n, 0), dtype=np.int64)
    kinds = {column.dtype for column in columns}
    if len(kinds) == 1 or np.dtype(np.float32) not in kinds:
        table = np.stack(columns, axis=1)
        with np.errstate(invalid="ignore"):
            back = [table[:, at].astype(column.dtype) for at, column in enumerate(columns)]
        if all(map(np.array_equal, back, columns)):
            return table
    table = np.empty((n, len(columns)), dtype=object)
    for at, column in enumerate(columns):
        # a float of 32 bits stays one: its shortest decimal is another than that of 64
        table[:, at] = list(column) if column.dtype == np.float32 else column.tolist()
    return table
