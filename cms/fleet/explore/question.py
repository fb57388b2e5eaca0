"""What is planned for: two tables, and what is turned on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import InvalidOption
from ...plugin.registry import load_instance
from ...simplification.simplify import simplify_schedule
from ...solving.solve import solve
from ...values.numbers import Number, exact
from ..hardware import Gpu, get_gpu, read_gpu
from ..hardware.catalogue import gpu_called
from ..hardware.device_file import is_device_file
from ..serving import (
    LoadCurve,
    OperatingPoint,
    Plan,
    QueueingRule,
    Scenario,
    Service,
    build_problem,
    read_operating_points,
    read_services,
)  # fmt: skip
from ..serving.load_curve import PointKey
from ..serving.queueing import DEFAULT_RULE
from ..what_if.services import changed_services, named_service

__all__ = ["LIMITS", "RATES", "Question", "asked_of", "solved"]

RATES: tuple[float, ...] = (0, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4)
"""What a slider multiplies rates by."""
LIMITS: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4)
"""What a slider multiplies latency limits by."""


@dataclass(frozen=True, slots=True)
class Question:
    """Services, measured points, and the keys of the GPUs to plan on.

    `devices`: a user's own GPUs; the rest as of :func:`cms.fleet.build_problem`.
    """

    title: str
    services: tuple[Service, ...]
    operating_points: tuple[OperatingPoint, ...]
    gpus: tuple[str, ...] = ()
    rule: str | QueueingRule = DEFAULT_RULE
    load_curves: Mapping[PointKey, LoadCurve] | None = None
    max_processes: int | None = None
    devices: tuple[Gpu, ...] = ()

    @property
    def measured(self) -> tuple[str, ...]:
        """The keys of the GPUs that points were measured on, the one with most points first."""
        points = self.operating_points
        counts = Counter(gpu_called(point.device, self.devices).key for point in points)
        return tuple(key for key, _ in counts.most_common())

    def turned(
        self,
        rates: Mapping[str, Number] | None = None,
        limits: Mapping[str, Number] | None = None,
        *,
        every: Number = 1,
        gpus: Iterable[str] | None = None,
    ) -> Question:
        """Multiply rates and latency limits, and choose other GPUs.

        `rates`, `limits`: what a service's are multiplied by, 1 for those left out. `every`: what
        all rates are multiplied by besides.

        Raises InvalidOption if there is no such service, or no GPU is left. InvalidProblem if a
        limit becomes 0, or a number is below 0.
        """
        keys = self.gpus if gpus is None else tuple(gpus)
        if not keys:
            raise InvalidOption("no GPU is chosen; choose one that was measured, or several")

        def read(factors: Mapping[str, Number] | None) -> dict[str, Fraction]:
            given = (factors or {}).items()
            return {name: exact(each, f"a multiple of service {name!r}") for name, each in given}

        times, known = exact(every, "what all rates are multiplied by"), self.services
        names = {each.name: each for each in known}
        own = {name: times * each for name, each in read(rates).items()}
        services = changed_services(known, scale=dict.fromkeys(names, times) | own)
        limited = {each.name: each for each in services}
        for name, each in read(limits).items():
            now = named_service(limited, name).latency_limit_ms
            if now is not None:
                limited[name] = replace(limited[name], latency_limit_ms=now * each)
        return replace(self, services=tuple(limited.values()), gpus=keys)


def solved(question: Question, time_limit: float | None = 10.0, seed: int = 0) -> Plan:
    """Plan it, and take the tidier of the plans found, as ``cms plan`` does; all is checked."""
    serving = build_problem(
        question.services, question.operating_points,
        [gpu_called(key, question.devices) for key in question.gpus], rule=question.rule,
        load_curves=question.load_curves, max_processes=question.max_processes,
    )  # fmt: skip
    solution = solve(serving.problem, time_limit=time_limit, seed=seed)
    return Plan(serving, simplify_schedule(serving.problem, solution))


def asked_of(arguments: Mapping[str, Any]) -> Question:
    """Read what the app was started with: ``published``, or the two tables; S5 without any.

    `arguments`: ``published``, or ``services`` and ``operating-points``; ``gpu``, one or a list of
    keys and paths of device files, by default the GPU with most points; ``title``.

    Raises FileError if a table cannot be read, with file, line and column. InvalidOption if one
    table is given without the other, or there is no such scenario.
    """
    tables = [arguments.get("services"), arguments.get("operating-points")]
    named = arguments.get("gpu") or []
    names = [named] if isinstance(named, str) else named
    devices = tuple(read_gpu(name) if is_device_file(name) else get_gpu(name) for name in names)
    if any(tables):
        if not all(tables):
            raise InvalidOption("one table is given without the other; give services and points")
        services, points = map(Path, map(str, tables))
        title = str(arguments.get("title") or services.stem)
        given = read_services(services), read_operating_points(points)
        asked = Question(title, *given, devices=devices)
        return replace(asked, gpus=tuple(each.key for each in devices) or asked.measured[:1])
    name = str(arguments.get("published") or "S5")
    scenario = load_instance(name)
    if not isinstance(scenario, Scenario):
        raise InvalidOption(f"{name!r} has no services; expected a scenario as S1 to S6 are")
    own = tuple(get_gpu(each) if isinstance(each, str) else each for each in scenario.gpus)
    gpus = devices or own
    return Question(
        f"{scenario.name}: {scenario.title}", scenario.services, scenario.operating_points,
        tuple(each.key for each in gpus), scenario.rule, scenario.curves_for(scenario.rule),
        scenario.max_processes, gpus,
    )  # fmt: skip
