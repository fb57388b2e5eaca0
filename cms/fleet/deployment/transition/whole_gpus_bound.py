"""How many spare GPUs are needed at least where whole GPUs are cut anew: prices are looked for.

Any prices prove something (:mod:`~cms.fleet.deployment.transition.first_repartition`). Those of a
linear program are rounded, and all the rest is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ....values.frozen import FrozenMap
from ..instance import Mode
from ..programs import Limits, Program
from .checking import most_gpus
from .first_repartition import Cutting
from .model import FirstCut, Spare
from .whole_gpus_goal import Goal

__all__ = ["least_spare"]

#: What prices, and shares of floors, are rounded to.
_DENOMINATOR = 10**6
#: Services that are named in words.
_NAMED = 4


def least_spare(goal: Goal, limits: Limits) -> Spare:
    """Return a number of spare GPUs below which there is no transition, why in words, and a proof.

    Claims nothing (0) where GPUs change what shares them, or their mode, or nothing in use has to
    be cut anew. More than the fleet has: there is no transition.
    """
    if any(card.mode is not Mode.MIG for card in (*goal.cards, *goal.ends)):
        return Spare(0)
    sides = (*goal.start.instances(), *goal.target.instances())
    works = {each.work for _, each in sides if each.work is not None}
    cutting = Cutting(goal.start, goal.target, goal.floors, works, by_node=goal.by_node)
    empty = most_gpus(goal.start, goal.target) - len(cutting.held)
    if cutting.room <= min(empty, cutting.open):
        return Spare(0)
    prices = _prices(cutting, limits)
    needed = cutting.needed(prices)
    if needed > cutting.open and goal.by_node:
        n = cutting.open
        there = f"the {n} GPU{'s' * (n != 1)}" if n else "no GPU"
        why = (
            "a GPU can only be cut while its whole node is drained, and whichever node in use is "
            "the first, what the floors are worth exceeds all that the others can supply "
            f"meanwhile, with {there} of nodes that are empty ({_words(prices)})"
        )
        more = len(goal.cards) - most_gpus(goal.start, goal.target) + 1
        return Spare(more, more, why, (), FirstCut(FrozenMap(prices), goal.by_node))
    if needed <= empty:
        return Spare(0)
    unit = "node" if goal.by_node else "GPU"
    why = (
        f"whichever {unit} in use is the first to be cut anew, what the floors are worth exceeds "
        f"all that the others and {needed - 1} empty GPU{'s' * (needed != 2)} can supply meanwhile "
        f"({_words(prices)})"
    )
    least = needed - empty
    return Spare(least, least, why, (), FirstCut(FrozenMap(prices), goal.by_node))


def _words(prices: Mapping[str, Fraction]) -> str:
    """Name the services whose prices count."""
    more = f" and {len(prices) - _NAMED} more" if len(prices) > _NAMED else ""
    return f"the services that count: {', '.join(sorted(prices)[:_NAMED])}{more}"


def _prices(cutting: Cutting, limits: Limits) -> dict[str, Fraction]:
    """Return prices at which the floors are worth most beside what instances can do.

    They are the duals of a program that covers as large a share as it can of all floors alike with
    the instances that are there; what they supply is counted in millionths of the floors.
    """
    owed = {name: rps for name, rps in cutting.owed.items() if rps}
    program = Program()
    covered: dict[str, dict[int, int]] = {name: {} for name in owed}
    for block, number in cutting.blocks().items():
        row = {}
        for service, supply in cutting.uses.get(block, ()):
            if service in owed:
                variable = program.variable(number)
                row[variable] = 1
                covered[service][variable] = round(supply / owed[service] * _DENOMINATOR)
        if row:
            program.at_most(row, number)
    first = len(program.rows)
    share = program.variable(_DENOMINATOR)  # of all floors alike, in thousandths
    for own in covered.values():
        program.at_least({**{v: 1000 * n for v, n in own.items()}, share: -_DENOMINATOR}, 0)
    duals = program.prices({share: 1}, limits) if owed else None
    if duals is None:
        return {}
    worth = dict(zip(owed, map(abs, duals[first:]), strict=True))
    scale = max(worth.values())
    if not scale:
        return {}
    found = {
        name: Fraction(round(each / scale * _DENOMINATOR), _DENOMINATOR) / owed[name]
        for name, each in worth.items()
    }
    return {name: price for name, price in found.items() if price}
