"""Solution folders: machines in a document, and the blocks of every job in arrays beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import FileError, InvalidOption
from ...problem.parts import Configuration
from ...shards.counts import Coded
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
    from numpy.typing import NDArray

    from ...shards.engine import Loaded
    from ..node import Node


_FILES = {"npy": SHA256, "wide": SHA256.or_else(None)}


class StoredCut(NamedTuple):
    """The counts of one shard, in files of a solution folder, with the SHA-256 of each."""

    folder: str
    file: str
    sha256: tuple[tuple[str, str], ...]

    def table(self, loaded: Loaded) -> NDArray[Any]:
        """Read them."""
        n, k, sums = len(loaded.rows), loaded.rows.n_blocks, dict(self.sha256)
        base = Path(self.folder, "counts", self.file)
        refuse_strangers(base, sums, ("wide",))
        table = read_array(Path(f"{base}.npy"), sums["npy"], (n, k))
        if "wide" in sums:
            path, jobs = Path(f"{base}.wide"), range(loaded.first, loaded.first + n)
            table = table.astype(object)
            for job, numbers in read_lines(path, sums["wide"], k, jobs).items():
                if any(table[job - loaded.first]):
                    raise FileError(str(path), f"job {job} is in the array as well")
                table[job - loaded.first] = numbers
        return table


def write_solution_folder(
    document: Mapping[str, Any], schedule: ShardedSchedule, path: Path
) -> None:
    """Write a solution folder, which must not be there yet, and appears when all is written.

    `document` is all of the solution's but its format and its schedule.
    """
    with new_folder(path, "counts") as aside:
        files, first = [], 0
        for number, part in enumerate(schedule.counts):
            if not isinstance(part, Coded):
                raise InvalidOption("this schedule is in a folder already; copy that")
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


def sharded_schedule_from_json(value: Node, folder: Path) -> ShardedSchedule:
    """Read the schedule of a solution folder; its arrays are read when somebody asks for them."""
    fields = value.object(("machines", "counts"))
    machines: dict[Configuration, int] = {}
    for entry in fields["machines"].array():
        shape, number, _ = machines_from_json(entry, COUNT)
        if shape in machines:
            raise entry.error(f"{entry.label} has the configuration {shape} a second time")
        machines[shape] = number
    counts = fields["counts"].array()
    return ShardedSchedule(
        machines,
        tuple(
            StoredCut(str(folder), f"{at:06d}", stated_files(entry, at, _FILES))
            for at, entry in enumerate(counts)
        ),
    )
