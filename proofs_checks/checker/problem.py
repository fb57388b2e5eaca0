"""The problem: machine types, configurations and jobs, as a document has them; its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import lcm
from struct import Struct
from typing import Any, NamedTuple

from .bundles import Rule, read_rule
from .mixes import Sharing, read_shared_job, read_time_sharing
from .reading import (
    Fault,
    as_a,
    check_head,
    common_step,
    integer,
    known_name,
    new_name,
    no_duplicates,
    number,
    record,
    show,
    table_over,
)

# Every job has a supply of every block: from so many on a file must give one in a hundred, or else
# a small file would fill the memory with zeros. docs/reference/files.md says so.
_MOST_ZEROS, _ZEROS_A_SUPPLY = 10_000_000, 100
# The integers of a job have at most 4300 digits.
_TOO_LONG = 10**4300
#: So many jobs are hashed at once; the last ones are fewer.
LEAF = 65_536


@dataclass(frozen=True)
class MachineType:
    """What a machine of this type costs, and how many there are (None: any number)."""

    cost: Fraction
    limit: int | None


@dataclass(frozen=True)
class Limit:
    """The machines of some types, each times its weight, add up to ``at_most``, or to less."""

    weights: Mapping[str, Fraction]
    at_most: Fraction

    @property
    def reach(self) -> Fraction:
        """The most that whole machines add up to: a multiple of the weights' common step."""
        step = common_step([*self.weights.values()])
        return self.at_most // step * step


@dataclass(frozen=True)
class Listed:
    """One configuration of a machine type."""

    machine: str
    blocks: dict[str, int]  # without zeros


@dataclass(frozen=True)
class Bounded:
    """Every multiset of blocks of total size at most ``capacity`` and of at most ``max_blocks``."""

    machine: str
    sizes: dict[str, Fraction]
    capacity: Fraction
    max_blocks: int | None

    def allows(self, blocks: Mapping[str, int]) -> bool:
        """Whether a machine can be cut into these blocks."""
        return (
            blocks.keys() <= self.sizes.keys()
            and sum(self.sizes[i] * n for i, n in blocks.items()) <= self.capacity
            and (self.max_blocks is None or sum(blocks.values()) <= self.max_blocks)
        )


class Row(NamedTuple):
    """What a job asks for, without its name, as integers: all of them times ``scale``."""

    scale: int
    demand: int
    supply: tuple[int, ...]  # of every block, in the problem's order
    rule: Rule | None = None  # what else the job asks for


@dataclass(frozen=True)
class Job:
    """A demand, and the demand function as part of the row.

    Of a job that shares blocks in time, the row has what a block gives it without others.
    """

    demand: Fraction
    row: Row


@dataclass(frozen=True)
class Problem:
    """The whole problem; names are keys."""

    blocks: list[str]
    machine_types: dict[str, MachineType]
    configurations: list[Listed | Bounded]
    jobs: Mapping[str, Job]
    sharing: Sharing | None = None  # None: a block serves one job
    groups: Mapping[str, Limit] = field(default_factory=dict)  # limits of several types together

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """All limits by name: those of machine types, which count with weight 1, and of groups."""
        own = ((m, machine.limit) for m, machine in self.machine_types.items())
        types = {m: Limit({m: Fraction(1)}, Fraction(n)) for m, n in own if n is not None}
        return {**types, **self.groups}

    @property
    def size_bounded(self) -> list[Bounded]:
        """The sets among the configurations."""
        return [c for c in self.configurations if isinstance(c, Bounded)]

    def machine_or_only(self, name: object) -> Any:
        """Fill in the machine type where it goes without saying."""
        only = len(self.machine_types) == 1
        return next(iter(self.machine_types)) if name is None and only else name


def multiset(value: object, what: str, known: Collection[str] | None = None) -> dict[str, int]:
    """Read blocks and their numbers; zeros are dropped."""
    table = table_over(known, value, what)
    counts = {i: integer(n, "the count of", i, f"in {what}") for i, n in table.items()}
    if not any(counts.values()):
        raise Fault(f"{what} has no blocks")
    return {i: n for i, n in counts.items() if n > 0}


def _read_configuration(
    value: object, machines: Collection[str], known: Collection[str] | None, what: str
) -> Listed | Bounded:
    bounded = "sizes" in as_a(dict, value, what)
    required, optional = (
        ("sizes capacity", "machine max_blocks") if bounded else ("blocks", "machine")
    )
    table = record(value, what, required, optional)
    only = next(iter(machines)) if len(machines) == 1 else None
    machine = known_name(machines, table.get("machine", only), f"the machine type of {what}")
    if not bounded:
        return Listed(machine, multiset(table["blocks"], what, known))
    sizes = (
        as_a(dict, table["sizes"], what)
        if known is None
        else table_over(known, table["sizes"], what)
    )
    sizes = {i: number(size, "the size of", i, f"in {what}") for i, size in sizes.items()}
    if not sizes or not all(sizes.values()):
        raise Fault(f"{what} needs sizes > 0: any number of blocks of size 0 would fit")
    most = table.get("max_blocks")
    return Bounded(
        machine,
        sizes,
        number(table["capacity"], f"the capacity of {what}"),
        None if most is None else integer(most, f"max_blocks of {what}", least=1),
    )


def _read_group(
    value: object, taken: Collection[str], machines: Collection[str]
) -> tuple[str, Limit]:
    fields = record(value, "a group", "name weights at_most")
    name = new_name(fields["name"], "the name of a group")
    no_duplicates([*taken, name], "group or machine type")
    weights = {
        m: number(weight, "the weight of", m, "in group", name)
        for m, weight in table_over(
            machines, fields["weights"], "the weights of group", name
        ).items()
    }
    if not weights or not all(weights.values()):
        raise Fault(f"the group {show(name)} needs weights > 0 of one machine type at least")
    return name, Limit(weights, number(fields["at_most"], "at_most of group", name))


def read_problem(document: object) -> Problem:
    """Read a problem document; what may be left out is in docs/reference/files.md."""
    check_head(document, "problem")
    table = record(
        document,
        "the problem",
        "format schema configurations jobs",
        "machine_types group_limits blocks time_sharing",
    )
    machine_types: dict[str, MachineType] = {}
    for row in as_a(list, table.get("machine_types", []), "machine_types") or [{"name": "machine"}]:
        fields = record(row, "a machine type", "name", "cost limit")
        name = new_name(fields["name"], "the name of a machine type")
        no_duplicates([*machine_types, name], "machine type")
        limit = fields.get("limit")
        machine_types[name] = MachineType(
            number(fields.get("cost", 1), "the cost of machine type", name),
            None if limit is None else integer(limit, "the limit of machine type", name),
        )
    groups: dict[str, Limit] = {}
    for row in as_a(list, table.get("group_limits", []), "group_limits"):
        name, limit_of_group = _read_group(row, [*machine_types, *groups], machine_types)
        groups[name] = limit_of_group
    known = as_a(list, table["blocks"], "blocks") if "blocks" in table else None
    configurations = [
        _read_configuration(row, machine_types, known, f"configurations[{index}]")
        for index, row in enumerate(as_a(list, table["configurations"], "configurations"))
    ]
    blocks = known
    if blocks is None:
        in_use = [c.blocks if isinstance(c, Listed) else c.sizes for c in configurations]
        blocks = sorted({i for c in in_use for i in c})
    no_duplicates([new_name(i, "the name of a block") for i in blocks], "block")
    shared = "time_sharing" in table
    key = "points" if shared else "demand_function"
    rows = [
        record(row, "a job", "name demand limit points")
        if shared
        else record(row, "a job", "name demand demand_function", "replicas routing")
        for row in as_a(list, table["jobs"], "jobs")
    ]
    no_duplicates([new_name(row["name"], "the name of a job") for row in rows], "job")
    tables = [row[key] for row in rows]
    given = sum(len(table) for table in tables if isinstance(table, dict))
    if len(rows) * len(blocks) > max(_MOST_ZEROS, _ZEROS_A_SUPPLY * given):
        raise Fault(
            f"{len(rows)} jobs and {len(blocks)} blocks make a table of which only {given} entries "
            "are given"
        )
    if not shared:
        jobs = {row["name"]: _read_job(row, blocks) for row in rows}
        return Problem(blocks, machine_types, configurations, jobs, None, groups)
    own = {row["name"]: read_shared_job(row, blocks) for row in rows}
    sharing = read_time_sharing(table["time_sharing"], own)
    jobs = {}
    for row in rows:
        name = row["name"]
        demand = number(row["demand"], "the demand of job", name)
        jobs[name] = _job(name, demand, {i: own[name].alone(i) for i in blocks}, blocks)
    return Problem(blocks, machine_types, configurations, jobs, sharing, groups)


def _read_job(fields: Mapping[str, Any], blocks: Collection[str]) -> Job:
    name = fields["name"]
    table = table_over(blocks, fields["demand_function"], "the demand function of job", name)
    demand = number(fields["demand"], "the demand of job", name)
    # What one block covers; nothing if it is absent. Most numbers are integers, which come quicker.
    supply = {
        i: f
        if type(f) is int and f >= 0
        else number(f, "the demand function of job", name, "at", i)
        for i, f in table.items()
    }
    job = _job(name, demand, supply, blocks)
    return Job(demand, job.row._replace(rule=read_rule(fields, name)))


def _job(
    name: str, demand: Fraction, supply: Mapping[str, Fraction | int], blocks: Collection[str]
) -> Job:
    scale = lcm(demand.denominator, *(f.denominator for f in supply.values()))
    scaled = {i: f.numerator * (scale // f.denominator) for i, f in supply.items()}
    amount = demand.numerator * (scale // demand.denominator)
    if max(scale, amount, *scaled.values()) >= _TOO_LONG:
        raise Fault(f"the numbers of job {show(name)} over one denominator have too many digits")
    return Job(demand, Row(scale, amount, tuple(scaled.get(i, 0) for i in blocks)))


def _json_line(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.encode() + b"\n"


def _lines_of_sharing(problem: Problem, sharing: Sharing) -> Iterator[bytes]:
    for name, job in sharing.jobs.items():
        points = {
            block: [[str(a), str(length)] for a, length in sorted(lengths.items())]
            for block, lengths in job.lengths.items()
        }
        demand, limit = str(problem.jobs[name].demand), str(job.limit)
        yield _json_line({"demand": demand, "limit": limit, "points": points})


def _machines(problem: Problem, **more: object) -> bytes:
    """The line that describes all but the jobs; groups only where there are some."""
    if problem.groups:
        more["group_limits"] = [
            {
                "name": name,
                "weights": {m: str(weight) for m, weight in group.weights.items()},
                "at_most": str(group.at_most),
            }
            for name, group in problem.groups.items()
        ]
    return _json_line(
        {
            "blocks": sorted(problem.blocks),
            "configurations": [
                {"machine": c.machine, "blocks": c.blocks}
                if isinstance(c, Listed)
                else {
                    "machine": c.machine,
                    "sizes": {i: str(size) for i, size in c.sizes.items()},
                    "capacity": str(c.capacity),
                    "max_blocks": c.max_blocks,
                }
                for c in problem.configurations
            ],
            "machine_types": [
                {"name": name, "cost": str(machine.cost), "limit": machine.limit}
                for name, machine in problem.machine_types.items()
            ],
            **more,
        }
    )


def leaf_sha256(names: bytes, table: bytes, too_long: str) -> bytes:
    """Hash consecutive jobs: lines of names, rows, and lines of the rows beyond 64 bits."""
    return hashlib.sha256(names + b"\n" + table + too_long.encode()).digest()


def fingerprint_of(problem: Problem, leaves: Iterable[bytes]) -> str:
    """Hash machines, and jobs by their leaves."""
    digest = hashlib.sha256(b"cms-problem-2\n" + _machines(problem))
    for leaf in leaves:
        digest.update(leaf)
    return digest.hexdigest()


def _leaves(problem: Problem) -> Iterator[bytes]:
    order = sorted(range(len(problem.blocks)), key=problem.blocks.__getitem__)
    pack = Struct(f"<{len(order) + 2}q").pack
    jobs = iter(enumerate(problem.jobs.items()))
    while leaf := list(islice(jobs, LEAF)):
        names = "".join(f"{name}\n" for _, (name, _) in leaf)
        table, too_long = bytearray(), ""
        for index, (_, job) in leaf:
            scale, demand, supply, rule = job.row
            integers = [scale, demand, *(supply[at] for at in order)]
            if rule is not None or max(integers) >= 2**63:
                too_long += ":".join(map(str, [index, *integers, *(rule or ())])) + "\n"
                integers = [0] * len(integers)
            table += pack(*integers)
        yield leaf_sha256(names.encode(), bytes(table), too_long)


def fingerprint(problem: Problem) -> str:
    """Hash the names and reduced rationals, as docs/reference/files.md has it."""
    sharing = problem.sharing
    if sharing is None:
        return fingerprint_of(problem, _leaves(problem))
    digest = hashlib.sha256(b"cms-time-shared-problem-1\n")
    digest.update(_machines(problem, rule=sharing.rule, max_jobs=sharing.max_jobs))
    digest.update("".join(f"{name}\n" for name in problem.jobs).encode() + b"\n")
    for own in _lines_of_sharing(problem, sharing):
        digest.update(own)
    return digest.hexdigest()


def check_problem(problem_doc: Any) -> list[str]:
    """Check a problem document: return a sentence on the first thing that is wrong, if any."""
    try:
        problem_sha256(problem_doc)
    except ValueError as fault:
        return [str(fault)]
    return []


def problem_sha256(problem_doc: Any) -> str:
    """The SHA-256 of a problem, over its names and reduced rationals."""
    return fingerprint(read_problem(problem_doc))
