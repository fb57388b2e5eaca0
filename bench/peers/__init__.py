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

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Highs(),
        Highs("highs_arc_flow", "scipy.optimize.milp, mip_rel_gap 0", program=ArcFlowProgram),
        Scip(),
        Gurobi(),
        CpSat("cp_sat_1", workers=1, linearization_level=2),
        CpSat("cp_sat_8", workers=8),
        HighsRelaxation("highs_lp_simplex", "highs-ds"),
        HighsRelaxation("highs_lp_ipm", "highs-ipm"),
    )
}
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
