"""Whether the room on some GPUs can give as much as is needed, and proofs that it cannot.

What is needed are amounts of several things; what fills a room gives some of each. Prices of
instances prove that it is not enough, if all rooms together are worth less than the cheapest
instances that give each of the needs: whatever fills the rooms and gives them all would have to be
worth both. The dearest filling of each room is listed, and the cheapest instances for a need are a
knapsack, solved exactly, so nothing has to be believed. Prices come from a linear program. Where
few GPUs are left, all sums of fillings are tried instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm
from operator import ge
from typing import NamedTuple

from ....knapsack.pricing import cheapest_option
from ...hardware import Gpu
from ..programs import Limits, Program
from ..spots import layouts_around

__all__ = ["Block", "Covering", "Give", "Prices", "Room", "room_of"]

#: Prices are tried at these denominators, a need being worth 1 at most.
_DENOMINATORS = (1, 2, 3, 4, 6, 8, 12, 60, 1000, 10**6)
#: Prices in whole numbers, where ways to give something are looked for; and so many times.
_WHOLE, _ROUNDS = 10**7, 30
#: All uses of the room are tried on so many GPUs at most, and so many sums of them are made or
#: compared.
_GPUS, _SUMS = 6, 200_000

Vector = tuple[int, ...]
#: A profile of a GPU.
Block = tuple[str, str]
Prices = Mapping[Block, Fraction]


class Give(NamedTuple):
    """What an instance gives: so much of a need."""

    need: int
    amount: Fraction


class Room(NamedTuple):
    """The room on a GPU.

    Attributes
    ----------
    gpu : str
        The key of its type.
    fills : tuple of tuple of (str, int)
        How many instances of each profile fit into it; of two ways, one is not more of everything.
    group : str or None
        For GPUs that are empty, of which only some may be used: which of them are counted
        together. None if the GPU is in use.
    """

    gpu: str
    fills: tuple[tuple[tuple[str, int], ...], ...]
    group: str | None


def room_of(
    gpu: Gpu, held: Iterable[tuple[str, int]], profiles: Iterable[str], group: str | None
) -> Room:
    """Return the room beside what is on a GPU.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> room_of(get_gpu("a30-24gb"), [("1g.6gb", 1)], ["2g.12gb"], None).fills
    ((('2g.12gb', 1),),)
    """
    own = tuple(sorted(held, key=lambda place: place[1]))
    return Room(gpu.key, _fills(gpu, own, tuple(sorted(profiles))), group)


@lru_cache(4096)
def _fills(
    gpu: Gpu, own: tuple[tuple[str, int], ...], names: tuple[str, ...]
) -> tuple[tuple[tuple[str, int], ...], ...]:
    if not names:
        return ()
    beside = Counter(name for name, _ in own)
    found = {
        tuple(sorted((Counter(p.profile for p in layout) - beside).items()))
        for layout in layouts_around(gpu, own, names)
    }
    counts = sorted(found)
    best = [each for each in counts if not any(_is_less(each, other) for other in counts)]
    return tuple(each for each in best if each)


def _is_less(one: Iterable[tuple[str, int]], other: Iterable[tuple[str, int]]) -> bool:
    more = dict(other)
    return one != other and all(more.get(name, 0) >= n for name, n in one)


@dataclass(frozen=True)
class Covering:
    """Needs, and the rooms that have to give them.

    Parameters
    ----------
    needs : tuple of Fraction
        All above 0.
    gives : Mapping[(str, str), sequence of Give]
        What an instance of a profile of a GPU can give: one of these.
    rooms : Mapping[Room, int]
        How many GPUs have such a room.
    most : Mapping[str, int]
        How many GPUs of each group may be used.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> room = room_of(get_gpu("a30-24gb"), [("1g.6gb", 1)], ["1g.6gb", "2g.12gb"], None)
    >>> gives = {
    ...     ("a30-24gb", "1g.6gb"): [Give(0, Fraction(10))],
    ...     ("a30-24gb", "2g.12gb"): [Give(0, Fraction(30))],
    ... }
    >>> prices = {("a30-24gb", "1g.6gb"): Fraction(1), ("a30-24gb", "2g.12gb"): Fraction(3)}
    >>> for need in (40, 41):
    ...     Covering((Fraction(need),), gives, {room: 1}, {}).is_too_much(prices)
    False
    True
    """

    needs: tuple[Fraction, ...]
    gives: Mapping[Block, Sequence[Give]]
    rooms: Mapping[Room, int]
    most: Mapping[str, int]

    def worth(self, prices: Prices) -> Fraction:
        """Return what all rooms are worth at most, however they are used."""
        total = Fraction(0)
        empty: dict[str, list[Fraction]] = {}
        for room, count in self.rooms.items():
            values = (sum(n * prices.get((room.gpu, p), 0) for p, n in f) for f in room.fills)
            best = Fraction(max(values, default=0))
            if room.group is None:
                total += count * best
            else:
                empty.setdefault(room.group, []).extend([best] * min(count, self.most[room.group]))
        for group, values_of in empty.items():
            total += sum(sorted(values_of, reverse=True)[: self.most[group]], Fraction(0))
        return total

    def asked(self, prices: Prices) -> Fraction | None:
        """Return what the cheapest instances are worth that give all needs; None if none do."""
        unit = lcm(*(price.denominator for price in prices.values()))
        total = 0
        for supplies, demand in self._wanted:
            costs = [int(prices.get(block, Fraction(0)) * unit) for block in supplies]
            cheapest = cheapest_option(costs, list(supplies.values()), demand)
            if cheapest is None:
                return None
            total += cheapest.value
        return Fraction(total, unit)

    def is_too_much(self, prices: Prices) -> bool:
        """Whether prices, none of them negative, prove that the rooms cannot give all needs."""
        if min(prices.values(), default=Fraction(0)) < 0:
            return False
        asked = self.asked(prices)
        return asked is None or asked > self.worth(prices)

    @cached_property
    def _wanted(self) -> list[tuple[dict[Block, int], int]]:
        """List for each need what instances give of it, and the need, in whole numbers."""
        scale = self._scale()
        found: list[tuple[dict[Block, int], int]] = [
            ({}, int(need * unit)) for need, unit in zip(self.needs, scale, strict=True)
        ]
        for block, gives in self.gives.items():
            for give in gives:
                found[give.need][0][block] = int(give.amount * scale[give.need])
        return found

    # --- prices -----------------------------------------------------------------------------------

    def prices(self, limits: Limits) -> dict[Block, Fraction] | None:
        """Look for prices that prove that it is too much.

        A linear program chooses fillings of rooms, and for each need among ways to give it; where
        its prices make another way cheaper, that is added, until the prices prove it, or there is
        room enough, or there is no other way.
        """
        if self.asked({}) is None:
            return {}
        ways = [
            [{block: -(-demand // give)} for block, give in supplies.items() if give]
            for supplies, demand in self._wanted
        ]
        for _ in range(_ROUNDS):
            duals = self._duals(ways, limits)
            if duals is None:
                return None
            prices, values = duals
            for to in _DENOMINATORS:
                found = {block: Fraction(round(price * to), to) for block, price in prices.items()}
                if self.is_too_much(found):
                    unit = lcm(*(price.denominator for price in found.values()))
                    return {block: price * unit for block, price in found.items() if price}
            if not self._add_ways(ways, prices, values):
                return None
        return None

    def _add_ways(
        self, ways: list[list[dict[Block, int]]], prices: Mapping[Block, float], values: list[float]
    ) -> bool:
        """Add for each need the cheapest way to give it, if it is cheaper than those there are."""
        added = False
        for (supplies, demand), known, value in zip(self._wanted, ways, values, strict=True):
            costs = [round(prices.get(block, 0.0) * _WHOLE) for block in supplies]
            cheapest = cheapest_option(costs, list(supplies.values()), demand)
            assert cheapest is not None
            way = {block: n for block, n in zip(supplies, cheapest.option, strict=True) if n}
            if cheapest.value < round(value * _WHOLE) and way not in known:
                known.append(way)
                added = True
        return added

    @property
    def size(self) -> int:
        """How many columns the linear program has at first."""
        return sum(len(room.fills) for room in self.rooms) + sum(map(len, self.gives.values()))

    def _duals(
        self, ways: Sequence[Sequence[Mapping[Block, int]]], limits: Limits
    ) -> tuple[dict[Block, float], list[float]] | None:
        """Return prices of instances, and what each need is worth; None if there is room enough."""
        program = Program()
        rows: dict[Block, dict[int, int]] = {}
        used: dict[str, dict[int, int]] = {}
        for room, count in self.rooms.items():
            mine = {}
            for fill in room.fills:
                y = program.variable(count)
                mine[y] = 1
                for profile, n in fill:
                    rows.setdefault((room.gpu, profile), {})[y] = n
            program.at_most(mine, count)
            if room.group is not None:
                used.setdefault(room.group, {}).update(mine)
        for group, terms in used.items():
            program.at_most(terms, self.most[group])
        lacks = {program.variable(1): -1 for _ in self.needs}
        firsts = []
        for lack, known in zip(lacks, ways, strict=True):
            chosen = {program.variable(1): way for way in known}
            firsts.append(len(program.rows))
            program.at_least({lack: 1} | dict.fromkeys(chosen, 1), 1)
            for number, way in chosen.items():
                for block, n in way.items():
                    rows.setdefault(block, {})[number] = -n
        at = {}
        for block, terms in rows.items():
            at[block] = len(program.rows)
            program.at_least(terms, 0)
        duals = program.prices(lacks, limits)
        if duals is None:
            return None
        values = [abs(duals[first]) for first in firsts]
        return {block: abs(duals[row]) for block, row in at.items()}, values

    # --- trying everything ------------------------------------------------------------------------

    def is_too_much_by_trying(self) -> bool | None:
        """Whether no sum of fillings gives all needs; None if there are too many to be tried."""
        if sum(count for room, count in self.rooms.items() if room.fills) > _GPUS:
            return None
        try:
            return self._is_too_much(_Tried())
        except _TooMany:
            return None

    def _is_too_much(self, tried: _Tried) -> bool:
        scale = self._scale()
        goal = tuple(int(n * s) for n, s in zip(self.needs, scale, strict=True))
        sums: dict[Vector, set[Vector]] = {(0,) * len(self.most): {(0,) * len(goal)}}
        groups = list(self.most)
        for room, count in self.rooms.items():
            options = self._options(room, goal, scale, tried) if room.fills else []
            for _ in range(count if room.fills else 0):
                after: dict[Vector, set[Vector]] = {}
                for used, vectors in sums.items():
                    more = used
                    if room.group is not None:
                        after.setdefault(used, set()).update(vectors)
                        more = tuple(
                            n + (each == room.group) for n, each in zip(used, groups, strict=True)
                        )
                        if more[groups.index(room.group)] > self.most[room.group]:
                            continue
                    tried.add(len(vectors) * len(options))
                    after.setdefault(more, set()).update(
                        _sum(v, option, goal) for v in vectors for option in options
                    )
                sums = {used: tried.best(vectors) for used, vectors in after.items()}
        return all(goal not in vectors for vectors in sums.values())

    def _scale(self) -> list[int]:
        scale = [need.denominator for need in self.needs]
        for gives in self.gives.values():
            for give in gives:
                scale[give.need] = lcm(scale[give.need], give.amount.denominator)
        return scale

    def _options(
        self, room: Room, goal: Vector, scale: Sequence[int], tried: _Tried
    ) -> list[Vector]:
        """List all that a room can give, but what is less than something else."""
        found: set[Vector] = set()
        for fill in room.fills:
            vectors = {(0,) * len(goal)}
            for profile, n in fill:
                gives = self.gives.get((room.gpu, profile), ())
                for _ in range(n if gives else 0):
                    tried.add(len(vectors) * len(gives))
                    vectors = {
                        _more(v, give.need, int(give.amount * scale[give.need]), goal)
                        for v in vectors
                        for give in gives
                    }
            found |= vectors
        return sorted(tried.best(found))


class _TooMany(Exception):
    """More has been tried than is worth it."""


class _Tried:
    """Counts what has been tried."""

    def __init__(self) -> None:
        self.left = _SUMS

    def add(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise _TooMany

    def best(self, vectors: set[Vector]) -> set[Vector]:
        """Leave out what is no more than another."""
        kept: list[Vector] = []
        for each in sorted(vectors, key=lambda v: (sum(v), v), reverse=True):
            self.add(len(kept))
            if not any(all(map(ge, other, each)) for other in kept):
                kept.append(each)
        return set(kept)


def _more(vector: Vector, at: int, amount: int, goal: Vector) -> Vector:
    return (*vector[:at], min(goal[at], vector[at] + amount), *vector[at + 1 :])


def _sum(one: Vector, other: Vector, goal: Vector) -> Vector:
    return tuple(min(g, a + b) for a, b, g in zip(one, other, goal, strict=True))
