"""The parts of a problem whose blocks several jobs share in time: measured points, and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from ..errors import InvalidProblem
from ..problem.parts import Block
from ..values.frozen import FrozenMap
from ..values.names import checked_name, checked_names
from ..values.numbers import Number, exact, shown


class BatchPoint(NamedTuple):
    """Up to ``amount`` items, taken together, occupy the block for ``length``; both > 0.

    Fewer items are padded: they take as long. The length is in the unit of time of the latency
    limits.
    """

    amount: Fraction
    length: Fraction


class Choice(NamedTuple):
    """A point of a job, which meets its limit in cycles up to ``longest``, at least its length."""

    amount: Fraction
    length: Fraction
    longest: Fraction


@dataclass(frozen=True, slots=True)
class TimeSharedJob:
    """A job with a latency limit, and the batches that were measured of it on each type of block.

    Parameters
    ----------
    name : str
    demand : number
        Items per unit of time, >= 0.
    limit : number
        Of an item's latency, > 0, in the same unit of time.
    points : Mapping[str, iterable of (amount, length)]
        For each block type the measured amounts, each once, and how long they occupy the block.
        The attribute is a FrozenMap of tuples of BatchPoint, by rising amount.

    Raises
    ------
    InvalidProblem
        Naming the job, the block and the value at fault.

    Examples
    --------
    >>> job = TimeSharedJob("resnet50", 600, "0.108", {"40": [(8, "0.0149"), (1, "0.0031")]})
    >>> [str(point.amount) for point in job.points["40"]], job.limit
    (['1', '8'], Fraction(27, 250))
    >>> job.point("40", Fraction(8)).length
    Fraction(149, 10000)
    """

    name: str
    demand: Fraction
    limit: Fraction
    points: FrozenMap[Block, tuple[BatchPoint, ...]]

    def __init__(
        self,
        name: str,
        demand: Number,
        limit: Number,
        points: Mapping[Block, Iterable[tuple[Number, Number]]],
    ) -> None:
        name = checked_name(name, "job")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "demand", exact(demand, f"demand of job {name!r}"))
        object.__setattr__(self, "limit", _positive(limit, f"latency limit of job {name!r}"))
        if not isinstance(points, Mapping):
            raise InvalidProblem(
                f"points of job {name!r} is {points!r}; expected a mapping of blocks to lists of "
                '(amount, length), such as {"60": [(1, "0.003"), (8, "0.014")]}'
            )
        blocks = checked_names(points, "block")
        table = {
            block: _points(given, f"of job {name!r} on block {block!r}")
            for block, given in zip(blocks, points.values(), strict=True)
        }
        kept = FrozenMap({block: listed for block, listed in table.items() if listed})
        object.__setattr__(self, "points", kept)

    def point(self, block: Block, amount: Fraction) -> BatchPoint | None:
        """Find the point of an amount on a block; None if it was not measured."""
        own = self.points.get(block, ())
        return next((point for point in own if point.amount == amount), None)


def undominated(points: Iterable[BatchPoint]) -> tuple[BatchPoint, ...]:
    """List the points, by rising amount, that no other equals or beats in amount and length."""
    kept: list[BatchPoint] = []
    for point in sorted(points, key=lambda point: (-point.amount, point.length)):
        if not kept or point.length < kept[-1].length:
            kept.append(point)
    return tuple(reversed(kept))


def _points(given: Any, which: str) -> tuple[BatchPoint, ...]:
    expected = "expected a list of pairs (amount, length)"
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidProblem(f"points {which} is {given!r}; {expected}")
    found: dict[Fraction, BatchPoint] = {}
    for pair in given:
        is_listed = isinstance(pair, Iterable) and not isinstance(pair, str | Mapping | Set)
        if not is_listed or len(parts := tuple(pair)) != 2:
            raise InvalidProblem(f"a point {which} is {pair!r}; {expected}")
        amount = _positive(parts[0], f"amount of a point {which}")
        if amount in found:
            raise InvalidProblem(
                f"the amount {shown(amount)} stands twice among the points {which}; an amount has "
                "one length"
            )
        what = f"length of the point {which} with the amount {shown(amount)}"
        found[amount] = BatchPoint(amount, _positive(parts[1], what))
    return tuple(sorted(found.values()))


def _positive(value: Number, what: str) -> Fraction:
    number = exact(value, what)
    if not number:
        raise InvalidProblem(f"{what} is 0; expected a number > 0")
    return number
