"""Which instance stands on which GPU: plans placed on fleets, near what runs, or put together.

Imports deployments and the serving problem; never a transition, a simulation or a report.
"""

from __future__ import annotations

from .compaction import Compacted, compact
from .constraints import PlacementConstraints, placement_constraints
from .gpu_group import GpuCost, list_available
from .placement import place
from .placement_result import PlacementInfeasible, PlacementResult
from .plan_placement import place_plan

__all__ = ["place", "PlacementResult", "GpuCost", "PlacementInfeasible", "PlacementConstraints"]
__all__ += ["placement_constraints", "place_plan", "list_available", "compact", "Compacted"]
