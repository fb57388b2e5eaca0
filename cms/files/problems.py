"""Problems as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import InvalidOption
from ..plugin.registry import load_function
from ..problem.machine_problem import MachineProblem
from ..problem.parts import (
    DEFAULT_MACHINE,
    AnyConfiguration,
    Configuration,
    MachineType,
    SizeBoundedConfigurations,
)
from ..problem.problem import Problem
from ..problem.rows import Rows
from ..shards.problem import ShardedProblem
from ..time_sharing.frames import FrameRule
from ..time_sharing.model import TimeSharedJob
from ..time_sharing.problem import TimeSharedProblem
from ..values.numbers import shown
from . import fields as f
from .claims import no_block
from .documents import check_head, head, number_to_json, read_document, write_document
from .node import Node
from .source import StrPath

#: A problem holds a supply for every job and block. Beyond so many, a document must give one
#: supply in a hundred: what is read then stays in proportion to the file.
MOST_ZEROS, ZEROS_A_SUPPLY = 10_000_000, 100

#: In the order of the file; a list would be searched anew for each of thousands of names.
Names: TypeAlias = dict[str, object]


_MACHINE_TYPE = f.record(
    MachineType, name=f.TEXT, cost=f.NUMBER.or_else(1), limit=f.nullable(f.COUNT).or_else(None)
)
_SHARING = {"rule": f.choice(FrameRule), "max_jobs": f.nullable(f.AT_LEAST_ONE).or_else(None)}


def _size(node: Node) -> Fraction:
    if not (size := node.number()):
        raise node.wrong("a number > 0", "any number of blocks of size 0 would fit")
    return size


def _shape(machines: Names, blocks: Names | None) -> f.Field:
    machine = f.Field(lambda node: node.one_of(machines), str)
    if len(machines) == 1:
        machine = machine.or_else(next(iter(machines)))
    listed = {"machine": machine, "blocks": f.table("block", f.COUNT, blocks)}
    bounded = {
        "machine": machine,
        "sizes": f.table("block", f.Field(_size, number_to_json), blocks),
        "capacity": f.NUMBER,
        "max_blocks": f.nullable(f.AT_LEAST_ONE).or_else(None),
    }

    def read(entry: Node) -> AnyConfiguration:
        if not isinstance(entry.value, dict):
            raise entry.wrong('an object with "blocks", or with "sizes" and "capacity"')
        key, fields = ("sizes", bounded) if "sizes" in entry.value else ("blocks", listed)
        found = f.read_object(entry, fields)
        if not any(found[key].values()):
            raise no_block(entry.at(key), "leave this configuration out")
        kind: Any = SizeBoundedConfigurations if key == "sizes" else Configuration
        shape: AnyConfiguration = entry.build(kind, **found)
        return shape

    return f.Field(
        read, lambda it: f.write_object(it, listed if isinstance(it, Configuration) else bounded)
    )


_POINT = f.row(f.POSITIVE, f.POSITIVE)


def _read_points(node: Node) -> list[tuple[Fraction, Fraction]]:
    lengths: dict[Fraction, Fraction] = {}
    for entry in node.array():
        amount, length = _POINT.read(entry)
        if amount in lengths:
            label, expected = entry.at(0).label, "one length for every amount"
            what = f"{label}: there are two points of the amount {shown(amount)}"
            raise entry.at(0).error(what, expected=expected)
        lengths[amount] = length
    return list(lengths.items())


_POINTS = f.Field(_read_points, lambda them: [_POINT.write((p.amount, p.length)) for p in them])


def _shared_job(blocks: Names) -> f.Field:
    return f.record(
        TimeSharedJob,
        name=f.TEXT,
        demand=f.NUMBER,
        limit=f.POSITIVE,
        points=f.table("block", _POINTS, blocks),
    )


def _named(node: Node, kind: str) -> Iterator[Node]:
    """Yield the entries of an array, whose errors have their names, which must differ."""
    seen: dict[str, object] = {}
    for entry in node.array():
        if isinstance(entry.value, dict) and "name" in entry.value:
            entry.about = f"{kind} {entry.at('name').new_name(kind, seen)!r}"
        yield entry


def read_problem(path: StrPath) -> Problem | TimeSharedProblem:
    """Read a problem from a JSON file, every number exactly as written: never through a float.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file.

    Examples
    --------
    >>> read_problem("none.json")
    Traceback (most recent call last):
    cms.errors.FileError: none.json: there is no such file
    """
    return problem_from_json(read_document(path, "cms-problem"))


def write_problem(problem: Problem | TimeSharedProblem, path: StrPath) -> None:
    """Write a problem to a JSON file, one job a line.

    Parameters
    ----------
    problem : Problem or TimeSharedProblem
    path : str or path-like
        The file; ``-`` is standard output.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> problem = Problem.from_arrays(demands=["1/3"], supply=[[0.1]], configurations=[[2]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> write_problem(problem, path)
    >>> read_problem(path) == problem, path.read_text().splitlines()[1]
    (True, '  "format": "cms-problem",')
    """
    write_document(lambda: problem_to_json(problem), path)


def write_program(problem: MachineProblem, path: StrPath) -> Any:
    """Write the integer program of a problem for another solver.

    It is the compact one of Casey, Rajaraman, Stalfa and Tan (APPROX 2024,
    https://doi.org/10.4230/LIPIcs.APPROX/RANDOM.2024.22) in integers: minimise the machines' cost;
    the blocks of each type on all machines are at least those given to jobs; what a job is given
    meets its demand. Where a size-bounded set has more maximal contents than can be listed, its
    machines are paths (arc flow; Valerio de Carvalho, https://doi.org/10.1023/A:1018952112615).

    Parameters
    ----------
    problem : Problem
    path : str or path-like
        The file; its ending says how it is written: ``.mps`` or ``.lp``.

    Returns
    -------
    named tuple
        ``program``; how many ``variables`` and ``rows``; ``step``, what 1 of the objective costs.

    Raises
    ------
    UnknownInstance, UnsupportedProblem, FileError
        If nobody writes files of this ending, a float does not hold a number, there is nothing to
        decide, jobs share or are shards, or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import Configuration, Job, Problem, write_program
    >>> shape, jobs = Configuration({"1g": 7}), [Job("bert", 1200, {"1g": 90})]
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.lp"
    >>> write_program(Problem(configurations=shape, jobs=jobs), path)
    Written(program='compact', variables=2, rows=2, step=Fraction(1, 1))
    """
    path = Path(path)
    return load_function("cms.programs", path.suffix[1:].lower())(problem, path)


def problem_to_json(problem: MachineProblem) -> dict[str, Any]:
    """Turn a problem into the document that :func:`problem_from_json` reads."""
    if isinstance(problem, ShardedProblem):
        raise InvalidOption(
            "a problem in shards has no document: its folder says it; load() what fits into memory"
        )
    shared, jobs = {}, []
    if isinstance(problem, TimeSharedProblem):
        shared = {"time_sharing": f.write_object(problem, _SHARING)}
        jobs = f.array(_shared_job({})).write(problem.jobs)
    else:
        assert isinstance(problem, Problem)
        jobs = _jobs_to_json(problem)
    return {
        **head("cms-problem"),
        **shared,
        "machine_types": f.array(_MACHINE_TYPE).write(problem.machine_types),
        "blocks": list(problem.blocks),
        "configurations": f.array(_shape({}, None)).write(problem.configurations),
        "jobs": jobs,
    }


def problem_from_json(document: Node | Mapping[str, Any]) -> Problem | TimeSharedProblem:
    """Turn a parsed document into a problem; its ``time_sharing`` says which kind it is."""
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, "cms-problem")
    fields = node.object(
        ("format", "schema", "configurations", "jobs"), ("time_sharing", "machine_types", "blocks")
    )
    listed = _named(fields["machine_types"], "machine type") if "machine_types" in fields else ()
    types = [_MACHINE_TYPE.read(entry) for entry in listed] or [MachineType(DEFAULT_MACHINE)]
    machines = dict.fromkeys(machine.name for machine in types)
    blocks: Names | None = None
    if "blocks" in fields:
        blocks = {}
        for entry in fields["blocks"].array():
            entry.new_name("block", blocks)
    shapes = f.array(_shape(machines, blocks)).read(fields["configurations"])
    if blocks is None:
        held = (s.blocks if isinstance(s, Configuration) else s.sizes for s in shapes)
        blocks = dict.fromkeys(block for each in held for block in each)
    if "time_sharing" in fields:
        _refuse_empty_table(fields["jobs"], len(blocks), "points")
        job = _shared_job(blocks)
        return node.build(
            TimeSharedProblem,
            configurations=shapes,
            jobs=[job.read(entry) for entry in _named(fields["jobs"], "job")],
            machine_types=types,
            blocks=list(blocks),
            **f.read_object(fields["time_sharing"], _SHARING),
        )
    frame = node.build(
        Problem.from_arrays,
        demands=np.empty(0, dtype=np.int64),
        supply=np.empty((0, len(blocks)), dtype=np.int64),
        configurations=shapes or np.empty((0, len(blocks)), dtype=np.int64),
        blocks=list(blocks),
        machine_types=types,
    )
    names, rows = _jobs(fields["jobs"], blocks)
    return node.build(frame.replace, rows=rows, job_names=names)


def _jobs_to_json(problem: Problem) -> list[dict[str, Any]]:
    # Straight from the integer rows: a Job object and its Fractions would cost five times as much.
    rows, blocks = problem.rows, problem.blocks
    columns = (rows.demands.tolist(), rows.supplies.tolist(), rows.denominators.tolist())
    jobs = []
    for j, (name, demand, supply, q) in enumerate(zip(problem.job_names, *columns, strict=True)):
        if q == 0:
            demand, supply, q = rows.wide[j]
        table = {block: _ratio(f, q) for block, f in zip(blocks, supply, strict=True) if f}
        jobs.append({"name": name, "demand": _ratio(demand, q), "demand_function": table})
    return jobs


def _ratio(numerator: int, denominator: int) -> int | str:
    return numerator if denominator == 1 else number_to_json(Fraction(numerator, denominator))


def _jobs(array: Node, blocks: Names) -> tuple[list[str], Rows]:
    _refuse_empty_table(array, len(blocks), "demand_function")
    seen: dict[str, object] = {}
    rows: list[tuple[Fraction, list[Fraction]]] = []
    nothing = [Fraction(0)] * len(blocks)
    column = {block: index for index, block in enumerate(blocks)}
    for entry in array.array():
        fields = entry.object(("name", "demand", "demand_function"))
        entry.about = f"job {fields['name'].new_name('job', seen)!r}"
        supply = nothing.copy()
        rows.append((fields["demand"].number(), supply))
        for block, field in fields["demand_function"].entries():
            field.refuse_unknown(block, "block", column)
            supply[column[block]] = field.number()
    names = list(seen)
    return names, array.build(Rows.from_fractions, rows, len(blocks), names)


def _refuse_empty_table(array: Node, n_blocks: int, key: str) -> None:
    """Refuse a small file that would fill the memory with zeros: every job has every block."""
    if not isinstance(array.value, list) or len(array.value) * n_blocks <= MOST_ZEROS:
        return
    tables = (job.get(key) for job in array.value if isinstance(job, dict))
    given = sum(len(table) for table in tables if isinstance(table, dict))
    if len(array.value) * n_blocks > max(MOST_ZEROS, ZEROS_A_SUPPLY * given):
        raise array.error(
            f"{array.label}: {len(array.value)} jobs and {n_blocks} blocks make a table of "
            f"{len(array.value) * n_blocks} supplies, and only {given} of them are given",
            expected=f"at most {MOST_ZEROS} supplies, or {ZEROS_A_SUPPLY} for each one given",
            fix="leave out the blocks that no job can use, or split the problem",
        )
