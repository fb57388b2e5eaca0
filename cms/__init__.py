"""Configurable Machine Scheduling: cut machines into blocks, serve all jobs, prove it optimal.

Examples
--------
>>> from cms import Configuration, Job, Problem, solve
>>> problem = Problem(
...     configurations=[
...         Configuration({"7g": 1}),
...         Configuration({"4g": 1, "3g": 1}),
...         Configuration({"1g": 7}),
...     ],
...     jobs=[
...         Job("bert", demand=1200, demand_function={"1g": 90, "3g": "310.5", "7g": 800}),
...         Job("resnet", demand="333.3", demand_function={"1g": 40, "3g": 150, "7g": 380}),
...     ],
... )
>>> solution = solve(problem)
>>> solution.machine_count, solution.status.value, solution.proof.value
(3, 'optimal', 'checked')
"""

import ast
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certificate.certificate import BlockPrices, Branch, Certificate, Leaf, ProvedBound
    from .certificate.quantity import (
        BlocksOfJob,
        BlocksOfType,
        MachinesOfConfiguration,
        MachinesOfType,
        MachinesWithBlocks,
    )
    from .checker.kinds import Checker, InitialBounds, MachineChecker, check, checker_for
    from .errors import (
        AlgorithmError,
        ClusterError,
        CmsError,
        FileError,
        GuaranteeBreached,
        InvalidCertificate,
        InvalidOption,
        InvalidProblem,
        InvalidSchedule,
        UnknownMethod,
        UnsupportedProblem,
    )
    from .files import (
        open_problem,
        pack,
        read_problem,
        read_solution,
        write_problem,
        write_program,
        write_solution,
    )
    from .infeasibility.shortage import Growth, Shortage, explain_infeasibility, find_growth
    from .plugin.algorithm import Algorithm, Budget, Claim, Named, SolverBound, Support
    from .plugin.guarantee import Guarantee, GuaranteeVerdict, Reference, Verdict
    from .plugin.registry import NamedProblem, list_algorithms, list_instances, load_instance
    from .presolver.presolve import PresolvedProblem, presolve
    from .problem.machine_problem import MachineProblem
    from .problem.parts import (
        Block,
        Configuration,
        DemandFunction,
        Job,
        MachineType,
        SizeBoundedConfigurations,
    )
    from .problem.problem import Problem
    from .schedule.contents import Mix
    from .schedule.faults import Violation
    from .schedule.schedule import Excerpt, MachineGroup, Schedule
    from .shards.cluster import cluster
    from .shards.problem import ShardedProblem
    from .shards.schedule import ShardedSchedule
    from .simplification.simplify import simplify_schedule
    from .solving.solution import Incumbent, Proof, Solution, Status, StopReason
    from .solving.solve import solve
    from .time_sharing.duty_cycle import DutyCycle, DutyCycleRule
    from .time_sharing.functions import PriceFunction
    from .time_sharing.model import BatchPoint, TimeSharedJob
    from .time_sharing.prices import MixPrices
    from .time_sharing.problem import TimeSharedProblem

    __version__: str

# What stands under one heading of the documentation stands together.
__all__ = ["Problem", "Job", "Block", "DemandFunction", "Configuration"]
__all__ += ["SizeBoundedConfigurations", "MachineType", "presolve", "PresolvedProblem"]
__all__ += ["TimeSharedProblem", "TimeSharedJob", "BatchPoint", "Mix", "DutyCycle", "DutyCycleRule"]
__all__ += ["solve", "Solution", "Status", "Proof", "StopReason", "Incumbent", "Schedule"]
__all__ += ["MachineGroup", "check", "Violation", "explain_infeasibility", "Growth", "find_growth"]
__all__ += ["Shortage", "simplify_schedule", "Certificate", "BlockPrices", "MixPrices"]
__all__ += ["PriceFunction", "Branch", "MachinesOfType", "MachinesWithBlocks"]
__all__ += ["MachinesOfConfiguration", "BlocksOfType", "BlocksOfJob", "list_algorithms"]
__all__ += ["list_instances", "load_instance", "NamedProblem", "Algorithm", "Support", "Guarantee"]
__all__ += ["GuaranteeVerdict", "Reference", "Verdict", "Budget", "Claim", "Named", "SolverBound"]
__all__ += ["Checker", "checker_for", "InitialBounds", "ProvedBound", "Excerpt", "MachineProblem"]
__all__ += ["MachineChecker", "Leaf", "read_problem", "write_problem", "write_program"]
__all__ += ["read_solution", "write_solution", "open_problem", "pack", "ShardedProblem"]
__all__ += ["ShardedSchedule", "cluster", "CmsError", "ClusterError", "InvalidProblem"]
__all__ += ["InvalidSchedule", "InvalidCertificate", "InvalidOption", "UnknownMethod"]
__all__ += ["UnsupportedProblem", "AlgorithmError", "GuaranteeBreached", "FileError"]

#: From a folder or a zip archive.
_LOADER: Any = globals()["__loader__"]
#: Where each name is defined, as it stands above; each module is loaded when it is first used.
_HOME = {
    alias.name: each.module
    for each in ast.walk(ast.parse(_LOADER.get_data(__file__)))
    if isinstance(each, ast.ImportFrom) and each.level
    for alias in each.names
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        found: object = import_module("importlib.metadata").version("configurable-machines")
    elif name in _HOME:
        found = getattr(import_module(f".{_HOME[name]}", __name__), name)
    elif name == "fleet":  # imported when it is first used
        found = import_module(".fleet", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__"))
    return sorted({*dunders, *__all__, "__version__"})
