"""Policies: when to plan again and for which rates, the package's own and published ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil

from ..serving.plan import Plan
from .forecast import Forecast, Known
from .rates import DAY_S, find_runs
from .replan import NoPath, Start, decide, shortest
from .windows import Scene


@dataclass(frozen=True)
class Running:
    """What a policy knows of what runs: the last plan, and what is there after its change."""

    plan: Plan
    has_rps: Mapping[str, Fraction]  #: by service
    gpu_cost: Fraction  #: of all GPUs together
    is_changing: bool


class Policy(ABC):
    """What decides on a trace. Derive from it to try another one; tables call it by its `name`."""

    name: str

    @abstractmethod
    def first(self, scene: Scene) -> Plan:
        """Return the plan to begin with."""

    def moments(self, scene: Scene) -> Iterable[Fraction]:
        """Return when it looks again, in seconds from the beginning: when plans may change."""
        return [moment * scene.terms.every_s for moment in range(1, scene.count)]

    def then(self, scene: Scene, at_s: Fraction, running: Running) -> Plan | None:
        """Return what to change to now, or None to go on."""
        return None


def require_plan(found: Plan, at: int = 0) -> Plan:
    """Return a plan that serves the rates from a moment on; NoPath if there is none."""
    if found.solution.cost is None:
        raise NoPath(at)
    return found


def _window(scene: Scene, a: int, b: int) -> Plan:
    return require_plan(scene.windows().ask(a, b), a)


@dataclass(frozen=True)
class Never(Policy):
    """One plan for the highest rates of the whole trace."""

    name: str = "one plan for the peak"

    def first(self, scene: Scene) -> Plan:
        """See :class:`Policy`."""
        return _window(scene, 0, scene.count)


@dataclass(frozen=True)
class Always(Policy):
    """A new plan at each moment, for the highest rates until the next, which it knows."""

    name: str = "always"

    def first(self, scene: Scene) -> Plan:
        """See :class:`Policy`."""
        return _window(scene, 0, 1)

    def then(self, scene: Scene, at_s: Fraction, running: Running) -> Plan | None:
        """See :class:`Policy`."""
        moment = int(at_s / scene.terms.every_s)
        return _window(scene, moment, moment + 1)


@dataclass(frozen=True)
class Forecasting(Policy):
    """The package's own policy: first window of the shortest path over forecast rates."""

    forecast: Forecast
    name: str = "forecast"

    def first(self, scene: Scene) -> Plan:
        """See :class:`Policy`."""
        windows = scene.terms.windows(self.forecast, scene.history(0), scene.planner)
        start = Start(0, Fraction(0), lambda b: Fraction(0))
        return windows.ask(*shortest(windows, [start], windows.change).windows[0])

    def then(self, scene: Scene, at_s: Fraction, running: Running) -> Plan | None:
        """See :class:`Policy`."""
        history = scene.history(int(at_s / scene.terms.every_s))
        windows = scene.terms.windows(self.forecast, history, scene.planner)
        found = decide(windows, running.has_rps, running.gpu_cost, scene.terms.hysteresis)
        return None if found.keeps else found.plan


def clairvoyant(scene: Scene, replan_cost: Fraction) -> tuple[Forecasting, Scene]:
    """Return the policy that knows all rates, optimal if a change costs so many GPU hours."""
    horizon = scene.count * scene.terms.every_s
    terms = replace(
        scene.terms, horizon_s=horizon, replan_cost=replan_cost, restart_cost=Fraction(0),
        hysteresis=Fraction(0),
    )  # fmt: skip
    name = f"clairvoyant (re-plan {float(replan_cost):g})"
    return Forecasting(Known(scene.trace), name), replace(scene, terms=terms)


@dataclass
class Threshold(Policy):
    """What gpulet does: moving averages, and a new plan when one has left its band.

    Every period an exponentially weighted average of each rate is brought up to date; beyond a
    threshold to either side of what was planned for, it is planned again, for the averages and the
    margin. The new deployment is prepared beside the old one, which serves meanwhile. S. Choi et
    al., USENIX ATC '22, where the period of 20 s is remembered and not read; weight and threshold
    are this package's.
    """

    period_s: Fraction = Fraction(20)
    weight: Fraction = Fraction(1, 4)  #: the newest rate's share of the average
    threshold: Fraction = Fraction(1, 20)  #: the share of the planned rate
    name: str = "threshold (gpulet)"
    _averages: dict[str, Fraction] = field(default_factory=dict, repr=False)
    _planned: dict[str, Fraction] = field(default_factory=dict, repr=False)

    def first(self, scene: Scene) -> Plan:
        """See :class:`Policy`."""
        self._averages = {name: own[0] for name, own in scene.courses.rates_rps.items()}
        return self._plan(scene)

    def moments(self, scene: Scene) -> Iterable[Fraction]:
        """See :class:`Policy`."""
        end = scene.count * scene.terms.every_s
        return [number * self.period_s for number in range(1, ceil(end / self.period_s))]

    def then(self, scene: Scene, at_s: Fraction, running: Running) -> Plan | None:
        """See :class:`Policy`."""
        courses = scene.courses
        left = False
        for name, average in self._averages.items():
            rate = courses.at(name, at_s / courses.step_s)
            # to thousandths, so that numbers do not grow longer with every period
            new = Fraction(round(1000 * (average + self.weight * (rate - average))), 1000)
            self._averages[name] = new
            left |= abs(new - self._planned[name]) > self.threshold * self._planned[name]
        return self._plan(scene) if left and not running.is_changing else None

    def _plan(self, scene: Scene) -> Plan:
        self._planned = dict(self._averages)
        return require_plan(scene.planner.plan(self._planned))


@dataclass
class DayNight(Policy):
    """What MIG-serving is shown with (C. Tan et al., 2021): a plan for the day, one for the night.

    Twelve hours of every day in a row are the day; which hours is chosen for the fewest GPU hours
    over the whole trace, which it knows.
    """

    name: str = "day/night (MIG-serving)"
    #: For each moment, whether it is day.
    _days: tuple[bool, ...] = field(default=(), repr=False)
    _plans: dict[bool, Plan] = field(default_factory=dict, repr=False)

    def first(self, scene: Scene) -> Plan:
        """See :class:`Policy`."""
        whole = int(Fraction(DAY_S) / scene.terms.every_s)
        patterns = dict.fromkeys(
            tuple((at - begin) % max(1, whole) < whole // 2 for at in range(scene.count))
            for begin in range(max(1, min(whole, scene.count)))
        )
        planned = [(days, found) for days in patterns if (found := self._planned(scene, days))]
        if not planned:
            raise NoPath(0)
        self._days, (_, self._plans) = min(planned, key=lambda each: each[1][0])
        return self._plans[self._days[0]]

    def _planned(
        self, scene: Scene, days: tuple[bool, ...]
    ) -> tuple[Fraction, dict[bool, Plan]] | None:
        """Return what both plans cost, and the plans; None if one of them cannot be."""
        windows, cost, plans = scene.windows(), Fraction(0), dict[bool, Plan]()
        for part in set(days):
            own = [at for at, is_day in enumerate(days) if is_day is part]
            rates = [windows.rates(a, b + 1) for a, b in find_runs(own)]
            found = scene.planner.plan({name: max(r[name] for r in rates) for name in rates[0]})
            if (each := found.solution.cost) is None:
                return None
            cost += each * len(own)
            plans[part] = found
        return cost, plans

    def moments(self, scene: Scene) -> Iterable[Fraction]:
        """See :class:`Policy`."""
        changes = (at for at, (a, b) in enumerate(pairwise(self._days), 1) if a != b)
        return [at * scene.terms.every_s for at in changes]

    def then(self, scene: Scene, at_s: Fraction, running: Running) -> Plan | None:
        """See :class:`Policy`."""
        return self._plans[self._days[int(at_s / scene.terms.every_s)]]
