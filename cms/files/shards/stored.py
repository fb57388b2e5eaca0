"""Arrays and lines of numbers in the files of a folder: hashed, and read exactly."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FileError
from ...problem.rows import Row, Rows
from ...shards.engine import Shard
from ...values.arrays import narrowest
from ...values.numbers import LARGEST_DIGITS
from ..source import telling, write_synced

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Files whose bytes are known to be what their SHA-256 says, in this process: hashing takes as long
#: as a pass. A write changes its times, the last of which no program can set.
_VERIFIED: set[tuple[str, str, tuple[int, ...]]] = set()
#: Of arrays, as files have them.
_KINDS = ("|i1", "<i2", "<i4", "<i8")
_LINE = re.compile("(0|[1-9][0-9]*)(:(0|[1-9][0-9]*))*")
_RESTORE = "restore the file, or make the folder again"


def write_files(base: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write the files of a shard, and return the SHA-256 of each by its kind."""
    for kind, data in files.items():
        with telling(path := Path(f"{base}.{kind}")):
            write_synced(path, data)
    return {kind: hashlib.sha256(data).hexdigest() for kind, data in files.items()}


def read_files(
    base: Path,
    sha256: Sequence[tuple[str, str]],
    shapes: Mapping[str, tuple[int, ...]],
    length: int,
    jobs: range,
) -> dict[str, Any]:
    """Read the files of a shard by their kinds: arrays of these shapes, and rows of long numbers.

    A file that the document does not name is refused: others might read it.
    """
    sums, found = dict(sha256), dict[str, Any]()
    for kind in (*shapes, "wide"):
        path = Path(f"{base}.{kind}")
        if kind not in sums:
            if path.exists():
                raise FileError(path, "is there, and the document has no SHA-256 of it")
        elif kind == "wide":
            found[kind] = read_lines(path, sums[kind], length, jobs)
        else:
            found[kind] = read_array(path, sums[kind], shapes[kind])
    return found


def array_bytes(values: NDArray[Any]) -> bytes:
    """Return the bytes of an array's file, in as few bytes a number as there can be."""
    target = BytesIO()
    np.save(target, np.ascontiguousarray(narrowest(values)), allow_pickle=False)
    return target.getvalue()


def lines_bytes(rows: Iterable[Sequence[int]]) -> bytes:
    """Return the bytes of a file of long numbers: a row a line, with colons between them."""
    return "".join(":".join(map(str, row)) + "\n" for row in rows).encode()


def read_bytes(path: Path, sha256: str) -> bytes:
    """Read a file that is what its SHA-256 says."""
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())  # before it is read: what is written meanwhile is hashed
            data = file.read()
    except OSError as fault:
        raise _broken(path, f"cannot be read: {fault.strerror or fault}") from None
    state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
    key = str(path), sha256, state
    if key not in _VERIFIED:
        if hashlib.sha256(data).hexdigest() != sha256:
            raise _broken(path, "its bytes are not what its SHA-256 says")
        _VERIFIED.add(key)
    return data


def read_array(path: Path, sha256: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read an array of whole numbers >= 0 of a shape, which is written row by row."""
    data = BytesIO(read_bytes(path, sha256))
    version = found = kind = by_columns = None
    with suppress(ValueError, SyntaxError, TokenError, RecursionError, MemoryError):
        version = np.lib.format.read_magic(data)
        found, by_columns, kind = np.lib.format.read_array_header_1_0(data)
    numbers = data.getbuffer()[data.tell() :]
    if version != (1, 0) or kind is None or len(numbers) != kind.itemsize * math.prod(shape):
        raise _broken(path, f"is no array of shape {shape}", ".npy, version 1.0")
    if kind.str not in _KINDS or found != shape or (by_columns and len(shape) > 1):
        what = f"holds {kind.str} of shape {found}"
        raise _broken(path, what, f"signed little-endian integers of shape {shape} by rows")
    values = np.frombuffer(numbers, kind).reshape(shape)
    if values.size and int(values.min()) < 0:
        raise FileError(str(path), f"holds the number {int(values.min())}", expected="numbers >= 0")
    return values


def read_lines(path: Path, sha256: str, length: int, jobs: range) -> dict[int, tuple[int, ...]]:
    """Read rows of long numbers, `length` a line, by their jobs, which come first and in order."""
    found: dict[int, tuple[int, ...]] = {}
    *lines, end = read_bytes(path, sha256).decode("ascii", "replace").split("\n")
    if end or not lines:
        raise _broken(path, "does not end with a line")
    last = -1
    for at, line in enumerate(lines, 1):
        parts = line.split(":")
        too_long = max(map(len, parts)) > LARGEST_DIGITS
        if too_long or len(parts) != length + 1 or not _LINE.fullmatch(line):
            expected = f"{length + 1} whole numbers with colons between them"
            raise _broken(path, f"line {at} is no row", expected)
        job, *numbers = map(int, parts)
        if job not in jobs or job <= last:
            expected = f"each job at most once, in order, from {jobs.start} to {jobs.stop - 1}"
            raise _broken(path, f"line {at} is about job {job}", expected)
        if max(numbers, default=0) < 2**63:
            expected = "one of 2**63 or more; other rows are in the arrays"
            raise _broken(path, f"line {at} has no long number", expected)
        found[job] = tuple(numbers)
        last = job
    return found


def _broken(path: Path | str, what: str, expected: str | None = None) -> FileError:
    return FileError(str(path), what, expected=expected, fix=_RESTORE)


@dataclass(frozen=True)
class StoredShard(Shard):
    """A shard in the files of a problem folder, whose names begin with `file`."""

    folder: str
    file: str
    n_blocks: int
    sha256: tuple[tuple[str, str], ...]

    @property
    def _base(self) -> Path:
        return Path(self.folder, "jobs", self.file)

    def read(self) -> dict[str, Any]:
        """Read its files."""
        n, k = self.n_jobs, self.n_blocks
        shapes = {"demand.npy": (n,), "supply.npy": (n, k), "denominator.npy": (n,)}
        return read_files(self._base, self.sha256, shapes, k + 2, range(self.first, self.first + n))

    def all_rows(self, narrow: dict[str, Any]) -> Rows:
        """Return the exact rows of all blocks."""
        demands, supplies = (narrow[what].astype(np.int64) for what in ("demand.npy", "supply.npy"))
        wide = {
            j - self.first: Row(numbers[1], numbers[2:], numbers[0])
            for j, numbers in narrow.get("wide", {}).items()
        }
        places = np.array(sorted(wide), dtype=np.int64)
        if "denominator.npy" in narrow:
            denominators = narrow["denominator.npy"].astype(np.int64)
        else:
            denominators = np.ones(self.n_jobs, dtype=np.int64)
            denominators[places] = 0
        none = np.flatnonzero(denominators == 0)
        if not np.array_equal(none, places) or demands[places].any() or supplies[places].any():
            what = "its jobs are not those whose numbers are 0 in the arrays"
            raise _broken(f"{self._base}.wide", what)
        if any(row.denominator < 1 for row in wide.values()):
            raise _broken(f"{self._base}.wide", "a denominator is 0")
        return Rows(demands, supplies, denominators, wide)

    def row(self, job: int) -> Row:
        """Return a single job's row; jobs count from the first of the shard."""
        sums = dict(self.sha256)
        try:
            demand, supply, *denominator = (
                np.load(f"{self._base}.{what}", mmap_mode="r")[job].tolist()
                for what in ("demand.npy", "supply.npy", "denominator.npy")
                if what in sums
            )
        except (OSError, ValueError, IndexError) as fault:
            raise _broken(self.name, f"cannot be read: {fault}") from None
        if "wide" in sums and not demand and not any(supply):
            return self.rows(self.read()).row(job)
        return Row(demand, tuple(supply), *denominator or (1,))


def write_shard(folder: Path, file: str, first: int, rows: Rows) -> dict[str, str]:
    """Write the files of a shard, and return the SHA-256 of each."""
    files = {"demand.npy": array_bytes(rows.demands), "supply.npy": array_bytes(rows.supplies)}
    plain = rows.denominators == 1
    plain[list(rows.wide)] = True
    if not plain.all():
        files["denominator.npy"] = array_bytes(rows.denominators)
    if rows.wide:
        files["wide"] = lines_bytes(
            (first + j, row.denominator, row.demand, *row.supply)
            for j, row in sorted(rows.wide.items())
        )
    return write_files(folder / "jobs" / file, files)
