"""Whether to keep or to change the current plan, and the best times to change it.

The best times are a shortest path over windows without holes, of which few need to be planned.
Windows that were not planned stand with a bound from below; the shortest path under these bounds is
found, its windows are planned, and so on until all of them are. Then no other path is shorter: the
answer, ties included, is the one that planning every window would give.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Protocol, TypeAlias

from ...errors import AlgorithmError, CmsError, InvalidProblem
from ...values.names import nearest
from ...values.numbers import shown
from ..deployment import Deployment
from ..deployment.recounting import recounted
from ..deployment.transition import Durations, Impossible, schedule, transition
from ..serving.plan import Plan
from .changing import Change, change_to
from .forecast import Forecast
from .rates import Rates, format_time
from .windows import Planner, Terms, Windows


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
    def has_rps(self) -> dict[str, Fraction]:
        """Items per second that run now, by service."""
        return _has(self.now, self.windows.planner)

    @property
    def will_have_rps(self) -> dict[str, Fraction]:
        """Items per second that run when the change is done, by service."""
        return _has(self.way.transition.target, self.windows.planner)

    def said(self, moment: int) -> str:
        """Say a moment of the windows: a date and time, or seconds."""
        at_s = self.history.end_s + moment * self.terms.every_s
        return format_time(at_s, self.history.is_clock)


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
    _refuse_unknown_work(now, names)
    planner = planner.on(now)
    empty = planner.serving(dict.fromkeys(names, Fraction(0)))
    now = recounted(now, empty.services, empty.rule)
    windows = terms.windows(forecast, history.of(names), planner)
    cost = planner.cost_of(now)
    try:
        found = decide(windows, _has(now, planner), cost, terms.hysteresis)
    except NoPath as fault:
        at = fault.at
        first, last = (
            format_time(history.end_s + moment * terms.every_s, history.is_clock)
            for moment in (at, at + 1)
        )
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
        nothing = transition(now, now)
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


def _has(now: Deployment, planner: Planner) -> dict[str, Fraction]:
    return {each.name: now.capacity(each.name) for each in planner.services}


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


def _refuse_unknown_work(now: Deployment, names: Iterable[str]) -> None:
    known = set(names)
    managed = {
        each.work.service: card.name
        for card, each in now.instances()
        if each.work is not None and each.is_managed
    }
    for name, where in managed.items():
        if name not in known:
            raise InvalidProblem(
                f"{name!r} runs on {where} and is no service{nearest(name, known)}; expected a row "
                "of it among the services; with rates of 0 it is stopped"
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

    change, hole = None, None
    try:
        change = shortest(windows, [start(0)], windows.change)
    except NoPath as fault:
        hole = fault
    lasting = 0  # rates only grow with the window
    while not short and lasting < windows.count and does(lasting + 1):
        lasting += 1
    keep = None
    if lasting:
        try:
            starts = [start(at) for at in range(1, lasting + 1)]
            keep = shortest(windows, starts, windows.change)
        except NoPath as fault:
            hole = fault
    if keep is None and change is None:
        assert hole is not None
        raise hole
    if change is None:
        return Decision(True, keep, None, None, short)
    keeps = keep is not None and keep.cost <= (1 + hysteresis) * change.cost
    plan = windows.ask(*change.windows[0])
    return Decision(keeps, keep, change, plan, short)


#: A path's length, then what decides between paths of one length: how many windows, where they end.
_Key: TypeAlias = "tuple[Fraction, int, tuple[int, ...]]"


class _Windows(Protocol):
    """Windows between moments 0 to `count`, each with a cost that may yet be a bound.

    A cost of None is endless; `ask` makes a window's cost known.
    """

    @property
    def count(self) -> int: ...
    def cost(self, a: int, b: int) -> Fraction | None: ...
    def is_asked(self, a: int, b: int) -> bool: ...
    def ask(self, a: int, b: int) -> object: ...


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
    windows: _Windows, starts: Sequence[Start], between: Callable[[int, int, int], Fraction]
) -> Path:
    """Find the best way on from one of some beginnings, or none (NoPath); plan its windows.

    `between` gives the cost of going over from window (a, b) to window (b, c). Of the shortest
    paths it is one with the fewest windows; of those, the one whose ends come first.
    """
    change = cache(between)

    def find() -> tuple[_Key, int] | None:
        ways, found = _ways(windows, change), list[tuple[_Key, int]]()
        for start in starts:
            if start.at == windows.count:
                found.append(((start.cost, 0, ()), start.at))
            for b in range(start.at + 1, windows.count + 1):
                if (way := ways.get((start.at, b))) is not None:
                    key = way[0] + start.cost + start.enter(b), way[1], way[2]
                    found.append((key, start.at))
        return min(found, default=None)

    return _settled(windows, find)


def _ways(
    windows: _Windows, change: Callable[[int, int, int], Fraction]
) -> dict[tuple[int, int], _Key]:
    """The shortest way on from each window, itself included."""
    last = windows.count
    ways: dict[tuple[int, int], _Key] = {}
    for b in range(last, 0, -1):
        for a in range(b):
            cost = windows.cost(a, b)
            if cost is None:
                continue
            rests: list[_Key] = [(Fraction(0), 0, ())] if b == last else []
            for c in range(b + 1, last + 1):
                if (way := ways.get((b, c))) is not None:
                    rests.append((way[0] + change(a, b, c), way[1], way[2]))
            if rests:
                rest = min(rests)
                ways[a, b] = rest[0] + cost, rest[1] + 1, (b, *rest[2])
    return ways


def fewest(windows: _Windows, most: int) -> Path:
    """Find the windows, at most `most`, that cost least, changes aside; NoPath if none do."""
    last = windows.count

    def find() -> tuple[_Key, int] | None:
        rests: list[_Key | None] = [None] * last + [(Fraction(0), 0, ())]
        for _ in range(min(most, last)):
            longer = list(rests)
            for a in range(last):
                for b in range(a + 1, last + 1):
                    rest, cost = rests[b], windows.cost(a, b)
                    if rest is not None and cost is not None:
                        key = rest[0] + cost, rest[1] + 1, (b, *rest[2])
                        known = longer[a]
                        longer[a] = key if known is None or key < known else known
            rests = longer
        return None if rests[0] is None else (rests[0], 0)

    return _settled(windows, find)


def _settled(windows: _Windows, find: Callable[[], tuple[_Key, int] | None]) -> Path:
    """Find a path, plan its windows, and again, until all windows of the path are planned."""
    while True:
        found = find()
        if found is None:
            # where the shortest window has no plan, longer ones have none either
            holes = (a for a in range(windows.count) if windows.cost(a, a + 1) is None)
            raise NoPath(next(holes, 0))
        (cost, _, ends), begin = found
        firsts = (begin, *ends[:-1])
        used = tuple(zip(firsts, ends, strict=False))
        open_ones = [each for each in used if not windows.is_asked(*each)]
        if not open_ones:
            return Path(cost, used, begin)
        for each in open_ones:
            windows.ask(*each)
