"""Problems as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ..errors import FileError, InvalidOption
from ..mixes.problem import TimeSharedProblem
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
from .documents import check_head, head, read_document
from .layout import number_to_json, write_document
from .node import Node
from .source import StrPath
from .time_shared import jobs_from_json, jobs_to_json, sharing_from_json, sharing_to_json
from .wording import one_of

#: A problem holds a supply for every job and block. Beyond so many, a document must give one
#: supply in a hundred: what is read then stays in proportion to the file.
MOST_ZEROS, ZEROS_A_SUPPLY = 10_000_000, 100

#: In the order of the file; a list would be searched anew for each of thousands of names.
Names: TypeAlias = Mapping[str, object]


def read_problem(path: StrPath) -> Problem | TimeSharedProblem:
    """Read a problem from a JSON file.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Returns
    -------
    Problem or TimeSharedProblem
        With every number exactly as written: never through a float.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from cms import Job
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> problem = Problem(
    ...     configurations=Configuration({"a": 2}), jobs=[Job("j", "1/3", {"a": 0.1})]
    ... )
    >>> write_problem(problem, path)
    >>> read_problem(path) == problem
    True
    """
    return problem_from_json(read_document(path, "cms-problem"))


def write_problem(problem: Problem | TimeSharedProblem, path: StrPath) -> None:
    """Write a problem to a JSON file, one job a line.

    Parameters
    ----------
    problem : Problem or TimeSharedProblem
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> write_problem(Problem(configurations=Configuration({"a": 2})), path)
    >>> path.read_text().splitlines()[1]
    '  "format": "cms-problem",'
    """
    write_document(lambda: problem_to_json(problem), path)


def problem_to_json(problem: MachineProblem) -> dict[str, Any]:
    """Turn a problem into the document that :func:`problem_from_json` reads.

    Examples
    --------
    >>> document = problem_to_json(Problem(configurations=Configuration({"a": 2})))
    >>> document["configurations"]
    [{'machine': 'machine', 'blocks': {'a': 2}}]
    """
    if isinstance(problem, ShardedProblem):
        raise InvalidOption(
            "a problem in shards has no document: its folder says it; load() what fits into memory"
        )
    shared, jobs = {}, []
    if isinstance(problem, TimeSharedProblem):
        shared, jobs = {"time_sharing": sharing_to_json(problem)}, jobs_to_json(problem)
    else:
        assert isinstance(problem, Problem)
        jobs = _jobs_to_json(problem)
    return {
        **head("cms-problem"),
        **shared,
        "machine_types": [
            {"name": machine.name, "cost": number_to_json(machine.cost), "limit": machine.limit}
            for machine in problem.machine_types
        ],
        "blocks": list(problem.blocks),
        "configurations": [_configuration_to_json(shape) for shape in problem.configurations],
        "jobs": jobs,
    }


def problem_from_json(document: Node | Mapping[str, Any]) -> Problem | TimeSharedProblem:
    """Turn a parsed document into a problem; its ``time_sharing`` says which kind it is.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        Naming the job, block, configuration or machine type at fault.

    Notes
    -----
    May be left out: ``machine_types`` (a single type of cost 1 and no limit), a type's ``cost`` (1)
    and ``limit``, ``blocks`` (in the order of the configurations), a configuration's ``machine`` if
    there is one type, ``max_blocks``; in a demand function, blocks that give nothing.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, "cms-problem")
    fields = node.object(
        ("format", "schema", "configurations", "jobs"),
        ("time_sharing", "machine_types", "blocks"),
    )
    types = _machine_types(fields.get("machine_types"))
    machines = dict.fromkeys(machine.name for machine in types)
    blocks = _names(fields["blocks"], "block") if "blocks" in fields else None
    shapes = [_configuration(entry, machines, blocks) for entry in fields["configurations"].array()]
    if blocks is None:
        blocks = dict.fromkeys(block for shape in shapes for block in _blocks_of(shape))
    if "time_sharing" in fields:
        _refuse_empty_table(fields["jobs"], len(blocks), "points")
        return node.build(
            TimeSharedProblem,
            configurations=shapes,
            jobs=jobs_from_json(fields["jobs"], blocks),
            machine_types=types,
            blocks=list(blocks),
            **sharing_from_json(fields["time_sharing"]),
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


# -- writing -----------------------------------------------------------------------------------


def _configuration_to_json(shape: AnyConfiguration) -> dict[str, Any]:
    if isinstance(shape, Configuration):
        return {"machine": shape.machine, "blocks": dict(shape.blocks)}
    return {
        "machine": shape.machine,
        "sizes": {block: number_to_json(size) for block, size in shape.sizes.items()},
        "capacity": number_to_json(shape.capacity),
        "max_blocks": shape.max_blocks,
    }


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


# -- reading -----------------------------------------------------------------------------------


def _machine_types(array: Node | None) -> list[MachineType]:
    types = []
    seen: set[str] = set()
    for entry in () if array is None else array.array():
        fields = entry.object(("name",), ("cost", "limit"))
        name = fields["name"].new_name("machine type", seen)
        entry.about = f"machine type {name!r}"
        cost = fields["cost"].number() if "cost" in fields else 1
        limit = fields["limit"].integer_or_null() if "limit" in fields else None
        types.append(entry.build(MachineType, name, cost, limit))
    return types or [MachineType(DEFAULT_MACHINE)]


def _configuration(entry: Node, machines: Names, blocks: Names | None) -> AnyConfiguration:
    if not isinstance(entry.value, dict):
        raise entry.wrong('an object with "blocks", or with "sizes" and "capacity"')
    if "sizes" in entry.value:
        return _size_bounded(entry, machines, blocks)
    fields = entry.object(("blocks",), ("machine",))
    counts = {}
    for block, count in fields["blocks"].names("block"):
        if blocks is not None:
            count.refuse_unknown(block, "block", blocks)
        counts[block] = count.integer()
    if not any(counts.values()):
        raise _empty(fields["blocks"])
    machine = _machine(entry, fields.get("machine"), machines)
    return entry.build(Configuration, counts, machine)


def _size_bounded(entry: Node, machines: Names, blocks: Names | None) -> SizeBoundedConfigurations:
    fields = entry.object(("sizes", "capacity"), ("machine", "max_blocks"))
    sizes = {}
    for block, size in fields["sizes"].names("block"):
        if blocks is not None:
            size.refuse_unknown(block, "block", blocks)
        sizes[block] = size.number()
        if not sizes[block]:
            raise size.wrong("a number > 0", "any number of blocks of size 0 would fit")
    if not sizes:
        raise _empty(fields["sizes"])
    most = fields["max_blocks"].integer_or_null(minimum=1) if "max_blocks" in fields else None
    capacity = fields["capacity"].number()
    machine = _machine(entry, fields.get("machine"), machines)
    return entry.build(SizeBoundedConfigurations, sizes, capacity, machine, most)


def _empty(blocks: Node) -> FileError:
    return blocks.error(
        f"{blocks.label} has no block", expected="at least one", fix="leave this configuration out"
    )


def _machine(entry: Node, field: Node | None, machines: Names) -> str:
    if field is not None:
        return field.one_of(machines)
    if len(machines) > 1:
        raise entry.error(f'{entry.label} has no "machine"', expected=one_of(machines))
    return next(iter(machines))


def _blocks_of(shape: AnyConfiguration) -> Collection[str]:
    return shape.blocks if isinstance(shape, Configuration) else shape.sizes


def _names(array: Node, kind: str) -> Names:
    seen: set[str] = set()
    return dict.fromkeys([entry.new_name(kind, seen) for entry in array.array()])


def _jobs(array: Node, blocks: Names) -> tuple[list[str], Rows]:
    _refuse_empty_table(array, len(blocks), "demand_function")
    names: list[str] = []
    seen: set[str] = set()
    rows: list[tuple[Fraction, list[Fraction]]] = []
    nothing = Fraction(0)
    column = {block: index for index, block in enumerate(blocks)}
    for entry in array.array():
        fields = entry.object(("name", "demand", "demand_function"))
        name = fields["name"].new_name("job", seen)
        entry.about = f"job {name!r}"
        demand = fields["demand"].number()
        supply = [nothing] * len(blocks)
        for block, field in fields["demand_function"].entries():
            field.refuse_unknown(block, "block", column)
            supply[column[block]] = field.number()
        names.append(name)
        rows.append((demand, supply))
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
