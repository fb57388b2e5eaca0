"""What is certain of a problem before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..problem.parts import Block, Configuration
from .certificate import BlockPrices

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem


def first_certificate(problem: MachineProblem) -> BlockPrices:
    """Return what is certain before any work: prices of 0, and 1 on blocks no machine can have.

    It proves infeasibility where some job can only be served by such blocks, or by none.
    """
    found: set[Block] = set()
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            found |= set(shape.blocks)
        else:
            found |= {block for block in shape.sizes if shape.largest_count(block) > 0}
    return BlockPrices({block: 1 for block in problem.blocks if block not in found})
