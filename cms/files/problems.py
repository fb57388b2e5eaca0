"""Problems as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from pydantic import model_validator

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
from ..time_sharing.duty_cycle import DutyCycleRule
from ..time_sharing.model import TimeSharedJob
from ..time_sharing.problem import TimeSharedProblem
from ..values.numbers import shown
from . import fields as f
from . import model as m
from .claims import Block, Blocks, JobName, TypeName, refuse_empty
from .documents import number_to_json, parse_document, write_document
from .parsed import Parsed
from .source import StrPath

#: A problem holds a supply for every job and block. Beyond this number, a document must give one
#: supply in a hundred: what is read then stays in proportion to the file.
MOST_ZEROS, ZEROS_A_SUPPLY = 10_000_000, 100
#: In the order of the file; a list would be searched anew for each of thousands of names.
Names: TypeAlias = dict[str, object]


class MachineTypePart(m.Part):
    """A machine type: what one costs, and how many there may be."""

    MAKES: ClassVar[Any] = MachineType
    name: TypeName
    cost: f.Exact = Fraction(1)
    limit: f.Count | None = None


class _ListedPart(m.Part):
    MAKES: ClassVar[Any] = Configuration
    TABLE: ClassVar[str] = "blocks"
    machine: f.Text = f.left_out()
    blocks: Blocks

    def shape(self, machines: Names, blocks: Names | None) -> AnyConfiguration:
        """Build the configurations of machine types and blocks that are known."""
        if "machine" not in self.model_fields_set and len(machines) > 1:
            raise f.refusal('the key "machine"', what='{} has no "machine"')
        machine = self.machine or next(iter(machines))
        f.refuse_unknown(machine, "machine type", machines, "machine")
        if blocks is not None:
            f.refuse_unknown_keys(getattr(self, self.TABLE), "block", blocks, self.TABLE)
        found: AnyConfiguration = self.MAKES(**dict(self) | {"machine": machine})
        return found


class _SizesPart(m.Part):
    MAKES: ClassVar[Any] = SizeBoundedConfigurations
    TABLE: ClassVar[str] = "sizes"
    machine: f.Text = f.left_out()
    sizes: dict[Block, f.Positive]
    capacity: f.Exact
    max_blocks: f.AtLeastOne | None = None
    shape = _ListedPart.shape


def _read_shape(value: Any) -> _ListedPart | _SizesPart:
    if not isinstance(value, dict):
        raise f.refusal('an object with "blocks", or with "sizes" and "capacity"')
    sizes = "sizes" in value
    part: _ListedPart | _SizesPart = m.read_part(_SizesPart if sizes else _ListedPart, value)
    given = part.sizes if isinstance(part, _SizesPart) else part.blocks
    refuse_empty(given, "sizes" if sizes else "blocks", fix="leave this configuration out")
    return part


def _write_shape(shape: AnyConfiguration) -> dict[str, Any]:
    listed = isinstance(shape, Configuration)
    return (_ListedPart if listed else _SizesPart).from_object(shape).to_json()


_Shape = Annotated[Any, f.Value(_read_shape, _write_shape, parts=(_ListedPart, _SizesPart))]


class MachinesDocument(m.Document):
    """What every problem says of machines."""

    machine_types: tuple[Annotated[MachineType, m.Built(MachineTypePart)], ...] = ()
    blocks: tuple[Block, ...] = f.left_out()
    configurations: tuple[_Shape, ...]

    def machines(self) -> dict[str, Any]:
        """Return what a problem is made of beside its jobs; parts must know each other."""
        f.refuse_twice([each.name for each in self.machine_types], "machine type", "machine_types")
        types = self.machine_types or (MachineType(DEFAULT_MACHINE),)
        known, blocks = dict.fromkeys(each.name for each in types), self.blocks
        are_told = "blocks" in self.model_fields_set
        f.refuse_twice(blocks or (), "block", "blocks", key=None)
        seen = dict.fromkeys(blocks) if are_told else None
        shapes = f.build_each(
            self.configurations, lambda part: part.shape(known, seen), "configurations"
        )
        if not are_told:
            held = (s.blocks if isinstance(s, Configuration) else s.sizes for s in shapes)
            blocks = tuple(dict.fromkeys(block for each in held for block in each))
        return {"configurations": shapes, "machine_types": types, "blocks": list(blocks)}

    def frame(self) -> Problem:
        """Build a problem without jobs."""
        machines = self.machines()
        supply = np.empty((0, len(machines["blocks"])), dtype=np.int64)
        if not machines["configurations"]:
            machines["configurations"] = supply
        demands = np.empty(0, dtype=np.int64)
        return Problem.from_arrays(demands=demands, supply=supply, **machines)


class JobPart(m.Part):
    """A job: its demand, and what a block of each type satisfies of it."""

    name: JobName
    demand: f.Exact
    demand_function: dict[str, f.Exact]


class ProblemDocument(MachinesDocument):
    """A problem in which a block serves one job."""

    KIND: ClassVar[str] = "cms-problem"
    jobs: tuple[JobPart, ...]

    def build(self) -> Problem:
        """Build the problem."""
        frame = self.frame()
        blocks = frame.blocks
        names = [job.name for job in self.jobs]
        f.refuse_twice(names, "job", "jobs")
        column = {block: index for index, block in enumerate(blocks)}
        given = sum(len(job.demand_function) for job in self.jobs)
        _refuse_empty_table(len(self.jobs), len(blocks), given)
        rows = []
        for index, job in enumerate(self.jobs):
            supply = [Fraction(0)] * len(blocks)
            if not job.demand_function.keys() <= column.keys():
                at = "jobs", index, "demand_function"
                f.refuse_unknown_keys(job.demand_function, "block", column, *at)
            for block, value in job.demand_function.items():
                supply[column[block]] = value
            rows.append((job.demand, supply))
        with f.blaming("jobs"):
            table = Rows.from_fractions(rows, len(blocks), names)
            return frame.replace(rows=table, job_names=names)


def _jobs_to_json(problem: MachineProblem) -> list[dict[str, Any]]:
    """Describe jobs straight from the integer rows: Job objects cost five times more."""
    assert isinstance(problem, Problem)
    rows, jobs = problem.rows, []
    columns = rows.demands.tolist(), rows.supplies.tolist(), rows.denominators.tolist()
    for j, row in enumerate(zip(problem.job_names, *columns, strict=True)):
        called, demand, supply, q = row
        if q == 0:
            demand, supply, q = rows.wide[j]
        pairs = zip(problem.blocks, supply, strict=True)
        table = {block: _ratio(amount, q) for block, amount in pairs if amount}
        jobs.append({"name": called, "demand": _ratio(demand, q), "demand_function": table})
    return jobs


def _ratio(numerator: int, denominator: int) -> int | str:
    return numerator if denominator == 1 else number_to_json(Fraction(numerator, denominator))


class _SharingTerms(m.Part):
    rule: DutyCycleRule
    max_jobs: f.AtLeastOne | None = None


class _SharedJobPart(m.Part):
    MAKES: ClassVar[Any] = TimeSharedJob
    name: JobName
    demand: f.Exact
    limit: f.Positive
    points: dict[str, tuple[tuple[f.Positive, f.Positive], ...]]

    @model_validator(mode="after")
    def _refuse_equal_amounts(self) -> Self:
        for block, points in self.points.items():
            amounts: set[Fraction] = set()
            for index, (amount, _) in enumerate(points):
                if amount in amounts:
                    raise f.refusal(
                        "one length for every amount", "points", block, index, 0,
                        what=f"{{}}: there are two points of the amount {shown(amount)}",
                    )  # fmt: skip
                amounts.add(amount)
        return self

    @classmethod
    def from_object(cls, value: TimeSharedJob, **other: Any) -> Self:
        """Describe a job."""
        points = {
            block: tuple((point.amount, point.length) for point in own)
            for block, own in value.points.items()
        }
        return super().from_object(value, points=points)


class TimeSharedDocument(MachinesDocument):
    """A problem in which jobs share blocks in time."""

    KIND: ClassVar[str] = "cms-problem"
    time_sharing: _SharingTerms
    jobs: tuple[Annotated[TimeSharedJob, m.Built(_SharedJobPart)], ...]

    def build(self) -> TimeSharedProblem:
        """Build the problem."""
        machines = self.machines()
        f.refuse_twice([job.name for job in self.jobs], "job", "jobs")
        blocks = dict.fromkeys(machines["blocks"])
        _refuse_empty_table(len(self.jobs), len(blocks), sum(len(job.points) for job in self.jobs))
        for index, job in enumerate(self.jobs):
            f.refuse_unknown_keys(job.points, "block", blocks, "jobs", index, "points")
        return TimeSharedProblem(jobs=self.jobs, **machines, **dict(self.time_sharing))


def _read_problem(value: Any) -> Problem | TimeSharedProblem:
    shared = isinstance(value, dict) and "time_sharing" in value
    found: Problem | TimeSharedProblem
    found = m.read_part(TimeSharedDocument if shared else ProblemDocument, value).build()
    return found


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
    return problem_from_json(parse_document(path))


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
        If no writer knows files of this ending, a float does not hold a number, there is nothing to
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
    if isinstance(problem, TimeSharedProblem):
        terms = _SharingTerms.from_object(problem)
        return TimeSharedDocument.from_object(problem, time_sharing=terms).to_json()
    whole = ProblemDocument.from_object(problem, jobs=()).to_json()
    return whole | {"jobs": _jobs_to_json(problem)}


#: A problem within another document.
EmbeddedProblem = Annotated[
    Any, f.Value(_read_problem, problem_to_json, parts=(ProblemDocument, TimeSharedDocument))
]


def problem_from_json(document: Parsed | Mapping[str, Any]) -> Problem | TimeSharedProblem:
    """Turn a parsed document into a problem; its ``time_sharing`` says which kind it is."""
    return m.read_as(document, _read_problem)


def _refuse_empty_table(n_jobs: int, n_blocks: int, given: int) -> None:
    """Refuse a small file that would fill the memory with zeros: every job has every block."""
    if n_jobs * n_blocks > max(MOST_ZEROS, ZEROS_A_SUPPLY * given):
        what = (
            f"{{}}: {n_jobs} jobs and {n_blocks} blocks make a table of {n_jobs * n_blocks} "
            f"supplies, and only {given} of them are given"
        )
        raise f.refusal(
            f"at most {MOST_ZEROS} supplies, or {ZEROS_A_SUPPLY} for each one given", "jobs",
            what=what, fix="leave out the blocks that no job can use, or split the problem",
        )  # fmt: skip
