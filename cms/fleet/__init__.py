"""The wing for people with GPUs: hardware, plans, deployments, rates that change, simulations.

Every name is loaded when it is first used, so that importing this costs nothing.
"""

from __future__ import annotations

import ast
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .colocation import (
        AssignmentPrices,
        ColocationPlan,
        ColocationProblem,
        ColocationSolution,
        OfflineClass,
        OnlineClass,
        colocate,
        read_colocation_problem,
        read_colocation_solution,
        sm_share,
        write_colocation_problem,
        write_colocation_solution,
    )
    from .deployment import (
        Deployment,
        check_deployment,
        desired_state,
        read_deployment,
        read_nodes,
        write_deployment,
    )
    from .hardware import Gpu, get_gpu, list_gpus, mps_shares, read_gpu
    from .placement import PlacementConstraints, place
    from .published import (
        GracefulExit,
        LaunchGate,
        MemoryQuota,
        Metric,
        MonitorPreset,
        MonitorState,
        MonitorStates,
        MonitorTimes,
        RestartTimes,
        SharedDevice,
        Supervisor,
        error_handling,
        monitor_preset,
        monitor_signal,
        monitor_signals,
        monitor_step,
        monitor_steps,
        read_monitor,
        slowdown_bound,
    )
    from .replanner import Forecast, Planner, Rates, ReplanDecision, Terms, read_rates, replan
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
        build_problem,
        neighbour_faults,
        plan_from_json,
        plan_to_json,
        read_interference,
        read_load_curves,
        read_operating_points,
        read_plan,
        read_services,
        write_plan,
    )
    from .simulation import Simulation, read_simulation, simulate, write_simulation
    from .what_if import Explanation, Relaxation, Rightsizing, changed_services, explain, rightsize

__all__ = [
    # hardware
    "Gpu", "get_gpu", "list_gpus", "mps_shares", "read_gpu",
    # services and plans
    "Service", "OperatingPoint", "read_services", "read_operating_points", "QueueingRule",
    "LatencyRule", "CapacityRule", "Promise", "LoadCurve", "FillTimes", "read_load_curves",
    "RULES", "build_problem", "ServingProblem", "SharedServing", "TimeSharing", "Headroom",
    "Interference", "NeighbourServing", "neighbour_faults", "read_interference", "Scenario",
    "Plan", "read_plan", "write_plan", "plan_from_json", "plan_to_json",
    # offline work beside online services
    "OnlineClass", "OfflineClass", "ColocationProblem", "colocate", "ColocationSolution",
    "ColocationPlan", "AssignmentPrices", "sm_share", "read_colocation_problem",
    "write_colocation_problem", "read_colocation_solution", "write_colocation_solution",
    # the monitor of a shared GPU
    "MonitorTimes", "MonitorState", "monitor_step", "MonitorStates", "monitor_steps", "Metric",
    "monitor_signal", "monitor_signals", "MonitorPreset", "monitor_preset", "read_monitor",
    # protection of the online side, and errors
    "MemoryQuota", "LaunchGate", "SharedDevice", "slowdown_bound", "error_handling",
    "GracefulExit", "Supervisor", "RestartTimes",
    # plans on numbered GPUs
    "desired_state", "read_nodes", "place", "PlacementConstraints", "Deployment",
    "check_deployment", "read_deployment", "write_deployment",
    # rates that change
    "read_rates", "Rates", "Forecast", "Planner", "Terms", "replan", "ReplanDecision",
    # replayed plans
    "simulate", "Simulation", "read_simulation", "write_simulation",
    # what-if
    "changed_services", "explain", "Explanation", "rightsize", "Rightsizing", "Relaxation",
]  # fmt: skip


#: From a folder or a zip archive.
_LOADER: Any = globals()["__loader__"]
#: Where each name is defined, as it stands above.
_HOME = {
    alias.name: each.module
    for each in ast.walk(ast.parse(_LOADER.get_data(__file__)))
    if isinstance(each, ast.ImportFrom) and each.level
    for alias in each.names
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
