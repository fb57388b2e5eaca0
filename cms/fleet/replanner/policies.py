"""Policies of planning again, the package's own and published ones, and what each does on a trace.

What is counted: what a policy takes, how often it changes, and how long something was short.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple, TypeAlias

from ...errors import InvalidOption, InvalidProblem
from ...values.names import nearest
from ..deployment import Deployment, FleetGpu, FleetNode, Mode, desired_state
from ..deployment.transition import Durations, Impossible, Transition, reorganise
from ..deployment.transition.curves import capacity_curves
from ..hardware import Gpu
from ..placement import PlacementInfeasible, place
from ..serving.plan import Plan
from ..serving.time_sharing import SharedServing
from .forecast import Forecast, Known, Latest, RateForecast, numbers_to_json
from .rates import DAY_S
from .replan import Change, NoPath, Start, change_to, count_gpus, decide, fewest, shortest
from .windows import Scene

_NODE, _NOTHING = "fleet", Fraction(0)


class Running(NamedTuple):
    """What a policy knows of what runs once the last change is done."""

    has_rps: Mapping[str, Fraction]  #: by service
    gpu_cost: Fraction  #: of all GPUs together
    is_changing: bool


#: Plans, each with the time in seconds at which it is changed to; the first is there at 0.
_Plans: TypeAlias = Iterator[tuple[Fraction, Plan]]
_AskRunning: TypeAlias = Callable[[Fraction], Running]


class Policy(ABC):
    """What decides on a trace. Derive from it to try another one; tables call it by its `name`."""

    name: str

    @abstractmethod
    def plans(self, scene: Scene, running: _AskRunning) -> _Plans:
        """Yield the plan to begin with, at 0, then each plan to change to, at its time in seconds.

        `running` tells what runs at a time, not before that of the last plan.
        """


def _require_plan(found: Plan, at: int = 0) -> Plan:
    """Return a plan that serves the rates from a moment on; NoPath if there is none."""
    if found.solution.cost is None:
        raise NoPath(at)
    return found


@dataclass(frozen=True)
class Never(Policy):
    """One plan for the highest rates of the whole trace."""

    name: str = "one plan for the peak"

    def plans(self, scene: Scene, running: _AskRunning) -> _Plans:
        """See :class:`Policy`."""
        yield _NOTHING, _require_plan(scene.windows().ask(0, scene.count))


@dataclass(frozen=True)
class Always(Policy):
    """A new plan at each moment, for the highest rates until the next, which it knows."""

    name: str = "always"

    def plans(self, scene: Scene, running: _AskRunning) -> _Plans:
        """See :class:`Policy`."""
        for at in range(scene.count):
            yield at * scene.terms.every_s, _require_plan(scene.windows().ask(at, at + 1), at)


@dataclass(frozen=True)
class Forecasting(Policy):
    """The package's own policy: first window of the shortest path over forecast rates."""

    forecast: Forecast
    name: str = "forecast"

    def plans(self, scene: Scene, running: _AskRunning) -> _Plans:
        """See :class:`Policy`."""
        for at in range(scene.count):
            at_s, terms = at * scene.terms.every_s, scene.terms
            windows = terms.windows(self.forecast, scene.history(at), scene.planner)
            if not at:
                start = Start(0, _NOTHING, lambda b: _NOTHING)
                path = shortest(windows, [start], windows.change)
                yield at_s, windows.ask(*path.windows[0])
                continue
            now = running(at_s)
            found = decide(windows, now.has_rps, now.gpu_cost, terms.hysteresis)
            if not found.keeps and found.plan is not None:
                yield at_s, found.plan


def clairvoyant(scene: Scene, replan_cost: Fraction) -> tuple[Forecasting, Scene]:
    """Return the policy that knows all rates, optimal if a change costs so many GPU hours."""
    horizon = scene.count * scene.terms.every_s
    terms = replace(
        scene.terms, horizon_s=horizon, replan_cost=replan_cost, restart_cost=Fraction(0),
        hysteresis=Fraction(0),
    )  # fmt: skip
    name = f"clairvoyant (re-plan {float(replan_cost):g})"
    return Forecasting(Known(scene.trace), name), replace(scene, terms=terms)


@dataclass(frozen=True)
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

    def plans(self, scene: Scene, running: _AskRunning) -> _Plans:
        """See :class:`Policy`."""
        courses, plan = scene.courses, scene.planner.plan
        averages = planned = {name: own[0] for name, own in courses.rates_rps.items()}
        yield _NOTHING, _require_plan(plan(planned))
        for number in range(1, ceil(scene.count * scene.terms.every_s / self.period_s)):
            at_s = number * self.period_s
            averages = dict(averages)
            for name, old in averages.items():
                new = old + self.weight * (courses.at(name, at_s / courses.step_s) - old)
                # to thousandths, so that numbers do not grow longer with every period
                averages[name] = Fraction(round(1000 * new), 1000)
            has_left = any(
                abs(averages[name] - rate) > self.threshold * rate for name, rate in planned.items()
            )
            if has_left and not running(at_s).is_changing:
                planned = averages
                yield at_s, _require_plan(plan(planned))


@dataclass(frozen=True)
class DayNight(Policy):
    """What MIG-serving is shown with (C. Tan et al., 2021): a plan for the day, one for the night.

    Twelve hours of every day in a row are the day; which hours is chosen for the fewest GPU hours
    over the whole trace, which it knows.
    """

    name: str = "day/night (MIG-serving)"

    def plans(self, scene: Scene, running: _AskRunning) -> _Plans:
        """See :class:`Policy`."""
        windows, whole = scene.windows(), max(1, int(DAY_S / scene.terms.every_s))
        best: tuple[Fraction, tuple[bool, ...], dict[bool, Plan]] | None = None
        for begin in range(min(whole, scene.count)):
            days = tuple((at - begin) % whole < whole // 2 for at in range(scene.count))
            plans, cost = dict[bool, Plan](), Fraction(0)
            for part in set(days):
                own = [windows.rates(at, at + 1) for at, it in enumerate(days) if it is part]
                highest = {name: max(rates[name] for rates in own) for name in own[0]}
                plans[part] = scene.planner.plan(highest)
                cost += (plans[part].solution.cost or 0) * len(own)
            is_possible = all(plan.solution.cost is not None for plan in plans.values())
            if is_possible and (best is None or cost < best[0]):
                best = cost, days, plans
        if best is None:
            raise NoPath(0)
        _, days, plans = best
        for at, part in enumerate(days):
            if not at or days[at - 1] is not part:
                yield at * scene.terms.every_s, plans[part]


@dataclass(frozen=True)
class Played:
    """What came of a policy on a trace."""

    policy: str
    gpu_hours: Fraction  #: of the plans, each from its decision on; GPUs count what they cost
    change_gpu_hours: Fraction  #: of GPUs beyond these while one deployment became another
    replans: int  #: how often the plan changed; the first one is none
    starts: int  #: instances started in changes
    temporary_starts: int  #: besides those, instances that went again
    worst_spare_gpus: int  #: the most GPUs that a change borrowed
    longest_transition_s: Fraction  #: the longest change, by assumed durations
    shortage_s: Fraction  #: seconds in which some service had less than its rate
    refused: tuple[str, ...]  #: changes that were wished and not possible, and why
    #: From when on, in seconds of the part that is played, how many GPUs were planned.
    steps: tuple[tuple[Fraction, int], ...]


def empty_fleet(
    gpus: Mapping[str, int], devices: Mapping[str, Gpu], mode: Mode = Mode.MIG
) -> Deployment:
    """Return one node with empty GPUs."""
    found: list[FleetGpu] = []
    for key, number in gpus.items():
        found += [FleetGpu(_NODE, len(found) + i, devices[key], mode) for i in range(number)]
    return Deployment((FleetNode(_NODE, tuple(found)),))


def play(
    policy: Policy, scene: Scene, fleet: Deployment, *, durations: Durations | None = None
) -> Played:
    """Play a policy on empty GPUs, by checked transitions; InvalidProblem if it has no room."""
    planner, end_s = scene.planner, scene.count * scene.terms.every_s
    changes, refused = list[Change](), list[str]()
    busy_until_s, change_hours = Fraction(0), Fraction(0)

    def running(at_s: Fraction) -> Running:
        has = {name: steps[-1][1] for name, steps in capacity.items()}
        return Running(has, planner.cost_of(deployments[-1][1]), at_s < busy_until_s)

    plans = policy.plans(scene, running)
    _, plan = next(plans)
    shares = isinstance(plan.serving, SharedServing)
    placed = reorganise(fleet, plan) if shares else place(desired_state(plan), fleet)
    if isinstance(placed, Impossible | PlacementInfeasible):
        raise InvalidProblem(f"the first plan of {policy.name} does not fit: {placed}")
    first = placed.target if isinstance(placed, Transition) else placed.deployment
    deployments = [(_NOTHING, first)]
    # of each service, from when on it has how many requests per second
    capacity = {it.name: [(_NOTHING, first.capacity(it.name))] for it in planner.services}
    for at_s, plan in plans:
        now = deployments[-1][1]
        found = change_to(now, plan, regrouped=scene.terms.regrouped, durations=durations)
        if isinstance(found, Impossible):
            refused.append(f"at {float(at_s / 3600):.1f} h: {found}")
            continue
        begin, target = max(at_s, busy_until_s), found.transition.target
        for curve in capacity_curves(found.transition, found.schedule):
            capacity[curve.service] += [(begin + at, has) for at, has in curve.steps]
        fewer = max(0, count_gpus(now) - count_gpus(target))
        change_hours += (fewer + found.transition.spare.count) * found.seconds / 3600
        busy_until_s = begin + found.seconds
        changes.append(found)
        deployments.append((at_s, target))
    spans = pairwise([*deployments, (end_s, first)])
    spent = sum((planner.cost_of(it) * (end - at) for (at, it), (end, _) in spans), _NOTHING)
    return Played(
        policy.name, spent / 3600, change_hours, len(changes),
        sum(each.starts for each in changes), sum(each.temporary for each in changes),
        max((each.transition.spare.count for each in changes), default=0),
        max((each.seconds for each in changes), default=_NOTHING),
        shortage_s(scene.courses, capacity, end_s), tuple(refused),
        tuple((at_s, count_gpus(deployment)) for at_s, deployment in deployments),
    )  # fmt: skip


def shortage_s(
    courses: RateForecast,
    capacity: Mapping[str, Iterable[tuple[Fraction, Fraction]]],
    end_s: Fraction,
) -> Fraction:
    """Return the seconds in which some service has less than its rate, exactly."""
    parts: list[tuple[Fraction, Fraction]] = []
    for name, steps in capacity.items():
        for (begin, has), (until, _) in pairwise([*steps, (end_s, _NOTHING)]):
            until, step_s = min(until, end_s), courses.step_s
            inner = range(int(begin / step_s) + 1, ceil(until / step_s))
            for low, high in pairwise([begin, *(at * step_s for at in inner), until]):
                first, last = (courses.at(name, at / step_s) - has for at in (low, high))
                if low < high and max(first, last) > 0:
                    crossing = low + (high - low) * first / (first - last) if first != last else low
                    parts.append((low if first > 0 else crossing, high if last > 0 else crossing))
    total, reached = Fraction(0), Fraction(0)
    for begin, end in sorted(parts):
        total += max(Fraction(0), end - max(begin, reached))
        reached = max(reached, end)
    return total


def _regrouped(scene: Scene) -> Scene:
    return replace(scene, terms=replace(scene.terms, regrouped=True))


#: Policies by name, of a scene and the forecast: those that know only the trace so far, then those
#: that know it all, at several GPU hours of a change.
_POLICIES: Mapping[str, Callable[[Scene, Forecast], tuple[Policy, Scene]]] = {
    "never": lambda scene, _: (Never(), scene),
    "always_regrouped": lambda scene, _: (Always("always, regrouped"), _regrouped(scene)),
    "always": lambda scene, _: (Always(), scene),
    "day_night": lambda scene, _: (DayNight(), _regrouped(scene)),
    "threshold": lambda scene, _: (Threshold(), _regrouped(scene)),
    "forecast": lambda scene, it: (Forecasting(it, f"forecast ({it.name})"), scene),
    "latest": lambda scene, _: (Forecasting(Latest(), "forecast (latest)"), scene),
    "clairvoyant-0": lambda scene, _: clairvoyant(scene, Fraction(0)),
    "clairvoyant-4": lambda scene, _: clairvoyant(scene, Fraction(4)),
    "clairvoyant-8": lambda scene, _: clairvoyant(scene, Fraction(8)),
    "clairvoyant-16": lambda scene, _: clairvoyant(scene, Fraction(16)),
    # gpulet's scheduler under its own policy
    "gpulet": lambda scene, _: (
        Threshold(name="threshold, gpulet's plans"),
        replace(scene, planner=scene.planner.by("gpulet")),
    ),
}
#: What is played, by name.
CONTENDERS = tuple(name for name in _POLICIES if name != "gpulet")
#: What is played where services share GPUs in time, by name.
SHARING_CONTENDERS = tuple(name for name in _POLICIES if name != "always_regrouped")


@dataclass(frozen=True)
class Compared:
    """A policy played on a trace, beside the offline optimum.

    No policy whose plans have room until their successors stand takes less than `best_gpu_hours`
    with as many changes, or fewer.
    """

    played: Played
    best_gpu_hours: Fraction

    @property
    def distance(self) -> Fraction:
        """How much more than that it takes, as a share; less than 0 where plans were too small."""
        own, best = self.played.gpu_hours, self.best_gpu_hours
        return own / best - 1 if own != best else Fraction(0)  # nothing is asked for: both are 0

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        told = asdict(self.played)
        del told["steps"]
        best = {"best_gpu_hours": self.best_gpu_hours, "distance": self.distance}
        return numbers_to_json({**told, **best})


def contenders(scene: Scene) -> tuple[str, ...]:
    """Return the names of what can be played on a scene; gpulet's only where GPUs are shared."""
    return SHARING_CONTENDERS if scene.planner.shares else CONTENDERS


def contender(name: str, scene: Scene, forecast: Forecast) -> tuple[Policy, Scene]:
    """Return a policy by a name of :func:`contenders`, and the scene on the policy's terms."""
    if name not in (names := contenders(scene)):
        expected = f"expected one of {', '.join(names)}"
        raise InvalidOption(f"there is no policy {name!r}{nearest(name, names)}; {expected}")
    return _POLICIES[name](scene, forecast)


def roomy_fleet(scene: Scene) -> Deployment:
    """Return empty GPUs, enough to put any plan of the scene beside any other.

    A plan for rates that are no higher costs no more than that for the highest ones.
    """
    peak, number = _require_plan(scene.windows().ask(0, scene.count)), {}
    for each in peak.serving.gpus:
        if not (price := scene.planner.prices[each.key]):
            said = f"the GPU {each.key} costs nothing; expected a cost > 0 to play a trace"
            raise InvalidOption(said)
        number[each.key] = 2 * int((peak.solution.cost or 0) / price)
    mode = Mode.MPS if scene.planner.shares else Mode.MIG
    return empty_fleet(number, {each.key: each for each in peak.serving.gpus}, mode)


def compare(
    scene: Scene,
    forecast: Forecast,
    names: tuple[str, ...] = CONTENDERS,
    *,
    durations: Durations | None = None,
) -> Iterator[Compared]:
    """Play policies, by names of :func:`contenders`, on a trace, one after the other.

    `forecast` is that of the policy ``forecast``. Before anything is played InvalidProblem is
    raised if it does not see enough at some moment; NoPath if no plan is for some of the rates.
    """
    contenders = [contender(name, scene, forecast) for name in names]
    for policy, own in contenders:
        if isinstance(policy, Forecasting):
            for moment in range(own.count):
                own.terms.windows(policy.forecast, own.history(moment), own.planner)
    fleet = roomy_fleet(scene)
    for policy, own in contenders:
        played = play(policy, own, fleet, durations=durations)
        yield Compared(played, fewest(scene.windows(), played.replans + 1).cost)
