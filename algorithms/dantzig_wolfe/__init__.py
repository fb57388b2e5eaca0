"""LP_DW, the linear program over options: solved by column generation, rounded by Theorem B.

The mathematics that :mod:`algorithms.ptas` and :mod:`algorithms.conic` share: a basic solution in
exact rationals, the block prices that prove its value, and the rounding to a schedule.
"""

from .generation import Fractional, solve_dantzig_wolfe
from .rounding import additive_cost, rounded

__all__ = ["Fractional", "additive_cost", "rounded", "solve_dantzig_wolfe"]
