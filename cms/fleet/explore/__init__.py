"""An app around the plan: rates, limits and GPUs are moved, the plan and its proof follow.

The page is drawn as by ``cms show``. The app itself is a marimo notebook beside this file, which
``cms show --live`` starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import InvalidOption
from ...plugin.registry import load_instance
from ...simplification.simplify import simplify_schedule
from ...solving.solve import solve
from ...values.numbers import Number, exact
from ..hardware import Gpu, get_gpu, read_gpu
from ..hardware.catalogue import gpu_called, is_device_file
from ..serving import Plan, Scenario, read_operating_points, read_services
from ..what_if.services import changed_services, named_service

__all__ = ["LIMITS", "RATES", "measured_gpus", "plan_scenario", "read_scenario", "turn"]

RATES: tuple[float, ...] = (0, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4)
"""What a slider multiplies rates by."""
LIMITS: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4)
"""What a slider multiplies latency limits by."""


def measured_gpus(scenario: Scenario) -> tuple[str, ...]:
    """Return the keys of the GPUs that points were measured on, the one with most points first."""
    own = [gpu for gpu in scenario.gpus if isinstance(gpu, Gpu)]
    counts = Counter(gpu_called(point.device, own).key for point in scenario.operating_points)
    return tuple(key for key, _ in counts.most_common())


def turn(
    scenario: Scenario,
    rates: Mapping[str, Number] | None = None,
    limits: Mapping[str, Number] | None = None,
    *,
    every: Number = 1,
    gpus: Iterable[str] | None = None,
) -> Scenario:
    """Multiply rates and latency limits of a scenario, and choose other GPUs by their keys.

    `rates`, `limits`: what a service's are multiplied by, 1 for those left out. `every`: what all
    rates are multiplied by besides.

    Raises InvalidOption if there is no such service, or no GPU is left. InvalidProblem if a limit
    becomes 0, or a number is below 0.
    """
    chosen = scenario.gpus
    if gpus is not None:
        own = [gpu for gpu in scenario.gpus if isinstance(gpu, Gpu)]
        chosen = tuple(gpu_called(key, own) for key in gpus)
    if not chosen:
        raise InvalidOption("no GPU is chosen; choose one that was measured, or several")

    def read(factors: Mapping[str, Number] | None) -> dict[str, Fraction]:
        given = (factors or {}).items()
        return {name: exact(each, f"a multiple of service {name!r}") for name, each in given}

    times = exact(every, "what all rates are multiplied by")
    scale = {each.name: times for each in scenario.services}
    scale |= {name: times * each for name, each in read(rates).items()}
    limited = {each.name: each for each in changed_services(scenario.services, scale=scale)}
    for name, factor in read(limits).items():
        now = named_service(limited, name).latency_limit_ms
        if now is not None:
            limited[name] = replace(limited[name], latency_limit_ms=now * factor)
    return replace(scenario, services=tuple(limited.values()), gpus=chosen)


def plan_scenario(scenario: Scenario, time_limit: float | None = 10.0, seed: int = 0) -> Plan:
    """Plan a scenario, and take the tidier of the plans found, as ``cms plan`` does."""
    serving = scenario.build_problem()
    solution = solve(serving.problem, time_limit=time_limit, seed=seed)
    return Plan(serving, simplify_schedule(serving.problem, solution))


def read_scenario(arguments: Mapping[str, Any]) -> Scenario:
    """Read what the app was started with: ``published``, or the two tables; S5 without any.

    `arguments`: ``published``, or ``services`` and ``operating-points``; ``gpu``, one or a list of
    keys and paths of device files, by default the GPU with most points.

    Raises FileError if a table cannot be read, with file, line and column. InvalidOption if one
    table is given without the other, or there is no such scenario.
    """
    tables = [arguments.get("services"), arguments.get("operating-points")]
    named = arguments.get("gpu") or []
    names = [named] if isinstance(named, str) else named
    gpus = tuple(read_gpu(name) if is_device_file(name) else get_gpu(name) for name in names)
    if any(tables):
        if not all(tables):
            raise InvalidOption("one table is given without the other; give services and points")
        services, points = map(Path, map(str, tables))
        found = Scenario(
            name=services.stem, title="", source="", services=read_services(services),
            operating_points=read_operating_points(points), gpus=gpus,
        )  # fmt: skip
        return found if gpus else replace(found, gpus=measured_gpus(found)[:1])
    name = str(arguments.get("published") or "S5")
    scenario = load_instance(name)
    if not isinstance(scenario, Scenario):
        raise InvalidOption(f"{name!r} has no services; expected a scenario as S1 to S6 are")
    return replace(scenario, gpus=gpus or scenario.gpus)
