"""What is wrong with a schedule, in exact arithmetic, without any tolerance.

Linear in jobs and entries of the schedule, independent of the number of machines. Integers only;
where products could leave 62 bits they are Python integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.rows import SAFE
from ..values.arrays import roomy
from ..values.names import NumberedNames
from ..values.numbers import shown
from .columns import machine_totals, whole_array
from .contents import shown_content

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.machine_problem import MachineProblem
    from ..problem.problem import Problem
    from .columns import Columns


class Violation(NamedTuple):
    """One rule that a schedule breaks.

    Attributes
    ----------
    kind : str
        "demand", "configuration", "blocks", "limit", "job", "block" or "count"; other kinds of
        problems have words of their own.
    where : str
        The job, or the group of machines (counted from 0), at fault.
    has, needs : str
        What is there, and what the rule asks for.
    """

    kind: str
    where: str
    has: str
    needs: str

    def __str__(self) -> str:
        return f"{self.where} has {self.has}, needs {self.needs}"


def machine_faults(problem: MachineProblem, columns: Columns) -> Iterator[Violation]:
    """Iterate over what is wrong with machines and their blocks, whatever these give to whom."""
    yield from _configuration_faults(problem, columns)
    yield from _limit_faults(problem, columns)
    yield from _unknown_names(columns, "block", _block_places(problem, columns))
    yield from _block_faults(columns)


def job_faults(problem: Problem, columns: Columns) -> Iterator[Violation]:
    """Iterate over unknown jobs, and over those whose demand is not met.

    A million of them take a while to be worded.
    """
    jobs = _places(columns.contents, problem.job_names, lambda job: problem.job_index(job))
    yield from _unknown_names(columns, "job", jobs)
    yield from _demand_faults(problem, columns, _block_places(problem, columns), jobs)


def _configuration_faults(problem: MachineProblem, columns: Columns) -> Iterator[Violation]:
    listed = set(problem.listed_configurations)
    bad = [
        problem.own(shape) not in listed and not any(problem.sets_with(shape))
        for shape in columns.configurations
    ]
    for g in np.flatnonzero(np.array(bad, dtype=bool)[columns.group_configuration]).tolist():
        shape = columns.configurations[int(columns.group_configuration[g])]
        where = f" on machine type {shape.machine!r}" if shape.machine else ""
        has = f"the configuration {shape}{where}"
        yield Violation("configuration", f"group {g}", has, "one of the problem's configurations")
    for g in np.flatnonzero(columns.group_count < 1).tolist():
        has = f"{shown(int(columns.group_count[g]))} machines"
        yield Violation("count", f"group {g}", has, "at least 1")


def _limit_faults(problem: MachineProblem, columns: Columns) -> Iterator[Violation]:
    used = [0] * len(problem.machine_types)
    for shape, count in machine_totals(columns).items():
        at = problem.machine_index.get(shape.machine)
        if at is not None:  # a machine of another type is a fault of its own
            used[at] += count
    for machine, number in zip(problem.machine_types, used, strict=True):
        if machine.limit is not None and number > machine.limit:
            has, needs = f"{shown(number)} machines", f"at most {shown(machine.limit)}"
            yield Violation("limit", f"machine type {machine.name!r}", has, needs)


def _block_places(problem: MachineProblem, columns: Columns) -> NDArray[np.int64]:
    return _places(columns.blocks, problem.blocks, problem.block_index.__getitem__)


def _places(
    names: Sequence[Any], own: Sequence[str], place: Callable[[str], int]
) -> NDArray[np.int64]:
    """Return where names stand among a problem's own; -1 where it has no such."""
    # Numbers are compared at once, texts one by one: of those only the very same are known.
    if names is own or (isinstance(names, NumberedNames) and names == own):
        return np.arange(len(names))
    places = []
    for name in names:
        try:
            places.append(place(name))
        except KeyError:
            places.append(-1)
    return np.array(places, dtype=np.int64)


def _unknown_names(
    columns: Columns, kind: str, positions: NDArray[np.int64]
) -> Iterator[Violation]:
    names, entries = columns.contents, columns.entry_content
    if kind == "block":
        names, entries = columns.blocks, columns.entry_block
    for e in np.flatnonzero(positions[entries] < 0).tolist() if (positions < 0).any() else ():
        g = int(np.searchsorted(columns.entry_start, e, side="right")) - 1
        name = names[int(entries[e])]
        has = f"the {kind} {name!r}" if isinstance(name, str) else shown_content(name)
        yield Violation(kind, f"group {g}", has, f"a {kind} of the problem")


def _group_of_entries(columns: Columns) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(columns.group_count)), np.diff(columns.entry_start))


def _totals(keys: NDArray[np.int64], amounts: NDArray[Any]) -> tuple[NDArray[np.int64], Any]:
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys, amounts = keys[order], amounts[order]
    begin = np.flatnonzero(np.diff(keys, prepend=-1))
    if not len(begin):
        return keys, amounts
    return keys[begin], np.add.reduceat(roomy(amounts, len(amounts)), begin)


def _block_faults(columns: Columns) -> Iterator[Violation]:
    group = _group_of_entries(columns)
    for e in np.flatnonzero(columns.entry_count < 1).tolist():
        block = columns.blocks[columns.entry_block[e]]
        content = shown_content(columns.contents[columns.entry_content[e]])
        has = f"{shown(int(columns.entry_count[e]))} blocks {block!r} for {content}"
        yield Violation("count", f"group {group[e]}", has, "at least 1")
    width = max(len(columns.blocks), 1)
    keys, used = _totals(group * width + columns.entry_block, columns.entry_count)
    groups, blocks = keys // width, keys % width
    most = _held(columns, columns.group_configuration[groups] * width + blocks)
    for at in np.flatnonzero(used > most).tolist():
        name = columns.blocks[int(blocks[at])]
        has = f"{shown(int(used[at]))} blocks {name!r} in use on a machine"
        needs = f"at most the {shown(int(most[at]))} of its configuration"
        yield Violation("blocks", f"group {groups[at]}", has, needs)


def _held(columns: Columns, pairs: NDArray[np.int64]) -> NDArray[Any]:
    """Return how many blocks a configuration has, for pairs ``configuration * width + block``."""
    width = max(len(columns.blocks), 1)
    size = len(columns.configurations) * width
    if size <= len(pairs):
        distinct, at = np.arange(size), pairs
    else:  # names that no entry speaks of, perhaps very many
        distinct, at = np.unique(pairs, return_inverse=True)
    held = [
        columns.configurations[pair // width].blocks.get(columns.blocks[pair % width], 0)
        for pair in distinct.tolist()
    ]
    return whole_array(held, "blocks of the configurations")[at]


def _demand_faults(
    problem: Problem, columns: Columns, block_map: NDArray[np.int64], job_map: NDArray[np.int64]
) -> Iterator[Violation]:
    rows, k = problem.rows, len(problem.blocks)
    jobs = job_map[columns.entry_content] if len(job_map) else columns.entry_content
    blocks = block_map[columns.entry_block] if len(block_map) else columns.entry_block
    # A group with a count below 1 is a fault of its own and serves no job.
    count = columns.group_count[_group_of_entries(columns)]
    real = (jobs >= 0) & (blocks >= 0) & (count > 0) & (columns.entry_count > 0)
    jobs, blocks, count = jobs[real], blocks[real], count[real]
    each = columns.entry_count[real]
    each = roomy(each, int(count.max(initial=0)))
    keys, given = _totals(jobs * max(k, 1) + blocks, each * count)
    jobs, blocks = keys // max(k, 1), keys % max(k, 1)
    inner = rows.inner
    demands, supply = inner.demand[jobs], inner.supply[jobs, blocks]
    # d // f + 1 blocks of one type suffice by themselves: counting no more keeps products small.
    enough = demands // np.maximum(supply, 1) + 1
    served = np.zeros(len(rows), dtype=np.int64)
    # What serves a row's inner image serves the row; the others, and the longest, are looked at.
    easy = np.flatnonzero(demands < SAFE // (2 * max(k, 1)))
    products = (np.minimum(given, enough) * supply)[easy].astype(np.int64)
    np.add.at(served, jobs[easy], products)
    at_fault = np.flatnonzero(served < inner.demand)
    # jobs are sorted, as their keys are
    starts, ends = (np.searchsorted(jobs, at_fault, side=side) for side in ("left", "right"))
    for j, start, end in zip(at_fault.tolist(), starts.tolist(), ends.tolist(), strict=True):
        row = rows.row(j)
        total = sum(row.supply[int(blocks[at])] * int(given[at]) for at in range(start, end))
        if total < row.demand:
            has = f"{shown(Fraction(total, row.denominator))} of its demand served"
            needs = shown(Fraction(row.demand, row.denominator))
            yield Violation("demand", f"job {problem.job_names[j]!r}", has, needs)
