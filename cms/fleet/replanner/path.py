"""The best times to plan again: a shortest path over windows, of which few need to be planned.

A path is a sequence of windows without holes. Windows that were not planned stand with a bound
from below; the shortest path under these bounds is found, its windows are planned, and so on until
all of them are. Then no other path is shorter, since each is at least as long as under the bounds:
the answer, ties included, is the one that planning every window would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

from ...errors import CmsError

#: A path's length, then what decides between paths of one length: how many windows, where they end.
_Key: TypeAlias = "tuple[Fraction, int, tuple[int, ...]]"


class _Windows(Protocol):
    """Windows between moments 0 to `count`, each with a cost that may yet be a bound.

    A cost of None is endless; `ask` makes a window's cost known.
    """

    @property
    def count(self) -> int: ...
    def cost(self, a: int, b: int) -> Fraction | None: ...
    def is_asked(self, a: int, b: int) -> bool: ...
    def ask(self, a: int, b: int) -> object: ...


@dataclass(frozen=True)
class Start:
    """A moment at which a path may begin, and the cost of what comes before.

    `enter` gives the cost of going over to the first window, by its end.
    """

    at: int
    cost: Fraction
    enter: Callable[[int], Fraction]


@dataclass(frozen=True)
class Path:
    """Windows (from, until) one after the other from `begin` on; the cost has their changes."""

    cost: Fraction
    windows: tuple[tuple[int, int], ...]
    begin: int


class NoPath(CmsError):
    """No plan serves the moment `at`, the first such one, whatever the windows."""

    def __init__(self, at: int, message: str = "") -> None:
        super().__init__(message or f"no plan serves the rates from moment {at} to the next")
        self.at = at


def shortest(
    windows: _Windows, starts: Sequence[Start], between: Callable[[int, int, int], Fraction]
) -> Path:
    """Find the best way on from one of some beginnings, or none (NoPath); plan its windows.

    `between` gives the cost of going over from window (a, b) to window (b, c). Of the shortest
    paths it is one with the fewest windows; of those, the one whose ends come first. O(n^3) steps
    for n moments, each time some windows were planned.
    """
    costs: dict[tuple[int, int, int], Fraction] = {}

    def change(a: int, b: int, c: int) -> Fraction:
        if (a, b, c) not in costs:
            costs[a, b, c] = between(a, b, c)
        return costs[a, b, c]

    def find() -> tuple[_Key, int] | None:
        ways, found = _ways(windows, change), list[tuple[_Key, int]]()
        for start in starts:
            if start.at == windows.count:
                found.append(((start.cost, 0, ()), start.at))
            for b in range(start.at + 1, windows.count + 1):
                if (way := ways.get((start.at, b))) is not None:
                    key = way[0] + start.cost + start.enter(b), way[1], way[2]
                    found.append((key, start.at))
        return min(found, default=None)

    return _settled(windows, find)


def _ways(
    windows: _Windows, change: Callable[[int, int, int], Fraction]
) -> dict[tuple[int, int], _Key]:
    """The shortest way on from each window, itself included."""
    last = windows.count
    ways: dict[tuple[int, int], _Key] = {}
    for b in range(last, 0, -1):
        for a in range(b):
            cost = windows.cost(a, b)
            if cost is None:
                continue
            rests: list[_Key] = [(Fraction(0), 0, ())] if b == last else []
            for c in range(b + 1, last + 1):
                if (way := ways.get((b, c))) is not None:
                    rests.append((way[0] + change(a, b, c), way[1], way[2]))
            if rests:
                rest = min(rests)
                ways[a, b] = rest[0] + cost, rest[1] + 1, (b, *rest[2])
    return ways


def fewest(windows: _Windows, most: int) -> Path:
    """Find the at most so many windows that cost least, changes aside; NoPath if none do."""
    last = windows.count

    def find() -> tuple[_Key, int] | None:
        rests: list[_Key | None] = [None] * last + [(Fraction(0), 0, ())]
        for _ in range(min(most, last)):
            longer = list(rests)
            for a in range(last):
                for b in range(a + 1, last + 1):
                    rest, cost = rests[b], windows.cost(a, b)
                    if rest is not None and cost is not None:
                        key = rest[0] + cost, rest[1] + 1, (b, *rest[2])
                        known = longer[a]
                        longer[a] = key if known is None or key < known else known
            rests = longer
        return None if rests[0] is None else (rests[0], 0)

    return _settled(windows, find)


def _settled(windows: _Windows, find: Callable[[], tuple[_Key, int] | None]) -> Path:
    """Find a path, plan its windows, and again, until all windows of the path are planned."""
    while True:
        found = find()
        if found is None:
            # where the shortest window has no plan, longer ones have none either
            holes = (a for a in range(windows.count) if windows.cost(a, a + 1) is None)
            raise NoPath(next(holes, 0))
        (cost, _, ends), begin = found
        firsts = (begin, *ends[:-1])
        used = tuple(zip(firsts, ends, strict=False))
        open_ones = [each for each in used if not windows.is_asked(*each)]
        if not open_ones:
            return Path(cost, used, begin)
        for each in open_ones:
            windows.ask(*each)
