"""The closed loop: activities change, jobs run where they are matched, monitors evict them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from ....values.numbers import exact
from ...colocation.problem import (
    WAITING_STEPS,
    ColocationPlan,
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    waited_priority,
)
from ...colocation.solution import colocate
from ...published.muxflow_monitor import ACTIONS, Metric
from ...published.muxflow_monitor_arrays import MonitorStates, monitor_signals, monitor_steps
from ..model import Bools, Ints
from .scene import MILLION, MINUTE, MOST_JOBS, NOBODY, Fleet, Scene, Terms

NEVER = -1  #: In the place of a tick that has not come
#: The offline class on each GPU, or -1, and whether it stays
Matched: TypeAlias = tuple[Ints, Bools]
#: Slowdowns are told apart by thousandths, up to 100.
FINEST, _BINS = 1_000, 100_001


class Backlog:
    """The jobs of all offline classes, in the order in which they come; drawn by a seed.

    Arrays with an entry a job: its class, millionths of a minute that are left of it alone, the
    ticks when it came, began and ended (or ``NEVER``), and the GPU where it runs (or ``NOBODY``).
    """

    def __init__(self, fleet: Fleet, terms: Terms, seed: int) -> None:
        per_hour = float(exact(terms.arrivals_per_hour, "arrivals_per_hour"))
        job_hours = float(exact(terms.job_hours, "job_hours"))
        random = np.random.Generator(np.random.PCG64([seed, 2]))
        counts = np.array([each.count for each in fleet.work], dtype=np.int64)
        work = np.repeat(np.arange(len(counts)), counts)
        coming = min(int(random.poisson(per_hour * terms.ticks / MINUTE)), MOST_JOBS)
        self.arrived = np.zeros(len(work), dtype=np.int64)
        if len(work):
            more = np.sort(random.integers(0, terms.ticks, coming))
            drawn = work[random.integers(0, len(work), coming)]
            # Jobs of one class in a row would be taken before all others.
            work = np.concatenate([work[random.permutation(len(work))], drawn])
            self.arrived = np.concatenate([self.arrived, more])
        self.work: Ints = work
        minutes = np.maximum(random.standard_exponential(len(work)) * (job_hours * MINUTE), 1)
        self.left: Ints = np.rint(minutes * MILLION).astype(np.int64)
        self.gpu = np.full(len(work), NOBODY, dtype=np.int64)
        self.begun = np.full(len(work), NEVER, dtype=np.int64)
        self.ended = np.full(len(work), NEVER, dtype=np.int64)

    def waiting(self, tick: int) -> Ints:
        """Return the jobs that came, and neither run nor have ended; the first ones first."""
        return np.flatnonzero((self.arrived <= tick) & (self.gpu == NOBODY) & (self.ended < 0))

    def waited(self, job: Ints, tick: int) -> Ints:
        """Return how long jobs waited until they first ran, or until this tick."""
        until = np.where(self.begun[job] >= 0, self.begun[job], tick)
        return np.asarray(until - self.arrived[job])


#: Throughput of the offline side and slowdown of the online side on a GPU that is halved in time
_HALF, _TWICE = MILLION // 2, 2 * MILLION
_ALL = 100
#: The metrics of a monitor here: the SMs that both sides want together, and the online side's
#: slowdown beyond its limit. The loop simulates neither clocks nor memory, which a real one sees.
_SEEN = (
    Metric("sm_demand", soft=95, hard="100.01", unit="%"),
    Metric("slowdown_beyond_limit", soft=1, hard=1, unit="millionths"),
)
#: Steps of waiting that are told apart, so that classes stay few.
_MOST_STEPS = 10 * WAITING_STEPS
_EVICT = ACTIONS.index("evict")


@dataclass(frozen=True, slots=True)
class Policy:
    """How a day is played."""

    name: str
    method: str  #: The algorithm that matches; empty if nothing is shared.
    says: str  #: What reports call it
    #: Whether running jobs stay, and only empty GPUs are matched
    keeps_all: bool = False
    halves: bool = False  #: Whether GPUs are shared in time, half each, instead of by SMs
    #: Whether it knows the truth, and the activities until the next matching
    foresees: bool = False

    @property
    def is_watched(self) -> bool:
        """Whether the monitor takes part: not with foresight, nor without shares."""
        return not (self.halves or self.foresees)


_POLICIES = (
    Policy("muxflow", "muxflow", "matched"),
    Policy("clairvoyant", "muxflow", "matched, foreseeing", foresees=True),
    Policy("random", "colocation_random", "matched at random", keeps_all=True),
    Policy("time_sharing", "colocation_first_fit", "time sharing", keeps_all=True, halves=True),
    Policy("dedicated", "", "dedicated GPUs"),
)
POLICIES: Mapping[str, Policy] = MappingProxyType({each.name: each for each in _POLICIES})
"""All policies, by name."""


class PolicyRun:
    """A policy on a day: what runs where, and what was counted.

    Counted are the ticks that were played; millionths of a minute of work done; GPU-minutes that
    passed, were shared, and were slowed down beyond the limit; slowdowns, by thousandths and all
    together in millionths; jobs that the monitor evicted, that a matching moved, that got another
    share, and all other starts. Of a sample of GPUs there is the slowdown of every minute.
    """

    def __init__(self, scene: Scene, policy: Policy, sample: Ints) -> None:
        fleet, terms, n = scene.fleet, scene.terms, scene.fleet.gpus
        self.scene, self.policy, self.sample, self._turns = scene, policy, sample, 0
        self.ticks = self.done = self.minutes = self.shared = self.over = self.slowed = 0
        self.evictions = self.moves = self.restarts = self.starts = 0
        self.bins = np.zeros(_BINS, dtype=np.int64)
        self.sampled: list[Ints] = []
        self.backlog = Backlog(fleet, terms, scene.seed)
        self._job, self._share = np.full(n, NOBODY, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self._ready = np.zeros(n, dtype=np.int64)  # the first tick in which a new job works
        # By profile and workload: the least share that was seen to slow down too much.
        self._refused = np.full(scene.truth.runs.shape, _ALL + 1, dtype=np.int64)
        watched = terms.protection and policy.is_watched
        self._monitors = MonitorStates.fresh(n) if watched else None
        for tick in range(terms.interval):
            self._look(scene.activity[tick].astype(np.int64), np.zeros(n, dtype=np.int64))

    def play(self, on_tick: Callable[[int], bool]) -> PolicyRun:
        """Play to the end, or until `on_tick`, which gets every tick, returns True."""
        for tick in range(self.scene.terms.ticks):
            if on_tick(tick):
                break
            if self.policy.method and tick % self.scene.terms.interval == 0:
                self._match(tick)
            self._pass_minute(tick)
            self.ticks = tick + 1
        return self

    def _stop(self, gpus: Ints) -> int:
        """End the jobs on some GPUs for now, and say how many GPUs these are."""
        self.backlog.gpu[self._job[gpus]] = NOBODY
        self._job[gpus] = NOBODY
        return len(gpus)

    def _look(self, wanted: Ints, beyond: Ints) -> None:
        """Let monitors see a minute: SMs in hundredths of a per cent, slowdown beyond limits."""
        if self._monitors is None:
            return
        seen = {"sm_demand": wanted / 100, "slowdown_beyond_limit": beyond}
        signals = monitor_signals(_SEEN, seen)
        self._monitors, actions = monitor_steps(self._monitors, signals, self.scene.times)
        out = (actions == _EVICT) & (self._job != NOBODY)
        self.evictions += self._stop(np.flatnonzero(out))

    def _match(self, tick: int) -> None:
        """Match all GPUs whose monitor admits jobs, and start new jobs there."""
        scene, policy, backlog = self.scene, self.policy, self.backlog
        fleet, terms, truth = scene.fleet, scene.terms, scene.truth
        active = scene.quantile(tick + terms.interval if policy.foresees else tick)
        share, profile = scene.shares[active], fleet.profile
        if policy.halves:
            weights = np.where((truth.runs & fleet.fits)[profile], _HALF, -1)
        else:
            beliefs = scene.knowledge if policy.foresees else scene.beliefs
            allowed = truth.runs[profile] & (share[:, None] < self._refused[profile])
            weights = np.where(allowed, beliefs.rows(profile, active), -1)
        running = np.append(backlog.work, NOBODY)[self._job]
        is_open = np.ones(fleet.gpus, dtype=np.bool_)
        if self._monitors is not None:
            is_open = self._monitors.admits
        if policy.keeps_all:
            shared = running != NOBODY
            is_open[shared] &= weights[shared, running[shared]] < 0
        places = np.flatnonzero(is_open)
        weights, running = weights[places], running[places]
        moved, waiting = np.abs(share - self._share)[places], backlog.waiting(tick)
        options = {"stay": terms.stay} if policy.method == "muxflow" else {}
        find = partial(match, policy.method, options, scene.seed + self._turns)
        if tick == 0 and scene.plan is not None and policy.name == "muxflow":
            classes = fleet.of_class[places]
            work, stays = spread(scene.problem, scene.plan, classes, running, moved)
            work[weights[np.arange(len(places)), np.maximum(work, 0)] < 0] = NOBODY
        elif terms.waiting_scale and policy.name == "muxflow":
            work, stays = self._match_aged(find, tick, places, weights, moved)
        else:
            of = np.concatenate([backlog.work[waiting], running[running != NOBODY]])
            jobs = np.bincount(of, minlength=len(fleet.work))
            work, stays = find(fleet.work, weights, running, moved, jobs)
        self._turns += 1
        self._start(tick, places, work, stays, share[places])

    def _match_aged(
        self, find: Callable[..., Matched], tick: int, places: Ints, weights: Ints, moved: Ints
    ) -> Matched:
        """Match GPUs with jobs that count for more by steps the longer they have waited."""
        backlog, there = self.backlog, self._job[places]
        waiting, occupied = backlog.waiting(tick), there != NOBODY
        jobs = np.concatenate([waiting, there[occupied]])
        steps = backlog.waited(jobs, tick) * WAITING_STEPS // self.scene.terms.waiting_scale
        key = backlog.work[jobs] * (_MOST_STEPS + 1) + np.minimum(steps, _MOST_STEPS)
        kinds, kind, counts = np.unique(key, return_inverse=True, return_counts=True)
        of, steps = np.divmod(kinds, _MOST_STEPS + 1)
        classes = []
        for at, step in zip(of.tolist(), steps.tolist(), strict=True):
            raised = waited_priority(self.scene.fleet.work[at].priority, step, WAITING_STEPS)
            classes.append(OfflineClass(f"{at}.{step}", count=0, priority=raised))
        running = np.full(len(places), NOBODY, dtype=np.int64)
        running[occupied] = kind[len(waiting) :]
        worth = weights[:, of]
        worth = np.where(worth < 0, worth, worth * (WAITING_STEPS + steps) // WAITING_STEPS)
        found, stays = find(classes, worth, running, moved, counts)
        return np.append(of, NOBODY)[found], stays

    def _start(self, tick: int, places: Ints, work: Ints, stays: Bools, share: Ints) -> None:
        """Stop jobs that do not stay, start new ones, and restart those that get another share."""
        terms, backlog = self.scene.terms, self.backlog
        self.moves += self._stop(places[(self._job[places] != NOBODY) & ~stays])
        again = stays & (np.abs(share - self._share[places]) >= terms.dead_band)
        self._share[places[again]] = share[again]
        self._ready[places[again]] = tick + terms.restart
        self.restarts += int(again.sum())
        begins = (work != NOBODY) & ~stays
        gpus, wanted, given = places[begins], work[begins], share[begins]
        waiting = backlog.waiting(tick)
        for f in np.unique(wanted):
            jobs = waiting[backlog.work[waiting] == f]
            own = np.flatnonzero(wanted == f)[: len(jobs)]
            jobs, at = jobs[: len(own)], gpus[own]
            self._job[at], self._share[at], self._ready[at] = jobs, given[own], tick + terms.restart
            backlog.gpu[jobs] = at
            backlog.begun[jobs] = np.where(backlog.begun[jobs] < 0, tick, backlog.begun[jobs])
            self.starts += len(jobs)

    def _count(self, gpus: Ints, part: Ints, slower: Ints) -> None:
        """Count a minute: the work done on the shared GPUs, and their slowdowns."""
        n = self.scene.fleet.gpus
        self.minutes += n
        self.shared += len(gpus)
        self.done += int(part.sum())
        self.over += int((slower > self.scene.fleet.limit[gpus]).sum())
        every = np.full(n, MILLION, dtype=np.int64)
        every[gpus] = slower
        self.slowed += int(every.sum())
        self.bins += np.bincount(np.minimum(-(-every // FINEST), _BINS - 1), minlength=_BINS)
        if len(self.sample):
            self.sampled.append(every[self.sample])

    def _pass_minute(self, tick: int) -> None:
        """Let jobs work and end, and monitors look."""
        scene, fleet, backlog = self.scene, self.scene.fleet, self.backlog
        active = scene.activity[tick + scene.terms.interval].astype(np.int64)
        gpus = np.flatnonzero(self._job != NOBODY)
        jobs, share, profile = self._job[gpus], self._share[gpus], fleet.profile[gpus]
        work = backlog.work[jobs]
        if self.policy.halves:
            part, slower = np.full(len(gpus), _HALF), np.full(len(gpus), _TWICE)
        else:
            part, slower = scene.truth.felt(profile, work, share, active[gpus])
        part = np.minimum(np.where(self._ready[gpus] <= tick, part, 0), backlog.left[jobs])
        self._count(gpus, part, slower)
        backlog.left[jobs] -= part
        over = backlog.left[jobs] <= 0
        backlog.ended[jobs[over]] = tick + 1
        self._stop(gpus[over])
        beyond = np.zeros(fleet.gpus, dtype=np.int64)
        active[gpus] += 100 * share
        beyond[gpus] = np.maximum(slower - fleet.limit[gpus], 0)
        # Remember pairs that were slowed down too much although there were SMs for both.
        if self._monitors is not None:
            bad = (active[gpus] <= 100 * _ALL) & (beyond[gpus] > 0)
            np.minimum.at(self._refused, (profile[bad], work[bad]), share[bad])
        self._look(active, beyond)


def match(
    method: str, options: Mapping[str, object], seed: int,
    work: Sequence[OfflineClass], weights: Ints, running: Ints, moved: Ints, jobs: Ints,
) -> Matched:  # fmt: skip
    """Match GPUs with jobs of offline classes by a method.

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
) -> Matched:
    """Spread a valid plan over the GPUs of each class; running workloads stay where they can.

    Of GPUs with the same workload, those that moved the least keep it.
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
