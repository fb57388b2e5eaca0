"""A solution folder: machines by their numbers, and for each job how many blocks it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from proofs_checks.checker.problem import Problem
from proofs_checks.checker.reading import Fault, as_a, record, show
from proofs_checks.checker.schedule import Group, read_machines, uncovered
from proofs_checks.checker.verdict import SPELLED_OUT

from .problem import Folder, Rows, Shard, read_digests
from .stored import Integers, exact_sum, read_array, read_lines, refuse_numbers, refuse_strangers

_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Plan:
    """Machines, and the SHA-256s of the files of counts, by shard; none: no job gets a block."""

    path: Path
    machines: list[Group]
    counts: dict[str, Mapping[str, str]]


def read_plan(path: Path, schedule: object, folder: Folder, *, has_schedule: bool) -> Plan:
    """Read the ``schedule`` of a solution folder's document."""
    table = record(schedule, "the schedule", "machines counts")
    machines = []
    for index, row in enumerate(as_a(list, table["machines"], "the schedule's machines")):
        what = f"machines[{index}]"
        fields = record(row, what, "machine configuration count")
        machines.append(read_machines(fields, [], what, folder.head))
    counts: dict[str, Mapping[str, str]] = {}
    for index, row in enumerate(as_a(list, table["counts"], "the schedule's counts")):
        what = f"counts[{index}]"
        fields = record(row, what, "file sha256")
        counts[fields["file"]] = read_digests(fields, index, what, "npy", "wide")
    wanted = len(folder.shards) if has_schedule else 0
    if counts and len(counts) != wanted:
        raise Fault(f"the schedule has counts of {len(counts)} shards, not of {wanted}")
    return Plan(path, machines, counts)


@dataclass(frozen=True)
class Counts:
    """How many blocks the jobs of a shard get; 0 where that is beyond 64 bits: ``wide``."""

    table: Integers
    wide: Mapping[int, tuple[int, ...]]

    def of(self, place: int) -> Sequence[int]:
        """Those of one job."""
        return self.wide[place] if place in self.wide else self.table[place].tolist()

    def loads(self) -> list[int]:
        """Those of all jobs together, of each block."""
        loads = [exact_sum(self.table[:, at]) for at in range(self.table.shape[1])]
        for row in self.wide.values():
            loads = [a + b for a, b in zip(loads, row, strict=True)]
        return loads


def read_counts(plan: Plan, folder: Folder, shard: Shard) -> Counts:
    """Read the counts of a shard."""
    files, k = plan.path / "counts", len(folder.head.blocks)
    digests = plan.counts.get(shard.file)
    if digests is None:
        refuse_strangers(files, shard.file, {}, "npy wide")
        return Counts(np.zeros((len(shard.jobs), k), dtype=np.int8), {})
    refuse_strangers(files, shard.file, digests, "wide")
    wide = {}
    if "wide" in digests:
        wide = read_lines(files, f"{shard.file}.wide", digests["wide"], shard.jobs, k)
    name = f"{shard.file}.npy"
    table = read_array(files, name, digests["npy"], (len(shard.jobs), k))
    refuse_numbers(table, wide, f"counts/{name}", shard.jobs.start)
    return Counts(table, wide)


def uncovered_jobs(shard: Shard, rows: Rows, counts: Counts) -> list[str]:
    """Name the jobs of a shard whose demand the counts do not cover, some of them if many."""
    places = _uncovered(rows, counts)
    faults = []
    for place in places[: SPELLED_OUT - 1]:
        scale, demand, supply, _ = rows.row(place)
        has = _given(supply, counts.of(place))
        name = f"j{shard.jobs[place]}"
        faults.append(uncovered(name, Fraction(has, scale), Fraction(demand, scale)))
    more = len(places) - len(faults)
    return [*faults, f"and {more} jobs more of shard {shard.file}"] if more else faults


def _given(supply: Sequence[int], counts: Sequence[int]) -> int:
    return sum(f * n for f, n in zip(supply, counts, strict=True))


def _uncovered(rows: Rows, counts: Counts) -> list[int]:
    """The places of such jobs."""
    n, k = rows.supply.shape
    # k products stay within 64 bits together if each is at most 2^63 / k.
    most_given = rows.supply.max(axis=1, initial=0).astype(np.int64)
    most_taken = counts.table.max(axis=1, initial=0)
    long = most_taken > _LARGEST // max(k, 1) // np.maximum(most_given, 1)
    long[[*rows.wide, *counts.wide]] = True
    covered = np.zeros(n, dtype=np.int64)
    for at in range(k):
        each = np.where(long, 0, rows.supply[:, at]).astype(np.int64)
        covered += each * counts.table[:, at]
    places: list[int] = np.flatnonzero((covered < rows.demand) & ~long).tolist()
    for place in np.flatnonzero(long).tolist():
        _, demand, supply, _ = rows.row(place)
        if _given(supply, counts.of(place)) < demand:
            places.append(place)
    return sorted(places)


def block_faults(problem: Problem, plan: Plan, loads: Sequence[int]) -> list[str]:
    """Name the blocks of which jobs get more than the machines have."""
    faults = []
    for block, load in zip(problem.blocks, loads, strict=True):
        has = sum(g.count * g.configuration.get(block, 0) for g in plan.machines)
        if load > has:
            faults.append(
                f"the jobs have {show(load)} blocks {show(block)} on machines that have {show(has)}"
            )
    return faults
