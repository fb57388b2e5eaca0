"""The maximal contents that prices leave, where there are too many in all to be listed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .polytope import HalfSpace, Point, Polytope

#: Steps of the search for each content allowed, before it gives up.
_STEPS_A_CONTENT = 100


def valuable(
    polytope: Polytope,
    half: HalfSpace,
    most: int,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Point, ...] | None:
    """List the points of a half space ``-prices . z <= -least`` to which nothing can be added.

    The search goes through the types from the largest to the smallest, which fills up what is
    left, and turns round where the rest of the room cannot be worth enough.

    Parameters
    ----------
    polytope : Polytope
        As :func:`~algorithms.conic.polytope.contents` makes them.
    half : HalfSpace
        Its normal has no entry > 0.
    most : int
        Give up beyond this many points, or a hundred times as many steps.
    stopped : callable, optional

    Returns
    -------
    tuple of Points, or None if there are too many, or if it was stopped

    Examples
    --------
    >>> machine = Polytope(((5, 4, 3),), (30,))
    >>> len(valuable(machine, HalfSpace((0, 0, 0), 0), 100))
    31
    >>> valuable(machine, HalfSpace((-6, -4, -3), -34), 100)
    ((6, 0, 0), (5, 1, 0), (4, 1, 2))
    """
    order = sorted(range(polytope.dimension), key=lambda i: -polytope.rows[0][i])
    prices, least = [-half.normal[i] for i in order], -half.most
    rows = [[row[i] for i in order] for row in polytope.rows]
    last = len(order) - 1
    # What a unit of a row's room is worth at most, if types from a certain one on fill it.
    rates = [
        [max(Fraction(p, a) for p, a in zip(prices[at:], row[at:], strict=True)) for row in rows]
        for at in range(len(order))
    ]
    found: list[Point] = []
    counts = [0] * len(order)
    steps = 0

    def descend(at: int, room: tuple[int, ...], missing: int) -> bool:
        nonlocal steps
        steps += 1
        if steps > _STEPS_A_CONTENT * most or stopped():
            return False
        if any(
            rate.numerator * r < missing * rate.denominator
            for rate, r in zip(rates[at], room, strict=True)
        ):
            return True
        fits = min(r // row[at] for r, row in zip(room, rows, strict=True))
        if at == last:
            if missing <= fits * prices[at]:
                counts[at] = fits
                where = dict(zip(order, counts, strict=True))
                found.append(tuple(where[i] for i in range(len(order))))
            return len(found) <= most
        for number in range(fits, -1, -1):
            counts[at] = number
            left = tuple(r - number * row[at] for r, row in zip(room, rows, strict=True))
            if not descend(at + 1, left, missing - number * prices[at]):
                return False
        return True

    return tuple(found) if descend(0, polytope.right, least) else None
