"""Passes over the jobs: what each job buys at the prices tried so far, and what that proves."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack.pricing import price_jobs

from .choices import shortened
from .guesses import full_machines, group_totals, ranges, whole
from .jobs import Jobs
from .region import Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem

    from .region import Vector


class Point(NamedTuple):
    """Exact prices within the region, the exact bound they prove, and the number of their pass."""

    vector: Vector
    bound: Fraction
    number: int


class Passes:
    """The options that jobs chose, pass by pass: the columns of the linear program.

    Parameters
    ----------
    problem : Problem
        Reduced, without limits, with at least one job.
    budget : Budget

    Attributes
    ----------
    jobs : Jobs
        Equal rows count once, with a weight.
    region : Region
        Of the prices; it learns the machines of size-bounded sets that matter.
    options : list of ndarrays of shape (kinds, k)
    best : Point
        The one with the best bound; there is none before the first pass.

    Raises
    ------
    ValueError
        If no block serves some job; it names the job.
    """

    best: Point

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self.jobs, self.region = Jobs(problem), Region(problem)
        self._budget = budget
        self._free, _ = self.region.free()
        self.options: list[NDArray[Any]] = []

    def start(self) -> Point | None:
        """Price at first guesses."""
        return self.price(full_machines(self.region))

    def price(self, prices: Sequence[Fraction], *, exactly: bool = False) -> Point | None:
        """Price all jobs, and remember what they choose.

        Parameters
        ----------
        prices : sequence of k Fractions
            Negative ones count as 0; they are scaled into the region.
        exactly : bool, default False
            Whether the prices are meant as they are, and not as floats that rationals of a small
            denominator may stand behind. (Of very many jobs they are rounded all the same where
            they would be too long for compiled code.)

        Returns
        -------
        Point, or None if it was stopped
        """
        region, jobs = self.region, self.jobs
        # An unlimited machine that costs nothing makes its blocks worth nothing.
        counted = [
            Fraction(0) if i in self._free else max(Fraction(0), price) / region.unit
            for i, price in enumerate(prices)
        ]
        numbers, denominator = whole(counted, jobs, exactly=exactly)
        pricing = price_jobs(
            jobs.rows,
            numbers,
            want_options=True,
            weights=jobs.weights,
            threads=self._budget.threads,
            stopped=lambda: self._budget.stopped,
        )
        if pricing is None or pricing.options is None:
            return None
        if pricing.unservable:
            lost = jobs.problem.job_names[int(jobs.members(pricing.unservable[0])[0])]
            raise ValueError(f"no block that a machine can have serves the job {lost!r}")
        size = region.unit / denominator
        # The values of the jobs scale with the prices.
        scale, vector = region.fitted([size * number for number in numbers])
        self.options.append(shortened(pricing.options))
        point = Point(vector, scale * size * pricing.total, len(self.options) - 1)
        if point.number == 0 or point.bound > self.best.bound:
            self.best = point
        return point


class Groups:
    """Kinds of jobs in groups: each group takes a mixture of passes as a whole.

    The linear program needs one row a group, however many jobs there are; a group that ends up
    with more than one pass is split.

    Parameters
    ----------
    passes : Passes
    labels : ndarray of int64, shape (kinds,)
        The group of each kind: 0, 1, ...

    Attributes
    ----------
    columns : list of lists of int
        For each group, the passes in which it buys something of its own.
    """

    def __init__(self, passes: Passes, labels: NDArray[np.int64]) -> None:
        self._passes, self.labels = passes, labels
        self._order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        self._starts = np.cumsum(sizes) - sizes
        self._ends = np.cumsum(sizes)
        self.columns: list[list[int]] = [[] for _ in sizes]
        # What each group buys in each pass, and in which pass it bought that first.
        self._loads: list[list[tuple[int, ...]]] = []
        self._first: list[dict[tuple[int, ...], int]] = [{} for _ in sizes]
        self.totals: list[list[int]] = []
        self.grew()

    def __len__(self) -> int:
        return len(self.columns)

    def grew(self) -> bool:
        """Take up new passes; say whether any group bought something new."""
        new = False
        for number in range(len(self._loads), len(self._passes.options)):
            options, weights = self._passes.options[number], self._passes.jobs.weights
            loads = [
                tuple(load) for load in group_totals(options, self._starts, weights, self._order)
            ]
            self._loads.append(loads)
            self.totals.append([sum(column) for column in zip(*loads, strict=True)])
            for first, columns, load in zip(self._first, self.columns, loads, strict=True):
                if load not in first:
                    first[load] = number
                    columns.append(number)
                    new = True
        return new

    def load(self, group: int, number: int) -> tuple[int, ...]:
        """Return what a group buys in a pass."""
        return self._loads[number][group]

    def column(self, group: int, number: int) -> int:
        """Return the first pass in which the group buys the same as in this one."""
        return self._first[group][self._loads[number][group]]

    def kinds(self, group: int) -> NDArray[np.int64]:
        """Return the kinds of a group."""
        return self._order[self._starts[group] : self._ends[group]]

    def split(self, mixed: dict[int, list[int]], parts: int) -> Groups:
        """Return finer groups: of the kinds that are undecided between passes.

        Parameters
        ----------
        mixed : dict of lists of passes, by group
        parts : int
            Groups that one group is split into at most.
        """
        labels = self.labels.copy()
        fresh = len(self)
        for group, numbers in mixed.items():
            kinds = self.kinds(group)
            stack = np.stack([self._passes.options[number][kinds] for number in numbers])
            undecided = kinds[(stack != stack[:1]).any(axis=(0, 2))]
            count = min(parts, len(undecided))
            labels[undecided] = fresh + np.arange(len(undecided)) * count // len(undecided)
            fresh += count
        # Where all of a group's kinds were undecided its number is free again.
        renumbered: NDArray[np.int64] = np.unique(labels, return_inverse=True)[1]
        return Groups(self._passes, renumbered.reshape(len(labels)))


def first_groups(passes: Passes, most_single: int, groups: int) -> Groups:
    """Make a group of every kind, or, where there are too many, of ranges of them.

    Parameters
    ----------
    passes : Passes
    most_single : int
        Up to so many kinds are groups of their own.
    groups : int
        The number of groups otherwise.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from cms import Configuration, Job, Problem
    >>> shape = Configuration({"a": 2, "b": 1})
    >>> jobs = [Job(f"j{d}", d, {"a": 1, "b": 3}) for d in (2, 5, 7)]
    >>> budget = SimpleNamespace(threads=1, stopped=False)
    >>> passes = Passes(Problem(configurations=shape, jobs=jobs), budget)
    >>> passes.start().bound
    Fraction(11, 4)
    >>> len(first_groups(passes, 3, 2)), len(first_groups(passes, 2, 2))
    (3, 2)
    """
    starts = ranges(len(passes.jobs), most_single, groups)
    kinds = np.arange(len(passes.jobs), dtype=np.int64)
    return Groups(passes, np.searchsorted(starts, kinds, side="right") - 1)
