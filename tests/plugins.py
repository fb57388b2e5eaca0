"""Algorithms for the tests: a good one that is as small as can be, and bad ones that break a rule.

Each bad one does what the good one does, but for one thing.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from cms.certificate.certificate import BlockPrices
from cms.plugin.algorithm import Budget, Claim, Support
from cms.plugin.guarantee import Guarantee
from cms.problem.parts import Configuration, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.schedule.schedule import Schedule


@dataclass(frozen=True)
class OneByOneOptions:
    """Options of ``one_by_one``.

    Parameters
    ----------
    choose : str, default "cheapest"
        "cheapest" or "first": which of a job's ways to be served is taken.
    """

    choose: str = "cheapest"

    def __post_init__(self) -> None:
        if self.choose not in ("cheapest", "first"):
            raise ValueError(f"expected 'cheapest' or 'first', not {self.choose!r}")


class OneByOne:
    """Serves each job by blocks of one type on machines of its own."""

    name: str = "one_by_one"
    options_type: ClassVar[type[Any]] = OneByOneOptions

    def support(self, problem: Problem, options: OneByOneOptions) -> Support:
        if problem.limits:
            return Support(False, "it does not count machines, and a machine type has a limit")
        return Support(True)

    def guarantee(self, problem: Problem, options: OneByOneOptions) -> Guarantee | None:
        return None

    def run(self, problem: Problem, options: OneByOneOptions, budget: Budget) -> Iterator[Claim]:
        schedule = self.schedule(problem, options, budget)
        if schedule is not None:
            yield schedule

    def schedule(
        self, problem: Problem, options: OneByOneOptions, budget: Budget
    ) -> Schedule | None:
        ways = list(self.ways(problem))
        machines: dict[Configuration, int] = {}
        given: dict[tuple[str, str], int] = {}
        for job in range(problem.n_jobs):
            if budget.stopped:
                return None
            row = problem.rows.row(job)
            if not row.demand:
                continue
            found: tuple[Fraction, str, int, Configuration, int] | None = None
            for block, each, configuration, cost in ways:
                supply = row.supply[problem.block_index[block]]
                if not supply:
                    continue
                blocks = -(-row.demand // supply)
                count = -(-blocks // each)
                if found is None or (options.choose == "cheapest" and cost * count < found[0]):
                    found = cost * count, block, blocks, configuration, count
            if found is None:
                return None
            _, block, blocks, configuration, count = found
            given[block, problem.job_names[job]] = blocks
            machines[configuration] = machines.get(configuration, 0) + count
        return Schedule.from_counts(problem, machines, given)

    def ways(self, problem: Problem) -> Iterator[tuple[str, int, Configuration, Fraction]]:
        """A block, how many of it one machine can hold, that machine and its cost."""
        for shape in problem.configurations:
            cost = problem.machine_type(shape.machine).cost
            if isinstance(shape, Configuration):
                for block, each in shape.blocks.items():
                    yield block, each, shape, cost
            else:
                for block in shape.sizes:
                    each = shape.largest_count(block)
                    if each:
                        yield block, each, Configuration({block: each}, shape.machine), cost


def saying(more: Callable[[Problem], list[Any]], served: bool = True) -> type[OneByOne]:
    """An algorithm that claims more after its schedule, or in place of it."""

    class SaysMore(OneByOne):
        name = "says_more"

        def run(self, problem: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
            if served:
                yield from super().run(problem, options, budget)
            yield from more(problem)

    return SaysMore


def count_in_eight_bytes(problem: Problem) -> list[Any]:
    for job in range(problem.n_jobs):
        problem.rows.row(job).demand.to_bytes(8, "little")
    return []


def rename_the_jobs(problem: Problem) -> list[Any]:
    """Change the problem in place, because that was handy."""
    object.__setattr__(problem, "job_names", tuple(f"{name}!" for name in problem.job_names))
    return []


class IgnoresTheClock(OneByOne):
    """Is in native code for a second of work after the cancel of a large problem."""

    name = "ignores_the_clock"
    rounds = 2_000_000

    def run(self, problem: Problem, options: OneByOneOptions, budget: Budget) -> Iterator[Claim]:
        sized = isinstance(problem.configurations[0], SizeBoundedConfigurations)
        ignores = problem.n_jobs > 1000 and sized and budget.remaining() == math.inf
        yield from super().run(problem, options, budget)
        if ignores:
            while not budget.stopped:
                time.sleep(0.01)
            hashlib.pbkdf2_hmac("sha512", b"any", b"work", self.rounds)


class IsNotReproducible(OneByOne):
    """Does something else every other time, whatever the seed."""

    name = "is_not_reproducible"
    runs = 0

    def run(self, problem: Problem, options: OneByOneOptions, budget: Budget) -> Iterator[Claim]:
        self.runs += 1
        if self.runs % 2:
            yield BlockPrices()
        yield from super().run(problem, options, budget)


class PromisesTooMuch(OneByOne):
    """Guarantees the optimum."""

    name = "promises_too_much"

    def guarantee(self, problem: Problem, options: OneByOneOptions) -> Guarantee | None:
        return Guarantee(1, 0, "OPT", "Wishful Thinking")


class TakesAnyOption(OneByOne):
    """Has an option that nothing checks and nobody explains."""

    @dataclass(frozen=True)
    class Unchecked:
        """No word about it."""

        choose: object = "cheapest"

    name = "takes_any_option"
    options_type = Unchecked


class LeavesACancel(OneByOne):
    """Has a cancel that raises."""

    name = "leaves_a_cancel"

    def run(self, problem: Problem, options: OneByOneOptions, budget: Budget) -> Iterator[Claim]:
        def cancel() -> None:
            raise ValueError("no such solver")

        with budget.on_stop(cancel):
            yield from super().run(problem, options, budget)
