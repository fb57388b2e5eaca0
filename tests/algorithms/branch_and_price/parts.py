"""A budget without a driver, price searches on small problems, and LP_DW from its definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from algorithms.prices.fraction import Fractional
from algorithms.prices.jobs import Jobs
from algorithms.prices.search import PriceSearch
from cms import Configuration, Job, MachineType, Problem, Schedule, presolve
from cms.values.numbers import common_step
from tests.families import instance
from tests.oracle import optimum

#: A machine type nobody can use, of a cost that leaves the others no step worth mentioning.
ODD = MachineType("odd", Fraction(10**9 + 7, 10**9))


class Unlimited:
    """A budget for the parts, without a driver."""

    threads = 1
    best: Schedule | None = None

    def __init__(self, *, seed: int = 0, seconds: float = math.inf) -> None:
        self.seed, self.seconds = seed, seconds
        self.lower_bound = Fraction(0)
        self.stopped = False

    def remaining(self) -> float:
        return 0.0 if self.stopped else self.seconds

    def on_stop(self, cancel: Callable[[], object]) -> AbstractContextManager[None]:
        return nullcontext()


class Counting(Unlimited):
    """A budget that is stopped once it was asked so often whether it is."""

    def __init__(self, questions: int) -> None:
        self.asked, self.questions = 0, questions
        super().__init__()

    @property
    def stopped(self) -> bool:
        self.asked += 1
        return self.asked > self.questions

    @stopped.setter
    def stopped(self, value: bool) -> None: ...


def reduced(problem: Problem) -> Jobs:
    """The jobs of the reduced problem; of its costs ODD is one, though nobody can use it."""
    small = presolve(problem).problem
    if ODD in small.machine_types:
        small.__dict__["cost_step"] = common_step(machine.cost for machine in small.machine_types)
    return Jobs(small)


def without_a_step(problem: Problem) -> Problem:
    """The same problem, but prices gain by every little rise of the bound."""
    return problem.replace(machine_types=[*problem.machine_types, ODD])


def searched(
    problem: Problem, *, refined: bool = True, jobs: Jobs | None = None, **more: Any
) -> PriceSearch:
    """A price search on the reduced problem, at its end."""
    search = PriceSearch(reduced(problem) if jobs is None else jobs, Unlimited(), **more)
    for _ in search.run():
        pass
    if refined:
        for _ in search.refine():
            pass
    return search


def certified(search: PriceSearch, problem: Problem) -> Fraction:
    """What the package's own check says the best prices prove; it raises if they do not hold."""
    assert search.best is not None
    reduction = presolve(problem)
    worth = search.best.bound - search.region.constant(search.best.vector)
    leaf = reduction.restore_prices(search.region.leaf(search.best.vector), worth)
    return leaf.bound(problem)


def single(blocks: dict[str, int], demand: Any, supply: dict[str, Any], **machine: Any) -> Problem:
    """One job on one configuration."""
    types = [MachineType("machine", **machine)] if machine else []
    return Problem(
        configurations=Configuration(blocks), jobs=[Job("x", demand, supply)], machine_types=types
    )


def bought(search: PriceSearch, mixture: Fractional) -> list[Fraction]:
    """The blocks of each type that all jobs take in a mixture, exactly."""
    load = [Fraction(0)] * len(search.region.blocks)
    for group, shares in enumerate(mixture.shares):
        part = search.kinds_of_group(group)
        for number, weight in shares:
            for kind in range(part.start, part.stop):
                jobs = weight * int(search.weights[kind])
                option = search.options[number][kind].tolist()
                load = [a + jobs * blocks for a, blocks in zip(load, option, strict=True)]
    return load


def held(mixture: Fractional, k: int) -> list[Fraction]:
    """The blocks of each type that a mixture's machines have, exactly."""
    blocks = [Fraction(0)] * k
    for row, number in mixture.machines:
        blocks = [a + number * count for a, count in zip(blocks, row.counts, strict=True)]
    return blocks


def cost(search: PriceSearch, mixture: Fractional) -> Fraction:
    """What a mixture's machines cost, exactly."""
    return sum((search.region.costs[row.machine] * x for row, x in mixture.machines), Fraction(0))


class Case(NamedTuple):
    """A problem that has a schedule, its name and the least cost of one."""

    name: str
    problem: Problem
    best: Fraction


@cache
def cases(family: str, number: int) -> tuple[Case, ...]:
    """The problems of a family that have no limits but a schedule, among the first so many."""
    found = []
    for at in range(number):
        problem = instance(family, at)
        if not problem.limits:
            best = optimum(problem)
            if best is not None:
                found.append(Case(f"instance({family!r}, {at})", problem, best))
    return tuple(found)
