"""Plans made by hand instead of found; the last share instances in time."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

from rich.console import Console

from cms.certificate.certificate import BlockPrices
from cms.fleet.report.page import Page
from cms.fleet.report.terminal import render
from cms.fleet.serving import OperatingPoint, Plan, Service, SharedServing, build_problem
from cms.problem.parts import Configuration
from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import Proof, Solution, Status, StopReason

A100 = "a100-80gb"
NASTY = "<b>&\"'[red]x[/red] 漢字"


def point(model: str, profile: str, rate: int, device: str = A100) -> OperatingPoint:
    return OperatingPoint(model, device, profile, 2, 8, rate, 20)


GONE = object()


def set_at(document: Any, path: str, value: object) -> None:
    """Set one value of a document, given the way there (``services.0.name``), or take it out."""
    *way, last = path.split(".")
    for step in way:
        document = document[int(step) if isinstance(document, list) else step]
    at: Any = int(last) if isinstance(document, list) else last
    if value is GONE:
        del document[at]
    else:
        document[at] = value


def solution(**changes: Any) -> Solution:
    schedule = changes.get("schedule", Schedule())
    base = Solution(
        status=Status.FEASIBLE, proof=Proof.NONE, stop_reason=StopReason.FINISHED, method="auto",
        seconds=0.126, schedule=schedule, cost=Fraction(schedule.machine_count),
        certificate=BlockPrices(), lower_bound=Fraction(0), claimed_bound=None, guarantee=None,
        history=(), problem_sha256="0" * 64,
    )  # fmt: skip
    return replace(base, **changes)


def printed(page: Page, width: int = 100) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    for part in render(page, width):
        console.print(part)
    return stream.getvalue()


def words_of(picture: str) -> str:
    """The words of a picture, with one space between them."""
    words = "".join(ElementTree.fromstring(picture).itertext())
    return " ".join(words.replace("\xa0", " ").split())


def mixed_plan() -> Plan:
    """Three GPUs: two alike with an idle instance, one whose last memory slice is left over."""
    services = [Service("chat", "bert", 500, 100), Service(NASTY, "vgg", 300, 100)]
    points = [
        point("bert", "3g.40gb", 150), point("bert", "1g.10gb", 60), point("vgg", "2g.20gb", 110),
        point("vgg", "1g.10gb", 50),
    ]  # fmt: skip
    serving = build_problem(services, points, rule="parvagpu")
    halves = Configuration({"3g.40gb": 1, "2g.20gb": 2}, A100)
    small = Configuration({"1g.10gb": 7}, A100)
    schedule = Schedule(
        [
            MachineGroup(small, {("1g.10gb", "chat"): 4, ("1g.10gb", NASTY): 1}, 1),
            MachineGroup(halves, {("3g.40gb", "chat"): 1, ("2g.20gb", NASTY): 1}, 2),
        ]
    )
    return Plan(serving, solution(schedule=schedule, problem_sha256=serving.problem.sha256))


def many_services(count: int) -> Plan:
    services = [Service(f"s{i}", "m", 10 * i + 10, 100) for i in range(count)]
    serving = build_problem(services, [point("m", "7g.80gb", 10)], rule="parvagpu")
    shape = Configuration({"7g.80gb": 1}, A100)
    groups = [MachineGroup(shape, {("7g.80gb", f"s{i}"): 1}, i + 1) for i in range(count)]
    sha = serving.problem.sha256
    return Plan(serving, solution(schedule=Schedule(groups), problem_sha256=sha))


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
