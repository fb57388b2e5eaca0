"""Who is matched anew: GPUs that are alike become classes, and the plan finds its GPUs again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...sharing.classes import WAITING_STEPS, OfflineClass, OnlineClass, waited_priority
from ...sharing.problem import SharingPlan, SharingProblem
from ...sharing.solution import share
from .fleet import NOBODY, Bools, Ints

#: Steps of waiting that are told apart, so that classes stay few.
_MOST = 10 * WAITING_STEPS


@dataclass(frozen=True, slots=True)
class Matcher:
    """A method of matching, with its options and a seed, for some offline classes."""

    method: str
    work: tuple[OfflineClass, ...]
    options: Mapping[str, object]
    seed: int

    def match(
        self, weights: Ints, running: Ints, moved: Ints, jobs: Ints, turn: int
    ) -> tuple[Ints, Bools]:
        """Match GPUs with jobs; returned is what :func:`spread` returns.

        Weights have the shape (n, K), with -1 where a pair is forbidden; jobs are counted by class,
        those that run among them. The number of the turn with the seed begins the random numbers.
        """
        n = len(running)
        if not n or not jobs.any():
            return np.full(n, NOBODY), np.zeros(n, dtype=np.bool_)
        keys = np.column_stack([weights, running])
        kinds, of_kind, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
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
        solution = share(
            problem, self.method, options=self.options, time_limit=None, seed=self.seed + turn
        )
        return spread(problem, solution.plan, of_kind.reshape(-1), running, moved)


def spread(
    problem: SharingProblem, plan: SharingPlan, of_class: Ints, running: Ints, moved: Ints
) -> tuple[Ints, Bools]:
    """Give every GPU of a class what a valid plan has for the class; who runs there stays.

    Of GPUs that run the same, those that moved the least keep it. Returned are the offline class
    on each GPU, or -1, and whether it is what ran there.
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


class Aged(NamedTuple):
    """Jobs by class and step of waiting: who has waited longer counts for more."""

    #: One for each step of a class that there is, with the priority that goes with it
    work: tuple[OfflineClass, ...]
    #: Which class and step each of these was
    of: Ints
    steps: Ints
    kind: Ints  #: Which of these each job is

    def weights(self, known: Ints) -> Ints:
        """Return the weights of these, from those of the classes; -1 stays what it is."""
        found = known[:, self.of]
        raised = found * (WAITING_STEPS + self.steps) // WAITING_STEPS
        return np.where(found < 0, found, raised)

    def classes(self, found: Ints) -> Ints:
        """Return the classes of what is on GPUs; -1 is nobody."""
        return np.where(found == NOBODY, NOBODY, self.of[np.maximum(found, 0)])


def aged(work: tuple[OfflineClass, ...], of: Ints, waited: Ints, scale: int) -> Aged:
    """Tell jobs, of which there is one, of these classes apart by what they have waited.

    Waiting and scale are in minutes.
    """
    steps = np.minimum(waited * WAITING_STEPS // scale, _MOST)
    kinds, kind = np.unique(of * (_MOST + 1) + steps, return_inverse=True)
    places, levels = kinds // (_MOST + 1), kinds % (_MOST + 1)
    classes = tuple(
        OfflineClass(
            f"{place}.{step}", count=0,
            priority=waited_priority(work[place].priority, int(step), WAITING_STEPS),
        )
        for place, step in zip(places.tolist(), levels.tolist(), strict=True)
    )  # fmt: skip
    return Aged(classes, places, levels, kind.reshape(-1))
