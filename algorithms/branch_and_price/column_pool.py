"""Options found at other nodes of a tree, with which the search at a new node starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..prices.choices import block_totals
from ..solvers.floats import near, near_table

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from ..prices.jobs import Jobs
    from ..prices.region import Region, Vector
    from ..prices.search import PriceSearch

#: A search starts from at most so many choices of each group of kinds.
_MOST = 16


class Pool:
    """What each group of kinds of jobs chose at the nodes searched so far."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._groups: list[_Group] = []

    def add(self, search: PriceSearch, known: int) -> None:
        """Remember what a search found; its first ``known`` passes came from here."""
        if not self._groups:
            self._groups = [_Group() for _ in range(search.n_groups)]
        weights = self._jobs.weights
        for options in search.options[known:]:
            for at, group in enumerate(self._groups):
                part = search.kinds_of_group(at)
                group.add(options[part], weights[part])
        if search.n_groups < len(self._jobs):
            return  # what one job of a group took says nothing about the others
        for found in search.own_options[known:]:
            for job, option in zip(search.region.own_priced, found, strict=True):
                kind = int(self._jobs.kind_of[job])
                self._groups[kind].add(np.array([option]), weights[kind : kind + 1])

    def near(self, region: Region, vector: Vector, reach: Fraction | None) -> list[NDArray[Any]]:
        """Return what can matter near prices: arrays with one option a kind, shape (kinds, k).

        Choices of higher reduced cost than ``reach`` are left out: no schedule that is that much
        cheaper uses them (theory 6.7). A price search finds whatever is missing.
        """
        general = np.array([near(price) for price in vector.prices])
        priced = [[general] for _ in self._groups]
        if len(priced) == len(self._jobs):
            for job in region.own_priced:
                own = region.prices_of_job(job, vector.prices, vector.multipliers)
                prices = np.array([near(price) for price in own])
                priced[self._jobs.kind_of[job]].append(prices)
        kept = [
            group.nearest(prices, reach) for group, prices in zip(self._groups, priced, strict=True)
        ]
        length = max(map(len, kept), default=0)
        return [
            np.concatenate([choices[min(at, len(choices) - 1)] for choices in kept])
            for at in range(length)
        ]


class _Group:
    """The choices of one group, in the order they were found in."""

    def __init__(self) -> None:
        self._choices: dict[object, NDArray[Any]] = {}
        self._loads: list[list[int]] = []

    def add(self, options: NDArray[Any], weights: NDArray[np.int64]) -> None:
        wide = options.dtype == object
        name = repr(options.tolist()) if wide else options.astype(np.int64).tobytes()
        if name not in self._choices:
            self._choices[name] = options
            self._loads.append(block_totals(options, weights))

    def nearest(
        self, priced: list[NDArray[np.float64]], reach: Fraction | None
    ) -> list[NDArray[Any]]:
        """Return the choices that are cheapest at one of the price vectors, the best first."""
        loads = near_table(self._loads)
        costs = np.stack([loads @ prices for prices in priced])
        above = (costs - costs.min(axis=1, keepdims=True)).min(axis=0)
        order = np.argsort(above, kind="stable")[:_MOST]
        if reach is not None:
            order = order[above[order] <= near(reach)]
        choices = list(self._choices.values())
        return [choices[at] for at in order.tolist()]
