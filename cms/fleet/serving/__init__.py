"""Serving layer: services and measured operating points become a problem, its solution a plan."""

from __future__ import annotations

from .capacity import CapacityRule, sustainable_load
from .csv_input import read_operating_points, read_services
from .gpulet_utilisations import read_gpulet_utilisations
from .gpus_used import AvailableGpus, HeldInstance
from .interference import (
    Interference,
    LinearSlowdown,
    Pair,
    predicted,
    read_interference,
    read_utilisations,
)
from .latency_rule import LatencyRule
from .load_curve import FillTimes, LoadCurve, read_load_curves
from .neighbours import NeighbourServing, neighbour_faults
from .operating_point import OperatingPoint
from .plan import Instances, Plan, PlanGroup, ServicePlan, Use
from .plan_document import plan_from_json, plan_to_json, read_plan, write_plan
from .posing import build_problem
from .queueing import RULES, QueueingRule, queueing_rule
from .scenario import Scenario
from .service import Promise, Service
from .serving_problem import Served, ServingProblem
from .time_sharing import Headroom, SharedServing, TimeSharing

__all__ = ["Service", "OperatingPoint", "read_services", "read_operating_points"]
__all__ += ["read_gpulet_utilisations", "LinearSlowdown", "predicted", "read_utilisations"]
__all__ += ["QueueingRule", "LatencyRule", "CapacityRule", "Promise"]
__all__ += ["LoadCurve", "read_load_curves", "FillTimes", "sustainable_load", "RULES"]
__all__ += ["queueing_rule", "build_problem", "ServingProblem", "SharedServing", "TimeSharing"]
__all__ += ["Headroom", "Interference", "Pair", "read_interference", "NeighbourServing"]
__all__ += ["neighbour_faults", "Scenario", "Plan", "ServicePlan", "Use", "PlanGroup", "Instances"]
__all__ += ["AvailableGpus", "HeldInstance", "Served", "read_plan", "write_plan"]
__all__ += ["plan_from_json", "plan_to_json"]
