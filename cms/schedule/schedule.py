"""Schedules: groups of machines that are cut and assigned alike, stored in columns.

Up to naming, a schedule is how many machines take each configuration and how many blocks of each
type every job gets. :meth:`Schedule.from_counts` turns these counts into groups of equal machines;
their number does not depend on how many machines there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from operator import eq
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidSchedule
from ..problem.parts import DEFAULT_MACHINE, Block, Configuration
from ..values.frozen import FrozenMap, Immutable
from ..values.names import LazySequence, iterated
from ..values.numbers import shown, whole
from .columns import Columns, checked_columns, machine_totals, whole_array
from .contents import Content, Mix, shown_content
from .sweep import Assignment, checked_pair, sweep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.machine_problem import MachineProblem


class MachineGroup(NamedTuple):
    """``count`` machines with the same configuration and the same assignment.

    ``assignment`` maps (block, job), or (block, :class:`cms.Mix`) where jobs share blocks in time,
    to the number of such blocks on *one* machine; the blocks it does not mention are idle.
    """

    configuration: Configuration
    assignment: Assignment
    count: int  # type: ignore[assignment]  # the paper's word hides tuple.count


class Excerpt(NamedTuple):
    """The first rows of a schedule, as a printed solution shows them.

    Attributes
    ----------
    head : tuple of str
    rows : sequence of tuple of str
        As long as the head.
    rest : str
        What is left out, in words; nothing if that is nothing.
    """

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    rest: str = ""


class Schedule(Immutable):
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
        object.__setattr__(self, "columns", checked_columns(_columns_of(groups)))

    @classmethod
    def from_columns(cls, columns: Columns) -> Schedule:
        """Wrap columns; the arrays are copied and can no longer be changed."""
        schedule = cls.__new__(cls)
        object.__setattr__(schedule, "columns", checked_columns(columns))
        return schedule

    @classmethod
    def from_counts(
        cls,
        problem: MachineProblem,
        machines: Mapping[Configuration, int],
        given: Assignment | tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
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
            each pair of a job and a block. Or {(block, mix): count}, all of them mixes: blocks are
            then handed out in the order in which the mixes stand there.

        Returns
        -------
        Schedule
            Of at most (configurations) + 4 (entries of ``given``) groups.

        Examples
        --------
        >>> from cms import Job, Problem
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
        mixes = _mixes(problem, given)
        if mixes is None:
            columns = sweep(problem, machines, given, problem.job_names, problem.job_index)
        else:
            columns = sweep(problem, machines, given, list(mixes), mixes.__getitem__)
        return cls.from_columns(columns)

    def excerpt(self, most: int) -> Excerpt:
        """Return the first groups as rows of a table, for a printed solution."""
        groups = self.groups[:most]
        rows = [(shown(g.count), _named(g.configuration), _given(g)) for g in groups]
        more = len(self.groups) - len(rows)
        head = ("machines", "configuration", "blocks given to jobs")
        return Excerpt(head, rows, f"... and {more} more groups of machines" if more else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return Schedule.from_columns, (self.columns,)

    @property
    def groups(self) -> Sequence[MachineGroup]:
        """The groups; each object is made when asked for."""
        return _Groups(self.columns)

    @property
    def machines(self) -> dict[Configuration, int]:
        """How many machines take each configuration."""
        return machine_totals(self.columns)

    @property
    def machine_count(self) -> int:
        """Number of machines."""
        return sum(self.columns.group_count.tolist())

    def without_idle_machines(self) -> Schedule:
        """Return the schedule without the machines that serve no job; it costs no more."""
        columns = self.columns
        sizes = np.diff(columns.entry_start)
        busy = sizes > 0
        if busy.all():
            return self
        shapes, counts = columns.group_configuration[busy], columns.group_count[busy]
        starts = np.concatenate([[0], np.cumsum(sizes[busy])]).astype(np.int64)
        return Schedule.from_columns(
            columns._replace(group_configuration=shapes, group_count=counts, entry_start=starts)
        )

    def cost(self, problem: MachineProblem) -> Fraction:
        """Return the cost of all machines; InvalidSchedule if the problem has no such type."""
        costs = (machine_cost(problem, shape) * count for shape, count in self.machines.items())
        return sum(costs, Fraction(0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        mine, theirs = self.groups, other.groups
        same = self.columns is other.columns
        return same or (len(mine) == len(theirs) and all(map(eq, mine, theirs)))

    def __hash__(self) -> int:
        return hash((self.machine_count, len(self.groups)))

    def __repr__(self) -> str:
        return f"Schedule({self.machine_count} machines in {len(self.groups)} groups)"


def machine_cost(problem: MachineProblem, configuration: Configuration) -> Fraction:
    """Return the cost of one machine with this configuration; InvalidSchedule if it has no type."""
    try:
        return problem.machine_type(configuration.machine).cost
    except KeyError:
        known = ", ".join(machine.name for machine in problem.machine_types)
        raise InvalidSchedule(
            f"configuration {configuration!r} belongs to the machine type "
            f"{configuration.machine!r}; the problem has {known}"
        ) from None


def _mixes(problem: MachineProblem, given: object) -> dict[Content, int] | None:
    """Number the mixes that blocks are given to; None if they are given to jobs."""
    if not isinstance(given, Mapping):
        return None
    contents = [pair[1] for pair in given if isinstance(pair, tuple) and len(pair) == 2]
    if not any(type(content) is Mix for content in contents):
        return None
    numbers: dict[Content, int] = {}
    for content in contents:
        if type(content) is not Mix:
            raise InvalidSchedule(
                f"given has mixes beside {content!r}; expected mixes alone: a job that has a block "
                "to itself is a mix of one"
            )
        for name in content:
            try:
                problem.job_index(name)
            except KeyError:
                raise InvalidSchedule(
                    f"given has {shown_content(content)} of the job {name!r}, which the problem "
                    "does not have"
                ) from None
        numbers.setdefault(content, len(numbers))
    return numbers


def _named(configuration: Configuration) -> str:
    machine = configuration.machine
    return f"{configuration}" + ("" if machine in (None, DEFAULT_MACHINE) else f" on {machine}")


def _given(group: MachineGroup) -> str:
    parts = (
        f"{f'{shown(count)} x ' if count > 1 else ''}{block} -> {content}"
        for (block, content), count in sorted(group.assignment.items())
    )
    return ", ".join(parts) or "(idle)"


class _Groups(LazySequence[MachineGroup]):
    what = "groups of machines"

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns.group_count)

    def _at(self, g: int) -> MachineGroup:
        columns = self._columns
        part = slice(int(columns.entry_start[g]), int(columns.entry_start[g + 1]))
        entries = columns.entry_block, columns.entry_content, columns.entry_count
        assignment: dict[tuple[Block, Content], int] = {}
        for i, j, count in zip(*(column[part].tolist() for column in entries), strict=True):
            pair = columns.blocks[i], columns.contents[j]
            assignment[pair] = assignment.get(pair, 0) + count
        return MachineGroup(
            columns.configurations[int(columns.group_configuration[g])],
            FrozenMap(assignment),
            int(columns.group_count[g]),
        )


def _columns_of(groups: Iterable[MachineGroup]) -> Columns:
    blocks: dict[Block, int] = {}
    contents: dict[Content, int] = {}
    configurations: dict[Configuration, int] = {}
    arrays: tuple[list[int], ...] = [], [], [0], [], [], []
    shapes, counts, starts, entry_blocks, entry_contents, amounts = arrays
    given: Iterable[Any] = iterated(
        groups, "groups", "a sequence of MachineGroup objects", InvalidSchedule
    )
    for number, group in enumerate(given):
        is_one = isinstance(group, tuple) and len(group) == 3
        if not (is_one and isinstance(group[0], Configuration) and isinstance(group[1], Mapping)):
            raise InvalidSchedule(
                f"group {number} is {group!r}; expected MachineGroup(configuration, "
                "{(block, job): number of blocks}, count)"
            )
        configuration, assignment, count = group
        shapes.append(configurations.setdefault(configuration, len(configurations)))
        counts.append(whole(count, f"group {number}: its count", error=InvalidSchedule))
        for pair, blocks_given in assignment.items():
            block, content = checked_pair(pair, f"group {number}: a key of its assignment")
            what = f"group {number}: blocks {block!r} for {shown_content(content)}"
            amounts.append(whole(blocks_given, what, error=InvalidSchedule))
            entry_blocks.append(blocks.setdefault(block, len(blocks)))
            entry_contents.append(contents.setdefault(content, len(contents)))
        starts.append(len(amounts))
    return Columns(
        tuple(blocks),
        tuple(contents),
        tuple(configurations),
        *(whole_array(each, "a column") for each in arrays),
    )
