"""Schedules: groups of machines that are cut and assigned alike, stored in columns.

Up to naming, a schedule is how many machines take each configuration and how many blocks of each
type every job gets. :meth:`Schedule.from_counts` turns these counts into groups of equal machines;
their number does not depend on how many machines there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidSchedule
from .frozen import FrozenMap
from .model import Block, Configuration
from .rows import frozen_array

if TYPE_CHECKING:
    from .problem import Problem

#: {(block, job): number of blocks} on one machine, or for a whole schedule.
Assignment: TypeAlias = Mapping[tuple[Block, str], int]
_Ints: TypeAlias = NDArray[Any]


class MachineGroup(NamedTuple):
    """``count`` machines with the same configuration and the same assignment.

    ``assignment`` maps (block, job) to the number of such blocks on *one* machine; the blocks it
    does not mention are idle.
    """

    configuration: Configuration
    assignment: Assignment
    count: int  # type: ignore[assignment]  # the paper's word hides tuple.count


class Columns(NamedTuple):
    """A schedule's data: entry e gives ``entry_count[e]`` blocks on each machine of a group.

    Group g has the entries ``entry_start[g]`` to ``entry_start[g + 1]``; blocks, jobs and
    configurations are indices into the three tables of names. Counts are int64, or Python integers
    in an object array where they are larger.
    """

    blocks: Sequence[Block]
    jobs: Sequence[str]
    configurations: tuple[Configuration, ...]
    group_configuration: _Ints
    group_count: _Ints
    entry_start: _Ints
    entry_block: _Ints
    entry_job: _Ints
    entry_count: _Ints


class Schedule:
    """Machines with their configurations and assignments; immutable.

    Parameters
    ----------
    groups : iterable of MachineGroup

    Notes
    -----
    A schedule may be wrong: whether it serves a problem is for :func:`cms.check` to say.

    Examples
    --------
    >>> schedule = Schedule(
    ...     [MachineGroup(Configuration({"3g": 2}), {("3g", "bert"): 1, ("3g", "vgg"): 1}, 5)]
    ... )
    >>> schedule.machine_count, len(schedule.groups)
    (5, 1)
    """

    __slots__ = ("columns",)
    columns: Columns

    def __init__(self, groups: Iterable[MachineGroup] = ()) -> None:
        object.__setattr__(self, "columns", _columns_of(groups))

    @classmethod
    def from_columns(cls, columns: Columns) -> Schedule:
        """Wrap columns; the arrays are copied and can no longer be changed.

        Raises
        ------
        InvalidSchedule
            If lengths or indices do not fit together.
        """
        _refuse_misfits(columns)
        schedule = cls.__new__(cls)
        frozen = Columns(*columns[:3], *(_frozen(part) for part in columns[3:]))
        object.__setattr__(schedule, "columns", frozen)
        return schedule

    @classmethod
    def from_counts(
        cls,
        problem: Problem,
        machines: Mapping[Configuration, int],
        given: Assignment | tuple[_Ints, _Ints, _Ints],
    ) -> Schedule:
        """Build the groups from how many machines there are and how many blocks each job gets.

        The machines are lined up by configuration and their blocks of each type are handed out in
        the order of the jobs (theory: every such pair of counts can be realised).

        Parameters
        ----------
        problem : Problem
        machines : Mapping[Configuration, int]
            Number of machines of each configuration.
        given : Mapping[(block, job), int] or three arrays ``(jobs, blocks, counts)``
            Blocks given to each job; the arrays hold indices and counts, at most one entry for
            each pair of a job and a block.

        Returns
        -------
        Schedule
            Of at most (configurations) + 4 (entries of ``given``) groups.

        Raises
        ------
        InvalidSchedule
            If more blocks are given than the machines have.

        Examples
        --------
        >>> from cms.problem import Problem
        >>> from cms.model import Job
        >>> pair = Configuration({"half": 2})
        >>> problem = Problem(
        ...     configurations=pair, jobs=[Job(name, 10**12, {"half": 1}) for name in "ab"]
        ... )
        >>> given = {("half", "a"): 10**12, ("half", "b"): 10**12}
        >>> for group in Schedule.from_counts(problem, {pair: 10**12}, given).groups:
        ...     print(group.count, group.assignment)
        500000000000 FrozenMap({('half', 'a'): 2})
        500000000000 FrozenMap({('half', 'b'): 2})
        """
        return cls.from_columns(_sweep(problem, machines, given))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schedule is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Schedule is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return Schedule.from_columns, (self.columns,)

    @property
    def groups(self) -> Sequence[MachineGroup]:
        """The groups; each object is made when asked for."""
        return _Groups(self.columns)

    @property
    def machines(self) -> dict[Configuration, int]:
        """How many machines take each configuration."""
        columns, totals = self.columns, dict[Configuration, int]()
        pairs = zip(columns.group_configuration.tolist(), columns.group_count.tolist(), strict=True)
        for index, count in pairs:
            configuration = columns.configurations[index]
            totals[configuration] = totals.get(configuration, 0) + count
        return totals

    @property
    def machine_count(self) -> int:
        """Number of machines."""
        return sum(self.columns.group_count.tolist())

    def cost(self, problem: Problem) -> Fraction:
        """Return the cost of all machines; a configuration without machine type takes the only one.

        Raises
        ------
        InvalidSchedule
            If a configuration belongs to a machine type the problem does not know.
        """
        total = Fraction(0)
        for configuration, count in self.machines.items():
            total += machine_cost(problem, configuration) * count
        return total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        if self.columns is other.columns:
            return True
        return len(self.groups) == len(other.groups) and all(
            one == two for one, two in zip(self.groups, other.groups, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.machine_count, len(self.groups)))

    def __repr__(self) -> str:
        return f"Schedule({self.machine_count} machines in {len(self.groups)} groups)"


def machine_cost(problem: Problem, configuration: Configuration) -> Fraction:
    """Return the cost of one machine with this configuration; InvalidSchedule if it has no type."""
    name = configuration.machine
    if name is None and len(problem.machine_types) == 1:
        name = problem.machine_types[0].name
    try:
        return problem.machine_type(name).cost
    except KeyError:
        known = ", ".join(machine.name for machine in problem.machine_types)
        raise InvalidSchedule(
            f"configuration {configuration!r} belongs to the machine type {name!r}; the problem "
            f"has {known}"
        ) from None


class _Groups(Sequence[MachineGroup]):
    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns.group_count)

    @overload
    def __getitem__(self, index: int) -> MachineGroup: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MachineGroup]: ...
    def __getitem__(self, index: int | slice) -> MachineGroup | Sequence[MachineGroup]:
        if isinstance(index, slice):
            return [self[g] for g in range(*index.indices(len(self)))]
        g = range(len(self))[index]
        columns = self._columns
        part = slice(int(columns.entry_start[g]), int(columns.entry_start[g + 1]))
        entries = zip(
            columns.entry_block[part].tolist(),
            columns.entry_job[part].tolist(),
            columns.entry_count[part].tolist(),
            strict=True,
        )
        assignment: dict[tuple[Block, str], int] = {}
        for i, j, count in entries:
            pair = columns.blocks[i], columns.jobs[j]
            assignment[pair] = assignment.get(pair, 0) + count
        return MachineGroup(
            columns.configurations[int(columns.group_configuration[g])],
            FrozenMap(assignment),
            int(columns.group_count[g]),
        )

    def __repr__(self) -> str:
        return f"<{len(self)} groups of machines>"


def _refuse_misfits(columns: Columns) -> None:
    groups, entries = len(columns.group_count), len(columns.entry_count)
    starts = columns.entry_start
    fits = (
        len(columns.group_configuration) == groups
        and len(starts) == groups + 1
        and len(columns.entry_block) == len(columns.entry_job) == entries
        and starts[0] == 0
        and starts[-1] == entries
        and bool((np.diff(starts) >= 0).all())
    )
    if not fits:
        raise InvalidSchedule(
            f"columns of {groups} groups and {entries} entries have other lengths: one "
            "configuration and count a group, one block, job and count an entry, and "
            "entry_start rising from 0 to the number of entries"
        )
    indices: list[tuple[str, _Ints, int]] = [
        ("configuration", columns.group_configuration, len(columns.configurations)),
        ("block", columns.entry_block, len(columns.blocks)),
        ("job", columns.entry_job, len(columns.jobs)),
    ]
    for what, values, limit in indices:
        if len(values) and not (0 <= int(values.min()) and int(values.max()) < limit):
            raise InvalidSchedule(f"a {what} index lies outside 0 ... {limit - 1}")


def _frozen(values: _Ints) -> _Ints:
    if values.dtype == object:
        # Python integers cannot live in a bytes object; this copy is at least marked read-only.
        values = values.copy()
        values.setflags(write=False)
        return values
    return frozen_array(values)


def _counts(values: Sequence[int]) -> _Ints:
    """An int64 array, or an object array of Python integers where they do not fit."""
    fits = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, dtype=np.int64 if fits else object)


def _columns_of(groups: Iterable[MachineGroup]) -> Columns:
    blocks: dict[Block, int] = {}
    jobs: dict[str, int] = {}
    configurations: dict[Configuration, int] = {}
    shape: list[int] = []
    counts: list[int] = []
    starts = [0]
    entries: list[tuple[int, int, int]] = []
    for number, (configuration, assignment, count) in enumerate(groups):
        if not isinstance(configuration, Configuration):
            raise InvalidSchedule(
                f"group {number}: its configuration is {configuration!r}; expected a Configuration"
            )
        shape.append(configurations.setdefault(configuration, len(configurations)))
        counts.append(_whole(count, f"group {number}: its count"))
        for (block, job), blocks_given in assignment.items():
            amount = _whole(blocks_given, f"group {number}: blocks {block!r} for job {job!r}")
            entries.append(
                (blocks.setdefault(block, len(blocks)), jobs.setdefault(job, len(jobs)), amount)
            )
        starts.append(len(entries))
    return Columns(
        tuple(blocks),
        tuple(jobs),
        tuple(configurations),
        _frozen(np.array(shape, dtype=np.int64)),
        _frozen(_counts(counts)),
        _frozen(np.array(starts, dtype=np.int64)),
        _frozen(np.array([entry[0] for entry in entries], dtype=np.int64)),
        _frozen(np.array([entry[1] for entry in entries], dtype=np.int64)),
        _frozen(_counts([entry[2] for entry in entries])),
    )


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidSchedule(f"{what} is {value!r}; expected a whole number")
    return int(value.__index__())


class _Pieces(NamedTuple):
    """Runs of blocks of one type given to one job within the machines of one configuration."""

    block: _Ints
    job: _Ints
    segment: _Ints
    low: _Ints  # first block of the run, counted within the configuration's machines
    high: _Ints  # one past its last block
    width: _Ints  # blocks of this type on one machine


def _sweep(
    problem: Problem,
    machines: Mapping[Configuration, int],
    given: Assignment | tuple[_Ints, _Ints, _Ints],
) -> Columns:
    configurations = [c for c, count in machines.items() if count]
    counts = [int(machines[c]) for c in configurations]
    for configuration, count in zip(configurations, counts, strict=True):
        if count < 0:
            raise InvalidSchedule(f"{count} machines with configuration {configuration!r}")
    jobs, blocks, amounts = _as_arrays(problem, given)
    widest = max((max(c.blocks.values()) for c in configurations), default=1)
    huge = sum(counts) * widest >= 2**62
    dtype: Any = object if huge else np.int64
    starts = np.array([0, *np.cumsum(np.array(counts, dtype=object))], dtype=dtype)
    pieces = _pieces(problem, configurations, counts, jobs, blocks, amounts, dtype)
    base = starts[pieces.segment]
    low_machine = base + pieces.low // pieces.width
    high_machine = base - (-pieces.high // pieces.width)
    cuts = np.unique(
        np.concatenate(
            [
                starts,
                low_machine,
                base - (-pieces.low // pieces.width),
                base + pieces.high // pieces.width,
                high_machine,
            ]
        )
    )
    # Every group between two cuts that a piece overlaps gets an entry.
    first = np.searchsorted(cuts, low_machine)
    many = np.searchsorted(cuts, high_machine) - first
    piece = np.repeat(np.arange(len(many)), many)
    offsets = np.arange(len(piece)) - np.repeat(np.cumsum(many) - many, many)
    group = first[piece] + offsets
    width = pieces.width[piece]
    block_at = (cuts[group] - base[piece]) * width
    count = np.minimum(pieces.high[piece], block_at + width) - np.maximum(
        pieces.low[piece], block_at
    )
    order = np.lexsort((pieces.job[piece], pieces.block[piece], group))
    n_groups = len(cuts) - 1
    return Columns(
        problem.blocks,
        problem.job_names,
        tuple(configurations),
        np.searchsorted(starts, cuts[:-1], side="right") - 1,
        np.diff(cuts),
        np.searchsorted(group[order], np.arange(n_groups + 1)),
        pieces.block[piece][order],
        pieces.job[piece][order],
        # on one machine: never more than a configuration has
        count[order].astype(np.int64),
    )


def _as_arrays(
    problem: Problem, given: Assignment | tuple[_Ints, _Ints, _Ints]
) -> tuple[_Ints, _Ints, _Ints]:
    if isinstance(given, Mapping):
        triples = sorted(
            (problem.job_index(job), problem.block_index[block], int(count))
            for (block, job), count in given.items()
            if count
        )
        jobs = np.array([j for j, _, _ in triples], dtype=np.int64)
        blocks = np.array([i for _, i, _ in triples], dtype=np.int64)
        return jobs, blocks, _counts([count for _, _, count in triples])
    jobs, blocks, amounts = (np.asarray(part) for part in given)
    keep = np.flatnonzero(amounts)
    keep = keep[np.argsort(jobs[keep], kind="stable")]
    return jobs[keep], blocks[keep], amounts[keep]


def _pieces(
    problem: Problem,
    configurations: Sequence[Configuration],
    counts: Sequence[int],
    jobs: _Ints,
    blocks: _Ints,
    amounts: _Ints,
    dtype: Any,
) -> _Pieces:
    columns: list[list[_Ints]] = [[] for _ in _Pieces._fields]
    for i, block in enumerate(problem.blocks):
        mine = np.flatnonzero(blocks == i)
        if not len(mine):
            continue
        ends = np.cumsum(amounts[mine].astype(object))
        available = sum(
            c.blocks.get(block, 0) * x for c, x in zip(configurations, counts, strict=True)
        )
        if ends[-1] > available:
            raise InvalidSchedule(
                f"{ends[-1]} blocks {block!r} are given to jobs, the machines have {available}"
            )
        ends = ends.astype(dtype)
        begins = ends - amounts[mine].astype(dtype)
        position = 0
        for segment, (configuration, x) in enumerate(zip(configurations, counts, strict=True)):
            width = configuration.blocks.get(block, 0)
            if not width:
                continue
            stop = position + width * x
            # runs are sorted and do not overlap: those that meet [position, stop) are adjacent
            left = int(np.searchsorted(ends, position, side="right"))
            right = int(np.searchsorted(begins, stop, side="left"))
            part = slice(left, right)
            size = right - left
            if size > 0:
                low = np.maximum(begins[part], position) - position
                high = np.minimum(ends[part], stop) - position
                values = (i, jobs[mine][part], segment, low, high, width)
                for column, value in zip(columns, values, strict=True):
                    column.append(np.broadcast_to(np.asarray(value), (size,)))
            position = stop
    kinds = (np.int64, np.int64, np.int64, dtype, dtype, dtype)
    return _Pieces(
        *(
            np.concatenate([np.zeros(0, dtype=np.int64), *column]).astype(kind)
            for column, kind in zip(columns, kinds, strict=True)
        )
    )
