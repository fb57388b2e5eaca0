"""Replay a plan: every service by itself, in threads, each with random numbers of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidOption
from ...solving.arguments import available_cores
from ...values.numbers import Number, exact, shown, whole
from ..serving.plan import Plan
from . import reference
from .arrivals import Arrivals, Poisson
from .events import (
    Change,
    Event,
    Failure,
    RateChange,
    Script,
    check_events,
    nanoseconds,
    script_of,
)
from .model import SECOND, ModelledService
from .plan_model import services_of
from .replay import Loop, Outcome, Until, replay
from .result import Recovery, ServiceResult, Simulation, Timeline
from .routing import Routing, routing_of
from .statistics import Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["REQUESTS", "SECONDS", "simulate"]

#: Without any wish, a service gets so many requests; with events, so many seconds.
REQUESTS, SECONDS = 200_000, 600
#: Fewer requests than these are worked off before compiled code would be there.
_WORTH_COMPILING = 50_000
_GOOD_CELLS = 3


def simulate(
    plan: Plan | Sequence[ModelledService],
    arrivals: Arrivals | None = None,
    routing: str = "weighted_random",
    *,
    seconds: Number | None = None,
    requests: int | None = None,
    events: Sequence[Event] = (),
    rate: Number = 1,
    on_failure: str = "retry",
    seed: int = 0,
    threads: int | None = None,
    plain: bool | None = None,
    cancel: threading.Event | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Replay a plan, request by request, and see which latency limits it keeps.

    Requests of a service are spread over its instances; one with an idle process begins at once,
    alone; else requests wait, and a process that gets idle takes as many as its batch holds.
    Nothing waits for a batch to get full.

    Parameters
    ----------
    plan : Plan or sequence of ModelledService
        Without a schedule, every request is lost.
    arrivals : Arrivals, default ``Poisson()``
        How requests come.
    routing : str, default ``"weighted_random"``
        How they are spread; a key of :data:`cms.fleet.simulation.routing.ROUTINGS`.
    seconds : number, optional
        How long a service is replayed.
    requests : int, optional
        How many requests it gets; with `seconds`, at most how many: it goes on where the verdict
        is open. By default 200,000, or with events 600 seconds.
    events : sequence of Event
        What happens meanwhile.
    rate : number, default 1
        What all rates are multiplied by.
    on_failure : {"retry", "lose"}
        Whether requests that a failure hits are sent to another instance, once.
    seed : int, default 0
        The same seed, the same result, whatever the number of threads.
    threads : int, optional
        By default one a core.
    plain : bool, optional
        Whether the loop is not compiled; by default it is where there is much to do.
    cancel : threading.Event, optional
        Set it to end the run; what was found so far is returned.
    on_progress : callable, optional
        Gets the requests that have arrived and those expected, from any thread, one at a time.

    Returns
    -------
    Simulation

    Raises
    ------
    InvalidOption
        If an argument cannot be meant.

    Notes
    -----
    The same seed and arrivals give a service the same requests whatever its instances are and
    however requests are routed, so plans and policies are compared on equal terms.

    Examples
    --------
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService
    >>> instances = [ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 8)] * 2
    >>> chat = ModelledService("chat", Fraction(1000), 25_000_000, Fraction(1, 100), instances)
    >>> print(simulate([chat], requests=2000))
    chat: KEPT: p99 is 85.5% of 25 ms, 0.000% of 2,000 requests late
    1 of 1 limits kept under Poisson arrivals, weighted random routing, 2,000 requests each
    """
    modelled, warnings = services_of(plan) if isinstance(plan, Plan) else (tuple(plan), ())
    process, how = arrivals or Poisson(), routing_of(routing)
    factor = exact(rate, "the factor of all rates", error=InvalidOption)
    until = _until(seconds, requests, events)
    seed = whole(seed, "the seed", least=0, error=InvalidOption)
    if on_failure not in ("retry", "lose"):
        raise InvalidOption(f"on_failure is {on_failure!r}; expected 'retry' or 'lose'")
    check_events(events, modelled)
    services = [replace(each, rate=each.rate * factor) for each in modelled]
    expected = sum(until.expected(each.rate) for each in services if each.rate)
    loop = _loop(expected < _WORTH_COMPILING if plain is None else plain)
    count = _Count(expected, on_progress, cancel)

    def one(service: ModelledService) -> ServiceResult:
        script = script_of(service, events)
        found = replay(
            service, script, process, how, until, loop, seed=seed, retry=on_failure == "retry",
            on_piece=count,
        )  # fmt: skip
        return _result(service, script, how, found)

    with ThreadPoolExecutor(_threads(threads), "cms-simulate") as pool:
        results = tuple(pool.map(one, services))
    rule = plan.serving.rule if isinstance(plan, Plan) else None
    return Simulation(
        services=results,
        arrivals=process.name,
        routing=how.says,
        seed=seed,
        rate=factor,
        seconds=None if until.ns is None else Fraction(until.ns, SECOND),
        requests=until.requests,
        on_failure=on_failure,
        events=tuple(map(in_words, events)),
        rule=rule.name if rule else "",
        promised=getattr(rule, "promise", None) is not None,
        problem_sha256=plan.serving.problem.sha256 if isinstance(plan, Plan) else "",
        warnings=warnings,
        stopped=count.stopped,
    )


def _until(seconds: Number | None, requests: int | None, events: Sequence[Event]) -> Until:
    if seconds is None and requests is None:
        return Until(SECONDS * SECOND, None) if events else Until(None, REQUESTS)
    if requests is not None:
        requests = whole(requests, "the number of requests", least=1, error=InvalidOption)
    if seconds is None:
        return Until(None, requests)
    time = nanoseconds(exact(seconds, "the length of the run", error=InvalidOption))
    if time < 1:
        raise InvalidOption("the run is to last 0 seconds; expected a number > 0")
    return Until(time, requests)


def _threads(threads: int | None) -> int:
    if threads is None:
        return available_cores()
    return whole(threads, "the number of threads", least=1, error=InvalidOption)


def _loop(plain: bool) -> Loop:
    if plain:
        return reference.advance
    from .compiled import advance

    return advance  # type: ignore[no-any-return]


class _Count:
    """Adds up the requests of all threads, and hears that the run is to end."""

    def __init__(
        self,
        expected: int,
        tell: Callable[[int, int], None] | None,
        cancel: threading.Event | None,
    ) -> None:
        self.stopped = False
        self._done, self._expected, self._tell, self._cancel = 0, expected, tell, cancel
        self._lock = threading.Lock()

    def __call__(self, requests: int) -> bool:
        with self._lock:
            self._done += requests
            if self._tell is not None:
                self._tell(self._done, max(self._expected, self._done))
            self.stopped |= self._cancel is not None and self._cancel.is_set()
            return self.stopped


def in_words(event: Event) -> str:
    """Say what happens, and when.

    Examples
    --------
    >>> in_words(RateChange(60, "1.3", "chat"))
    '60 s: the rate of chat x 1.3'
    """
    at = f"{_shown(event.seconds)} s"
    if isinstance(event, RateChange):
        whose = "all rates" if event.service is None else f"the rate of {event.service}"
        return f"{at}: {whose} x {_shown(event.factor)}"
    if isinstance(event, Failure):
        what = f"{event.service}:{event.instance}" if event.gpu is None else f"GPU {event.gpu}"
        back = event.repair_seconds
        return f"{at}: {what} fails" + (
            "" if back is None else f", repaired after {_shown(back)} s"
        )
    if isinstance(event, Change):
        parts = [f"{len(event.appear)} appear"] * bool(event.appear)
        parts += [f"{len(event.leave)} leave"] * bool(event.leave)
        return f"{at}: instances of {event.service}: {', '.join(parts) or 'no change'}"
    return f"{at}: the weight of {event.service}:{event.instance} x {_shown(event.factor)}"


def _shown(value: Number) -> str:
    return shown(exact(value, "a number"))


def _result(
    service: ModelledService, script: Script, routing: Routing, found: Outcome
) -> ServiceResult:
    tally, state = found.tally, found.state
    answered = tally.requests - tally.lost
    processes = sum(station.processes for station in script.stations)
    batches = int(state.batches.sum())
    verdict = tally.verdict(service.late_share)
    overloaded = verdict == Verdict.BROKEN and tally.overloaded(service.late_share)
    p50, p90, p99 = (tally.quantile(Fraction(share, 100)) for share in (50, 90, 99))
    return ServiceResult(
        name=service.name,
        rate_rps=service.rate,
        limit_ns=service.limit_ns,
        tolerated=service.late_share,
        instances=len(service.instances),
        seconds=Fraction(found.lasted_ns, SECOND),
        requests=tally.requests,
        late=tally.late,
        lost=tally.lost,
        retried=found.retried,
        interval=tally.interval(),
        mean_ns=tally.total_ns // (answered or 1),
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        max_ns=tally.largest,
        utilisation=_short(int(state.busy.sum()), processes * found.lasted_ns),
        mean_fill=_short(int(state.taken.sum()), batches),
        deepest_queue=int(state.deepest.max(initial=0)),
        verdict=verdict,
        overloaded=overloaded,
        cause=_cause(service, script, routing, found) if verdict == Verdict.BROKEN else "",
        recoveries=tuple(_recoveries(service, script, found)),
        timeline=_timeline(tally.cells, tally.cell_ns) if script.marks else None,
    )


def _short(part: int, whole: int) -> Fraction:
    """A ratio to six places: what is measured has no more."""
    return Fraction(round(Fraction(part, whole or 1) * 10**6), 10**6)


def _cause(service: ModelledService, script: Script, routing: Routing, found: Outcome) -> str:
    """Say why a limit was broken, where the loads tell."""
    if not service.instances:
        return "no instance serves it"
    if found.tally.lost:
        return f"{found.tally.lost:,} requests were lost"
    load = service.load
    if load is not None and load >= 1:
        most = service.rate / load
        return f"its instances work off {shown(round(most, 1))} requests/s at most"
    unlike = len({each.weight for each in service.instances}) > 1
    if routing.equal and unlike:
        work = found.state.busy / [one.processes for one in script.stations]
        worst = int(np.argmax(work))
        given = Fraction(int(found.state.taken[worst]), int(found.state.taken.sum()) or 1)
        supply = script.stations[worst].weight / sum(one.weight for one in script.stations)
        at = script.stations[worst].instance
        return (
            f"equal weights: instance {at} got {float(given):.0%} of the requests and has "
            f"{float(supply):.0%} of the supply"
        )
    return ""


def _recoveries(service: ModelledService, script: Script, found: Outcome) -> list[Recovery]:
    """When each event's effect on the late share was over."""
    cells, cell_ns = found.tally.cells, found.tally.cell_ns
    allowed = float(service.late_share) * cells[0]
    bad = cells[1] > allowed + 3 * np.sqrt(allowed)
    found_back = []
    ends = [at for at, _ in script.marks[1:]] + [cell_ns * len(bad)]
    for (at, number), end in zip(script.marks, ends, strict=False):
        first, last = at // cell_ns, min(-(-end // cell_ns), len(bad))
        after = _back(bad[first:last])
        seconds = None if after is None else Fraction(after * cell_ns, SECOND)
        if after:
            seconds = Fraction((first + after) * cell_ns - at, SECOND)
        found_back.append(Recovery(number, Fraction(at, SECOND), seconds))
    return found_back


def _back(bad: NDArray[np.bool_]) -> int | None:
    """After how many cells the first three good ones in a row begin, once one was bad."""
    if not bad.any():
        return 0
    start = int(np.argmax(bad))
    for at in range(start + 1, len(bad) - _GOOD_CELLS + 1):
        if not bad[at : at + _GOOD_CELLS].any():
            return at
    return None


def _timeline(cells: NDArray[np.int64], cell_ns: int) -> Timeline:
    requests, late, total = (row.tolist() for row in cells)
    means = [all_ns // (number or 1) for all_ns, number in zip(total, requests, strict=True)]
    return Timeline(cell_ns, tuple(requests), tuple(late), tuple(means))
