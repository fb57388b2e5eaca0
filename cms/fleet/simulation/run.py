"""Replay a plan: every service by itself, in threads, each with random numbers of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from fractions import Fraction

from ...errors import InvalidOption
from ...running.interrupt import CtrlC
from ...running.stopping import POLL_SECONDS
from ...solving.driver import available_cores
from ...values.numbers import Number, exact, shown, whole
from ..serving.plan import Plan
from . import model
from .arrivals import Arrivals, EachItsOwn, Poisson, Replay
from .events import Event, RateChange, check_events, concerned, nanoseconds
from .judging import left_out, result_of
from .kernel import advance_lists
from .model import BRIEF, SECOND, ModelledService, services_of
from .replay import Loop, ServiceReplay, Until, routing_of
from .result import ServiceResult, Simulation
from .statistics import Verdict

#: By default a service gets 200,000 requests; with events 600 seconds.
REQUESTS, SECONDS = 200_000, 600
#: Fewer requests than these are worked off before compiled code would be there.
_WORTH_COMPILING = 50_000


def simulate(
    plan: Plan | Sequence[ModelledService],
    arrivals: Arrivals | None = None,
    routing: str | None = None,
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
    """Replay a plan, request by request, and find which latency limits are met.

    Requests of a service are spread over its instances; a request begins at once, alone, if a
    process is idle; else it waits, and a process that gets idle takes a batch of those that wait.
    Nothing waits for a full batch. The same seed and arrivals give a service the same requests
    whatever its instances and the routing are, so plans and policies are compared on equal terms. A
    service that counts on a curve of something else than these batches, such as a measured one, is
    not replayed; its verdict is ``NOT_REPLAYED``.

    `plan`: without a schedule, every request is lost. `arrivals`: Poisson by default. `routing`: a
    key of :data:`cms.fleet.simulation.replay.ROUTINGS`; by default that of the plan's routing,
    ``"weighted_random"`` or ``"equal_random"``. `seconds`, `requests`: of each service;
    with both, `requests` is the most, for services whose verdict is open after `seconds`; by
    default 200,000 requests, or with events 600 seconds. `rate`: the factor of all rates.
    `on_failure`: ``"retry"`` sends requests that a failure hits to another instance, once,
    ``"lose"`` does not. `seed`: the same seed, the same result, whatever the number of threads.
    `threads`: by default one a core. `plain`: whether the loop is not compiled, as by default for
    small runs. `cancel`: set it to end the run, as Ctrl-C does; the results until then are
    returned. `on_progress`: gets the numbers of requests that have arrived and are expected, from
    any thread, one at a time.

    Examples
    --------
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService
    >>> instances = [ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 8)] * 2
    >>> chat = ModelledService("chat", Fraction(1000), 25_000_000, Fraction(1, 100), instances)
    >>> print(simulate([chat], requests=2000))
    chat: MET: p99 is 85.5% of 25 ms, 0.000% of 2,000 requests late
    1 of 1 limits met under Poisson arrivals, weighted random routing, 2,000 requests each
    """
    serving = plan.unshared("the simulator of queues") if isinstance(plan, Plan) else None
    modelled, warnings = services_of(plan) if isinstance(plan, Plan) else (tuple(plan), ())
    own_routing = "weighted" if serving is None else serving.routing
    process, how = arrivals or Poisson(), routing_of(routing or f"{own_routing}_random")
    factor = exact(rate, "the factor of all rates", error=InvalidOption)
    until = _until(seconds, requests, events)
    seed = whole(seed, "the seed", least=0, error=InvalidOption)
    if on_failure not in ("retry", "lose"):
        raise InvalidOption(f"on_failure is {on_failure!r}; expected 'retry' or 'lose'")
    check_events(events, modelled)
    own = [*process.own.values(), process.others] if isinstance(process, EachItsOwn) else [process]
    for one in own if factor != 1 else ():
        if isinstance(one, Replay) and not one.scaled:
            said = f"all rates are to be multiplied, and the trace {one.name} is as recorded"
            raise InvalidOption(f"{said}, at the rate it has; expected one or the other")
    services = [replace(each, rate=each.rate * factor) for each in modelled]
    replayed = [each for each in services if not each.not_replayed]
    _refuse_extremes(replayed, until, events)
    expected = sum(until.expected(each.rate) for each in replayed if each.rate)
    loop: Loop = advance_lists
    if not (expected < _WORTH_COMPILING if plain is None else plain):
        from .compiled import advance as loop
    count = Count(expected, on_progress, cancel)

    def replay_one(service: ModelledService) -> ServiceResult:
        if service.not_replayed:
            return left_out(service)
        retry = on_failure == "retry"
        found = ServiceReplay(service, events, process, how, until, loop, seed=seed, retry=retry)
        return result_of(found.run(count))

    cores = available_cores() if threads is None else threads
    threads = whole(cores, "the number of threads", least=1, error=InvalidOption)
    with CtrlC() as interrupt, ThreadPoolExecutor(threads, "cms-simulate") as pool:
        count.cancels.append(interrupt.cancel)
        try:
            futures = [pool.submit(replay_one, each) for each in services]
            # Ctrl-C arrives between two looks, not while this thread waits for a lock.
            while (at := wait(futures, POLL_SECONDS, FIRST_EXCEPTION)).not_done:
                if any(each.exception() for each in at.done):
                    break
            results = tuple(each.result() for each in futures)
        except BaseException:
            count.stopped = True  # or the other threads would go on to their ends
            raise
    return Simulation(
        services=results, arrivals=process.name, routing=how.says, seed=seed, rate=factor,
        seconds=None if until.ns is None else Fraction(until.ns, SECOND), requests=until.requests,
        on_failure=on_failure, events=tuple(map(str, events)),
        rule=serving.rule.name if serving else "",
        promised=serving is not None and serving.promise is not None,
        problem_sha256=serving.problem.sha256 if serving else "",
        warnings=(*warnings, *(() if count.stopped else _too_late(events, results, until))),
        stopped=count.stopped,
    )  # fmt: skip


def _until(seconds: Number | None, requests: int | None, events: Sequence[Event]) -> Until:
    if seconds is None and requests is None:
        return Until(SECONDS * SECOND, None) if events else Until(None, REQUESTS)
    time = None
    if requests is not None:
        requests = whole(requests, "the number of requests", least=1, error=InvalidOption)
    if seconds is not None:
        length = exact(seconds, "the length of the run", error=InvalidOption)
        if not 1 <= (time := nanoseconds(length)) <= model.LONGEST_NS:
            said = f"the run is to last {shown(length, BRIEF)} seconds"
            raise InvalidOption(f"{said}; expected a number > 0, at most nine years")
    return Until(time, requests)


def _refuse_extremes(
    services: Sequence[ModelledService], until: Until, events: Sequence[Event]
) -> None:
    """Refuse what nanoseconds of 64 bits cannot hold."""
    for each in services:
        peak = each.rate
        for one in events:
            if isinstance(one, RateChange) and one.service in (None, each.name):
                peak = max(peak, each.rate * exact(one.factor, "a factor"))
        if peak > model.FASTEST:
            said = f"service {each.name!r} gets {shown(peak, BRIEF)} requests/s"
            raise InvalidOption(f"{said}; at most {model.FASTEST:,} are simulated")
        expected = until.expected(peak) if each.rate else 0
        longest = max((max(one.fill_ns) for one in each.instances), default=0) * max(expected, 1)
        slow = until.ns is None and expected * SECOND > each.rate * model.LONGEST_NS
        if slow or longest > model.LONGEST_NS:
            said = f"the {expected:,} requests of service {each.name!r} may take longer than"
            raise InvalidOption(f"{said} nine years; simulate fewer, or fewer seconds")


class Count:
    """Adds up the requests of all threads, and says whether the run is to end."""

    def __init__(
        self, expected: int, tell: Callable[[int, int], None] | None, cancel: threading.Event | None
    ) -> None:
        self.stopped = False
        self.cancels = [] if cancel is None else [cancel]
        self._done, self._expected, self._tell = 0, expected, tell
        self._lock = threading.Lock()

    def __call__(self, requests: int) -> bool:
        """Count requests; return whether the run is to end."""
        with self._lock:
            self._done += requests
            if requests and self._tell is not None:
                self._tell(self._done, max(self._expected, self._done))
            self.stopped |= any(each.is_set() for each in self.cancels)
            return self.stopped


def _too_late(
    events: Sequence[Event], results: Sequence[ServiceResult], until: Until
) -> tuple[str, ...]:
    """Say of events that the run ended before them."""
    found = []
    replayed = [each for each in results if each.verdict is not Verdict.NOT_REPLAYED]
    for event in events:
        ends = [each.seconds for each in replayed if concerned(event) in (None, each.name)]
        end = max(ends, default=Fraction(0)) if until.ns is None else Fraction(until.ns, SECOND)
        if ends and exact(event.seconds, "a time") >= end:
            said = shown(end, BRIEF)
            found.append(f"{event}: the run ends before, after {said} s; let it last longer")
    return tuple(found)
