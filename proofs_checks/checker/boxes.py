"""The knapsack of filling.py where machines with some content are worth something extra.

An extra is paid once to a machine that has at least so many blocks of some types. Every number at
which one may change cuts a type's numbers of blocks in two. Between these cuts nothing changes but
by the worth of blocks: the fewest blocks of each piece are put on the machine, and the others are a
filling of what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from .filling import dearest_filling
from .problem import Bounded
from .reading import ZERO

# At least so many blocks of each of these types, and what that is worth; of any sign.
Extra: TypeAlias = tuple[dict[str, int], Fraction]


def dearest_with_extras(
    machine: Bounded,
    worth: Mapping[str, Fraction],
    proper: Mapping[str, int],
    extras: list[Extra],
    enough: Fraction = ZERO,
) -> Fraction:
    """The worth of the dearest proper content of a size-bounded set, extras counted.

    ``enough`` is what a machine may be worth: whether more is possible is the question. It is exact
    if it is more than that, but for what :func:`.dearest_filling` says.
    """
    names = list(machine.sizes)
    extras = [(least, amount) for least, amount in extras if least.keys() <= machine.sizes.keys()]
    cuts: dict[str, list[int]] = {}
    for i, size in machine.sizes.items():
        fit = int(machine.capacity // size)
        most = min(fit, proper.get(i, fit))
        inside = {least[i] for least, _ in extras if 0 < least.get(i, 0) <= most}
        cuts[i] = [0, *sorted(inside), most + 1]
    cut = [i for i in names if len(cuts[i]) > 2]
    best = None
    for low, high in _pieces(machine, cut, cuts):
        fewest = {i: low.get(i, 0) for i in names}
        most_of = [high.get(i, cuts[i][-1]) - 1 - fewest[i] for i in names]
        held = sum((worth[i] * n for i, n in low.items()), ZERO)
        for least, amount in extras:
            if all(fewest[i] >= n for i, n in least.items()):
                held += amount
        room = machine.capacity - sum(machine.sizes[i] * n for i, n in low.items())
        slots = machine.max_blocks
        left = None if slots is None else slots - sum(low.values())
        prices, sizes = [worth[i] for i in names], list(machine.sizes.values())
        # Nothing that stays below what is enough, or below what was found, has to be exact.
        level = enough - held
        more = dearest_filling(prices, sizes, room, left, max(level, ZERO), most_of)
        best = held + more if best is None else max(best, held + more)
    return best or ZERO


def _pieces(
    machine: Bounded, cut: list[str], cuts: Mapping[str, list[int]]
) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """The fewest blocks of every piece that fit, and the numbers that are too many."""
    if not cut:
        yield {}, {}
        return
    first = cut[0]
    for low, high in _pieces(machine, cut[1:], cuts):
        for fewest, too_many in pairwise(cuts[first]):
            held = {**low, first: fewest}
            size = sum((machine.sizes[i] * n for i, n in held.items()), ZERO)
            slots = machine.max_blocks
            if size > machine.capacity or (slots is not None and sum(held.values()) > slots):
                break
            yield held, {**high, first: too_many}
