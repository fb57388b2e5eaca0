"""Folders of problems and solutions: a document, and every job's numbers in arrays beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from ...errors import FileError, InvalidOption, InvalidProblem
from ...problem.digest import LEAF, leaf_digests
from ...problem.parts import Configuration, MachineType
from ...problem.problem import Problem
from ...problem.rows import Rows
from ...shards.counts import Coded
from ...shards.engine import SHARD
from ...shards.problem import ShardedProblem
from ...shards.schedule import ShardedSchedule
from ...values.arrays import number_array
from ...values.names import NumberedNames
from .. import fields as f
from .. import model as m
from ..claims import Block, MachinesPart
from ..documents import read_folder_document, write_document
from ..folders import new_folder
from ..problems import MachinesDocument, MachineTypePart, problem_to_json
from ..schema_version import head
from .journal import Journal
from .stored import (
    StoredShard,
    array_bytes,
    lines_bytes,
    read_files,
    write_files,
    write_shard,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ...shards.engine import Engine, Loaded
    from ..source import StrPath

_LARGEST_SHARD = 2**30


def pack(
    problem: Problem,
    chunks: Iterable[tuple[ArrayLike, ArrayLike]],
    path: StrPath,
    *,
    size: int = SHARD,
) -> ShardedProblem:
    """Write a problem folder, however many jobs there are.

    Parameters
    ----------
    problem : Problem
        Machines, configurations and blocks; without jobs.
    chunks : iterable of (demands, supply)
        Jobs as of :meth:`cms.Problem.from_arrays`, (n,) and (n, k), held one chunk at a time.
    path : str or path-like
        The folder, which must not be there yet. It appears when all is written.
    size : int, optional
        Jobs of a shard, a multiple of 65,536.

    Raises
    ------
    FileError
        If the folder is there already, or cannot be written.
    InvalidProblem
        If the problem has jobs, or a number is none; it names the job and the block.

    Examples
    --------
    >>> import cms, pathlib, tempfile
    >>> head = cms.Problem(configurations=cms.Configuration({"7g": 1}))
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "fleet")
    >>> problem = cms.pack(head, [([3, 5], [[2], [4]]), ([7], [[1.5]])], folder)
    >>> problem.n_jobs, cms.solve(problem).machine_count
    (3, 9)
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem(f"the head is {problem!r}; expected a cms.Problem without jobs")
    if problem.n_jobs:
        raise InvalidProblem(f"the head has {problem.n_jobs} jobs; expected none, they come after")
    if type(size) is not int or size % LEAF or not 0 < size <= _LARGEST_SHARD:
        raise InvalidProblem(f"size is {size!r}; expected a multiple of {LEAF} up to 2**30")
    with new_folder(path, "jobs") as aside:
        shards, first = [], 0
        for number, rows in enumerate(_shards(problem, chunks, size)):
            file = f"{number:06d}"
            sums = write_shard(aside, file, first, rows)
            names = NumberedNames("j", first + len(rows))
            leaves = [leaf.hex() for leaf in leaf_digests(names, rows, problem.blocks, first)]
            shards.append({"file": file, "jobs": len(rows), "sha256": sums, "leaves": leaves})
            first += len(rows)
        document = problem_to_json(problem) | head("cms-problem-folder")
        document["jobs"] = {"count": first, "in_a_shard": size, "shards": shards}
        write_document(lambda: document, aside / "problem.json")
    return open_problem(path)


def _shards(
    problem: Problem, chunks: Iterable[tuple[ArrayLike, ArrayLike]], size: int
) -> Iterator[Rows]:
    waiting: list[Rows] = []
    held = first = 0
    for demands, supply in chunks:
        wanted = number_array(demands, "demands")
        names = NumberedNames("j", first + (len(wanted) if wanted.ndim else 0), first)
        rows = Rows.from_arrays(wanted, supply, names, problem.blocks)
        first += len(rows)
        while held + len(rows) >= size:
            yield Rows.joined([*waiting, rows.part(0, size - held)], len(problem.blocks))
            rows = rows.part(size - held, len(rows))
            waiting, held = [], 0
        if len(rows):
            waiting.append(rows)
            held += len(rows)
    if held:
        yield Rows.joined(waiting, len(problem.blocks))


def open_problem(
    path: StrPath, *, engine: Engine | None = None, journal: StrPath | None = None
) -> ShardedProblem:
    """Open a problem folder; no job is read until something asks for it.

    Parameters
    ----------
    path : str or path-like
    engine : Engine, optional
        What works on its shards: by default this process; a cluster of :func:`cms.cluster`.
    journal : str or path-like, optional
        A folder in which a search keeps what its passes found, to go on after it was cut off.

    Raises
    ------
    FileError
        If it is no problem folder, or the journal is another problem's.

    Examples
    --------
    >>> import cms, pathlib, tempfile
    >>> head, folder = cms.Problem(configurations=cms.Configuration({"7g": 1})), tempfile.mkdtemp()
    >>> _ = cms.pack(head, [([3, 5], [[2], [4]])], pathlib.Path(folder, "fleet"))
    >>> cms.open_problem(pathlib.Path(folder, "fleet")).n_jobs
    2
    """
    document = read_folder_document(path, "problem.json", "cms-problem-folder")
    # wherever the process, or a worker, is when it reads
    machines, shards = m.build(FolderDocument, document, folder=Path(path).absolute())
    problem = ShardedProblem(machines, shards, engine)
    if journal is None:
        return problem
    known = Journal(Path(journal).absolute(), problem.stated_sha256())
    return ShardedProblem(machines, shards, engine, recall=known.recall)


class FilesPart(m.Part):
    """The files of a shard, with the SHA-256 of each."""

    REQUIRED: ClassVar[tuple[str, ...]] = ("npy",)
    OPTIONAL: ClassVar[tuple[str, ...]] = ("wide",)
    file: f.Text
    sha256: dict[str, f.Sha256]

    def stated(self, number: int) -> tuple[tuple[str, str], ...]:
        """Return which files the shard has; they are called by its number."""
        if self.file != f"{number:06d}":
            raise f.refusal(f'"{number:06d}"', "file")
        kinds = dict.fromkeys((*self.REQUIRED, *self.OPTIONAL))
        for kind in self.sha256:
            f.refuse_unknown(kind, "file", kinds, "sha256", kind, at_key=True)
        for kind in self.REQUIRED:
            if kind not in self.sha256:
                raise f.refusal(f'the key "{kind}"', "sha256", what=f'{{}} has no "{kind}"')
        return tuple((kind, self.sha256[kind]) for kind in kinds if kind in self.sha256)


class _ShardPart(FilesPart):
    REQUIRED: ClassVar[tuple[str, ...]] = ("demand.npy", "supply.npy")
    OPTIONAL: ClassVar[tuple[str, ...]] = ("denominator.npy", "wide")
    jobs: f.AtLeastOne
    leaves: tuple[f.Sha256, ...]


class _StoredJobs(m.Part):
    count: f.Count
    in_a_shard: f.AtLeastOne
    shards: tuple[_ShardPart, ...]


class FolderDocument(MachinesDocument):
    """A problem in a folder: its jobs stand in arrays beside the document."""

    KIND: ClassVar[str] = "cms-problem-folder"
    machine_types: tuple[Annotated[MachineType, m.Built(MachineTypePart)], ...]
    blocks: tuple[Block, ...]
    jobs: _StoredJobs

    def build(self, folder: Path | None = None) -> tuple[Problem, list[StoredShard]]:
        """Build the problem without jobs, and its shards."""
        machines, size = self.frame(), self.jobs.in_a_shard
        shards, first, last = list[StoredShard](), 0, len(self.jobs.shards) - 1
        with f.blaming("jobs"):
            if size % LEAF or size > _LARGEST_SHARD:
                raise f.refusal(f"a multiple of {LEAF} up to 2**30", "in_a_shard")
            for number, part in enumerate(self.jobs.shards):
                with f.blaming("shards", number):
                    sums, n = part.stated(number), part.jobs
                    if n != size and (number < last or n > size):
                        raise f.refusal(f"{size} jobs, or in the last shard fewer", "jobs")
                    if len(part.leaves) != (wanted := -(-n // LEAF)):
                        what = f"{{}} has {len(part.leaves)} entries"
                        raise f.refusal(f"{wanted} entries", "leaves", what=what)
                leaves = tuple(map(bytes.fromhex, part.leaves))
                name, k = f"shard {part.file} of {folder}", len(machines.blocks)
                shards.append(StoredShard(first, n, name, leaves, str(folder), part.file, k, sums))
                first += n
            if self.jobs.count != first:
                raise f.refusal(f"{first}, the jobs of all shards", "count")
        return machines, shards


class StoredCut(NamedTuple):
    """The counts of one shard, in files of a solution folder, with the SHA-256 of each."""

    folder: str
    file: str
    sha256: tuple[tuple[str, str], ...]

    def table(self, loaded: Loaded) -> NDArray[Any]:
        """Read them."""
        n, k = len(loaded.rows), loaded.rows.n_blocks
        base, jobs = Path(self.folder, "counts", self.file), range(loaded.first, loaded.first + n)
        found = read_files(base, self.sha256, {"npy": (n, k)}, k, jobs)
        table: NDArray[Any] = found["npy"]
        if "wide" in found:
            table = table.astype(object)
            for job, numbers in found["wide"].items():
                if any(table[job - loaded.first]):
                    raise FileError(f"{base}.wide", f"job {job} is in the array as well")
                table[job - loaded.first] = numbers
        return table


class FolderSchedulePart(m.Part):
    """The machines of a schedule in shards, and the files of its jobs' blocks."""

    machines: tuple[MachinesPart, ...]
    counts: tuple[FilesPart, ...]

    def build(self, folder: Path | None = None) -> ShardedSchedule:
        """Build the schedule; its arrays are read on demand."""
        machines: dict[Configuration, int] = {}
        for index, part in enumerate(self.machines):
            with f.blaming("machines", index):
                shape = part.shape()
                if shape in machines:
                    raise f.refusal(what=f"{{}} has the configuration {shape} a second time")
                if part.count < 0:
                    raise f.refusal("a whole number >= 0", "count")
            machines[shape] = part.count
        counts = []
        for number, files in enumerate(self.counts):
            with f.blaming("counts", number):
                counts.append(StoredCut(str(folder), files.file, files.stated(number)))
        return ShardedSchedule(machines, tuple(counts))

    @classmethod
    def describe(cls, schedule: ShardedSchedule, counts: Sequence[Any]) -> Self:
        """Describe a schedule whose counts are in these files."""
        machines = [
            MachinesPart.from_fields(
                machine=shape.machine, configuration=dict(shape.blocks), count=count
            )
            for shape, count in schedule.machines.items()
        ]
        return cls.from_fields(machines=machines, counts=counts)


def write_solution_folder(
    describe: Callable[[Any], dict[str, Any]], schedule: ShardedSchedule, path: Path
) -> None:
    """Write a solution folder, which must not be there yet, and appears when all is written."""
    with new_folder(path, "counts") as aside:
        files, first = [], 0
        for number, part in enumerate(schedule.counts):
            if not isinstance(part, Coded):
                raise InvalidOption("this schedule is in a folder already; copy that")
            files.append(_write_counts(aside / "counts" / f"{number:06d}", part.table(), first))
            first += len(part.codes)
        whole = describe(FolderSchedulePart.describe(schedule, files))
        write_document(lambda: whole, aside / "solution.json")


def _write_counts(base: Path, table: NDArray[Any], first: int) -> FilesPart:
    files = {}
    if table.dtype.kind == "O":
        long = np.array([max(row, default=0) >= 2**63 for row in table.tolist()], dtype=np.bool_)
        if long.any():
            files["wide"] = lines_bytes(
                (first + j, *table[j]) for j in np.flatnonzero(long).tolist()
            )
        table = np.where(long[:, None], 0, table).astype(np.int64)
    files["npy"] = array_bytes(table)
    sums = write_files(base, dict(sorted(files.items())))
    return FilesPart.from_fields(file=base.name, sha256=sums)
