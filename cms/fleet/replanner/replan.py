"""Whether to keep or to change the current plan, and the best times to change it.

The best times are a shortest path over windows without holes, of which few need to be planned.
Windows that were not planned stand with a bound from below; the shortest path under these bounds is
found, its windows are planned, and so on until all of them are. Then no other path is shorter: the
answer, ties included, is the one that planning every window would give.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import inf
from typing import NamedTuple, TypeAlias

from ...errors import AlgorithmError, CmsError, InvalidProblem
from ...values.names import nearest
from ...values.numbers import shown
from ..deployment import Deployment, desired_state
from ..deployment.checking import has_our_work
from ..deployment.recounting import beyond_limits, recounted
from ..deployment.transition import (
    Durations,
    Impossible,
    Schedule,
    Transition,
    reorganise,
    schedule,
    transition,
)
from ..deployment.wanted import DesiredState
from ..placement import PlacementInfeasible, place_plan
from ..placement.program import Limits
from ..serving.plan import Plan
from ..serving.time_sharing import SharedServing
from .forecast import Forecast
from .rates import Rates
from .windows import Planner, Terms, Windows


@dataclass(frozen=True)
class Change:
    """A way from what runs to a plan: a checked transition, and when each action is done."""

    transition: Transition
    schedule: Schedule

    @property
    def starts(self) -> int:
        """How many instances, or shares that services take in turn, start and do not go again."""
        return sum(len(a.prepared) for a in self.transition.actions if not a.is_temporary)

    @property
    def temporary(self) -> int:
        """How many instances start that go again."""
        return sum(len(a.prepared) for a in self.transition.actions if a.is_temporary)

    @property
    def seconds(self) -> Fraction:
        """How long it takes, by assumed durations."""
        return self.schedule.makespan_s


def change_to(
    now: Deployment,
    plan: Plan,
    *,
    regrouped: bool = False,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> Change | Impossible:
    """Find the way from what runs to a plan on as few GPUs, so that most of what runs is kept.

    Of all plans that cost least that is the nearest (`cms.fleet.placement.place_plan`), unless no
    way to it is found. Every service keeps the smaller of its old and its new rate at every moment.
    A plan whose services share GPUs in time stays as it was made. If `regrouped` it has to be this
    plan, of which only is chosen anew which instances share a GPU. There are at most `max_parallel`
    actions at once; the time limit is in seconds.
    """
    limits = Limits(inf if time_limit is None else time_limit, cancel)

    def find(to: DesiredState) -> Transition | Impossible:
        left = None if time_limit is None else limits.left
        return transition(
            now, to, durations=durations, max_parallel=max_parallel, time_limit=left, cancel=cancel
        )

    if isinstance(plan.serving, SharedServing):
        found = reorganise(now, plan)
    elif regrouped:
        found = find(desired_state(plan))
    else:
        half = None if time_limit is None else time_limit / 2  # what is left is for the way
        near = place_plan(plan, now, time_limit=half, cancel=cancel)
        if isinstance(near, PlacementInfeasible):
            return Impossible(near.reasons, near.proof)
        found = find(near.wanted)
        if isinstance(found, Impossible):
            found = find(desired_state(plan))
    if isinstance(found, Impossible):
        return found
    return Change(found, schedule(found, durations, max_parallel))


def count_gpus(deployment: Deployment) -> int:
    """Count the GPUs with managed work."""
    return sum(map(has_our_work, deployment.gpus()))


class Supplied(NamedTuple):
    """A service's last rate, what runs for it now, and what will run after the change."""

    service: str
    rate_rps: Fraction
    has_rps: Fraction
    will_have_rps: Fraction


@dataclass(frozen=True)
class ReplanDecision:
    """What is done now, and why."""

    now: Deployment  #: what runs, its supplies counted by the planner's rule and limits
    history: Rates  #: the observed rates; now is their last moment
    terms: Terms
    forecast: Forecast
    windows: Windows  #: those ahead, as far as planned
    decision: Decision
    way: Change  #: to what is wanted; without actions where it goes on

    @property
    def keeps(self) -> bool:
        """Whether it goes on with what runs: then the way has no actions."""
        return not self.way.transition.actions

    @property
    def services(self) -> tuple[Supplied, ...]:
        """What each service is asked for, has and will have."""
        then = self.way.transition.target
        return tuple(
            Supplied(name, rate, self.now.capacity(name), then.capacity(name))
            for name, rate in self.windows.now.items()
        )

    def said(self, moment: int) -> str:
        """Say a moment of the windows: a date and time, or seconds."""
        return self.history.said(self.history.count - 1 + moment * self.windows.every)


def replan(
    now: Deployment,
    history: Rates,
    planner: Planner,
    forecast: Forecast,
    terms: Terms | None = None,
    *,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> ReplanDecision | Impossible:
    """Decide whether to go on with what runs, and plan the way where not.

    Plans are for the GPUs that are there, beside what is foreign (`list_available`).
    Nothing is remembered: the same files give the same answer, and what it leads to is gone on with
    while rates stay as they were foreseen. The last of the observed rates is now's. Load curves of
    what runs count where the planner has no other of their points. The time limit, in seconds, is
    for the way: plans have the planner's own. `Impossible` if there is no way to the plan decided
    on; InvalidProblem if rates and services are not the same, something runs of no service, or the
    rates do not say enough for the forecast; NoPath if what runs is not enough, and no plan is for
    the rates ahead; CmsError if time was up.

    Examples
    --------
    >>> from cms.fleet import OperatingPoint, Service, get_gpu
    >>> from cms.fleet.replanner import Latest, empty_fleet
    >>> card = get_gpu("a30-24gb")
    >>> points = [OperatingPoint("bert", card.key, "1g.6gb", 1, 1, 10, 5)]
    >>> planner = Planner([Service("chat", "bert", 0, 100)], points, [card], rule="plain")
    >>> rates = Rates(Fraction(0), Fraction(1800), {"chat": (Fraction(25), Fraction(35))})
    >>> found = replan(empty_fleet({card.key: 2}, {card.key: card}), rates, planner, Latest())
    >>> found.keeps, found.way.starts, found.decision.short
    (False, 4, ('chat',))
    """
    terms = terms or Terms()
    names = [each.name for each in planner.services]
    same_services(history, names)
    for card, each in now.instances():
        if each.work is not None and each.is_managed and (it := each.work.service) not in names:
            raise InvalidProblem(
                f"{it!r} runs on {card.name} and is no service{nearest(it, names)}; expected a row "
                "of it among the services; with rates of 0 it is stopped"
            )
    planner = planner.on(now)
    windows = terms.windows(forecast, history.of(names), planner)
    asked = planner.serving(windows.now)
    now = recounted(now, asked.services, asked.rule)
    services = {each.name: each for each in asked.services}
    works = {each.work for _, each in now.instances() if each.work and each.is_managed}
    old = {each.service for each in beyond_limits(works, services, asked.rule)}
    old |= {each.service for each in works if each.point.model != services[each.service].model}
    has = {it: -Fraction(1) if it in old else now.capacity(it) for it in names}  # not even for 0
    try:
        found = decide(windows, has, planner.cost_of(now), terms.hysteresis)
    except NoPath as fault:
        at = fault.at
        first, last = (history.said(history.count - 1 + it * windows.every) for it in (at, at + 1))
        needs = windows.needs(at, at + 1)
        rates = ", ".join(f"{name} {shown(round(rate))}" for name, rate in needs.items())
        nearer = f"look ahead only until {first}, " if at else ""
        said = (
            f"no plan on the GPUs there are serves the rates from {first} to {last}, with the "
            f"margin in requests/s: {rates}; add GPUs to what runs, lower the margin, {nearer}or "
            "look with cms plan where it fails"
        )
        raise NoPath(at, said) from None
    way: Change | Impossible
    if found.keeps or found.plan is None:
        nothing = transition(now, replace(now, services=asked.services))
        if isinstance(nothing, Impossible) or nothing.actions:
            raise AlgorithmError("transition", f"to what runs already: {nothing}")
        way = Change(nothing, schedule(nothing))
    else:
        way = change_to(
            now, found.plan, regrouped=terms.regrouped, durations=durations,
            max_parallel=max_parallel, time_limit=time_limit, cancel=cancel,
        )  # fmt: skip
    if isinstance(way, Impossible):
        return way
    return ReplanDecision(now, history, terms, forecast, windows, found, way)


def same_services(rates: Rates, services: Iterable[str]) -> None:
    """Refuse rates that are not of these services, each, with the nearest name."""
    known = list(services)
    for name in rates.services:
        if name not in known:
            raise InvalidProblem(
                f"there are rates of {name!r}, which is no service{nearest(name, known)}; expected "
                "a row of it among the services, or no rates"
            )
    for name in known:
        if name not in rates.services:
            raise InvalidProblem(
                f"the service {name!r} has no rates{nearest(name, rates.services)}; expected those "
                "of every service; a rate of 0 says that it is not asked for"
            )


@dataclass(frozen=True)
class Decision:
    """What to do now: go on with what runs (`keeps`), or change to the first window's `plan`.

    `keep` is the best way that goes on until it begins, `change` the best way that changes now;
    None if there is no such way. Of services that are `short` less runs than is asked for now.
    Going on may cost more than changing by the hysteresis.
    """

    keeps: bool
    keep: Path | None
    change: Path | None
    plan: Plan | None
    short: tuple[str, ...]


def decide(
    windows: Windows,
    has_rps: Mapping[str, Fraction],
    gpu_cost: Fraction,
    hysteresis: Fraction = Fraction(0),
) -> Decision:
    """Decide whether to go on with what runs: requests per second by service, at a cost.

    It goes on if it is enough at least until the next moment, and the best way that begins with it
    costs at most a margin more than the best way that changes now. Enough is what, with the
    hysteresis on top, covers rates and margin. What is short now is replaced whatever that costs.
    The windows' first rates are those observed. NoPath if what runs is not enough and the rates
    ahead have no plan.
    """
    short = tuple(name for name, rate in windows.now.items() if has_rps.get(name, 0) < rate)

    def start(at: int) -> Start:
        return Start(at, gpu_cost * at * windows.hours, lambda c: windows.between(has_rps, at, c))

    def does(until: int) -> bool:
        needs = windows.needs(0, until).items()
        return all((1 + hysteresis) * has_rps.get(name, 0) >= rate for name, rate in needs)

    def best(moments: Iterable[int]) -> Path | NoPath:
        try:
            return shortest(windows, [start(at) for at in moments], windows.change)
        except NoPath as fault:
            return fault

    change = best([0])
    lasting = 0  # rates only grow with the window
    while not short and lasting < windows.count and does(lasting + 1):
        lasting += 1
    keep = best(range(1, lasting + 1)) if lasting else None
    if isinstance(change, NoPath):
        if not isinstance(keep, Path):
            raise keep or change
        return Decision(True, keep, None, None, short)
    keep = keep if isinstance(keep, Path) else None
    keeps = keep is not None and keep.cost <= (1 + hysteresis) * change.cost
    return Decision(keeps, keep, change, windows.ask(*change.windows[0]), short)


#: A path's length, then what decides between paths of one length: how many windows, where they end.
_Key: TypeAlias = "tuple[Fraction, int, tuple[int, ...]]"


@dataclass(frozen=True)
class Start:
    """A moment at which a path may begin, and the cost of what comes before."""

    at: int
    cost: Fraction
    enter: Callable[[int], Fraction]  #: the cost of going over to the first window, by its end


@dataclass(frozen=True)
class Path:
    """Windows (from, until) one after the other from `begin` on; the cost has their changes."""

    cost: Fraction
    windows: tuple[tuple[int, int], ...]
    begin: int


class NoPath(CmsError):
    """No plan serves the moment `at`, the first such one, whatever the windows."""

    def __init__(self, at: int, message: str = "") -> None:
        super().__init__(message or f"no plan serves the rates from moment {at} to the next")
        self.at = at


def shortest(
    windows: Windows, starts: Sequence[Start], between: Callable[[int, int, int], Fraction]
) -> Path:
    """Find the best way on from one of some beginnings, or none (NoPath); plan its windows.

    `between` gives the cost of going over from window (a, b) to window (b, c). Of the shortest
    paths it is one with the fewest windows; of those, the one whose ends come first.
    """
    change, last = cache(between), windows.count

    def find() -> tuple[_Key, int] | None:
        @cache
        def way(a: int, b: int) -> _Key | None:  # the shortest one on from a window, with it
            if (cost := windows.cost(a, b)) is None:
                return None
            rests: list[_Key] = [(Fraction(0), 0, ())] if b == last else []
            for c in range(b + 1, last + 1):
                if (rest := way(b, c)) is not None:
                    rests.append((rest[0] + change(a, b, c), rest[1], rest[2]))
            if not rests:
                return None
            length, number, ends = min(rests)
            return length + cost, number + 1, (b, *ends)

        found: list[tuple[_Key, int]] = []
        for start in starts:
            if start.at == last:
                found.append(((start.cost, 0, ()), start.at))
            for b in range(start.at + 1, last + 1):
                if (key := way(start.at, b)) is not None:
                    cost = key[0] + start.cost + start.enter(b)
                    found.append(((cost, key[1], key[2]), start.at))
        return min(found, default=None)

    return _settled(windows, find)


def fewest(windows: Windows, most: int) -> Path:
    """Find the windows, at most `most`, that cost least, changes aside; NoPath if none do."""
    last = windows.count

    def find() -> tuple[_Key, int] | None:
        @cache
        def rest(a: int, most: int) -> _Key | None:
            if a == last:
                return Fraction(0), 0, ()
            found = list[_Key]()
            for b in range(a + 1, last + 1) if most else ():
                cost, after = windows.cost(a, b), rest(b, most - 1)
                if cost is not None and after is not None:
                    found.append((after[0] + cost, after[1] + 1, (b, *after[2])))
            return min(found, default=None)

        whole = rest(0, min(most, last))
        return None if whole is None else (whole, 0)

    return _settled(windows, find)


def _settled(windows: Windows, find: Callable[[], tuple[_Key, int] | None]) -> Path:
    """Find a path, plan its windows, and again, until all windows of the path are planned."""
    while True:
        found = find()
        if found is None:
            # where the shortest window has no plan, longer ones have none either
            holes = (a for a in range(windows.count) if windows.cost(a, a + 1) is None)
            raise NoPath(next(holes, 0))
        (cost, _, ends), begin = found
        used = tuple(pairwise((begin, *ends)))
        open_ones = [each for each in used if each not in windows.asked]
        if not open_ones:
            return Path(cost, used, begin)
        for each in open_ones:
            windows.ask(*each)
