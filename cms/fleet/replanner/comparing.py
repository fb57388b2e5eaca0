"""Policies side by side on a trace, each beside the least that as many changes of plan can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...errors import InvalidOption
from ...files.documents import number_to_json
from ...values.names import nearest
from ..deployment import Deployment, Mode
from ..deployment.transition import Durations
from .forecast import Forecast, Latest
from .path import NoPath, fewest
from .playing import Played, empty_fleet, play
from .policies import POLICIES, Always, DayNight, Forecasting, Policy, Threshold, clairvoyant
from .scene import Scene

#: GPU hours that a change of plan costs the clairvoyant.
_REPLAN_COSTS = (0, 4, 8, 16)
#: What is played, by name: those that need nothing but the trace, ours, and those who know it.
CONTENDERS = (
    "never", "always_regrouped", "always", "day_night", "threshold", "forecast", "latest",
    *(f"clairvoyant-{cost}" for cost in _REPLAN_COSTS)
)  # fmt: skip
#: gpulet's scheduler under its own policy, where services share GPUs in time.
_GPULET = "gpulet"
SHARING_CONTENDERS = (*(name for name in CONTENDERS if name != "always_regrouped"), _GPULET)
"""What is played where services share GPUs in time, by name."""
#: Those that change to the plan as it was made: others' systems, and what ours is held against.
_REGROUPED: Mapping[str, Callable[[], Policy]] = {
    "always_regrouped": lambda: Always("always, regrouped"),
    "day_night": DayNight,
    "threshold": Threshold,
}


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
        own = self.played
        return {
            "policy": own.policy,
            "gpu_hours": number_to_json(own.gpu_hours),
            "change_gpu_hours": number_to_json(own.change_gpu_hours),
            "replans": own.replans,
            "starts": own.starts,
            "temporary_starts": own.temporary,
            "worst_spare_gpus": own.worst_spare,
            "longest_transition_s": number_to_json(own.longest_s),
            "shortage_s": number_to_json(own.shortage_s),
            "best_gpu_hours": number_to_json(self.best_gpu_hours),
            "distance": number_to_json(self.distance),
            "refused": list(own.refused),
        }


def contenders(scene: Scene) -> tuple[str, ...]:
    """Return the names of what can be played on a scene.

    Where services share GPUs in time, every plan is changed to as it was made, so "regrouped" says
    nothing; and gpulet's scheduler stands beside the planner's own.
    """
    return SHARING_CONTENDERS if scene.planner.shares else CONTENDERS


def contender(name: str, scene: Scene, forecast: Forecast) -> tuple[Policy, Scene]:
    """Return a policy by its name, and the scene on the terms that it is played on.

    The name is one of :func:`contenders` (else InvalidOption), `forecast` that of the policy
    ``forecast``.
    """
    known = contenders(scene)
    if name == _GPULET and name in known:
        own = replace(scene, planner=scene.planner.by("gpulet"))
        return Threshold(name="threshold, gpulet's plans"), own
    if name in POLICIES and name not in _REGROUPED:
        return POLICIES[name](), scene
    if name in _REGROUPED:
        terms = replace(scene.terms, regrouped=True)
        return _REGROUPED[name](), replace(scene, terms=terms)
    if name == "forecast":
        return Forecasting(forecast, f"forecast ({forecast.name})"), scene
    if name == "latest":
        return Forecasting(Latest(), "forecast (latest)"), scene
    if name in CONTENDERS:
        return clairvoyant(scene, Fraction(name.rpartition("-")[2]))
    raise InvalidOption(
        f"there is no policy {name!r}{nearest(name, known)}; expected one of {', '.join(known)}"
    )


def roomy_fleet(scene: Scene) -> Deployment:
    """Return empty GPUs, enough to put any plan of the scene beside any other.

    A plan for rates that are no higher costs no more than that for the highest ones.
    """
    windows = scene.windows()
    peak = windows.ask(0, windows.count)
    if peak.cost is None:
        raise NoPath(0)
    devices = {each.key: each for each in peak.plan.serving.gpus}
    number = {}
    for key in devices:
        each = scene.planner.cost_of({key: 1})
        if not each:
            raise InvalidOption(f"the GPU {key} costs nothing; expected a cost > 0 to play a trace")
        number[key] = 2 * int(peak.cost / each)
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
            policy.require_enough(own)
    fleet = roomy_fleet(scene)
    for policy, own in contenders:
        played = play(policy, own, fleet, durations=durations)
        yield Compared(played, fewest(scene.windows(), played.replans + 1).cost)
