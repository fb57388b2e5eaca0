"""General solvers on an integer program: what one would use without this package.

That is the compact one, or for machines cut at will the arc-flow one.

Each gets the same instance, its best sensible settings, and a process of its own; what it claims
is checked like everything else.
"""

from __future__ import annotations

from .answer import Peer, PeerAnswer
from .arc_flow import ArcFlowProgram
from .compact import CompactProgram
from .cp_sat import CpSat
from .gurobi import Gurobi
from .highs import Highs, HighsRelaxation
from .program import Program
from .scip import Scip

__all__ = ["ArcFlowProgram", "CompactProgram", "GROUPS", "PEERS", "Peer", "PeerAnswer", "Program"]

_MILP, _LINPROG = "scipy.optimize.milp, mip_rel_gap 0", "linear relaxation: scipy.optimize.linprog"
_PEERS: tuple[Peer, ...] = (
    Highs("highs", _MILP),
    Highs("highs_arc_flow", _MILP, ArcFlowProgram),
    Scip("scip", "pyscipopt, gap 0, integral objective"),
    Gurobi("gurobi", "gurobipy, gaps 0"),
    CpSat("cp_sat_1", "1 worker, gaps 0, linearization level 2", workers=1, linearization_level=2),
    CpSat("cp_sat_8", "8 workers, gaps 0", workers=8),
    HighsRelaxation("highs_lp_simplex", f"{_LINPROG}, highs-ds", method="highs-ds"),
    HighsRelaxation("highs_lp_ipm", f"{_LINPROG}, highs-ipm", method="highs-ipm"),
)
PEERS: dict[str, Peer] = {peer.name: peer for peer in _PEERS}
"""Every peer by its name."""

GROUPS: dict[str, tuple[str, ...]] = {
    "highs": ("highs",),
    "highs_arc_flow": ("highs_arc_flow",),
    "scip": ("scip",),
    "gurobi": ("gurobi",),
    "cp_sat": ("cp_sat_1", "cp_sat_8"),
    "highs_lp": ("highs_lp_simplex", "highs_lp_ipm"),
}
"""A solver, and the peers of which the best is reported under its name."""
