"""The words of a plan, read again: into documents, to compare, and into the terms of Coq."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from .words import ABSENT

T = TypeVar("T")


@dataclass(frozen=True)
class MachineType:
    """Cost and limit."""

    cost: Fraction
    limit: int | None


@dataclass(frozen=True)
class Listed:
    """A configuration, by its counts of blocks."""

    machine: int
    counts: list[int]


@dataclass(frozen=True)
class Bounded:
    """All blocks of so large a size."""

    machine: int
    sizes: list[Fraction]
    capacity: Fraction
    max_blocks: int | None


@dataclass(frozen=True)
class Job:
    """Demand, and supply of each block."""

    demand: Fraction
    supply: list[Fraction]


@dataclass(frozen=True)
class Group:
    """Equal machines; the assignment is of block, job and number."""

    machine: int
    counts: list[int]
    machines: int
    assignment: list[tuple[int, int, int]]


@dataclass(frozen=True)
class Leaf:
    """Prices and multipliers."""

    prices: list[Fraction]
    limit_prices: list[Fraction]
    multipliers: list[Fraction]
    proper: list[int | None]


@dataclass(frozen=True)
class Branch:
    """A quantity, as its word and what follows, and both sides."""

    quantity: tuple[Any, ...]
    at_most: int
    below: Node
    above: Node


Node = Leaf | Branch


@dataclass(frozen=True)
class Words:
    """All that a line of words says."""

    machine_types: list[MachineType]
    block_types: int
    configurations: list[Listed | Bounded]
    jobs: list[Job]
    groups: list[Group] | None
    tree: Node


class _Reader:
    """Reads words one after the other."""

    def __init__(self, line: str) -> None:
        self._words: Iterator[str] = iter(line.split())

    def word(self) -> str:
        return next(self._words)

    def integer(self) -> int:
        return int(self.word())

    def fraction(self) -> Fraction:
        return Fraction(self.word())

    def maybe(self) -> int | None:
        word = self.word()
        return None if word == ABSENT else int(word)

    def many(self, one: Callable[[], T]) -> list[T]:
        return [one() for _ in range(self.integer())]

    def expect(self, *words: str) -> str:
        word = self.word()
        if word not in words:
            raise ValueError(f"the word {word!r} stands where {' or '.join(words)} should")
        return word

    def machine_type(self) -> MachineType:
        return MachineType(self.fraction(), self.maybe())

    def configuration(self) -> Listed | Bounded:
        if self.expect("listed", "bounded") == "listed":
            return Listed(self.integer(), self.many(self.integer))
        sizes = self.integer(), self.many(self.fraction)
        return Bounded(*sizes, self.fraction(), self.maybe())

    def job(self) -> Job:
        return Job(self.fraction(), self.many(self.fraction))

    def served(self) -> tuple[int, int, int]:
        return self.integer(), self.integer(), self.integer()

    def group(self) -> Group:
        counts = self.integer(), self.many(self.integer)
        return Group(*counts, self.integer(), self.many(self.served))

    def quantity(self) -> tuple[Any, ...]:
        word = self.expect("types", "of", "with", "blocks", "job")
        if word == "types":
            return word, self.many(self.integer)
        if word in ("of", "with"):
            return word, self.integer(), self.many(self.integer)
        return (word, self.integer(), *([self.integer()] if word == "job" else []))

    def node(self) -> Node:
        if self.expect("leaf", "branch") == "branch":
            return Branch(self.quantity(), self.integer(), self.node(), self.node())
        prices = self.many(self.fraction), self.many(self.fraction), self.many(self.fraction)
        return Leaf(*prices, self.many(self.maybe))

    def plan(self) -> Words:
        self.expect("problem")
        types, blocks = self.many(self.machine_type), self.integer()
        configurations, jobs = self.many(self.configuration), self.many(self.job)
        there = self.expect("schedule", "nothing") == "schedule"
        groups = self.many(self.group) if there else None
        read = Words(types, blocks, configurations, jobs, groups, self.node())
        if next(self._words, None) is not None:
            raise ValueError("words are left over")
        return read


def read_words(line: str) -> Words:
    """Read a line of words."""
    return _Reader(line).plan()


def _over(names: Sequence[str], values: Sequence[Fraction | int | None]) -> dict[str, Any]:
    return {
        name: str(value) if isinstance(value, Fraction) else value
        for name, value in zip(names, values, strict=True)
        if value
    }


def problem_document(
    read: Words, machine_types: Sequence[str], blocks: Sequence[str], jobs: Sequence[str]
) -> dict[str, Any]:
    """Write the problem of some words as a document again, given its names in their order."""

    def configuration(c: Listed | Bounded) -> dict[str, Any]:
        if isinstance(c, Listed):
            return {"machine": machine_types[c.machine], "blocks": _over(blocks, c.counts)}
        return {
            "machine": machine_types[c.machine],
            "sizes": _over(blocks, c.sizes),
            "capacity": c.capacity,
            "max_blocks": c.max_blocks,
        }

    if read.block_types != len(blocks):
        raise ValueError(f"there are {read.block_types} types of blocks, and {len(blocks)} names")
    return {
        "format": "cms-problem",
        "schema": 2,
        "machine_types": [
            {"name": name, "cost": machine.cost, "limit": machine.limit}
            for name, machine in zip(machine_types, read.machine_types, strict=True)
        ],
        "blocks": list(blocks),
        "configurations": [configuration(c) for c in read.configurations],
        "jobs": [
            {
                "name": name,
                "demand": job.demand,
                "demand_function": {i: f for i, f in zip(blocks, job.supply, strict=True) if f},
            }
            for name, job in zip(jobs, read.jobs, strict=True)
        ],
    }


def schedule_document(
    read: Words, machine_types: Sequence[str], blocks: Sequence[str], jobs: Sequence[str]
) -> dict[str, Any]:
    """Write the schedule of some words as the ``schedule`` of a solution document again."""
    return {
        "groups": [
            {
                "machine": machine_types[group.machine],
                "configuration": _over(blocks, group.counts),
                "count": group.machines,
                "assignment": [[blocks[i], jobs[j], n] for i, j, n in group.assignment],
            }
            for group in read.groups or []
        ]
    }


def tree_document(
    node: Node, machine_types: Sequence[str], blocks: Sequence[str], jobs: Sequence[str]
) -> dict[str, Any]:
    """Write a tree of some words as the ``tree`` of a certificate again."""
    if isinstance(node, Leaf):
        return {
            "prices": _over(blocks, node.prices),
            "limit_prices": _over(machine_types, node.limit_prices),
            "multipliers": [str(mu) for mu in node.multipliers],
            "proper": {i: n for i, n in zip(blocks, node.proper, strict=True) if n is not None},
        }
    word, *what = node.quantity
    branch: dict[str, Any]
    if word == "types":
        branch = {"machines_of_type": _over(machine_types, what[0])}
    elif word == "blocks":
        branch = {"blocks_of": blocks[what[0]]}
    elif word == "job":
        branch = {"blocks_of_job": {"block": blocks[what[0]], "job": jobs[what[1]]}}
    else:
        kind = {"of": "machines_of", "with": "machines_with"}[word]
        branch = {kind: {"machine": machine_types[what[0]], "blocks": _over(blocks, what[1])}}
    return {
        "branch": branch,
        "at_most": node.at_most,
        "below": tree_document(node.below, machine_types, blocks, jobs),
        "above": tree_document(node.above, machine_types, blocks, jobs),
    }
