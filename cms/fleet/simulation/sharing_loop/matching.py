"""Who is matched anew: GPUs that are alike become classes, and the plan finds its GPUs again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...sharing.classes import OfflineClass, OnlineClass
from ...sharing.problem import SharingProblem
from ...sharing.share import share as shared
from .fleet import NOBODY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...sharing.plan import SharingPlan

__all__ = ["Matched", "Matcher", "spread"]


class Matched(NamedTuple):
    """What one matching says of the GPUs that took part.

    Attributes
    ----------
    work : numpy.ndarray of int64, shape (G,)
        The offline class on each GPU, or -1.
    stays : numpy.ndarray of bool, shape (G,)
        Where that is what runs there already.
    value, upper_bound : int
        Of the matching, as :class:`cms.fleet.SharingSolution` has them.
    """

    work: NDArray[np.int64]
    stays: NDArray[np.bool_]
    value: int
    upper_bound: int


@dataclass(frozen=True, slots=True)
class Matcher:
    """A method of matching, and what it is worth to it that nothing moves.

    Parameters
    ----------
    method : str
        An algorithm that takes a :class:`cms.fleet.SharingProblem`.
    work : tuple of OfflineClass
    options : Mapping
        Of the algorithm.
    seed : int
    """

    method: str
    work: tuple[OfflineClass, ...]
    options: Mapping[str, object]
    seed: int

    def match(
        self,
        weights: NDArray[np.int64],
        running: NDArray[np.int64],
        moved: NDArray[np.int64],
        jobs: NDArray[np.int64],
        turn: int,
    ) -> Matched:
        """Match GPUs with jobs.

        Parameters
        ----------
        weights : numpy.ndarray of int64, shape (n, K)
            -1 where a pair is forbidden.
        running : numpy.ndarray of int64, shape (n,)
            The offline class that runs on each, or -1.
        moved : numpy.ndarray of int64, shape (n,)
            Of GPUs that are alike, those with the smallest numbers keep what runs there.
        jobs : numpy.ndarray of int64, shape (K,)
            How many there are of each class, those that run among them.
        turn : int
            Which matching it is; with the seed it begins the random numbers.
        """
        n = len(running)
        if not n or not jobs.any():
            return Matched(np.full(n, NOBODY), np.zeros(n, dtype=np.bool_), 0, 0)
        keys = np.column_stack([weights, running])
        kinds, of_kind = np.unique(keys, axis=0, return_inverse=True)
        of_kind = of_kind.reshape(-1)
        counts = np.bincount(of_kind, minlength=len(kinds))
        online = [
            OnlineClass(
                "gpu", count=int(count), sm_activity=0, name=f"k{place}",
                running=None if runs == NOBODY else self.work[runs].name,
            )
            for place, (count, runs) in enumerate(zip(counts, kinds[:, -1], strict=True))
        ]  # fmt: skip
        offline = [
            OfflineClass(each.name, count=int(count), priority=each.priority)
            for each, count in zip(self.work, jobs, strict=True)
        ]
        problem = SharingProblem(
            online=online, offline=offline, weights=kinds[:, :-1], margin=0, lowest_share=0
        )
        solution = shared(
            problem, self.method, options=self.options, time_limit=None, seed=self.seed + turn
        )
        work, stays = spread(problem, solution.plan, of_kind, running, moved)
        return Matched(work, stays, solution.value, solution.upper_bound)


def spread(
    problem: SharingProblem,
    plan: SharingPlan,
    of_class: NDArray[np.int64],
    running: NDArray[np.int64],
    moved: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Give every GPU of a class what the plan has for the class; who runs there already stays.

    Parameters
    ----------
    problem : SharingProblem
    plan : SharingPlan
        A valid one.
    of_class : numpy.ndarray of int64, shape (n,)
        Which online class each GPU is of.
    running : numpy.ndarray of int64, shape (n,)
        The offline class there now, or -1.
    moved : numpy.ndarray of int64, shape (n,)
        Of GPUs that run the same, those with the smallest numbers keep it.

    Returns
    -------
    (numpy.ndarray of int64, numpy.ndarray of bool)
        The offline class on each GPU, or -1; and whether it is what ran there.

    Examples
    --------
    >>> from cms.fleet.sharing import SharingPlan
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem = posed([3], [5, 5], [[7, 6]])
    >>> plan, none = SharingPlan({("g0", "w0"): 2, ("g0", "w1"): 1}), np.zeros(3, dtype=np.int64)
    >>> work, stays = spread(problem, plan, none, np.array([-1, 1, 0]), none)
    >>> work.tolist(), stays.tolist()
    ([0, 1, 0], [False, True, True])
    """
    work = np.full(len(of_class), NOBODY, dtype=np.int64)
    stays = np.zeros(len(of_class), dtype=np.bool_)
    order = np.lexsort((moved, of_class))
    ends = np.searchsorted(of_class[order], np.arange(len(problem.online) + 1))
    wanted: dict[int, dict[int, int]] = {}
    for online, offline, count in plan:
        own = wanted.setdefault(problem.online_index[online], {})
        own[problem.offline_index[offline]] = count
    for place, own in wanted.items():
        mine = order[ends[place] : ends[place + 1]]
        for f in own:
            kept = mine[running[mine] == f][: own[f]]
            work[kept], stays[kept] = f, True
            own[f] -= len(kept)
        free = mine[~stays[mine]]
        # Those where nothing runs first: who is not needed where it is may still be left alone.
        free = free[np.argsort(running[free] != NOBODY, kind="stable")]
        at = 0
        for f, count in own.items():
            work[free[at : at + count]] = f
            at += count
    return work, stays
