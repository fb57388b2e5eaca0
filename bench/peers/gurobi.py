"""Gurobi, through gurobipy, for users who have it: no extra brings it, since it needs a licence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.errors import UnsupportedProblem

from .answer import Peer, PeerAnswer

if TYPE_CHECKING:
    from .program import Program

# Gurobi's codes of a result
_OPTIMAL, _INFEASIBLE = 2, 3
# The error of a licence that is limited to small models.
_TOO_LARGE = 10010


class Gurobi(Peer):
    """The integer program in Gurobi; both gaps 0, as many threads as cores."""

    __slots__ = ()
    module = "gurobipy"

    def prepare(self, program: Program) -> Any:
        """Make a Gurobi model."""
        gurobi = importlib.import_module("gurobipy")
        environment = gurobi.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        environment.start()
        model = gurobi.Model(env=environment)
        costs = program.costs.astype(np.float64)
        x = model.addMVar(len(costs), vtype=gurobi.GRB.INTEGER, obj=costs)
        low = np.isfinite(program.rows_low)
        model.addConstr(program.matrix[low] @ x >= program.rows_low[low])
        if not low.all():
            model.addConstr(program.matrix[~low] @ x <= program.rows_high[~low])
        model.update()
        return model

    def solve(self, model: Any, limit: float, seed: int) -> PeerAnswer:
        """Solve it."""
        model.setParam("MIPGap", 0.0)
        model.setParam("MIPGapAbs", 0.0)
        model.setParam("TimeLimit", limit)
        model.setParam("Seed", seed % 2**31)
        # Bounds below alone: an unbounded program is none of ours, so this settles which it is.
        model.setParam("DualReductions", 0)
        try:
            model.optimize()
        except importlib.import_module("gurobipy").GurobiError as fault:
            if fault.errno == _TOO_LARGE:
                raise UnsupportedProblem(
                    f"this Gurobi licence is for smaller models: {fault}"
                ) from None
            raise
        if model.Status == _INFEASIBLE:
            return PeerAnswer("infeasible")
        bound = float(model.ObjBound)
        known = bound if np.isfinite(bound) and abs(bound) < 1e100 else None
        if not model.SolCount:
            return PeerAnswer("unknown", bound=known)
        values = np.array(model.getAttr("X", model.getVars()))
        claim = "optimal" if model.Status == _OPTIMAL else "feasible"
        return PeerAnswer(claim, values, float(model.ObjVal), known)
