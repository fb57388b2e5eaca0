"""The data of the proved program by Coq's own names: read from words, written as words or as terms.

A line of words has numbers as they are, ``-`` for what is not there, how many before a list, and
the name of a constructor before what it is applied to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

_ABSENT = "-"


class Natural(int):
    """A number of Coq's type nat: that of a machine type, a block type or a job."""


class Record:
    """A record of Coq: its fields have Coq's names."""


class Constructor:
    """What a constructor of Coq is applied to: the class has its name."""


@dataclass(frozen=True)
class MachineType(Record):
    """Cost and limit."""

    cost_of: Fraction
    limit_of: int | None


@dataclass(frozen=True)
class Content(Constructor):
    """Blocks of each type on a machine of some type."""

    machine: Natural
    counts: list[int]


class Listed(Content):
    """A configuration."""


@dataclass(frozen=True)
class SizeBounded(Constructor):
    """All blocks of so large a size."""

    machine: Natural
    sizes: list[Fraction]
    capacity: Fraction
    max_blocks: int | None


@dataclass(frozen=True)
class Job(Record):
    """Demand, supply of each block, and replicas that cover some share of the demand each."""

    demand: Fraction
    supply: list[Fraction]
    replicas: int
    share: Fraction


@dataclass(frozen=True)
class GroupLimit(Record):
    """The most that machines add up to, each times the weight of its type."""

    weights: list[Fraction]
    greatest: Fraction


@dataclass(frozen=True)
class Problem(Record):
    """A problem; its names are numbers."""

    machine_types: list[MachineType]
    block_types: Natural
    configurations: list[Listed | SizeBounded]
    jobs: list[Job]
    group_limits: list[GroupLimit]


@dataclass(frozen=True)
class Group(Record):
    """Equal machines; the assignment is of block, job and number."""

    group_type: Natural
    group_counts: list[int]
    group_machines: int
    group_assignment: list[tuple[Natural, Natural, int]]


@dataclass(frozen=True)
class MachinesOfType(Constructor):
    """How often a machine of each type counts."""

    times: list[int]


class MachinesOfConfiguration(Content):
    """Machines of a listed configuration."""


class MachinesWithBlocks(Content):
    """Machines with so many blocks, or more."""


@dataclass(frozen=True)
class BlocksOfType(Constructor):
    """Blocks, in use or idle."""

    block: Natural


@dataclass(frozen=True)
class BlocksOfJob(Constructor):
    """Blocks that serve a job."""

    block: Natural
    job: Natural


Quantity = (
    MachinesOfType | MachinesOfConfiguration | MachinesWithBlocks | BlocksOfType | BlocksOfJob
)


@dataclass(frozen=True)
class Leaf(Record):
    """Prices and multipliers; limits are those of machine types that have one, then of groups."""

    qprices: list[Fraction]
    qlimit_prices: list[Fraction]
    qmultipliers: list[Fraction]
    qproper: list[int | None]


@dataclass(frozen=True)
class QLeaf(Constructor):
    """A leaf of a tree."""

    leaf: Leaf


@dataclass(frozen=True)
class QBranch(Constructor):
    """A quantity, and the trees for at most so many and for more."""

    quantity: Quantity
    at_most: int
    below: Tree
    above: Tree


Tree = QLeaf | QBranch


@dataclass(frozen=True)
class Plan(Record):
    """All that the program is given: a line of words."""

    problem: Problem
    schedule: list[Group] | None
    tree: Tree


@cache
def _fields(form: Any) -> dict[str, Any]:
    return get_type_hints(form)


@cache
def _there(form: Any) -> Any:
    """The form of what is there, if that may not be so; None if it always is."""
    others = [part for part in get_args(form) if part is not NoneType]
    return others[0] if len(others) < len(get_args(form)) else None


def _read(form: Any, words: list[str]) -> Any:
    """Read what has a form; the words stand in reverse."""
    if _there(form) is not None:
        if words[-1] == _ABSENT:
            words.pop()
            return None
        form = _there(form)
    parts = get_args(form)
    if get_origin(form) is list:
        return [_read(parts[0], words) for _ in range(int(words.pop()))]
    if get_origin(form) is tuple:
        return tuple(_read(part, words) for part in parts)
    if parts or issubclass(form, Constructor):
        named = {part.__name__: part for part in parts or [form]}
        form = named[words.pop()]
    elif not issubclass(form, Record):
        return form(words.pop())
    values = []
    for inner in _fields(form).values():
        values.append(_read(inner, words))
    return form(*values)


def read_words(line: str) -> Plan:
    """Read a line of words."""
    words = line.split()[::-1]
    plan: Plan = _read(Plan, words)
    if words:
        raise ValueError("words are left over")
    return plan


def write_words(value: Any) -> Iterator[str]:
    """Write what has a form as words."""
    if isinstance(value, Record | Constructor):
        form: Any = type(value)
        if isinstance(value, Constructor):
            yield form.__name__
        for name in _fields(form):
            yield from write_words(getattr(value, name))
    elif isinstance(value, list | tuple):
        if isinstance(value, list):
            yield str(len(value))
        for inner in value:
            yield from write_words(inner)
    else:
        yield _ABSENT if value is None else str(value)


def write_term(value: Any, form: Any) -> str:
    """Write what has a form as a term of Coq."""
    if _there(form) is not None:
        return "None" if value is None else f"(Some {write_term(value, _there(form))})"
    if isinstance(value, list):
        return f"[{'; '.join([write_term(inner, get_args(form)[0]) for inner in value])}]"
    if isinstance(value, tuple):
        pairs = zip(value, get_args(form), strict=True)
        return f"({', '.join([write_term(inner, part) for inner, part in pairs])})"
    if isinstance(value, Record | Constructor):
        form = type(value)
        inner = {name: write_term(getattr(value, name), of) for name, of in _fields(form).items()}
        if isinstance(value, Constructor):
            return f"({' '.join([form.__name__, *inner.values()])})"
        return "{| " + "; ".join([f"{name} := {text}" for name, text in inner.items()]) + " |}"
    if isinstance(value, Fraction):
        return f"(Qmake ({value.numerator}) {value.denominator})"
    return f"{value}%nat" if isinstance(value, Natural) else f"({value})"
