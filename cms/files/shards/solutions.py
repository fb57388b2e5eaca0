"""Solution folders: machines in a document, and the blocks of every job in arrays beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import FileError, InvalidOption, InvalidSchedule
from ...problem.parts import Configuration
from ...shards.counts import CountsInMemory
from ...shards.schedule import ShardedSchedule
from ..fields import COUNT, SHA256
from ..folders import new_folder
from ..layout import write_document
from ..schedules import machines_from_json, machines_to_json
from .stored import (
    array_bytes,
    lines_bytes,
    read_array,
    read_lines,
    refuse_strangers,
    stated_files,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...shards.shard import Loaded, Shard
    from ..node import Node


_FILES = {"npy": SHA256, "wide": SHA256.or_else(None)}


class StoredCounts(NamedTuple):
    """Counts in the files of a solution folder."""

    folder: str
    sha256: tuple[tuple[tuple[str, str], ...], ...]

    @property
    def n_shards(self) -> int:
        """Of how many shards there are counts."""
        return len(self.sha256)

    def cut(self, number: int, shard: Shard) -> StoredCut:
        """Return where the counts of a shard are."""
        del shard
        if number >= len(self.sha256):
            raise InvalidSchedule(f"there are no counts for shard {number:06d}")
        return StoredCut(self.folder, f"{number:06d}", dict(self.sha256[number]))


class StoredCut(NamedTuple):
    """The counts of one shard, in files."""

    folder: str
    file: str
    sha256: dict[str, str]

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Read them."""
        n, k = len(loaded.rows), loaded.rows.n_blocks
        base = Path(self.folder, "counts")
        refuse_strangers(base / self.file, self.sha256, ("wide",))
        table = read_array(base / f"{self.file}.npy", self.sha256["npy"], (n, k))
        if "wide" in self.sha256:
            jobs = range(loaded.first, loaded.first + n)
            wide = read_lines(base / f"{self.file}.wide", self.sha256["wide"], k, jobs)
            table = table.astype(object)
            for job, numbers in wide.items():
                if any(table[job - loaded.first]):
                    raise FileError(
                        str(base / f"{self.file}.wide"), f"job {job} is in the array as well"
                    )
                table[job - loaded.first] = numbers
        return table


def write_solution_folder(
    document: Mapping[str, Any], schedule: ShardedSchedule, path: Path
) -> None:
    """Write a solution folder, which must not be there yet, and appears when all is written.

    `document` is all of the solution's but its format and its schedule.
    """
    counts: Any = schedule.counts
    if counts is not None and not isinstance(counts, CountsInMemory):
        raise InvalidOption("this schedule is in a folder already; copy that")
    with new_folder(path, "counts") as aside:
        files, first = [], 0
        for number, part in enumerate(() if counts is None else counts.parts):
            files.append(_write_counts(aside / "counts" / f"{number:06d}", part.table(), first))
            first += len(part.codes)
        machines = [machines_to_json(*each) for each in schedule.machines.items()]
        whole = {
            **document, "format": "cms-solution-folder",
            "schedule": {"machines": machines, "counts": files},
        }  # fmt: skip
        write_document(lambda: whole, aside / "solution.json")


def _write_counts(base: Path, table: NDArray[Any], first: int) -> dict[str, Any]:
    files = {}
    if table.dtype.kind == "O":
        long = np.array([max(row, default=0) >= 2**63 for row in table.tolist()], dtype=np.bool_)
        if long.any():
            files["wide"] = lines_bytes(
                (first + j, *table[j]) for j in np.flatnonzero(long).tolist()
            )
        table = np.where(long[:, None], 0, table).astype(np.int64)
    files["npy"] = array_bytes(table)
    sums = {what: write_file(Path(f"{base}.{what}"), files[what]) for what in sorted(files)}
    return {"file": base.name, "sha256": sums}


def schedule_from_json(value: Node, folder: Path) -> ShardedSchedule:
    """Read the schedule of a solution folder; its arrays are read when somebody asks for them."""
    fields = value.object(("machines", "counts"))
    machines: dict[Configuration, int] = {}
    for entry in fields["machines"].array():
        shape, number, _ = machines_from_json(entry, COUNT)
        if shape in machines:
            raise entry.error(f"{entry.label} has the configuration {shape} a second time")
        machines[shape] = number
    sums = [stated_files(entry, at, _FILES) for at, entry in enumerate(fields["counts"].array())]
    if not sums:
        return ShardedSchedule(machines)
    return ShardedSchedule(machines, StoredCounts(str(folder), tuple(sums)))


def schedule_reader(folder: Path) -> Callable[[Node], ShardedSchedule]:
    """Return what reads the schedule of a folder's document."""
    return lambda value: schedule_from_json(value, folder.absolute())
