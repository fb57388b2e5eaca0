"""The wing for people with GPUs: hardware, plans, deployments, rates that change, simulations.

Every name is loaded when it is first used, so that importing this costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .deployment import (
        Deployment,
        Wishes,
        check_deployment,
        place,
        read_deployment,
        read_nodes,
        wanted_of,
        write_deployment,
    )
    from .hardware import Gpu, gpu, gpus, mps_shares, read_gpu
    from .reconciling import Forecast, Planner, Rates, Terms, Tick, read_rates, reconcile
    from .serving import (
        RULES,
        CapacityRule,
        FillTimes,
        Headroom,
        Interference,
        LatencyRule,
        LoadCurve,
        NeighbourServing,
        OperatingPoint,
        Plan,
        Promise,
        QueueingRule,
        Scenario,
        Service,
        ServingProblem,
        SharedServing,
        TimeSharing,
        as_problem,
        neighbour_faults,
        plan_from_json,
        plan_to_json,
        read_gpulet_table,
        read_interference,
        read_load_curves,
        read_operating_points,
        read_parvagpu_profiles,
        read_parvagpu_slo,
        read_plan,
        read_services,
        write_plan,
    )
    from .sharing import (
        AssignmentPrices,
        OfflineClass,
        OnlineClass,
        SharingPlan,
        SharingProblem,
        SharingSolution,
        share,
        sm_share,
    )
    from .simulation import Simulation, read_simulation, simulate, write_simulation

#: Where each name is defined.
_HOME = {
    "Gpu": "hardware",
    "gpu": "hardware",
    "gpus": "hardware",
    "mps_shares": "hardware",
    "read_gpu": "hardware",
    "Service": "serving",
    "OperatingPoint": "serving",
    "read_services": "serving",
    "read_operating_points": "serving",
    "read_parvagpu_profiles": "serving",
    "read_parvagpu_slo": "serving",
    "read_gpulet_table": "serving",
    "QueueingRule": "serving",
    "LatencyRule": "serving",
    "CapacityRule": "serving",
    "Promise": "serving",
    "LoadCurve": "serving",
    "FillTimes": "serving",
    "read_load_curves": "serving",
    "RULES": "serving",
    "as_problem": "serving",
    "ServingProblem": "serving",
    "SharedServing": "serving",
    "TimeSharing": "serving",
    "Headroom": "serving",
    "Interference": "serving",
    "NeighbourServing": "serving",
    "neighbour_faults": "serving",
    "read_interference": "serving",
    "Scenario": "serving",
    "Plan": "serving",
    "read_plan": "serving",
    "write_plan": "serving",
    "plan_from_json": "serving",
    "plan_to_json": "serving",
    "OnlineClass": "sharing",
    "OfflineClass": "sharing",
    "SharingProblem": "sharing",
    "share": "sharing",
    "SharingSolution": "sharing",
    "SharingPlan": "sharing",
    "AssignmentPrices": "sharing",
    "sm_share": "sharing",
    "wanted_of": "deployment",
    "read_nodes": "deployment",
    "place": "deployment",
    "Wishes": "deployment",
    "Deployment": "deployment",
    "check_deployment": "deployment",
    "read_deployment": "deployment",
    "write_deployment": "deployment",
    "read_rates": "reconciling",
    "Rates": "reconciling",
    "Forecast": "reconciling",
    "Planner": "reconciling",
    "Terms": "reconciling",
    "reconcile": "reconciling",
    "Tick": "reconciling",
    "simulate": "simulation",
    "Simulation": "simulation",
    "read_simulation": "simulation",
    "write_simulation": "simulation",
}

__all__ = [
    # hardware
    "Gpu",
    "gpu",
    "gpus",
    "mps_shares",
    "read_gpu",
    # services and plans
    "Service",
    "OperatingPoint",
    "read_services",
    "read_operating_points",
    "read_parvagpu_profiles",
    "read_parvagpu_slo",
    "read_gpulet_table",
    "QueueingRule",
    "LatencyRule",
    "CapacityRule",
    "Promise",
    "LoadCurve",
    "FillTimes",
    "read_load_curves",
    "RULES",
    "as_problem",
    "ServingProblem",
    "SharedServing",
    "TimeSharing",
    "Headroom",
    "Interference",
    "NeighbourServing",
    "neighbour_faults",
    "read_interference",
    "Scenario",
    "Plan",
    "read_plan",
    "write_plan",
    "plan_from_json",
    "plan_to_json",
    # offline work beside online services
    "OnlineClass",
    "OfflineClass",
    "SharingProblem",
    "share",
    "SharingSolution",
    "SharingPlan",
    "AssignmentPrices",
    "sm_share",
    # plans on numbered GPUs
    "wanted_of",
    "read_nodes",
    "place",
    "Wishes",
    "Deployment",
    "check_deployment",
    "read_deployment",
    "write_deployment",
    # rates that change
    "read_rates",
    "Rates",
    "Forecast",
    "Planner",
    "Terms",
    "reconcile",
    "Tick",
    # replayed plans
    "simulate",
    "Simulation",
    "read_simulation",
    "write_simulation",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
