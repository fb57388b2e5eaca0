"""The packing knapsack: the most valuable content of one machine of a size-bounded set.

It decides whether prices keep the machines of such a set within their cost (theory 6.8).
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from itertools import accumulate
from math import gcd
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.images import SAFE
from .packing_list import contents_worth
from .packing_search import fill
from .pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

#: Nodes after which the search gives way to a table over all capacities (and numbers of blocks) of
#: at most so many cells, some tenths of a second's work.
_FEW_NODES, _MOST_CELLS = 2**15, 2**25
#: Where that would be larger, it goes on for so many nodes, if it can be compiled, or so many. Once
#: it is ended its answer is a proven upper bound instead of the maximum.
_MANY_NODES, NODE_LIMIT = 2**24, 50_000
#: Steps in all searches, a node taking about as many as there are types and some, before compiled
#: code, which may take seconds to make, takes over; what is found does not depend on that.
_PLAIN_STEPS = 2**18
_STEPS_A_NODE = 8
_steps_so_far = 0


class Fullest(NamedTuple):
    """The most valuable content of one machine; ``value`` is an upper bound if not ``exact``."""

    value: Fraction
    content: tuple[int, ...]
    exact: bool


def fullest_machine(
    prices: Sequence[Fraction],
    sizes: Sequence[Fraction],
    capacity: Fraction,
    max_blocks: int | None,
    most: Sequence[int] | None = None,
) -> Fullest:
    """Find the most valuable multiset of blocks within a capacity.

    Parameters
    ----------
    prices : sequence of k Fractions
        Of any sign; a block without value is left out.
    sizes : sequence of k Fractions
        > 0.
    capacity : Fraction
    max_blocks : int or None
    most : sequence of k ints, optional
        How many blocks of each type there may be; by default any number.

    Returns
    -------
    Fullest

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> fullest_machine([third, Fraction(1, 4), Fraction(1, 11)], [44, 33, 12], Fraction(132), None)
    Fullest(value=Fraction(1, 1), content=(0, 0, 11), exact=True)
    """
    worth, denominator = common_denominator(prices)
    found = Packing(sizes, capacity, max_blocks, most).fullest(worth)
    exact = found.ceiling == found.value
    return Fullest(Fraction(found.ceiling, denominator), tuple(found.content), exact)


class Found(NamedTuple):
    """The same in integers: what the content is worth, and what none is worth more than."""

    value: int
    ceiling: int
    content: Sequence[int]


class Packing:
    """Machines of a size-bounded set in integers, to be filled again and again.

    Parameters
    ----------
    sizes : sequence of k Fractions
        > 0.
    capacity : Fraction
    max_blocks : int or None
    most : sequence of k ints, optional
        How many blocks of each type there may be; by default any number.

    Examples
    --------
    >>> Packing([2, 3], Fraction(7), None, [1, 5]).fullest([10, 16])
    Found(value=32, ceiling=32, content=[0, 2])
    """

    def __init__(
        self,
        sizes: Sequence[Fraction],
        capacity: Fraction,
        max_blocks: int | None,
        most: Sequence[int] | None = None,
    ) -> None:
        room, *weights = common_denominator([capacity, *sizes])[0]
        # Sizes count in their common divisor.
        divisor = gcd(*weights) or 1
        self._room, self._weights = room // divisor, [weight // divisor for weight in weights]
        fits = [self._room // weight for weight in self._weights]
        self._most = fits if most is None else list(map(min, fits, most))
        self._slots = max_blocks
        # So many bits tell any two ratios of worth and weight apart.
        self._bits = 2 * max(self._weights, default=0).bit_length()

    def fullest(
        self,
        worth: Sequence[int],
        most: Sequence[int] | None = None,
        patience: int | None = None,
    ) -> Found:
        """Find the most valuable content.

        Parameters
        ----------
        worth : sequence of k ints
            Of any sign; a block without value is left out.
        most : sequence of k ints, optional
            How many blocks of each type there may be now.
        patience : int, optional
            Nodes of a search for some good content; by default it is the best one.

        Returns
        -------
        Found
        """
        fits = self._most if most is None else list(map(min, self._most, most))
        weights = self._weights
        order = [i for i, price in enumerate(worth) if price > 0 and fits[i] > 0]
        content = [0] * len(worth)
        if not order:
            return Found(0, 0, content)
        # Best value per size first.
        order.sort(key=lambda i: (-(worth[i] << self._bits) // weights[i], weights[i]))
        # In common divisors of their own: an upper bound at prices in the same proportions, or with
        # types without value beside them, is the same part of what a machine costs.
        coin, unit = gcd(*(worth[i] for i in order)), gcd(*(weights[i] for i in order))
        room, slots = self._room // unit, self._slots
        if slots is not None:
            if slots >= self._room // min(weights[i] for i in order):
                slots = None  # it never binds
            else:
                fits = [min(number, slots) for number in fits]
        machine = _Machine(
            [worth[i] // coin for i in order],
            [weights[i] // unit for i in order],
            [fits[i] for i in order],
            room,
            slots,
        )
        found = machine.fullest() if patience is None else machine.searched(patience)
        for i, number in zip(order, found.content, strict=True):
            content[i] = number
        return Found(coin * found.value, coin * found.ceiling, content)

    @property
    def room(self) -> int:
        """The capacity, in what :attr:`weights` are."""
        return self._room

    @property
    def weights(self) -> list[int]:
        """The sizes."""
        return self._weights

    @property
    def most(self) -> list[int]:
        """How many blocks of each type fit, or may be there."""
        return self._most

    @property
    def slots(self) -> int | None:
        """How many blocks there may be."""
        return self._slots

    def within(self, room: int, slots: int | None) -> Packing:
        """Return machines of these blocks with less room; callers say how many blocks fit."""
        smaller = copy(self)
        smaller._room, smaller._slots = room, slots
        return smaller

    def contents(
        self, worth: Sequence[int], most: Sequence[int], least: int, limit: int, patience: int
    ) -> tuple[list[tuple[int, ...]], bool]:
        """List the contents that are worth no less than ``least``.

        Parameters
        ----------
        worth : sequence of k ints
            None negative.
        most : sequence of k ints
            How many blocks of each type there may be.
        least : int
        limit, patience : int
            Ends beyond so many contents, or steps.

        Returns
        -------
        contents : list of tuples of k ints
            Those with many blocks of the dearest types first.
        complete : bool

        Examples
        --------
        >>> Packing([2, 3], Fraction(7), None).contents([2, 3], [2, 2], 6, 10, 100)
        ([(0, 2), (2, 1)], True)
        """
        fits = list(map(min, self._most, most))
        order = [i for i, number in enumerate(fits) if number > 0]
        a, b, c = ([values[i] for i in order] for values in (worth, self._weights, fits))
        room, slots = self._room, self._slots
        found, complete = contents_worth(a, b, c, room, slots, least, limit, patience)
        contents = []
        for counts in found:
            content = [0] * len(fits)
            for i, number in zip(order, counts, strict=True):
                content[i] = number
            contents.append(tuple(content))
        return contents, complete


class _Machine:
    """One machine in integers, its types by falling worth per weight."""

    def __init__(
        self,
        worth: Sequence[int],
        weights: Sequence[int],
        most: Sequence[int],
        room: int,
        slots: int | None,
    ) -> None:
        self._worth, self._weights, self._most = worth, weights, most
        self._room, self._slots = room, slots

    def fullest(self) -> Found:
        found = self.searched(_FEW_NODES)
        if found.ceiling > found.value:
            found = self._by_table() or self.searched(_MANY_NODES if self._short else NODE_LIMIT)
        return found

    def searched(self, patience: int) -> Found:
        global _steps_so_far
        types = list(zip(self._worth, self._weights, self._most, strict=True))
        volumes = [0, *accumulate(weight * most for _, weight, most in types)]
        values = [0, *accumulate(worth * most for worth, _, most in types)]
        lightest = list(accumulate(reversed(self._weights), min))[::-1]
        dearest = list(accumulate(reversed(self._worth), max))[::-1]
        slots = -1 if self._slots is None else self._slots
        arguments: Any = [self._worth, self._weights, self._most, volumes, values, lightest]
        arguments += [dearest, self._room, slots]
        each, plain = _STEPS_A_NODE + len(types), patience
        if self._short:
            plain = 0 if patience > _FEW_NODES else (_PLAIN_STEPS - _steps_so_far) // each
        if plain > 0 or plain >= patience:
            best = [0] * len(types)
            scratch = [0] * len(types)
            limited: Any = [*arguments, min(plain, patience), scratch, best]
            value, ceiling, nodes = fill(*limited)
            _steps_so_far += nodes * each
            if plain >= patience or ceiling == value:
                return Found(value, ceiling, best)
        from .packing_compiled import filled

        return Found(*filled(*arguments, patience))

    @property
    def _short(self) -> bool:
        """Whether no number in a search leaves 62 bits."""
        dearest = max(self._worth)
        pieces = sum(map(mul, self._worth, self._most)), sum(map(mul, self._weights, self._most))
        largest: int = max(*pieces, self._room * dearest) + self._room
        return largest < SAFE // 4

    def _by_table(self) -> Found | None:
        """Use dynamic programming over capacities; None if the table would be too large."""
        layers = 1 if self._slots is None else self._slots + 1
        steps = list(self._steps())
        if self._room * layers * len(steps) > _MOST_CELLS:
            return None
        highest = max(self._room * p // w for p, w in zip(self._worth, self._weights, strict=True))
        kind: Any = np.int64 if highest < SAFE else object
        best: NDArray[Any] = np.zeros((layers, self._room + 1), dtype=kind)
        taken = []
        for at, number in steps:
            weight, slots = number * self._weights[at], self._takes(number)
            with_it = best[: layers - slots, : self._room + 1 - weight] + number * self._worth[at]
            before = best[slots:, weight:]
            better = with_it > before
            best[slots:, weight:] = np.where(better, with_it, before)
            taken.append(better)
        layer, left = layers - 1, self._room
        counts = [0] * len(self._worth)
        for (at, number), better in zip(reversed(steps), reversed(taken), strict=True):
            weight, slots = number * self._weights[at], self._takes(number)
            if left >= weight and layer >= slots and better[layer - slots, left - weight]:
                counts[at] += number
                layer, left = layer - slots, left - weight
        return Found(int(best[-1, -1]), int(best[-1, -1]), counts)

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Yield (type, number): powers of two and a rest, which make up every count up to most."""
        for at, left in enumerate(self._most):
            bit = 1
            while left:
                number = min(bit, left)
                yield at, number
                left -= number
                bit *= 2

    def _takes(self, number: int) -> int:
        return 0 if self._slots is None else number
