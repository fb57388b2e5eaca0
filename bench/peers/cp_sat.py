"""CP-SAT, through the solver's core: its modelling layer on top would only take time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.errors import UnsupportedProblem

from .answer import Peer, PeerAnswer

if TYPE_CHECKING:
    from .program import Program

#: CP-SAT's own limit on the values of linear expressions is 2**63; stay clear.
_LARGEST = 2.0**60
_UNBOUNDED = 2**61


@dataclass(frozen=True, slots=True)
class CpSat(Peer):
    """The integer program in CP-SAT; both gaps 0.

    A single worker stands at bound 0 for minutes on these programs without the linear relaxation
    that linearization level 2 brings.
    """

    workers: int = 1
    linearization_level: int | None = None
    module = "ortools.sat.python.cp_model_helper"

    def prepare(self, program: Program) -> Any:
        """Make CP-SAT's model; UnsupportedProblem if its numbers could overflow."""
        from ortools.sat.python import cp_model_helper

        reach = abs(program.matrix) @ np.maximum(program.highs, 1.0)
        finite = np.where(np.isfinite(program.rows_low), program.rows_low, program.rows_high)
        most = max(
            float(reach.max(initial=0.0)),
            float(finite.max(initial=0.0)),
            float(program.costs @ program.highs),
        )
        if most >= _LARGEST:
            raise UnsupportedProblem(
                f"a sum of the program can reach {most:.3g}, beyond CP-SAT's range of numbers"
            )
        model = cp_model_helper.CpModelProto()
        for high in program.highs.tolist():
            model.variables.add().domain.extend([0, int(high)])
        matrix = program.matrix
        starts, columns = matrix.indptr.tolist(), matrix.indices.tolist()
        values = matrix.data.astype(np.int64).tolist()
        sides = zip(program.rows_low.tolist(), program.rows_high.tolist(), strict=True)
        for row, (low, high) in enumerate(sides):
            part = slice(starts[row], starts[row + 1])
            linear = model.constraints.add().linear
            linear.vars.extend(columns[part])
            linear.coeffs.extend(values[part])
            linear.domain.extend(
                [
                    int(low) if np.isfinite(low) else -_UNBOUNDED,
                    int(high) if np.isfinite(high) else _UNBOUNDED,
                ]
            )
        priced = np.flatnonzero(program.costs)
        model.objective.vars.extend(priced.tolist())
        model.objective.coeffs.extend(program.costs[priced].tolist())
        return model

    def solve(self, model: Any, limit: float, seed: int) -> PeerAnswer:
        """Solve it."""
        from ortools.sat.python import cp_model_helper

        core: Any = cp_model_helper
        parameters = core.SatParameters()
        parameters.num_workers = self.workers
        if self.linearization_level is not None:
            parameters.linearization_level = self.linearization_level
        parameters.random_seed = seed % 2**31
        parameters.relative_gap_limit = 0.0
        parameters.absolute_gap_limit = 0.0
        parameters.max_time_in_seconds = limit
        parameters.catch_sigint_signal = False
        wrapper = core.SolveWrapper()
        wrapper.set_parameters(parameters)
        response = wrapper.solve(model)
        states = core.CpSolverStatus
        if response.status == states.MODEL_INVALID:
            raise AssertionError("CP-SAT calls the model invalid: a coefficient is out of range")
        if response.status == states.INFEASIBLE:
            return PeerAnswer("infeasible")
        bound = float(response.inner_objective_lower_bound)
        if response.status not in (states.OPTIMAL, states.FEASIBLE):
            return PeerAnswer("unknown", bound=bound)
        claim = "optimal" if response.status == states.OPTIMAL else "feasible"
        values = np.array(response.solution, dtype=np.int64)
        return PeerAnswer(claim, values, float(response.objective_value), bound)
