"""Folders of problems and solutions: a document, and every job's numbers in arrays beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import FileError, InvalidOption, InvalidProblem
from ...problem.digest import LEAF, leaf_digests
from ...problem.parts import Configuration
from ...problem.problem import Problem
from ...problem.rows import Rows
from ...shards.counts import Coded
from ...shards.engine import SHARD
from ...shards.problem import ShardedProblem
from ...shards.schedule import ShardedSchedule
from ...values.arrays import number_array
from ...values.names import NumberedNames
from ..claims import machines_from_json, machines_to_json
from ..documents import check_head, head, read_folder_document, write_document
from ..fields import AT_LEAST_ONE, COUNT, SHA256, Field
from ..folders import new_folder
from ..node import Node
from ..problems import problem_from_json, problem_to_json
from .journal import Journal
from .stored import (
    StoredShard,
    array_bytes,
    lines_bytes,
    read_files,
    stated_files,
    write_files,
    write_shard,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ...shards.engine import Engine, Loaded
    from ..source import StrPath

_LARGEST_SHARD = 2**30
_MACHINES = ("blocks", "machine_types", "configurations")
_JOB_FILES = {
    "demand.npy": SHA256,
    "supply.npy": SHA256,
    "denominator.npy": SHA256.or_else(None),
    "wide": SHA256.or_else(None),
}


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
    node = read_folder_document(path, "problem.json", "cms-problem-folder")
    check_head(node, "cms-problem-folder")
    fields = node.object(("format", "schema", *_MACHINES, "jobs"))
    frame = {**head("cms-problem"), **{key: node.value[key] for key in _MACHINES}, "jobs": []}
    machines = problem_from_json(Node(frame, node.source))
    assert isinstance(machines, Problem)
    jobs = fields["jobs"].object(("count", "in_a_shard", "shards"))
    size = jobs["in_a_shard"].integer(minimum=1)
    if size % LEAF or size > _LARGEST_SHARD:
        raise jobs["in_a_shard"].wrong(f"a multiple of {LEAF} up to 2**30")
    # wherever the process, or a worker, is when it reads
    shards, first, folder = list[StoredShard](), 0, Path(path).absolute()
    entries = list(jobs["shards"].array())
    for number, entry in enumerate(entries):
        shard = _shard(entry, folder, number, first, len(machines.blocks))
        if shard.n_jobs != size and (number + 1 < len(entries) or shard.n_jobs > size):
            raise entry.at("jobs").wrong(f"{size} jobs, or in the last shard fewer")
        shards.append(shard)
        first += shard.n_jobs
    if jobs["count"].integer() != first:
        raise jobs["count"].wrong(f"{first}, the jobs of all shards")
    problem = ShardedProblem(machines, shards, engine)
    if journal is None:
        return problem
    known = Journal(Path(journal).absolute(), problem.stated_sha256())
    return ShardedProblem(machines, shards, engine, recall=known.recall)


def _shard(entry: Node, folder: Path, number: int, first: int, n_blocks: int) -> StoredShard:
    leaf = Field(lambda node: bytes.fromhex(SHA256.read(node)), str)
    sums, others = stated_files(
        entry, number, _JOB_FILES, jobs=AT_LEAST_ONE, leaves=Field(lambda node: node, str)
    )
    n = others["jobs"]
    leaves = tuple(leaf.read(each) for each in others["leaves"].array(length=-(-n // LEAF)))
    file = f"{number:06d}"
    name = f"shard {file} of {folder}"
    return StoredShard(first, n, name, leaves, str(folder), file, n_blocks, sums)


_COUNT_FILES = {"npy": SHA256, "wide": SHA256.or_else(None)}


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


def write_solution_folder(
    document: Mapping[str, Any], schedule: ShardedSchedule, path: Path
) -> None:
    """Write a solution folder, which must not be there yet, and appears when all is written."""
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
    return {"file": base.name, "sha256": write_files(base, dict(sorted(files.items())))}


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
            StoredCut(str(folder), f"{at:06d}", stated_files(entry, at, _COUNT_FILES))
            for at, entry in enumerate(counts)
        ),
    )
