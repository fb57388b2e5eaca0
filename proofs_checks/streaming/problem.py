"""A problem folder: its head, and shards of jobs in files, each checked as it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proofs_checks.checker.problem import (
    LEAF,
    Job,
    Problem,
    Row,
    fingerprint_of,
    leaf_sha256,
    read_problem,
)
from proofs_checks.checker.reading import Fault, as_a, check_head, integer, record, show

from .stored import Integers, read_array, read_lines, read_sha256, refuse_numbers, refuse_strangers

# A shard is in the memory as a whole.
_MOST_IN_A_SHARD = 2**30
_NUMBERED = re.compile("j(0|[1-9][0-9]*)", re.ASCII)


class NumberedJobs(Mapping[str, Job]):
    """Jobs j0, j1, …; only those that were kept when their shard was read are at hand."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[str, Job] = {}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return (f"j{number}" for number in range(self._count))

    def __contains__(self, name: object) -> bool:
        return (
            isinstance(name, str)
            and len(name) <= len(str(self._count)) + 1
            and _NUMBERED.fullmatch(name) is not None
            and int(name[1:]) < self._count
        )

    def __getitem__(self, name: str) -> Job:
        return self._kept[name]

    def keep(self, number: int, row: Row) -> None:
        """Have a job at hand from now on."""
        self._kept[f"j{number}"] = Job(Fraction(row.demand, row.scale), row)


@dataclass(frozen=True)
class Shard:
    """Consecutive jobs, and the SHA-256s of their files and leaves."""

    file: str
    jobs: range
    sha256: Mapping[str, str]
    leaves: tuple[bytes, ...]


class Rows(NamedTuple):
    """The rows of a shard, 0 where they are beyond 64 bits; those are ``wide``, by their place."""

    demand: Integers
    supply: Integers
    scale: Integers | None  # None: all are 1
    wide: Mapping[int, Row]

    def row(self, place: int) -> Row:
        """One of them."""
        if place in self.wide:
            return self.wide[place]
        scale = 1 if self.scale is None else int(self.scale[place])
        return Row(scale, int(self.demand[place]), tuple(self.supply[place].tolist()))


@dataclass(frozen=True)
class Folder:
    """A problem whose jobs are in files."""

    path: Path
    head: Problem
    jobs: NumberedJobs  # those of the head
    shards: tuple[Shard, ...]

    def sha256(self) -> str:
        """The problem's SHA-256, by the leaves that its document lists."""
        return fingerprint_of(self.head, (leaf for shard in self.shards for leaf in shard.leaves))

    def rows(self, shard: Shard) -> Rows:
        """Read a shard, and compare its leaves."""
        folder, n, first = self.path / "jobs", len(shard.jobs), shard.jobs.start
        refuse_strangers(folder, shard.file, shard.sha256, "denominator.npy wide")

        def table(kind: str, wide: Mapping[int, Row], *shape: int) -> Integers:
            name = f"{shard.file}.{kind}"
            array = read_array(folder, name, shard.sha256[kind], shape)
            refuse_numbers(array, wide, f"jobs/{name}", first)
            return array

        wide = {}
        if "wide" in shard.sha256:
            length = 2 + len(self.head.blocks)
            name = f"{shard.file}.wide"
            lines = read_lines(folder, name, shard.sha256["wide"], shard.jobs, length)
            wide = {at: Row(q, d, tuple(supply)) for at, (q, d, *supply) in lines.items()}
        demand = table("demand.npy", wide, n)
        supply = table("supply.npy", wide, n, len(self.head.blocks))
        scale = table("denominator.npy", wide, n) if "denominator.npy" in shard.sha256 else None
        rows = Rows(demand, supply, scale, wide)
        for place in _not_reduced(rows):
            raise Fault(f"the numbers of job j{first + place} are not in lowest terms")
        for at, sha256 in enumerate(shard.leaves):
            if self._leaf(shard, rows, at * LEAF) != sha256:
                raise Fault(f"the leaf {at} of shard {shard.file} is another one")
        return rows

    def _leaf(self, shard: Shard, rows: Rows, start: int) -> bytes:
        order = sorted(range(len(self.head.blocks)), key=self.head.blocks.__getitem__)
        part = slice(start, start + LEAF)
        numbers = shard.jobs[part]
        table = np.empty((len(numbers), len(order) + 2), dtype="<i8")
        table[:, 0] = 1 if rows.scale is None else rows.scale[part]
        table[:, 1] = rows.demand[part]
        table[:, 2:] = rows.supply[part][:, order]
        too_long = ""
        for place in range(start, start + len(numbers)) if rows.wide else ():
            if place in rows.wide:
                q, d, supply, _ = rows.wide[place]
                table[place - start] = 0
                integers = [shard.jobs[place], q, d, *(supply[at] for at in order)]
                too_long += ":".join(map(str, integers)) + "\n"
        return leaf_sha256(_names(numbers), table.tobytes(), too_long)


def _names(numbers: range) -> bytes:
    """The lines ``j…`` of consecutive numbers."""
    lines, start = b"", numbers.start
    while start < numbers.stop:
        digits = len(str(start))
        stop = min(numbers.stop, 10**digits)
        left = np.arange(start, stop, dtype=np.int64)
        text = np.full((len(left), digits + 2), ord("\n"), dtype=np.uint8)
        text[:, 0] = ord("j")
        for at in range(digits, 0, -1):
            rest = left // 10
            text[:, at] = left - rest * 10 + ord("0")
            left = rest
        lines += text.tobytes()
        start = stop
    return lines


def _not_reduced(rows: Rows) -> Iterator[int]:
    """The places of rows whose denominator is 0, or has a divisor in common with all the rest."""
    if rows.scale is not None:
        divisor = np.gcd(rows.scale, rows.demand)
        for at in range(rows.supply.shape[1]):
            divisor = np.gcd(divisor, rows.supply[:, at])
        wrong = np.flatnonzero((divisor != 1) | (rows.scale == 0))
        yield from (at for at in wrong.tolist() if at not in rows.wide)
    for at, (scale, demand, supply, _) in rows.wide.items():
        if scale == 0 or gcd(scale, demand, *supply) != 1:
            yield at


def read_folder(path: Path, document: object) -> Folder:
    """Read the document of a problem folder; of the jobs, where they are."""
    check_head(document, "problem-folder")
    table = record(
        document,
        "the problem",
        "format schema blocks machine_types configurations jobs",
        "group_limits",
    )
    fields = record(table["jobs"], "jobs", "count in_a_shard shards")
    count = integer(fields["count"], "the count of jobs")
    in_a_shard = integer(fields["in_a_shard"], "in_a_shard", least=1)
    if in_a_shard % LEAF or in_a_shard > _MOST_IN_A_SHARD:
        raise Fault(f"in_a_shard is {show(in_a_shard)}, not a multiple of {LEAF} up to 2^30")
    listed = as_a(list, fields["shards"], "shards")
    if len(listed) != -(-count // in_a_shard):
        raise Fault(
            f"{show(count)} jobs, {show(in_a_shard)} in a shard, are "
            f"{show(-(-count // in_a_shard))} shards, not {len(listed)}"
        )
    jobs = NumberedJobs(count)
    machines = read_problem({**table, "format": "cms-problem", "jobs": []})
    head = replace(machines, jobs=jobs)
    shards = tuple(
        _read_shard(entry, at, range(at * in_a_shard, min(count, (at + 1) * in_a_shard)))
        for at, entry in enumerate(listed)
    )
    return Folder(path, head, jobs, shards)


def read_digests(
    fields: Mapping[str, Any], index: int, what: str, required: str, optional: str
) -> dict[str, str]:
    """Read the SHA-256s of a shard's files, which are called by its number."""
    if fields["file"] != f"{index:06d}":
        raise Fault(f"{what} has the file {show(fields['file'])}, not '{index:06d}'")
    digests = record(fields["sha256"], f"the sha256 of {what}", required, optional, own=False)
    return {
        kind: read_sha256(digest, f"the sha256 of {kind} of {what}")
        for kind, digest in digests.items()
    }


def _read_shard(value: object, index: int, jobs: range) -> Shard:
    what = f"shards[{index}]"
    fields = record(value, what, "file jobs sha256 leaves")
    sha256 = read_digests(fields, index, what, "demand.npy supply.npy", "denominator.npy wide")
    if integer(fields["jobs"], f"the jobs of {what}") != len(jobs):
        raise Fault(f"{what} has {show(fields['jobs'])} jobs, not {len(jobs)}")
    leaves = as_a(list, fields["leaves"], f"the leaves of {what}")
    if len(leaves) != -(-len(jobs) // LEAF):
        raise Fault(f"{what} has {len(leaves)} leaves, not {-(-len(jobs) // LEAF)}")
    digests = tuple(
        bytes.fromhex(read_sha256(leaf, f"leaf {at} of {what}")) for at, leaf in enumerate(leaves)
    )
    return Shard(fields["file"], jobs, sha256, digests)
