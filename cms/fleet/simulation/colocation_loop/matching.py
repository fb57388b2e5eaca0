"""Matching single GPUs: those that are alike become classes, which the plan is spread over."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...colocation.classes import OfflineClass, OnlineClass
from ...colocation.problem import ColocationPlan, ColocationProblem
from ...colocation.solution import colocate
from .fleet import NOBODY, Bools, Ints


def match(
    work: tuple[OfflineClass, ...], weights: Ints, running: Ints, moved: Ints, jobs: Ints,
    *, method: str, options: Mapping[str, object], seed: int,
) -> tuple[Ints, Bools]:  # fmt: skip
    """Match GPUs with jobs of offline classes by a method, and return what :func:`spread` returns.

    Weights have the shape (n, K), with -1 where a pair is forbidden; jobs are counted by class,
    running ones included.
    """
    n = len(running)
    if not n or not jobs.any():
        return np.full(n, NOBODY), np.zeros(n, dtype=np.bool_)
    keys = np.column_stack([weights, running])
    kinds, of_kind, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    online = [
        OnlineClass(
            "gpu", count=int(count), sm_activity=0, name=f"k{place}",
            running=None if runs == NOBODY else work[runs].name,
        )
        for place, (count, runs) in enumerate(zip(counts, kinds[:, -1], strict=True))
    ]  # fmt: skip
    offline = [
        OfflineClass(each.name, count=int(count), priority=each.priority)
        for each, count in zip(work, jobs, strict=True)
    ]
    problem = ColocationProblem(
        online=online, offline=offline, weights=kinds[:, :-1], margin=0, lowest_share=0
    )
    solution = colocate(problem, method, options=options, time_limit=None, seed=seed)
    return spread(problem, solution.plan, of_kind.reshape(-1), running, moved)


def spread(
    problem: ColocationProblem, plan: ColocationPlan, of_class: Ints, running: Ints, moved: Ints
) -> tuple[Ints, Bools]:
    """Spread a valid plan over the GPUs of each class; running workloads stay where they can.

    Of GPUs with the same workload, those that moved the least keep it. Returned are the offline
    class on each GPU, or -1, and whether it stays.
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
        # Empty GPUs first: a job that is not needed where it runs may still be left alone.
        free = free[np.argsort(running[free] != NOBODY, kind="stable")]
        at = 0
        for f, count in own.items():
            work[free[at : at + count]] = f
            at += count
    return work, stays
