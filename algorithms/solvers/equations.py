"""Linear equations in rationals, most of whose coefficients are 0."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def solved(
    equations: Sequence[Mapping[int, int | Fraction]],
    values: Sequence[int | Fraction],
    guess: Sequence[Fraction],
) -> list[Fraction] | None:
    """Solve linear equations; None if they contradict each other.

    The shortest equation is solved next, for the unknown that fewest others have, so that little
    is filled in.
    """
    rows = [{at: Fraction(a) for at, a in row.items() if a} for row in equations]
    right = [Fraction(value) for value in values]
    having: dict[int, set[int]] = {}
    for r, row in enumerate(rows):
        for at in row:
            having.setdefault(at, set()).add(r)
    waiting = set(range(len(rows)))
    order: list[tuple[int, int]] = []
    while waiting:
        r = min(waiting, key=lambda r: (len(rows[r]), r))
        row = rows[r]
        waiting.discard(r)
        if not row:
            if right[r]:
                return None
            continue
        at = min(row, key=lambda at: (len(having[at]), at))
        order.append((r, at))
        for other in row:
            having[other].discard(r)
        for s in sorted(having[at]):
            target = rows[s]
            factor = target.pop(at) / row[at]
            for other, a in row.items():
                if other == at:
                    continue
                value = target.get(other, Fraction(0)) - factor * a
                if value:
                    target[other] = value
                    having[other].add(s)
                elif other in target:
                    del target[other]
                    having[other].discard(s)
            right[s] -= factor * right[r]
        having[at] = set()
    found = list(guess)
    for r, at in reversed(order):
        row = rows[r]
        rest = sum((a * found[other] for other, a in row.items() if other != at), Fraction(0))
        found[at] = (right[r] - rest) / row[at]
    return found
