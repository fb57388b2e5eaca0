"""A proof by exact prices that a number of nodes is too small for what runs.

Given are a number of instances to be kept, and prices >= 0: of an instance of a profile, of one
that goes on where it is (by its kind), and a reward for each that is kept. All that is on a node is
worth at most what the best uses of its GPUs are. Of n instances of a kind at most n are kept, so
the rewards beyond the kind's price are at most n times the difference. The nodes are too few if all
that is wanted, with the rewards, is worth more than that difference and the best that this number
of nodes can be worth, whichever nodes they are. The prices are a linear program's, rounded; any
others would prove as much as they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from .keeping import Demand
from .keeping_bound import DENOMINATORS, Prices, worth, worth_wanted
from .programs import Limits, Program
from .spots import Spot

__all__ = ["nodes_are_too_few"]

K = TypeVar("K")
Block = tuple[str, str]


def nodes_are_too_few(
    spots: Sequence[Spot], demand: Demand, least_kept: int, most: int, limits: Limits
) -> bool:
    """Whether it is proved that `least_kept` instances cannot be kept on `most` nodes.

    Nodes with instances of others are left out, and count for nothing.
    """
    duals = _duals(spots, demand, least_kept, most, limits)
    if duals is None:
        return False
    blocks, kinds, reward = duals
    for to in DENOMINATORS:
        prices = Prices(_rounded(kinds, to), _rounded(blocks, to), {})
        each = Fraction(round(abs(reward) * to), to)
        asked = each * least_kept + worth_wanted(demand, prices, each)
        if asked > _most_worth(spots, prices, most):
            return True
    return False


def _rounded(duals: Mapping[K, float], to: int) -> dict[K, Fraction]:
    return {what: Fraction(round(abs(dual) * to), to) for what, dual in duals.items()}


def _held(spots: Sequence[Spot]) -> set[str]:
    return {card.node for spot in spots for card in spot.cards if card.foreign}


def _most_worth(spots: Sequence[Spot], prices: Prices, most: int) -> Fraction:
    """Return what nodes can be worth: those with instances of others, and the best of the rest."""
    held, total = _held(spots), Fraction(0)
    others: Counter[str] = Counter()
    for spot in spots:
        each = worth(spot, prices)
        for card in spot.cards:
            if card.node in held:
                total += each
            else:
                others[card.node] += each  # type: ignore[assignment]
    return total + sum(sorted(others.values(), reverse=True)[:most], Fraction(0))


def _duals(
    spots: Sequence[Spot], demand: Demand, least_kept: int, most: int, limits: Limits
) -> tuple[dict[Block, float], dict[int, float], float] | None:
    """Return prices of blocks and kinds, and the reward, where parts of nodes are too few.

    Of the program that lacks as little as it can on `most` nodes, in parts of nodes and instances.
    """
    program, held = Program(), _held(spots)
    nodes = {card.node for spot in spots for card in spot.cards} - held
    used = {name: program.variable(1) for name in sorted(nodes)}
    room: dict[Block, dict[int, int]] = {}
    keeps: dict[int, dict[int, int]] = {}
    for spot in spots:
        for node, n in Counter(card.node for card in spot.cards).items():
            mine = {}
            for column in spot.columns:
                y = program.variable(n)
                mine[y] = 1
                for profile, count in column.counts:
                    room.setdefault((spot.gpu.key, profile), {})[y] = count
                for kind, count in column.keeps:
                    keeps.setdefault(kind, {})[y] = -count
            if mine:
                here = {used[node]: -n} if node in used else {}
                program.at_most(mine | here, 0 if here else n)
    program.at_most(dict.fromkeys(used.values(), 1), most)
    lacks: dict[int, int] = {}

    def lack(high: int) -> int:
        lacks[variable := program.variable(high)] = -1
        return variable

    blocks: dict[Block, int] = {}
    for block in sorted({(kind.gpu, kind.profile) for kind in demand.kinds}):
        blocks[block] = len(program.rows)
        wanted = demand.on(*block)
        program.at_least(room.get(block, {}) | {lack(wanted): 1}, wanted)
    kinds: dict[int, int] = {}
    kept: dict[int, int] = {}
    for kind, terms in keeps.items():
        k = program.variable(demand.counts[kind])
        kept[k] = 1
        kinds[kind] = len(program.rows)
        program.at_most({k: 1} | terms, 0)
    last = len(program.rows)
    program.at_least(kept | {lack(least_kept): 1}, least_kept)
    duals = program.prices(lacks, limits)
    if duals is None:
        return None
    return (
        {what: duals[at] for what, at in blocks.items()},
        {what: duals[at] for what, at in kinds.items()},
        duals[last],
    )
