"""What is planned for: two tables, and what is turned on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InvalidOption
from ...plugin.registry import load_instance
from ...solving.solve import solve
from ...tidying.tidy import tidy
from ...values.numbers import Number, exact
from ..hardware import Gpu, gpu, read_gpu
from ..hardware.catalogue import gpu_called
from ..hardware.device_file import is_device_file
from ..serving import (
    LoadCurve,
    OperatingPoint,
    Plan,
    QueueingRule,
    Scenario,
    Service,
    as_problem,
    read_operating_points,
    read_services,
)
from ..serving.load_curve import PointKey
from ..serving.queueing import DEFAULT_RULE
from ..what_if.services import changed_services, named_service

if TYPE_CHECKING:
    from ...files.source import StrPath
__all__ = ["LIMITS", "RATES", "Question", "asked_of", "solved"]

DEFAULT = "S5"
"""The published scenario that is shown where there are no tables."""

RATES: tuple[float, ...] = (0, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4)
"""What a slider multiplies rates by."""
LIMITS: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4)
"""What a slider multiplies latency limits by."""


@dataclass(frozen=True, slots=True)
class Question:
    """Services, measured points, and the GPUs to plan on.

    Parameters
    ----------
    title : str
    services : tuple of Service
    operating_points : tuple of OperatingPoint
    gpus : tuple of str
        Keys of those to plan on.
    rule : str or QueueingRule
    load_curves : mapping, optional
        As of :func:`cms.fleet.as_problem`.
    max_processes : int, optional
    devices : tuple of Gpu, optional
        A user's own, beside those of the catalogue.

    Examples
    --------
    >>> point = OperatingPoint("bert", "a100-80gb", "7g.80gb", 1, 1, 200, 5)
    >>> asked = Question("mine", (Service("chat", "bert", 100, 100),), (point,), ("a100-80gb",))
    >>> asked.measured
    ('a100-80gb',)
    >>> asked.turned(every=3).services[0].rate_rps
    Fraction(300, 1)
    >>> solved(asked.turned(every=3)).answer.cost
    Fraction(2, 1)
    """

    title: str
    services: tuple[Service, ...]
    operating_points: tuple[OperatingPoint, ...]
    gpus: tuple[str, ...] = ()
    rule: str | QueueingRule = DEFAULT_RULE
    load_curves: Mapping[PointKey, LoadCurve] | None = None
    max_processes: int | None = None
    devices: tuple[Gpu, ...] = ()

    @classmethod
    def of_files(
        cls,
        services: StrPath,
        operating_points: StrPath,
        gpus: Sequence[Gpu] = (),
        title: str = "",
    ) -> Question:
        """Read the two tables.

        Without ``gpus`` it plans on the one that most points were measured on.

        Raises
        ------
        FileError
            With file, line and column.
        """
        rows, points = read_services(services), read_operating_points(operating_points)
        found = cls(title, rows, points, tuple(one.key for one in gpus), devices=tuple(gpus))
        return found if gpus else replace(found, gpus=found.measured[:1])

    @classmethod
    def of_scenario(cls, scenario: Scenario) -> Question:
        """Ask what a published scenario asks."""
        keys = tuple(each if isinstance(each, str) else each.key for each in scenario.gpus)
        own = tuple(each for each in scenario.gpus if isinstance(each, Gpu))
        return cls(
            f"{scenario.name}: {scenario.title}", scenario.services, scenario.operating_points,
            keys, scenario.rule, scenario.curves_for(scenario.rule), scenario.max_processes, own,
        )  # fmt: skip

    @property
    def measured(self) -> tuple[str, ...]:
        """The keys of the GPUs that points were measured on, the one with most points first."""
        counts: dict[str, int] = {}
        for point in self.operating_points:
            key = self._device(point.device).key
            counts[key] = counts.get(key, 0) + 1
        return tuple(sorted(counts, key=lambda key: -counts[key]))

    def _device(self, name: str) -> Gpu:
        return gpu_called(name, self.devices)

    @property
    def fleet(self) -> list[Gpu]:
        """The GPUs to plan on."""
        return [self._device(key) for key in self.gpus]

    def turned(
        self,
        rates: Mapping[str, Number] | None = None,
        limits: Mapping[str, Number] | None = None,
        *,
        every: Number = 1,
        gpus: Iterable[str] | None = None,
    ) -> Question:
        """Multiply rates and latency limits, and choose other GPUs.

        Parameters
        ----------
        rates, limits : mapping of str to number, optional
            What a service's rate and limit are multiplied by, 1 for those left out.
        every : number, default 1
            What all rates are multiplied by besides.
        gpus : iterable of str, optional

        Raises
        ------
        InvalidOption
            If there is no such service, or no GPU is left.
        InvalidProblem
            If a limit becomes 0, or a number is below 0.
        """
        rates, limits = rates or {}, limits or {}
        known = {service.name: service for service in self.services}
        for name in (*rates, *limits):
            named_service(known, name)
        keys = self.gpus if gpus is None else tuple(gpus)
        if not keys:
            raise InvalidOption("no GPU is chosen; choose one that was measured, or several")
        times = exact(every, "what all rates are multiplied by")
        scale = {name: times * _factor(rates, name) for name in known}
        services = tuple(
            _within(service, _factor(limits, service.name))
            for service in changed_services(self.services, scale=scale)
        )
        return replace(self, services=services, gpus=keys)


def _factor(factors: Mapping[str, Number], name: str) -> Fraction:
    return exact(factors.get(name, 1), f"a multiple of service {name!r}")


def _within(service: Service, times: Fraction) -> Service:
    """Return a service with a multiple of its latency limit, if it has one."""
    own = service.latency_limit_ms
    return service if own is None else replace(service, latency_limit_ms=own * times)


def solved(question: Question, time_limit: float | None = 10.0, seed: int = 0) -> Plan:
    """Plan it, and take the tidier of the plans found, as ``cms plan`` does.

    Parameters
    ----------
    question : Question
    time_limit : float or None, default 10
        In seconds.
    seed : int, default 0

    Returns
    -------
    Plan
        Its schedule and its bound are checked.

    Raises
    ------
    InvalidProblem
        As of :func:`cms.fleet.as_problem`.
    """
    serving = as_problem(
        question.services, question.operating_points, question.fleet, rule=question.rule,
        load_curves=question.load_curves, max_processes=question.max_processes,
    )  # fmt: skip
    solution = solve(serving.problem, time_limit=time_limit, seed=seed)
    return Plan(serving, tidy(serving.problem, solution))


def asked_of(arguments: Mapping[str, Any]) -> Question:
    """Read what the app was started with.

    Parameters
    ----------
    arguments : mapping
        ``published``, or ``services`` and ``operating-points``; ``gpu``, one or a list of keys and
        paths of device files; ``title``. S5 without any.

    Raises
    ------
    FileError
        If a table cannot be read.
    InvalidOption
        If one table is given without the other, or there is no such scenario.
    """
    tables = [arguments.get("services"), arguments.get("operating-points")]
    named = arguments.get("gpu") or []
    fleet = [_gpu_of(name) for name in ([named] if isinstance(named, str) else named)]
    if not any(tables):
        return _published(str(arguments.get("published") or DEFAULT), fleet)
    if not all(tables):
        raise InvalidOption("one table is given without the other; give services and points")
    services, points = map(Path, map(str, tables))
    title = str(arguments.get("title") or services.stem)
    return Question.of_files(services, points, fleet, title)


def _published(name: str, fleet: Sequence[Gpu]) -> Question:
    scenario = load_instance(name)
    if not isinstance(scenario, Scenario):
        raise InvalidOption(f"{name!r} has no services; expected a scenario as S1 to S6 are")
    asked = Question.of_scenario(scenario)
    if not fleet:
        return asked
    return replace(asked, gpus=tuple(one.key for one in fleet), devices=tuple(fleet))


def _gpu_of(name: str) -> Gpu:
    return read_gpu(name) if is_device_file(name) else gpu(name)
