"""Serving layer: services and measured operating points become a problem, its solution a plan."""

from __future__ import annotations

from .csv_input import read_operating_points, read_services
from .operating_point import OperatingPoint
from .parvagpu import PARVAGPU_MODELS, read_parvagpu_profiles, read_parvagpu_slo
from .plan import GpuGroup, Instances, Plan, ServicePlan, Use
from .plan_reading import plan_from_json, read_plan
from .plan_writing import plan_to_json, write_plan
from .queueing import RULES, LatencyRule, QueueingRule, queueing_rule
from .scenario import Scenario
from .service import Service
from .serving_problem import Served, ServingProblem, as_problem

__all__ = [
    "Service",
    "OperatingPoint",
    "read_services",
    "read_operating_points",
    "read_parvagpu_profiles",
    "read_parvagpu_slo",
    "PARVAGPU_MODELS",
    "QueueingRule",
    "LatencyRule",
    "RULES",
    "queueing_rule",
    "as_problem",
    "ServingProblem",
    "Scenario",
    "Plan",
    "ServicePlan",
    "Use",
    "GpuGroup",
    "Instances",
    "Served",
    "read_plan",
    "write_plan",
    "plan_from_json",
    "plan_to_json",
]
