"""SCIP, through pyscipopt (the extra ``bench``)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .answer import Peer, PeerAnswer

if TYPE_CHECKING:
    from .program import Program


class Scip(Peer):
    """The integer program in SCIP; gap 0, objective declared integral, else default settings."""

    __slots__ = ()
    module = "pyscipopt"

    def prepare(self, program: Program) -> tuple[Any, list[Any]]:
        """Make a SCIP model and its variables."""
        # by name, since its types come and go with the extra
        core = importlib.import_module("pyscipopt.scip")
        model = core.Model()
        model.hideOutput()
        costs = program.costs.tolist()
        variables = [model.addVar(vtype="I", lb=0, ub=None, obj=cost) for cost in costs]
        terms = [core.Term(variable) for variable in variables]
        matrix = program.matrix
        starts, columns, values = (
            part.tolist() for part in (matrix.indptr, matrix.indices, matrix.data)
        )
        sides = zip(program.rows_low.tolist(), program.rows_high.tolist(), strict=True)
        for row, (low, high) in enumerate(sides):
            part = slice(starts[row], starts[row + 1])
            # one expression at once: adding term by term takes quadratic time
            pairs = zip(columns[part], values[part], strict=True)
            left = core.Expr({terms[column]: value for column, value in pairs})
            model.addCons(left >= low if np.isfinite(low) else left <= high)
        model.setObjIntegral()
        return model, variables

    def solve(self, model: tuple[Any, list[Any]], limit: float, seed: int) -> PeerAnswer:
        """Solve it."""
        scip, variables = model
        scip.setParam("limits/gap", 0.0)
        scip.setParam("limits/absgap", 0.0)
        scip.setParam("limits/time", limit)
        scip.setParam("randomization/randomseedshift", seed % 2**31)
        scip.optimize()
        status = scip.getStatus()
        if status == "infeasible":
            return PeerAnswer("infeasible")
        bound = float(scip.getDualbound())
        known = None if abs(bound) >= scip.infinity() else bound
        if not scip.getNSols():
            return PeerAnswer("unknown", bound=known)
        best = scip.getBestSol()
        values = np.array([best[variable] for variable in variables])
        claim = "optimal" if status == "optimal" else "feasible"
        return PeerAnswer(claim, values, float(scip.getObjVal()), known)
