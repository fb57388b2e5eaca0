"""A kind of problem that knows nothing of machines: who does what, for the most value.

Every task goes to a worker of its own. The value of a pair is a whole number >= 0, or None where it
is forbidden. The driver minimises, so the cost is what is lost against each task's best worker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from cms import (
    Budget,
    Excerpt,
    First,
    Guarantee,
    Proved,
    Support,
    Violation,
    referee_of,
)
from cms.errors import InvalidCertificate


@dataclass(frozen=True, slots=True)
class AssignmentProblem:
    """``values[task][worker]``, as many tasks as workers."""

    values: tuple[tuple[int | None, ...], ...]

    @property
    def sha256(self) -> str:
        return self.compute_sha256()

    def compute_sha256(self) -> str:
        return hashlib.sha256(f"assignment {self.values}".encode()).hexdigest()

    @property
    def most(self) -> int:
        """The most that is conceivable: every task at its best worker."""
        return sum(max((value or 0 for value in row), default=0) for row in self.values)


@dataclass(frozen=True, slots=True)
class Assignment:
    """``workers[task]``."""

    workers: tuple[int, ...] = ()
    machine_count: ClassVar[None] = None

    def excerpt(self, most: int) -> Excerpt:
        rows = [(str(task), str(worker)) for task, worker in enumerate(self.workers[:most])]
        more = len(self.workers) - len(rows)
        return Excerpt(("task", "worker"), rows, f"... and {more} more tasks" if more else "")


@dataclass(frozen=True, slots=True)
class AssignmentPrices:
    """No assignment is worth more than all prices, if no pair is worth more than its two."""

    tasks: tuple[int, ...]
    workers: tuple[int, ...]

    def judged(self, problem: AssignmentProblem, **_: Any) -> Proved:
        if not len(self.tasks) == len(self.workers) == len(problem.values):
            raise InvalidCertificate(f"expected {len(problem.values)} prices of tasks and workers")
        for task, row in enumerate(problem.values):
            for worker, value in enumerate(row):
                price = self.tasks[task] + self.workers[worker]
                if value is not None and value > price:
                    raise InvalidCertificate(
                        f"task {task} at worker {worker} is worth {value}, more than their {price}"
                    )
        total = sum(self.tasks) + sum(self.workers)
        return Proved(Fraction(problem.most - total), total < 0)


class AssignmentReferee:
    """Judges what is claimed about an AssignmentProblem."""

    schedules = Assignment
    certificates = (AssignmentPrices,)
    step = Fraction(1)
    limited = True  # some tasks may have too few workers

    def __init__(self, problem: AssignmentProblem) -> None:
        self._problem = problem

    def first(self) -> First:
        best = (max((value or 0 for value in row), default=0) for row in self._problem.values)
        prices = AssignmentPrices(tuple(best), (0,) * len(self._problem.values))
        return First(prices, Fraction(0), schedule=None if self._problem.values else Assignment())

    def cost(self, schedule: Assignment) -> Fraction:
        pairs = zip(self._problem.values, schedule.workers, strict=False)
        found = (row[worker] for row, worker in pairs if 0 <= worker < len(row))
        return Fraction(self._problem.most - sum(value or 0 for value in found))

    def faults(self, schedule: Assignment) -> Iterator[Violation]:
        n, workers = len(self._problem.values), schedule.workers
        if len(workers) != n:
            yield Violation("task", "the assignment", f"{len(workers)} tasks", str(n))
        for task, worker in enumerate(workers[:n]):
            row = self._problem.values[task]
            if not 0 <= worker < n or row[worker] is None:
                yield Violation("pair", f"task {task}", f"worker {worker}", "one that may do it")
        for worker in sorted({worker for worker in workers if workers.count(worker) > 1}):
            yield Violation(
                "worker", f"worker {worker}", f"{workers.count(worker)} tasks", "at most 1"
            )


referee_of.register(AssignmentProblem, AssignmentReferee)


@dataclass(frozen=True)
class NoOptions:
    """It has none."""


class Hungarian:
    """The Hungarian algorithm: shortest paths with prices, exact in integers."""

    name: str = "hungarian"
    options_type: ClassVar[type[Any]] = NoOptions
    takes = (AssignmentProblem,)

    def support(self, problem: AssignmentProblem, options: NoOptions) -> Support:
        return Support(True)

    def guarantee(self, problem: AssignmentProblem, options: NoOptions) -> Guarantee:
        return Guarantee(1, 0, "OPT", "Kuhn 1955")

    def run(self, problem: AssignmentProblem, options: NoOptions, budget: Budget) -> Iterator[Any]:
        prices, workers = solved(problem)
        yield prices
        if sum(prices.tasks) + sum(prices.workers) >= 0:
            yield Assignment(workers)


def solved(problem: AssignmentProblem) -> tuple[AssignmentPrices, tuple[int, ...]]:
    """Return the best prices, and the workers whom they hold for with equality."""
    n, forbidden = len(problem.values), 1 + problem.most
    costs = [[forbidden if v is None else -v for v in row] for row in problem.values]
    # Rows and columns from 1 on; column 0 is where a new row starts from.
    u, v, row_of = [0] * (n + 1), [0] * (n + 1), [0] * (n + 1)
    for row in range(1, n + 1):
        row_of[0], column = row, 0
        least, way, done = [10**18] * (n + 1), [0] * (n + 1), [False] * (n + 1)
        while row_of[column]:
            done[column] = True
            here, free = row_of[column], [j for j in range(1, n + 1) if not done[j]]
            for j in free:
                reduced = costs[here - 1][j - 1] - u[here] - v[j]
                if reduced < least[j]:
                    least[j], way[j] = reduced, column
            following = min(free, key=least.__getitem__)
            step = least[following]
            for j in range(n + 1):
                if done[j]:
                    u[row_of[j]] += step
                    v[j] -= step
                else:
                    least[j] -= step
            column = following
        while column:
            row_of[column] = row_of[way[column]]
            column = way[column]
    worker_of = sorted(range(1, n + 1), key=row_of.__getitem__)
    prices = AssignmentPrices(tuple(-x for x in u[1:]), tuple(-x for x in v[1:]))
    return prices, tuple(j - 1 for j in worker_of)
