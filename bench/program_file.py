"""Integer programs of problems as MPS or LP files, in whole numbers.

OR-tools' own writer prints six significant digits, which makes another problem of one with larger
numbers.
"""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem
from cms.files.source import write_bytes
from cms.problem.problem import Problem
from cms.shards.problem import ShardedProblem
from cms.values.numbers import shown

from .peers.arc_flow import ArcFlowProgram
from .peers.compact import CompactProgram

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cms.problem.machine_problem import MachineProblem

    from .peers.program import Program

#: How a comment begins.
_COMMENTS = {".mps": "* ", ".lp": "\\ "}
#: Terms of a line: readers take some 250 characters.
_TERMS = 8
#: Beyond these integers a float is not exact.
_EXACT = 2**53


class Written(NamedTuple):
    """What a file holds: the "compact" program or "arc flow", and what 1 of its objective costs."""

    program: str
    variables: int
    rows: int
    step: Fraction


def write(problem: MachineProblem, path: Path) -> Written:
    """Write the integer program of a problem: ``.mps`` or ``.lp``, as the file's name ends.

    The compact program (theory 1.2), or arc flow where a size-bounded set has too many maximal
    contents to list. Variables ``m0, m1, ...`` count machines, ``a0, ...`` arcs, and ``y0, ...``
    the blocks of a type that a job is given; comments at the head say which is which. All
    coefficients are integers that floats hold exactly; superfluous parts of the problem are left
    out. The least objective times ``step`` is the least cost.
    """
    if isinstance(problem, ShardedProblem):
        raise UnsupportedProblem("the jobs are in shards; if they fit, write problem.load()")
    if not isinstance(problem, Problem):
        raise UnsupportedProblem(
            "jobs share blocks in time here, and there are too many mixes for a program to list; "
            "a problem of one job a block can be written"
        )
    if find_spec("scipy") is None:
        raise UnsupportedProblem(
            "a program is built with scipy, of an extra: pip install '.[bench]'"
        )
    program, kind = _program(problem)
    values = np.abs(program.matrix.data)
    sides = [np.abs(side[np.isfinite(side)]) for side in (program.rows_low, program.rows_high)]
    most = max((float(part.max(initial=0.0)) for part in (values, *sides)), default=0.0)
    if most >= _EXACT:
        raise UnsupportedProblem(
            f"a coefficient of {most:.3g} is beyond 2^53, where other solvers' floats are not "
            "exact; scale demands and throughputs of the job down"
        )
    ending = path.suffix.lower()
    lines = _lp(program) if ending == ".lp" else _mps(program)
    head = "".join(f"{_COMMENTS[ending]}{line}\n" for line in _comments(program, kind))
    write_bytes((head + "".join(f"{line}\n" for line in lines)).encode(), path)
    rows, variables = program.matrix.shape
    return Written(kind, variables, rows, program.step)


def _program(problem: Problem) -> tuple[Program, str]:
    try:
        return CompactProgram.of(problem), "compact"
    except UnsupportedProblem as fault:
        if not problem.size_bounded_configurations:
            raise
        try:
            return ArcFlowProgram.of(problem), "arc flow"
        except UnsupportedProblem as other:
            raise fault from other


def _names(program: Program) -> list[str]:
    """Name the variables."""
    given = len(program.jobs)
    machines = len(program.costs) - given
    letter = "m" if isinstance(program, CompactProgram) else "a"
    return [*(f"{letter}{at}" for at in range(machines)), *(f"y{at}" for at in range(given))]


class _Row(NamedTuple):
    """A row as the files have it: its name, how it compares (``G``, ``L``, ``E``), with what."""

    name: str
    relation: str
    side: int
    columns: list[int]
    values: list[int]


def _rows(program: Program) -> Iterator[_Row]:
    """Iterate over the rows that say something, in whole numbers."""
    matrix = program.matrix.tocsr()
    sides = zip(_row_names(program), program.rows_low, program.rows_high, strict=True)
    for at, (name, low, high) in enumerate(sides):
        own = slice(matrix.indptr[at], matrix.indptr[at + 1])
        columns, values = matrix.indices[own].tolist(), list(map(int, matrix.data[own].tolist()))
        both = [(relation, float(side)) for relation, side in (("G", low), ("L", high))]
        if low == high:
            both = [("E", float(low))]
        for relation, side in both:
            if np.isfinite(side):
                yield _Row(name, relation, int(side), columns, values)


def _lp(program: Program) -> Iterator[str]:
    """Write the lines of CPLEX's LP format, none of them long."""
    names = _names(program)
    relations = {"G": ">=", "L": "<=", "E": "="}

    def terms(columns: Iterable[int], values: Iterable[int]) -> list[str]:
        entries = zip(columns, values, strict=True)
        found = [f"{value:+d} {names[column]}" for column, value in entries if value]
        lines = [" ".join(found[n : n + _TERMS]) for n in range(0, len(found), _TERMS)]
        return lines or [f"0 {names[0]}"]

    yield "Minimize"
    costs = list(map(int, program.costs.tolist()))
    yield " cost: " + "\n  ".join(terms(range(len(costs)), costs))
    yield "Subject To"
    for row in _rows(program):
        left = "\n  ".join(terms(row.columns, row.values))
        yield f" {row.name}: {left} {relations[row.relation]} {row.side}"
    yield "General"
    for first in range(0, len(names), _TERMS):
        yield " " + " ".join(names[first : first + _TERMS])
    yield "End"


def _mps(program: Program) -> Iterator[str]:
    """Write the lines of MPS, in its free form."""
    names, rows = _names(program), [*_rows(program)]
    columns: list[list[tuple[str, int]]] = [[] for _ in names]
    for column, cost in enumerate(program.costs.tolist()):
        columns[column].append(("cost", int(cost)))
    for row in rows:
        for column, value in zip(row.columns, row.values, strict=True):
            columns[column].append((row.name, value))
    yield "NAME cms"
    yield "ROWS"
    yield " N cost"
    yield from (f" {row.relation} {row.name}" for row in rows)
    yield "COLUMNS"
    yield " MARKER 'MARKER' 'INTORG'"
    for name, entries in zip(names, columns, strict=True):
        yield from (f" {name} {row} {value}" for row, value in entries)
    yield " MARKER 'MARKER' 'INTEND'"
    yield "RHS"
    yield from (f" RHS {row.name} {row.side}" for row in rows if row.side)
    yield "BOUNDS"  # without them some readers take integers for binaries
    yield from (f" PL BOUND {name}" for name in names)
    yield "ENDATA"


def _row_names(program: Program) -> Iterator[str]:
    """Name the rows: of blocks, of jobs, of limits, and the rest."""
    small = program.reduction.problem
    limits = len(small.limits)
    yield from (f"block{i}" for i in range(len(small.blocks)))
    yield from (f"job{j}" for j in range(small.n_jobs))
    yield from (f"limit{m}" for m in range(limits))
    left = program.matrix.shape[0] - len(small.blocks) - small.n_jobs - limits
    yield from (f"flow{at}" for at in range(left))


def _comments(program: Program, kind: str) -> Iterator[str]:
    """Say what the names stand for; names of others are quoted, so that none ends its line."""
    small = program.reduction.problem
    yield f"{kind} program of a configurable machine scheduling problem"
    yield f"problem sha256 {program.reduction.original.sha256}"
    yield f"the objective counts steps of {shown(program.step)}"
    yield from (f"block{i}: {block!a}" for i, block in enumerate(small.blocks))
    yield from (f"job{j}: {name!a}" for j, name in enumerate(small.job_names))
    yield from (f"limit{at}: {limit.name!a}" for at, limit in enumerate(small.limits))
    if isinstance(program, CompactProgram):
        yield from (
            f"m{at}: {shape!s}".encode("ascii", "backslashreplace").decode()
            for at, shape in enumerate(program.shapes)
        )
    pairs = zip(program.jobs.tolist(), program.blocks.tolist(), strict=True)
    yield from (f"y{at}: block{block} for job{job}" for at, (job, block) in enumerate(pairs))
