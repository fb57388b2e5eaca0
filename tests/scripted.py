"""An algorithm that says what a test wants it to say, on a problem a person can follow."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import pytest

from cms.certificate.certificate import BlockPrices
from cms.plugin.algorithm import Budget, Support
from cms.plugin.guarantee import Guarantee
from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.driver import Arguments
from cms.solving.solve import run_checked, solve
from tests.plugins import OneByOne

PAIR = Configuration({"b": 2})


def blocks(demand: int, **machine: Any) -> Problem:
    """A job that needs that many blocks, two on a machine."""
    types = [MachineType("machine", **machine)] if machine else []
    return Problem(configurations=PAIR, jobs=[Job("x", demand, {"b": 1})], machine_types=types)


def serving(demand: int, machines: int) -> Schedule:
    """A valid schedule for ``blocks(demand)`` on so many machines, some of them idle perhaps."""
    groups = [MachineGroup(PAIR, {("b", "x"): 2}, demand // 2)] if demand > 1 else []
    if demand % 2:
        groups.append(MachineGroup(PAIR, {("b", "x"): 1}, 1))
    used = sum(group.count for group in groups)
    if machines > used:
        groups.append(MachineGroup(PAIR, {}, machines - used))
    return Schedule(groups)


HALF = BlockPrices({"b": "1/2"})  # proves demand / 2 machines
QUARTER = BlockPrices({"b": "1/4"})

Run = Callable[[Problem, Budget], Any]


class Clock:
    """What a driver takes for the time: it stands still, or moves on by a tick at every look.

    So no test depends on how fast the machine is. While it stands still, an algorithm that was
    stopped has all the time in the world for its last words.

    Parameters
    ----------
    tick : float
    until : float or callable
        Where it stops; asked at every look.
    """

    def __init__(self, tick: float = 0.0, until: float | Callable[[], float] = math.inf) -> None:
        self.tick, self.until, self.now = tick, until, 0.0

    def monotonic(self) -> float:
        seen, until = self.now, self.until() if callable(self.until) else self.until
        self.now = max(seen, min(seen + self.tick, until))
        return seen

    def rule(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        """Replace the machine's clock for runs of the driver."""
        for module in (
            "solving.driver",
            "solving.solve",
            "infeasibility.shortage",
            "infeasibility.search",
        ):
            monkeypatch.setattr(importlib.import_module(f"cms.{module}"), "time", self)
        return self


class Scripted(OneByOne):
    """An algorithm whose run is a function of the test's."""

    name = "scripted"

    def __init__(self, run: Run | list[Any]) -> None:
        self.script = run
        self.promise: Guarantee | None = None

    def support(self, problem: Problem, options: object) -> Support:
        return Support(True)

    def guarantee(self, problem: Problem, options: object) -> Guarantee | None:
        return self.promise

    def run(self, problem: Problem, options: object, budget: Budget) -> Any:
        return self.script if isinstance(self.script, list) else self.script(problem, budget)


def told(problem: Problem, claims: list[Any], trusted: bool = False, **more: Any) -> Any:
    """Solve by an algorithm that makes these claims, trusted or not."""
    return run_checked(Scripted(claims), trusted, problem, Arguments(**more))


def solved(run: Run, **more: Any) -> Any:
    """Solve a problem of 8 blocks by an algorithm that runs so."""
    return solve(blocks(8), Scripted(run), **more)
