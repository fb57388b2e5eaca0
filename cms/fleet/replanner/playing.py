"""A policy on a trace: what it takes, how often it changes, and how long something was short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ...errors import InvalidOption, InvalidProblem
from ...files.documents import number_to_json
from ...values.names import nearest
from ..deployment import Deployment, FleetGpu, FleetNode, Mode
from ..deployment.transition import Durations, Impossible
from ..deployment.transition.curves import capacity_curves
from ..hardware import Gpu
from ..serving.plan import Plan
from .changing import Change, change_to, count_gpus, place_first
from .forecast import Forecast, Latest, RateForecast
from .policies import Always, DayNight, Forecasting, Never, Policy, Running, Threshold, clairvoyant
from .replan import fewest
from .windows import Scene

_NODE = "fleet"


@dataclass(frozen=True)
class Played:
    """What came of a policy on a trace."""

    policy: str
    gpu_hours: Fraction  #: of the plans, each from its decision on; GPUs count what they cost
    change_gpu_hours: Fraction  #: of GPUs beyond these while one deployment became another
    replans: int  #: how often the plan changed; the first one is none
    starts: int  #: instances started in changes
    temporary: int  #: besides those, instances that went again
    worst_spare: int  #: the most GPUs that a change borrowed
    longest_s: Fraction  #: the longest change, by assumed durations
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
    end_s = scene.count * scene.terms.every_s
    plan = policy.first(scene)
    placed = place_first(fleet, plan)
    if not isinstance(placed, Deployment):
        raise InvalidProblem(f"the first plan of {policy.name} does not fit: {placed}")
    stage = _Stage(placed, plan, scene, durations)
    for at_s in policy.moments(scene):
        wished = policy.then(scene, at_s, stage.running(at_s))
        if wished is not None:
            stage.change(wished, at_s)
    stage.account(end_s)
    shortage = shortage_s(scene.courses, stage.capacity, end_s)
    changes = stage.changes
    return Played(
        policy.name, stage.gpu_hours, stage.change_hours, len(changes),
        sum(each.starts for each in changes), sum(each.temporary for each in changes),
        max((each.transition.spare.count for each in changes), default=0),
        max((each.seconds for each in changes), default=Fraction(0)),
        shortage, tuple(stage.refused), tuple(stage.steps),
    )  # fmt: skip


@dataclass
class _Stage:
    """What runs, and what was counted so far."""

    deployment: Deployment
    plan: Plan
    scene: Scene
    durations: Durations | None
    since_s: Fraction = Fraction(0)
    busy_until_s: Fraction = Fraction(0)
    gpu_hours: Fraction = Fraction(0)
    change_hours: Fraction = Fraction(0)
    changes: list[Change] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    steps: list[tuple[Fraction, int]] = field(default_factory=list)
    #: Of each service: from when on it has how many requests per second.
    capacity: dict[str, list[tuple[Fraction, Fraction]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for service in self.scene.planner.services:
            has = self.deployment.capacity(service.name)
            self.capacity[service.name] = [(Fraction(0), has)]
        self.steps.append((Fraction(0), self._gpus))

    @property
    def _gpus(self) -> int:
        return count_gpus(self.deployment)

    @property
    def _cost(self) -> Fraction:
        return self.scene.planner.cost_of(self.deployment)

    def running(self, at_s: Fraction) -> Running:
        has = {name: steps[-1][1] for name, steps in self.capacity.items()}
        return Running(self.plan, has, self._cost, at_s < self.busy_until_s)

    def account(self, at_s: Fraction) -> None:
        self.gpu_hours += self._cost * (at_s - self.since_s) / 3600
        self.since_s = at_s

    def change(self, plan: Plan, at_s: Fraction) -> None:
        found = change_to(
            self.deployment, plan, regrouped=self.scene.terms.regrouped, durations=self.durations
        )
        if isinstance(found, Impossible):
            self.refused.append(f"at {float(at_s / 3600):.1f} h: {found}")
            return
        self.account(at_s)
        begin, before = max(at_s, self.busy_until_s), self._gpus
        done = found.transition
        self.deployment, self.plan = done.target, plan
        for curve in capacity_curves(done, found.schedule):
            self.capacity[curve.service] += [(begin + at, has) for at, has in curve.steps]
        most = max(before, self._gpus) + done.spare.count
        self.change_hours += (most - self._gpus) * found.seconds / 3600
        self.busy_until_s = begin + found.seconds
        self.changes.append(found)
        self.steps.append((at_s, self._gpus))


def shortage_s(
    courses: RateForecast,
    capacity: Mapping[str, Iterable[tuple[Fraction, Fraction]]],
    end_s: Fraction,
) -> Fraction:
    """Return the seconds in which some service has less than its rate, exactly."""
    parts: list[tuple[Fraction, Fraction]] = []
    for name, steps in capacity.items():
        known = [*steps]
        for (begin, has), after in zip(known, [*known[1:], (end_s, Fraction(0))], strict=True):
            parts += _short(courses, name, has, begin, min(after[0], end_s))
    total, reached = Fraction(0), Fraction(0)
    for begin, end in sorted(parts):
        total += max(Fraction(0), end - max(begin, reached))
        reached = max(reached, end)
    return total


def _short(
    courses: RateForecast, name: str, has: Fraction, begin: Fraction, end: Fraction
) -> Iterable[tuple[Fraction, Fraction]]:
    """The parts of a time in which a rate is above what there is."""
    step = courses.step_s
    own = courses.rates_rps[name]
    for at in range(int(begin / step), min(courses.steps, int(end / step) + 1)):
        low, high = max(begin, at * step), min(end, (at + 1) * step)
        if low >= high or max(own[at], own[at + 1]) <= has:
            continue
        first, last = (courses.at(name, each / step) for each in (low, high))
        if first > has and last > has:
            yield low, high
        elif first > has or last > has:
            crossing = low + (high - low) * (has - first) / (last - first)
            yield (low, crossing) if first > has else (crossing, high)


#: GPU hours that a change of plan costs the clairvoyant.
_REPLAN_COSTS = (0, 4, 8, 16)
#: What is played, by name: policies that know only the trace so far, then those that know it all.
CONTENDERS = (
    "never", "always_regrouped", "always", "day_night", "threshold", "forecast", "latest",
    *(f"clairvoyant-{cost}" for cost in _REPLAN_COSTS)
)  # fmt: skip
#: gpulet's scheduler under its own policy, where services share GPUs in time.
_GPULET = "gpulet"
#: What is played where services share GPUs in time, by name.
SHARING_CONTENDERS = (*(name for name in CONTENDERS if name != "always_regrouped"), _GPULET)


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
        own, best = self.played, {"best_gpu_hours": self.best_gpu_hours, "distance": self.distance}
        numbers: dict[str, Fraction | int] = {
            "gpu_hours": own.gpu_hours, "change_gpu_hours": own.change_gpu_hours,
            "replans": own.replans, "starts": own.starts, "temporary_starts": own.temporary,
            "worst_spare_gpus": own.worst_spare, "longest_transition_s": own.longest_s,
            "shortage_s": own.shortage_s, **best,
        }  # fmt: skip
        told = {key: number_to_json(value) for key, value in numbers.items()}
        return {"policy": own.policy, **told, "refused": list(own.refused)}


def contenders(scene: Scene) -> tuple[str, ...]:
    """Return the names of what can be played on a scene; gpulet's only where GPUs are shared."""
    return SHARING_CONTENDERS if scene.planner.shares else CONTENDERS


def contender(name: str, scene: Scene, forecast: Forecast) -> tuple[Policy, Scene]:
    """Return a policy by a name of :func:`contenders`, and the scene on the policy's terms."""
    regrouped = replace(scene, terms=replace(scene.terms, regrouped=True))
    known: dict[str, tuple[Policy, Scene]] = {
        "never": (Never(), scene),
        "always_regrouped": (Always("always, regrouped"), regrouped),
        "always": (Always(), scene),
        "day_night": (DayNight(), regrouped),
        "threshold": (Threshold(), regrouped),
        "forecast": (Forecasting(forecast, f"forecast ({forecast.name})"), scene),
        "latest": (Forecasting(Latest(), "forecast (latest)"), scene),
        **{f"clairvoyant-{cost}": clairvoyant(scene, Fraction(cost)) for cost in _REPLAN_COSTS},
    }
    if scene.planner.shares:
        own = replace(scene, planner=scene.planner.by("gpulet"))
        known[_GPULET] = (Threshold(name="threshold, gpulet's plans"), own)
    if name in known:
        return known[name]
    names = contenders(scene)
    raise InvalidOption(
        f"there is no policy {name!r}{nearest(name, names)}; expected one of {', '.join(names)}"
    )


def roomy_fleet(scene: Scene) -> Deployment:
    """Return empty GPUs, enough to put any plan of the scene beside any other.

    A plan for rates that are no higher costs no more than that for the highest ones.
    """
    peak = Never().first(scene)
    devices = {each.key: each for each in peak.serving.gpus}
    number = {}
    for key in devices:
        each = scene.planner.prices[key]
        if not each:
            raise InvalidOption(f"the GPU {key} costs nothing; expected a cost > 0 to play a trace")
        number[key] = 2 * int((peak.solution.cost or 0) / each)
    return empty_fleet(number, devices, Mode.MPS if scene.planner.shares else Mode.MIG)


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
