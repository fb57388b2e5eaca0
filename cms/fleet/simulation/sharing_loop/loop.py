"""The closed loop: activities change, jobs run where they are matched, monitors evict them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ....values.numbers import exact
from ...sharing.share_rule import sm_share
from .aging import aged
from .backlog import Backlog
from .felt import Felt
from .fleet import MILLION, NOBODY, Beliefs, Fleet
from .matching import Matcher, spread
from .truth import Truth
from .watch import Watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...sharing.monitor import MonitorTimes
    from ...sharing.plan import SharingPlan
    from ...sharing.problem import SharingProblem
    from .terms import Terms

__all__ = ["POLICIES", "Policy", "Scene", "play"]

#: What a GPU that is halved in time gives to its offline side, and does to its online side.
_HALF, _TWICE = MILLION // 2, 2 * MILLION
_ALL = 100


@dataclass(frozen=True, slots=True)
class Policy:
    """How a day is played.

    Parameters
    ----------
    name : str
    method : str
        The algorithm that matches; empty if nothing is shared.
    says : str
        What reports call it.
    keeps_all : bool
        Whether only GPUs where nothing runs are matched, wherever what runs may stay.
    halves : bool
        Whether GPUs are shared in time, half each, instead of by SMs.
    foresees : bool
        Whether it knows the truth, and the activities until the next matching.
    """

    name: str
    method: str
    says: str
    keeps_all: bool = False
    halves: bool = False
    foresees: bool = False

    @property
    def heeds_waiting(self) -> bool:
        """Whether jobs that have waited may count for more: in our own matching."""
        return self.method == "muxflow" and not self.foresees

    @property
    def is_watched(self) -> bool:
        """Whether the monitor takes part: who foresees needs none, and halves have no shares."""
        return not (self.halves or self.foresees)


POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        each.name: each
        for each in (
            Policy("muxflow", "muxflow", "matched"),
            Policy("clairvoyant", "muxflow", "matched, foreseeing", foresees=True),
            Policy("random", "sharing_random", "matched at random", keeps_all=True),
            Policy(
                "time_sharing", "sharing_first_fit", "time sharing", keeps_all=True, halves=True
            ),
            Policy("dedicated", "", "dedicated GPUs"),
        )
    }
)
"""Every way to play a day, by its name; the first one is ours."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What all policies are played on.

    Parameters
    ----------
    problem : SharingProblem
    fleet : Fleet
    truth : Truth
    beliefs, knowledge : Beliefs
        By what a scheduler goes, and what one would go by that knows the truth.
    activity : numpy.ndarray of int16, shape (warm-up + ticks, G)
        In hundredths of a per cent, from one interval before the beginning on.
    terms : Terms
    times : MonitorTimes
        Of all monitors, in minutes.
    seed : int
    plan : SharingPlan or None
        Who runs where at first, by the method that made it.
    """

    problem: SharingProblem
    fleet: Fleet
    truth: Truth
    beliefs: Beliefs
    knowledge: Beliefs
    activity: NDArray[np.int16]
    terms: Terms
    times: MonitorTimes
    seed: int
    plan: SharingPlan | None = None

    @property
    def shares(self) -> NDArray[np.int64]:
        """The share that each activity leaves, 0 to 100 per cent."""
        margin, lowest = self.problem.margin, self.problem.lowest_share
        return np.array([sm_share(active, margin, lowest) for active in range(_ALL + 1)])

    def quantile(self, tick: int) -> NDArray[np.int64]:
        """Return a high quantile of each GPU's activity in the interval before a tick, in per cent.

        It is the smallest activity that is not exceeded in as many of the minutes as the terms say.
        """
        n = self.terms.interval
        window = np.sort(self.activity[tick : tick + n], axis=0)
        part = exact(self.terms.quantile, "quantile") * len(window)
        place = max(-(-part.numerator // part.denominator), 1) - 1
        found: NDArray[np.int64] = -(-window[place].astype(np.int64) // 100)
        return found


@dataclass(slots=True)
class _Run:
    """A policy under way: one number a GPU."""

    scene: Scene
    policy: Policy
    backlog: Backlog
    watch: Watch | None
    felt: Felt
    job: NDArray[np.int64]
    share: NDArray[np.int64]
    ready: NDArray[np.int64]  # the tick in which what was started last gets something done
    refused: NDArray[np.int64]  # (P, K): the least share that was seen to slow down too much
    turns: int = 0

    @property
    def running(self) -> NDArray[np.int64]:
        """The offline class on each GPU, or -1."""
        found = np.full(len(self.job), NOBODY, dtype=np.int64)
        there = self.job != NOBODY
        found[there] = self.backlog.work[self.job[there]]
        return found


def play(
    scene: Scene, policy: Policy, sample: NDArray[np.int64], on_tick: Callable[[int], bool]
) -> tuple[Felt, Backlog]:
    """Play a policy to the end, or until `on_tick`, which gets every tick, returns True."""
    fleet, terms = scene.fleet, scene.terms
    n = fleet.gpus
    backlog = Backlog(
        fleet, terms.ticks, float(exact(terms.job_hours, "job_hours")),
        float(exact(terms.arrivals_per_hour, "arrivals_per_hour")), seed=scene.seed,
    )  # fmt: skip
    run = _Run(
        scene, policy, backlog,
        Watch(n, scene.times) if terms.protection and policy.is_watched else None,
        Felt(fleet, sample),
        np.full(n, NOBODY, dtype=np.int64), np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64), np.full(scene.truth.runs.shape, _ALL + 1, dtype=np.int64),
    )  # fmt: skip
    if run.watch is not None:
        for tick in range(terms.interval):
            run.watch.look(scene.activity[tick].astype(np.int64), np.zeros(n, dtype=np.int64))
    for tick in range(terms.ticks):
        if on_tick(tick):
            break
        if policy.method and tick % terms.interval == 0:
            _match(run, tick)
        _minute(run, tick)
    return run.felt, backlog


def _match(run: _Run, tick: int) -> None:
    """Match all GPUs whose monitor admits anybody, and start what is new there."""
    scene, fleet, terms = run.scene, run.scene.fleet, run.scene.terms
    active = scene.quantile(tick + terms.interval if run.policy.foresees else tick)
    share = scene.shares[active]
    weights = _weights(run, active, share)
    running, backlog = run.running, run.backlog
    is_open = np.ones(fleet.gpus, dtype=np.bool_) if run.watch is None else run.watch.admits
    shared = running != NOBODY
    if run.policy.keeps_all:
        fits = np.zeros(fleet.gpus, dtype=np.bool_)
        fits[shared] = weights[shared, running[shared]] >= 0
        is_open = is_open & ~fits
    places = np.flatnonzero(is_open)
    waiting = backlog.waiting(tick)
    jobs = np.bincount(backlog.work[waiting], minlength=len(fleet.work))
    jobs += np.bincount(running[places][shared[places]], minlength=len(fleet.work))
    moved = np.abs(share - run.share)[places]
    if tick == 0 and scene.plan is not None and run.policy.name == "muxflow":
        work, stays = spread(
            scene.problem, scene.plan, fleet.of_class[places], running[places], moved
        )
        work[weights[places, np.maximum(work, 0)] < 0] = NOBODY
    else:
        options = {"stay": terms.stay} if run.policy.method == "muxflow" else {}
        if terms.waiting_scale and run.policy.heeds_waiting and (waiting.size or shared.any()):
            work, stays = _match_aged(run, tick, places, weights[places], moved, options)
        else:
            matcher = Matcher(run.policy.method, fleet.work, options, scene.seed)
            found = matcher.match(weights[places], running[places], moved, jobs, run.turns)
            work, stays = found.work, found.stays
    run.turns += 1
    _start(run, tick, places, work, stays, share[places])


def _match_aged(
    run: _Run,
    tick: int,
    places: NDArray[np.int64],
    weights: NDArray[np.int64],
    moved: NDArray[np.int64],
    options: Mapping[str, object],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Match GPUs with jobs that count for more the longer they have waited."""
    scene, backlog = run.scene, run.backlog
    there = run.job[places]
    jobs = np.concatenate([backlog.waiting(tick), there[there != NOBODY]])
    known = aged(
        scene.fleet.work, backlog.work[jobs], backlog.waited(jobs, tick), scene.terms.waiting_scale
    )
    running = np.full(len(places), NOBODY, dtype=np.int64)
    running[there != NOBODY] = known.kind[len(jobs) - int((there != NOBODY).sum()) :]
    counts = np.bincount(known.kind, minlength=len(known.work))
    matcher = Matcher(run.policy.method, known.work, options, scene.seed)
    found = matcher.match(known.weights(weights), running, moved, counts, run.turns)
    return known.classes(found.work), found.stays


def _weights(run: _Run, active: NDArray[np.int64], share: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what each workload is worth on each GPU, as far as the policy knows."""
    scene = run.scene
    if run.policy.halves:
        may = scene.truth.runs & scene.fleet.fits
        return np.where(may[scene.fleet.profile], _HALF, -1)
    beliefs = scene.knowledge if run.policy.foresees else scene.beliefs
    rows = beliefs.rows(scene.fleet.profile, active)
    known = scene.truth.runs[scene.fleet.profile]
    seen = share[:, None] >= run.refused[scene.fleet.profile]
    found: NDArray[np.int64] = np.where(known & ~seen, rows, -1)
    return found


def _start(
    run: _Run,
    tick: int,
    places: NDArray[np.int64],
    work: NDArray[np.int64],
    stays: NDArray[np.bool_],
    share: NDArray[np.int64],
) -> None:
    """Stop what does not stay, start what is new, and start again what gets another share."""
    terms, backlog = run.scene.terms, run.backlog
    goes = places[(run.job[places] != NOBODY) & ~stays]
    backlog.stop(run.job[goes])
    run.job[goes] = NOBODY
    run.felt.moves += len(goes)
    again = stays & (np.abs(share - run.share[places]) >= terms.dead_band)
    run.share[places[again]] = share[again]
    run.ready[places[again]] = tick + terms.restart
    run.felt.restarts += int(again.sum())
    begins = (work != NOBODY) & ~stays
    gpus, wanted, given = places[begins], work[begins], share[begins]
    waiting = backlog.waiting(tick)
    of = backlog.work[waiting]
    for f in np.unique(wanted):
        own = np.flatnonzero(wanted == f)
        jobs = waiting[of == f][: len(own)]
        own = own[: len(jobs)]
        run.job[gpus[own]] = jobs
        backlog.begin(jobs, gpus[own], tick)
        run.share[gpus[own]] = given[own]
        run.ready[gpus[own]] = tick + terms.restart
        run.felt.starts += len(jobs)


def _minute(run: _Run, tick: int) -> None:
    """Let a minute pass on every GPU."""
    scene, fleet, terms = run.scene, run.scene.fleet, run.scene.terms
    active = scene.activity[tick + terms.interval].astype(np.int64)
    gpus = np.flatnonzero(run.job != NOBODY)
    jobs = run.job[gpus]
    work, profile = run.backlog.work[jobs], fleet.profile[gpus]
    if run.policy.halves:
        part, slower = np.full(len(gpus), _HALF), np.full(len(gpus), _TWICE)
    else:
        part, slower = scene.truth.felt(profile, work, run.share[gpus], active[gpus])
    part = np.where(run.ready[gpus] <= tick, part, 0)
    part = np.minimum(part, run.backlog.left[jobs])
    run.felt.add(tick, gpus, part, slower)
    over = run.backlog.advance(jobs, part, tick)
    run.job[gpus[over]] = NOBODY
    if run.watch is None:
        return
    wanted, beyond = active, np.zeros(fleet.gpus, dtype=np.int64)
    wanted[gpus] += 100 * run.share[gpus]
    beyond[gpus] = np.maximum(slower - fleet.limit[gpus], 0)
    _learn(run, gpus, work, wanted, beyond)
    evicted = run.watch.look(wanted, beyond)
    out = np.flatnonzero(evicted & (run.job != NOBODY))
    run.backlog.stop(run.job[out])
    run.job[out] = NOBODY
    run.felt.evictions += len(out)


def _learn(
    run: _Run,
    gpus: NDArray[np.int64],
    work: NDArray[np.int64],
    wanted: NDArray[np.int64],
    beyond: NDArray[np.int64],
) -> None:
    """Remember pairs that were slowed down too much although there were SMs for both."""
    bad = (wanted[gpus] <= 100 * _ALL) & (beyond[gpus] > 0)
    profile, share = run.scene.fleet.profile[gpus[bad]], run.share[gpus[bad]]
    np.minimum.at(run.refused, (profile, work[bad]), share)
