"""Bounds that prices prove, exactly: on what can be kept, and on the GPUs that are needed.

Whatever the prices, as long as none is negative, the bounds hold (Lagrange's): what is left once
the rows that tie GPUs together are priced falls apart into one choice for each GPU, and those are
listed. Prices come from a linear program and are rounded first; nothing here is a float but them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from ...errors import InvalidCertificate
from .keeping import Demand
from .programs import Limits, Program
from .spots import Column, Spot

__all__ = [
    "DENOMINATORS", "Prices", "best_prices", "gpus_needed", "most_kept", "room_missing", "worth",
    "worth_wanted",
]  # fmt: skip

Block = tuple[str, str]
#: Denominators that prices are rounded to; of those that prove as much, the first counts.
DENOMINATORS = (1, 2, 4, 6, 8, 60, 1000, 10**6)


@dataclass(frozen=True)
class Prices:
    """What instances and GPUs count for; InvalidCertificate if a price is negative."""

    kinds: Mapping[int, Fraction]  # an instance kept, by the number of its kind
    blocks: Mapping[Block, Fraction]  # an instance of a profile of a GPU
    gpus: Mapping[str, Fraction]  # a GPU of a type

    def __post_init__(self) -> None:
        for prices in (self.kinds, self.blocks, self.gpus):
            for name, price in prices.items():
                if price < 0:
                    raise InvalidCertificate(
                        f"the price of {name} is {price}; expected no negative price"
                    )


def most_kept(spots: Iterable[Spot], demand: Demand, prices: Prices) -> int:
    """Return a number of instances that no deployment of the demand can keep more than.

    With α the prices of kinds, π of blocks and λ of GPUs, n the counts wanted and N the most GPUs
    that may be used (a type without a price has no limit): kept <= Σ n max(0, 1 - α) - Σ π n +
    Σ λ N + Σ over GPUs of max(0, max over columns of (α keeps + π counts - λ)).
    """
    total = -worth_wanted(demand, prices, Fraction(1))
    for key, price in prices.gpus.items():
        total += price * demand.gpus[key]
    for spot in spots:
        total += len(spot.cards) * worth(spot, prices)
    return floor(total)


def worth_wanted(demand: Demand, prices: Prices, reward: Fraction) -> Fraction:
    """Return what all that is wanted is worth, less the rewards of keeping beyond kinds' prices."""
    total = Fraction(0)
    for number, count in enumerate(demand.counts):
        kind = demand.kinds[number]
        total += count * prices.blocks.get((kind.gpu, kind.profile), Fraction(0))
        total -= count * max(Fraction(0), reward - prices.kinds.get(number, Fraction(0)))
    return total


def gpus_needed(
    spots: Iterable[Spot], demand: Demand, key: str, blocks: Mapping[Block, Fraction]
) -> int:
    """Return a number of GPUs of a type that no deployment needs less than; a GPU's price is 1."""
    prices = Prices({}, blocks, {key: Fraction(1)})
    return max(0, ceil(_missing(spots, demand, key, prices)))


def room_missing(
    spots: Iterable[Spot], demand: Demand, key: str, blocks: Mapping[Block, Fraction]
) -> Fraction:
    """Return by how much the instances wanted of a type are worth more than all its GPUs can hold.

    Above 0 there is no deployment.
    """
    return _missing(spots, demand, key, Prices({}, blocks, {}))


def _missing(spots: Iterable[Spot], demand: Demand, key: str, prices: Prices) -> Fraction:
    wanted = (n * demand.on(*block) for block, n in prices.blocks.items() if block[0] == key)
    held = (len(spot.cards) * worth(spot, prices) for spot in spots if spot.gpu.key == key)
    return sum(wanted, Fraction(0)) - sum(held, Fraction(0))


def worth(spot: Spot, prices: Prices) -> Fraction:
    """What the best use of one GPU is worth."""
    key = spot.gpu.key
    price = prices.gpus.get(key, Fraction(0))
    best = max((_value(column, key, prices) for column in spot.columns), default=price)
    return max(Fraction(0), best - price)


def _value(column: Column, key: str, prices: Prices) -> Fraction:
    kept = sum(
        (prices.kinds[kind] * n for kind, n in column.keeps if kind in prices.kinds), Fraction(0)
    )
    return kept + sum(
        (
            prices.blocks[key, profile] * n
            for profile, n in column.counts
            if (key, profile) in prices.blocks
        ),
        Fraction(0),
    )


def best_prices(
    spots: Sequence[Spot],
    demand: Demand,
    limits: Limits,
    *,
    gpus: str | None = None,
    room: str | None = None,
) -> tuple[Prices, int] | None:
    """Find prices for the best bound that they can prove, and that bound.

    It is on what can be kept; or with `gpus` on the GPUs needed of this type, or with `room` on the
    instances of this type for which there is no room. None if the linear program came to no end.
    """
    key = gpus or room
    chosen = [spot for spot in spots if key is None or spot.gpu.key == key]
    program = Program()
    terms: dict[int, int] = {}
    rows: dict[str, dict[object, int]] = {"kind": {}, "block": {}, "gpu": {}}
    kept: dict[int, dict[int, int]] = {}
    held: dict[Block, dict[int, int]] = {}
    used: dict[str, dict[int, int]] = {}
    for spot in chosen:
        mine = {}
        for column in spot.columns:
            y = program.variable(len(spot.cards))
            mine[y] = 1
            for kind, n in column.keeps:
                kept.setdefault(kind, {})[y] = -n
            for profile, n in column.counts:
                held.setdefault((spot.gpu.key, profile), {})[y] = n
        program.at_most(mine, len(spot.cards))
        used.setdefault(spot.gpu.key, {}).update(mine)

    def row(name: str, what: object) -> None:
        rows[name][what] = len(program.rows)

    blocks = {(kind.gpu, kind.profile) for kind in demand.kinds if key in (None, kind.gpu)}
    for block in sorted(blocks):
        missing: dict[int, int] = {}
        if room is not None:
            v = program.variable(demand.on(*block))
            missing = {v: 1}
            terms[v] = -1
        row("block", block)
        program.at_least(held.get(block, {}) | missing, demand.on(*block))
    if gpus is not None:
        terms |= dict.fromkeys(used.get(gpus, {}), -1)
    elif room is None:
        for kind, columns in kept.items():
            v = program.variable(demand.counts[kind])
            terms[v] = 1
            row("kind", kind)
            program.at_most({v: 1} | columns, 0)
        for name, columns in used.items():
            row("gpu", name)
            program.at_most(columns, demand.gpus[name])
    duals = program.prices(terms, limits)
    if duals is None:
        return None
    # of what does not run nothing can be kept, and keeping it costs no GPU anything
    absent: dict[object, Fraction] = {
        at: Fraction(1) for at in range(len(demand.kinds)) if at not in kept
    }

    def rounded(name: str, to: int) -> dict[object, Fraction]:
        return {what: Fraction(round(abs(duals[at]) * to), to) for what, at in rows[name].items()}

    found: tuple[Prices, int] | None = None
    for to in DENOMINATORS:
        kinds = absent | rounded("kind", to)
        prices = Prices(kinds, rounded("block", to), rounded("gpu", to))  # type: ignore[arg-type]
        if gpus is not None:
            bound = gpus_needed(spots, demand, gpus, prices.blocks)
        elif room is not None:
            bound = ceil(room_missing(spots, demand, room, prices.blocks))
        else:
            bound = -most_kept(spots, demand, prices)
        if found is None or bound > found[1]:
            found = prices, bound
            if room is not None and bound > 0:
                break  # there is no room: the simplest prices that prove it are the best to read
    if found is not None and key is None:
        return found[0], -found[1]
    return found
