"""The parts a problem is made of: blocks, machine types, configurations, demand functions, jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from ..errors import InvalidProblem
from ..values.frozen import FrozenMap
from ..values.names import checked_name, checked_table
from ..values.numbers import Number, common_step, exact, shown, whole
from .row import BundleRule

#: A block type is its name: equal names mean equal supply, on whatever machine the block lies.
Block: TypeAlias = str

#: The machine type of a problem that speaks of none.
DEFAULT_MACHINE = "machine"
#: How a job's load is spread over its blocks: by what each satisfies, or in equal shares.
ROUTINGS = ("weighted", "equal")
#: Every further replica takes its time where bundles are priced.
MOST_REPLICAS = 64


@dataclass(frozen=True, slots=True)
class MachineType:
    """A kind of machine: its cost, and how many there are.

    Parameters
    ----------
    name : str
    cost : number, default 1
        >= 0; the schedule's cost is the sum over its machines.
    limit : int, optional
        How many machines of this type exist; without it, any number.

    Examples
    --------
    >>> MachineType("a100", cost="1.5", limit=8)
    MachineType(name='a100', cost=Fraction(3, 2), limit=8)
    """

    name: str
    cost: Fraction = Fraction(1)
    limit: int | None = None

    def __init__(self, name: str, cost: Number = 1, limit: int | None = None) -> None:
        name = checked_name(name, "machine type")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "cost", exact(cost, f"cost of machine type {name!r}"))
        if limit is not None:
            limit = whole(limit, f"limit of machine type {name!r}", least=0)
        object.__setattr__(self, "limit", limit)


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """A limit on machines of several types together, each counted by its weight.

    Parameters
    ----------
    name : str
        Unlike the names of machine types and of other groups.
    weights : Mapping[str, number]
        What one machine of each type counts, > 0; types left out do not count.
    at_most : number
        >= 0; all machines together count no more.

    Examples
    --------
    >>> budget = GroupLimit("budget", {"a100": "1.5", "h100": 3}, at_most="10.4")
    >>> budget.at_most, budget.reach
    (Fraction(52, 5), Fraction(9, 1))
    """

    name: str
    weights: FrozenMap[str, Fraction]
    at_most: Fraction

    def __init__(self, name: str, weights: Mapping[str, Number], at_most: Number) -> None:
        name = checked_name(name, "group")
        table = {
            machine: exact(weight, f"weight of machine type {machine!r} in group {name!r}")
            for machine, weight in checked_table(
                weights, f"weights of group {name!r}", "machine type"
            ).items()
        }
        if not all(table.values()) or not table:
            raise InvalidProblem(
                f"weights of group {name!r} are {table!r}; expected one machine type at least, and "
                "weights > 0: leave out the types that do not count"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "weights", FrozenMap(table))
        object.__setattr__(self, "at_most", exact(at_most, f"at_most of group {name!r}"))

    @property
    def reach(self) -> Fraction:
        """The most that whole machines can count: a multiple of the weights' common step."""
        step = common_step(self.weights.values())
        return self.at_most // step * step


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to cut a machine into blocks: a multiset of blocks.

    Parameters
    ----------
    blocks : Mapping[str, int]
        How many blocks of each type; zeros are dropped.
    machine : str, optional
        The machine type it belongs to; may be left out when the problem has only one.

    Examples
    --------
    >>> Configuration({"4g": 1, "3g": 1})
    Configuration(3g + 4g)
    >>> Configuration({"1g": 7}, machine="a100").blocks["1g"]
    7
    """

    blocks: FrozenMap[Block, int]
    machine: str | None = None

    def __init__(self, blocks: Mapping[Block, int], machine: str | None = None) -> None:
        counts = {
            block: number
            for block, count in checked_table(blocks, "a configuration", "block").items()
            if (number := whole(count, f"count of block {block!r} in a configuration", least=0))
        }
        if not counts:
            raise InvalidProblem("a configuration has no blocks; leave it out")
        object.__setattr__(self, "blocks", FrozenMap(counts))
        object.__setattr__(self, "machine", _machine(machine))

    def __str__(self) -> str:
        return " + ".join(f"{shown(n)} x {b}" if n > 1 else b for b, n in self.blocks.items())

    def __repr__(self) -> str:
        where = f" on {self.machine}" if self.machine else ""
        return f"Configuration({self}{where})"


@dataclass(frozen=True, slots=True)
class SizeBoundedConfigurations:
    """Every multiset of blocks whose sizes sum to at most a capacity, without listing them.

    Parameters
    ----------
    sizes : Mapping[str, number]
        Size > 0 of each block type, in the unit of the capacity.
    capacity : number
    machine : str, optional
        The machine type; may be left out when the problem has only one.
    max_blocks : int, optional
        At most this many blocks on one machine.

    Examples
    --------
    Shares of a GPU in per cent, of at most 48 clients:

    >>> shares = SizeBoundedConfigurations(
    ...     {"mps:25": 25, "mps:40": 40}, capacity=100, max_blocks=48
    ... )
    >>> shares.allows({"mps:40": 2, "mps:25": 1})
    False
    """

    sizes: FrozenMap[Block, Fraction]
    capacity: Fraction
    machine: str | None = None
    max_blocks: int | None = None

    def __init__(
        self,
        sizes: Mapping[Block, Number],
        capacity: Number,
        machine: str | None = None,
        max_blocks: int | None = None,
    ) -> None:
        table = {
            block: exact(size, f"size of block {block!r}")
            for block, size in checked_table(sizes, "sizes", "block").items()
        }
        if not table:
            raise InvalidProblem("size-bounded configurations without a block; give sizes")
        if nothing := [block for block, size in table.items() if not size]:
            raise InvalidProblem(
                f"size of block {nothing[0]!r} is 0; expected a number > 0, since any number of "
                "such blocks would fit"
            )
        object.__setattr__(self, "sizes", FrozenMap(table))
        object.__setattr__(self, "capacity", exact(capacity, "capacity"))
        object.__setattr__(self, "machine", _machine(machine))
        if max_blocks is not None:
            max_blocks = whole(max_blocks, "max_blocks", least=1)
        object.__setattr__(self, "max_blocks", max_blocks)

    def allows(self, blocks: Mapping[Block, int]) -> bool:
        """Whether one machine can be cut into these blocks."""
        too_many = self.max_blocks is not None and sum(blocks.values()) > self.max_blocks
        if too_many or not blocks.keys() <= self.sizes.keys():
            return False
        return sum((self.sizes[b] * n for b, n in blocks.items()), Fraction(0)) <= self.capacity

    def largest_count(self, block: Block) -> int:
        """How many blocks of one type fit on a machine by themselves."""
        count = self.capacity // self.sizes[block]
        return count if self.max_blocks is None else min(count, self.max_blocks)


class DemandFunction(FrozenMap[Block, Fraction]):
    """How much of a job's demand one block of each type satisfies; 0 where it says nothing.

    Parameters
    ----------
    table : Mapping[str, number]

    Examples
    --------
    >>> supply = DemandFunction({"1g": 90, "3g": "310.5"})
    >>> supply("3g"), supply("7g")
    (Fraction(621, 2), Fraction(0, 1))
    """

    __slots__ = ()

    def __init__(self, table: Mapping[Block, Number], job: str = "?") -> None:
        given = checked_table(table, f"demand_function of job {job!r}", "block").items()
        super().__init__(
            {block: exact(f, f"supply of block {block!r} to job {job!r}") for block, f in given}
        )

    def __call__(self, block: Block) -> Fraction:
        """Return what one block of this type satisfies."""
        return self[block] if block in self else Fraction(0)


@dataclass(frozen=True, slots=True)
class Replicas:
    """How many blocks of a job each satisfy a share of its demand, so that others may fail.

    Parameters
    ----------
    count : int
        At least this many blocks of the job satisfy the share each, 1 to 64.
    share : number, optional
        The least part of the demand that each of them satisfies, 0 to 1; 1 / (2 count) by default.

    Examples
    --------
    >>> Replicas(2)
    Replicas(count=2, share=Fraction(1, 4))
    """

    count: int
    share: Fraction

    def __init__(self, count: int, share: Number | None = None) -> None:
        count = whole(count, "count of replicas", least=1)
        share = Fraction(1, 2 * count) if share is None else exact(share, "share of a replica")
        if count > MOST_REPLICAS or share > 1:
            said = f"{shown(count)} replicas of a share of {shown(share)} each"
            raise InvalidProblem(f"{said}; expected at most {MOST_REPLICAS}, of at most 1 each")
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "share", share)


@dataclass(frozen=True, slots=True)
class Job:
    """A job: a name, a demand, and how much of it one block of each type satisfies.

    Parameters
    ----------
    name : str
    demand : number
        >= 0.
    demand_function : Mapping[str, number] or callable
        A table, or a function of the block's name (evaluated by the problem once a block).
    replicas : Replicas, optional
        Blocks that each satisfy a share of the demand; a job without a demand needs none.
    routing : str, default "weighted"
        ``"weighted"``: blocks satisfy what they can; ``"equal"``: each counts as the smallest one.

    Examples
    --------
    >>> Job("bert", demand=1200, demand_function={"1g": 90, "7g": 800}).demand
    Fraction(1200, 1)
    """

    name: str
    demand: Fraction
    demand_function: DemandFunction | Callable[[Block], Number]
    replicas: Replicas | None = None
    routing: str = "weighted"

    def __init__(
        self,
        name: str,
        demand: Number,
        demand_function: Mapping[Block, Number] | Callable[[Block], Any],
        replicas: Replicas | None = None,
        routing: str = "weighted",
    ) -> None:
        name = checked_name(name, "job")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "demand", exact(demand, f"demand of job {name!r}"))
        if isinstance(demand_function, DemandFunction):
            pass
        elif isinstance(demand_function, Mapping):
            demand_function = DemandFunction(demand_function, name)
        elif not callable(demand_function):
            raise InvalidProblem(
                f"demand_function of job {name!r} is {demand_function!r}; expected a table "
                '{"1g": 90, ...} or a function of the block\'s name'
            )
        object.__setattr__(self, "demand_function", demand_function)
        if replicas is not None and type(replicas) is not Replicas:
            raise InvalidProblem(f"replicas of job {name!r} is {replicas!r}; expected Replicas")
        object.__setattr__(self, "replicas", replicas)
        if routing not in ROUTINGS:
            expected = " or ".join(map(repr, ROUTINGS))
            raise InvalidProblem(f"routing of job {name!r} is {routing!r}; expected {expected}")
        object.__setattr__(self, "routing", str(routing))

    @property
    def rule(self) -> BundleRule | None:
        """What its blocks must be beside enough; None if they need be nothing else."""
        if self.replicas is None:
            return BundleRule(0, Fraction(0), "equal") if self.routing == "equal" else None
        return BundleRule(self.replicas.count, self.replicas.share, self.routing)


#: What a machine may be cut into: one multiset of blocks, or all up to a capacity.
AnyConfiguration: TypeAlias = Configuration | SizeBoundedConfigurations


def held_blocks(shapes: Iterable[AnyConfiguration]) -> Iterator[Block]:
    """Yield the blocks that some machine can have."""
    for shape in shapes:
        if isinstance(shape, Configuration):
            yield from shape.blocks
        else:
            yield from (block for block in shape.sizes if shape.largest_count(block) > 0)


def _machine(name: str | None) -> str | None:
    return None if name is None else checked_name(name, "machine type")
