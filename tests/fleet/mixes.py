"""Plans whose services share instances in time, made by hand instead of found."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cms.fleet.serving import OperatingPoint, Plan, Service, SharedServing, build_problem
from cms.problem.parts import Configuration
from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule
from tests.fleet.plans import A100, solution


def colocate(model: str, percent: int, batch: int, ms: Fraction | int | str) -> OperatingPoint:
    """A point whose latency is what follows from its throughput."""
    length = Fraction(ms)
    return OperatingPoint(model, A100, f"mps:{percent}", 1, batch, 1000 * batch / length, length)


#: A batch of 4 or 8 of either model, on the shares 40 and 60 and on a whole GPU.
POINTS = [
    colocate("bert", 60, 4, 8), colocate("bert", 60, 8, 12), colocate("bert", 40, 4, 12),
    colocate("vgg", 60, 4, 10), colocate("vgg", 60, 8, 16), colocate("vgg", 40, 4, 15),
    colocate("vgg", 100, 8, 10),
]  # fmt: skip
SERVICES = [Service("chat", "bert", 300, 60), Service("see", "vgg", 250, 80)]


def serving(**terms: Any) -> SharedServing:
    posed: SharedServing = build_problem(SERVICES, POINTS, A100, sharing="time", **terms)
    return posed


def plan(**terms: Any) -> Plan:
    """Two GPUs: both services in turn on 60 %, chat alone on 40 %; see alone on the whole."""
    posed = serving(**terms)
    cut = Configuration({"mps:60": 1, "mps:40": 1}, A100)
    whole = Configuration({"mps:100": 1}, A100)
    both, alone = Mix({"chat": 8, "see": 4}), Mix({"chat": 4})
    schedule = Schedule(
        [
            MachineGroup(cut, {("mps:60", both): 1, ("mps:40", alone): 1}, 1),
            MachineGroup(whole, {("mps:100", Mix({"see": 8})): 1}, 1),
        ]
    )
    return Plan(posed, solution(schedule=schedule, problem_sha256=posed.problem.sha256))
