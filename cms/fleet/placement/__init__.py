"""Which instance stands on which GPU: plans placed on fleets, near what runs, or put together.

Imports deployments and the serving problem; never a transition, a simulation or a report.
"""

from __future__ import annotations

from .compaction import Compacted, compact
from .constraints import PlacementConstraints, placement_constraints
from .infeasibility import PlacementInfeasible, check_unplaceable
from .nearest_plan import Nearest, nearest
from .placement import place
from .placement_result import GpuCost, PlacementResult

__all__ = [
    # placed
    "place",
    "PlacementResult",
    "GpuCost",
    "PlacementInfeasible",
    "check_unplaceable",
    "PlacementConstraints",
    "placement_constraints",
    # near what runs
    "nearest",
    "Nearest",
    # together
    "compact",
    "Compacted",
]
