"""Nodes of a tree of branches on totals, and what is fractional there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    from .blend import Blend, Total
    from .tree import Node

#: Nearer to an integer than this counts as one where branches are chosen.
NEAR = 1e-5


def fractional(blend: Blend) -> dict[Total, float]:
    """Return the totals that are no whole numbers."""
    return {t: value for t, value in blend.totals.items() if abs(value - round(value)) > NEAR}


def whole_machines(blend: Blend) -> bool:
    """Whether there is a whole number of machines of each type."""
    return not any(machines for machines, _ in fractional(blend))


class Tried(NamedTuple):
    """What was known where whole fleets were looked for."""

    least: Fraction
    known: int
    nodes: int


class Open:
    """A node that is to be split or closed, and what its conditions are about."""

    def __init__(self, node: Node, totals: tuple[Total, ...]) -> None:
        self.node, self.totals = node, totals

    @property
    def bounds(self) -> dict[Total, tuple[float, float]]:
        """The bounds of each total: those of all conditions together."""
        found: dict[Total, tuple[float, float]] = {}
        for total, condition in zip(self.totals, self.node.path, strict=True):
            low, high = found.get(total, (-float("inf"), float("inf")))
            if condition.sign < 0:
                high = min(high, float(condition.value))
            else:
                low = max(low, float(condition.value))
            found[total] = low, high
        return found
