"""HiGHS, through scipy: the integer program, and its linear relaxation alone.

``highspy`` cannot be loaded beside ortools (both ship a libhighs); scipy's HiGHS can. It cannot be
interrupted, so it runs in a process that can be ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .answer import Peer, PeerAnswer

if TYPE_CHECKING:
    from .program import Program

# scipy's codes of a result
_OPTIMAL, _INFEASIBLE = 0, 2


class Highs(Peer):
    """The integer program in ``scipy.optimize.milp``; gap 0, everything else as it comes."""

    __slots__ = ()
    module = "scipy.optimize"

    def prepare(self, program: Program) -> dict[str, Any]:
        """Make the arguments of ``milp``."""
        from scipy.optimize import Bounds, LinearConstraint

        return {
            "c": program.costs.astype(np.float64),
            "integrality": np.ones(len(program.costs)),
            "bounds": Bounds(0, np.inf),
            "constraints": LinearConstraint(program.matrix, program.rows_low, program.rows_high),
        }

    def solve(self, model: dict[str, Any], limit: float, seed: int) -> PeerAnswer:
        """Solve it; scipy passes no seed on."""
        from scipy.optimize import milp

        found = milp(**model, options={"mip_rel_gap": 0.0, "time_limit": limit})
        if found.status == _INFEASIBLE:
            return PeerAnswer("infeasible")
        bound = getattr(found, "mip_dual_bound", None)
        if bound is not None and not np.isfinite(bound):
            bound = None
        if found.x is None:
            return PeerAnswer("unknown", bound=bound)
        status = "optimal" if found.status == _OPTIMAL else "feasible"
        return PeerAnswer(status, found.x, float(found.fun), bound)


@dataclass(frozen=True, slots=True)
class HighsRelaxation(Peer):
    """The linear relaxation alone, by dual simplex, or by interior point and crossover."""

    method: Literal["highs-ds", "highs-ipm"] = "highs-ds"
    module = "scipy.optimize"
    integer = False

    def prepare(self, program: Program) -> dict[str, Any]:
        """Make the arguments of ``linprog``, which knows only rows with an upper side."""
        from scipy import sparse

        signs = np.where(np.isfinite(program.rows_low), -1.0, 1.0)
        sides = np.where(signs < 0, -program.rows_low, program.rows_high)
        return {
            "c": program.costs.astype(np.float64),
            "A_ub": sparse.csc_array(sparse.diags_array(signs) @ program.matrix),
            "b_ub": sides,
        }

    def solve(self, model: dict[str, Any], limit: float, seed: int) -> PeerAnswer:
        """Solve it."""
        from scipy.optimize import linprog

        options: Any = {"time_limit": limit}
        found = linprog(**model, method=self.method, options=options)
        if found.status == _INFEASIBLE:
            return PeerAnswer("infeasible")
        if found.status != _OPTIMAL or found.fun is None:
            return PeerAnswer("unknown")
        return PeerAnswer("optimal", bound=float(found.fun))
