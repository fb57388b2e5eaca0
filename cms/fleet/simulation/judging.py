"""What a replay says of a service, and whether what a file says of it bears itself out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from ...errors import CmsError
from ...schedule.faults import Violation
from ...values.numbers import exact, shown
from .events import Script
from .model import SECOND, Bools, Ints, ModelledService
from .replay import Outcome, Routing
from .result import Recovery, ServiceResult, Simulation, Timeline
from .statistics import NEVER_ENOUGH, Tally, Verdict

# The late share is back when so many spans of time in a row are fine, each of at least so many
# requests on average.
_GOOD_CELLS, _JUDGED_REQUESTS = 3, 20


def result_of(
    service: ModelledService, script: Script, routing: Routing, found: Outcome
) -> ServiceResult:
    """Say what became of a service's requests."""
    tally, state = found.tally, found.state
    verdict = tally.verdict(service.late_share)
    open_ended = verdict in (Verdict.VIOLATED, Verdict.NO_LIMIT)
    processes = sum(station.processes for station in script.stations)
    return ServiceResult(
        **_asked(service), **counted(tally, found.lasted_ns), retried=found.retried,
        interval=tally.interval(),
        load=None if service.load is None else short(*service.load.as_integer_ratio()),
        utilisation=short(int(state.busy.sum()), processes * found.lasted_ns),
        mean_batch_size=short(int(state.taken.sum()), int(state.batches.sum())),
        deepest_queue=int(state.deepest.max(initial=0)), verdict=verdict,
        overloaded=open_ended and tally.overloaded(service.late_share),
        cause=_cause(service, script, routing, found, verdict),
        recoveries=tuple(_recoveries(service, script, found)),
        timeline=Timeline(tally.cell_ns, *map(tuple, _per_cell(tally))) if script.marks else None,
    )  # fmt: skip


def left_out(service: ModelledService) -> ServiceResult:
    """Say of a service that it was not replayed, and why."""
    return ServiceResult(
        **_asked(service), verdict=Verdict.NOT_REPLAYED, cause=service.not_replayed
    )


def _asked(service: ModelledService) -> dict[str, Any]:
    return {
        "name": service.name, "rate_rps": service.rate, "limit_ns": service.limit_ns,
        "tolerated": service.late_share, "instances": len(service.instances),
    }  # fmt: skip


def counted(tally: Tally, lasted_ns: int) -> dict[str, Any]:
    """Return the counts and latencies of a tally as a service's record has them."""
    quantiles = {f"p{n}_ns": tally.quantile(Fraction(n, 100)) for n in (50, 90, 99)}
    return {
        "seconds": Fraction(lasted_ns, SECOND), "requests": tally.requests, "late": tally.late,
        "lost": tally.lost, "mean_ns": tally.total_ns // (tally.requests - tally.lost or 1),
        **quantiles, "max_ns": tally.largest,
    }  # fmt: skip


def short(part: int, whole: int) -> Fraction:
    """Return a ratio to six places: what is measured has no more."""
    return Fraction(round(Fraction(part, whole or 1) * 10**6), 10**6)


def _cause(
    service: ModelledService, script: Script, routing: Routing, found: Outcome, verdict: Verdict
) -> str:
    """Say why a limit was violated, where the loads tell, or how many requests would tell.

    Of a service without a limit, what keeps it from being served at its rate.
    """
    tally, load = found.tally, service.load
    full = load is not None and load >= 1
    never = load is not None and tally.needed == NEVER_ENOUGH > tally.requests
    if verdict is Verdict.UNDECIDED and not never:
        return tells_too_little(tally, load)
    lost = bool(tally.lost or (service.rate and not service.instances))
    if verdict is Verdict.MET or (verdict is Verdict.NO_LIMIT and not lost and not full):
        return ""
    if not service.instances:
        return "no instance serves it"
    if tally.lost:
        return f"{tally.lost:,} requests were lost"
    if load is not None and load >= 1:
        return works_off(service.rate / load)
    if routing.equal and len({each.weight for each in service.instances}) > 1:
        work = found.state.busy / [one.processes for one in script.stations]
        worst = int(np.argmax(work))
        given = Fraction(int(found.state.taken[worst]), int(found.state.taken.sum()) or 1)
        supply = script.stations[worst].weight / sum(one.weight for one in script.stations)
        at = script.stations[worst].instance
        return (
            f"equal weights for unlike instances: instance {at} got {_percent(given)} of the "
            f"requests and has {_percent(supply)} of the supply"
        )
    return ""


def _per_cell(tally: Tally) -> tuple[list[int], list[int], list[int]]:
    """Return requests, late ones and the mean latency of each cell of time."""
    requests, late, seconds, rests = (row.tolist() for row in tally.cells)
    parts = zip(seconds, rests, requests, strict=True)
    return requests, late, [(whole * SECOND + rest) // (n or 1) for whole, rest, n in parts]


def works_off(most: Fraction) -> str:
    """Say how many requests a second a service's instances work off."""
    return f"its instances work off {shown(round(most, 1))} requests/s at most"


def tells_too_little(tally: Tally, load: Fraction | None) -> str:
    """Say how many requests would tell; empty where there were as many."""
    if load is None or tally.requests >= tally.needed:
        return ""
    if tally.needed == NEVER_ENOUGH:
        return "at full load no number of requests tells"
    step = 10 ** (len(str(tally.needed)) - 2)
    wanted = -(-tally.needed // step) * step
    return (
        f"{tally.requests:,} requests tell too little at {float(100 * load):.1f} % load; "
        f"--requests {wanted} would do"
    )


def _percent(share: Fraction) -> str:
    return f"{float(share):.0%}".replace("%", " %")


def _recoveries(service: ModelledService, script: Script, found: Outcome) -> list[Recovery]:
    """When each event's effect on the late share was over."""
    cells, cell_ns = _spans(found.tally.cells, found.tally.cell_ns)
    allowed = float(service.late_share) * cells[0]
    bad = cells[1] > allowed + 3 * np.sqrt(allowed)
    found_back = []
    ends = [at for at, _ in script.marks[1:]] + [cell_ns * len(bad)]
    for (at, number), end in zip(script.marks, ends, strict=False):
        first, last = at // cell_ns, min(-(-end // cell_ns), len(bad))
        after = _back(bad[first:last])
        passed = (first + after) * cell_ns - at if after else 0
        back = None if after is None else Fraction(passed, SECOND)
        found_back.append(Recovery(number, Fraction(at, SECOND), back))
    return found_back


def _spans(cells: Ints, cell_ns: int) -> tuple[Ints, int]:
    """Put cells together until a share of their requests says something."""
    requests, number = int(cells[0].sum()), cells.shape[1]
    together = max(-(-_JUDGED_REQUESTS * number // max(requests, 1)), 1)
    edges = np.arange(0, number, together)
    return (np.add.reduceat(cells, edges, axis=1) if number else cells), cell_ns * together


def _back(bad: Bools) -> int | None:
    """After how many cells the first three good ones in a row begin, once one was bad."""
    if not bad.any():
        return 0
    for at in range(int(np.argmax(bad)) + 1, len(bad) - _GOOD_CELLS + 1):
        if not bad[at : at + _GOOD_CELLS].any():
            return at
    return None


#: Quantiles may be so many times too long, and the last batch be rounded down by a nanosecond.
_BIN, _ROUNDED = Fraction(1001, 1000), 1
#: Whether something is wrong, its kind, what there is, and what is needed.
_Check = tuple[bool, str, str, str]


def simulation_faults(simulation: Simulation) -> Iterator[Violation]:
    """List what contradicts itself; that the requests ran so, only a replay of the plan shows."""
    if simulation.promised and not simulation.rule:
        yield Violation("promised", "the simulation", "a promise by no rule", "a rule")
    times: dict[int, Fraction] = {}
    for each in simulation.services:
        for wrong, kind, had, needs in _checks(each, simulation, times):
            if wrong:
                yield Violation(kind, f"service {each.name!r}", had, needs)


def _checks(each: ServiceResult, run: Simulation, times: dict[int, Fraction]) -> Iterator[_Check]:
    if each.verdict is Verdict.NOT_REPLAYED:
        yield from _left_out(each)
        return
    yield from chain(_counts(each, run), _late(each), _latencies(each), _verdict(each))
    yield from chain(_events(each, run, times), _timeline_checks(each))


def _left_out(each: ServiceResult) -> Iterator[_Check]:
    any_ = bool(each.requests or each.late or each.lost or each.max_ns or each.timeline)
    had, needs = f"{each.requests:,} requests, {each.late:,} late", "since it is not replayed"
    yield any_, "verdict", had, f"none, {needs}"
    yield not each.cause, "verdict", "no cause", f"one, {needs}"


def _counts(each: ServiceResult, run: Simulation) -> Iterator[_Check]:
    """Of requests, as far as the run allows; the reader has compared lost, late and all of them."""
    n, answered, most = each.requests, each.requests - each.lost, each.requests + each.retried
    few, needs = min(answered, 1), f"at most its {n:,} requests"
    yield each.retried > n, "retried", f"{each.retried:,} requests retried", needs
    yield each.deepest_queue > most, "queue", f"a queue of {each.deepest_queue:,}", needs
    yield (
        not few <= each.mean_batch_size <= most, "fill",
            f"batches of {shown(each.mean_batch_size)} requests",
        f"{few} to {most:,}, by its requests",
    )  # fmt: skip
    unequal = each.limit_ns is None and each.late != each.lost
    had = f"{each.late:,} late and {each.lost:,} lost"
    yield unequal, "late", had, "as many, since it has no limit"
    allowed = n if run.requests is None else run.requests
    yield n > allowed, "requests", f"{n:,} requests", f"at most the {allowed:,} of the run"
    if not run.events:
        odd = bool(each.retried) or each.lost not in (0, n)
        had = f"{each.lost:,} of {n:,} lost and {each.retried:,} retried"
        yield odd, "lost", had, "none or all lost: nothing happens in the run"
        odd = not each.instances and bool(answered)
        yield odd, "lost", f"{answered:,} requests answered", "none: it has no instance"
    had = f"{each.instances} instances and {'no' if each.load is None else 'a'} load"
    wrong = (each.load is None) != (not each.instances)
    yield wrong, "load", had, "a load just if it has instances"
    yield each.utilisation > 1, "utilisation", shown(each.utilisation), "at most 1"
    too_long = bool(n) and each.max_ns > each.seconds * SECOND + _ROUNDED
    had = f"a latency of {each.max_ns} ns in {shown(each.seconds)} s"
    yield too_long, "seconds", had, "a run as long as its longest latency"


def _late(each: ServiceResult) -> Iterator[_Check]:
    low, high = each.interval
    yield (
        not 0 <= low <= each.late_share <= high <= 1, "late",
        f"a late share of {shown(each.late_share)}",
        f"one within its interval, {shown(low)} to {shown(high)}, and that from 0 to 1",
    )  # fmt: skip
    if each.limit_ns is None:
        return
    late, answered = each.late - each.lost, each.requests - each.lost
    yield (
        (late > 0) != (each.max_ns > each.limit_ns), "late",
        f"{late:,} answered late, the longest after {each.max_ns} ns",
        f"late ones just if that is beyond {each.limit_ns} ns",
    )  # fmt: skip
    for percent, took in ((50, each.p50_ns), (90, each.p90_ns), (99, each.p99_ns)):
        within = answered - late >= math.ceil(Fraction(percent * answered, 100))
        wrong = took > each.limit_ns * _BIN if within else took <= each.limit_ns
        had = f"{late:,} of {answered:,} answered late and {took} ns at {percent} %"
        where = "within" if within else "beyond"
        yield bool(answered) and wrong, "late", had, f"that {where} {each.limit_ns} ns"


def _latencies(each: ServiceResult) -> Iterator[_Check]:
    took = each.p50_ns, each.p90_ns, each.p99_ns, each.max_ns
    had = f"{took[0]}, {took[1]}, {took[2]} and {took[3]} ns at 50, 90, 99 and 100 %"
    yield [*took] != sorted(took), "latency", had, "quantiles that ascend"
    least = each.p50_ns / (2 * _BIN) - _ROUNDED  # half of them take as long
    yield (
        not least <= each.mean_ns <= each.max_ns, "latency", f"a mean of {each.mean_ns} ns",
        f"one from half its median, {each.p50_ns} ns, to its longest, {each.max_ns} ns",
    )  # fmt: skip
    wrong = (each.requests == each.lost) != (not each.p50_ns)
    had = f"a median of {each.p50_ns} ns"
    yield wrong, "latency", had, "one > 0 just if a request is answered"


def _verdict(each: ServiceResult) -> Iterator[_Check]:
    low, high = each.interval
    beyond = f"an interval of {shown(low)} to {shown(high)}, {shown(each.tolerated)} tolerated"
    for verdict, wrong, needs in (
        (Verdict.MET, bool(each.requests) and high > each.tolerated, "all of it"),
        (Verdict.VIOLATED, low <= each.tolerated and not each.overloaded, "none of it"),
        (Verdict.UNDECIDED, low > each.tolerated, "some of it"),
    ):
        said = f"{needs} tolerated, since it is said to be {verdict}"
        yield wrong and each.verdict is verdict, "verdict", beyond, said
    odd = each.overloaded and each.verdict not in (Verdict.VIOLATED, Verdict.NO_LIMIT)
    needs = "one that is violated, since its queues grew throughout"
    yield odd, "verdict", f"the verdict {each.verdict}", needs


def _events(each: ServiceResult, run: Simulation, times: dict[int, Fraction]) -> Iterator[_Check]:
    """Compare what a service says of events with the run, and with the other services."""
    before = (Fraction(0), -1)
    for one in each.recoveries:
        what, n = f"event {one.event} at {shown(one.seconds)} s", len(run.events)
        known = one.event < n
        yield not known, "event", what, f"one of {n}, counted from 0"
        if known and not _says(run.events[one.event], one.seconds):
            yield True, "event", what, f"the time of {run.events[one.event]!r}"
        elif known:
            first = times.setdefault(one.event, one.seconds)
            other = f"{shown(first)} s, as another service says"
            yield one.seconds != first, "event", what, other
        ordered = (one.seconds, one.event) > before
        yield not ordered, "event", what, "events in the order of their times"
        before = (one.seconds, one.event)


def _timeline_checks(each: ServiceResult) -> Iterator[_Check]:
    line = each.timeline
    had = f"{len(each.recoveries)} events and {'no' if line is None else 'a'} timeline"
    needs = "a timeline just where there are events"
    yield (line is not None) != bool(each.recoveries), "timeline", had, needs
    if line is None:
        return
    for name, counted, all_ in (
        ("requests", sum(line.requests), each.requests), ("late", sum(line.late), each.late),
    ):  # fmt: skip
        had = f"{counted:,} {name} in its timeline"
        yield counted != all_, "timeline", had, f"{all_:,}, as it says beside it"
    cells = list(zip(line.requests, line.late, line.mean_ns, strict=True))
    for at, (requests, late, mean) in enumerate(cells):
        wrong = late > requests or mean > each.max_ns or bool(mean and not requests)
        had = f"{late:,} of {requests:,} late, {mean} ns in the mean, in cell {at}"
        needs = f"at most all late, and no longer than {each.max_ns} ns"
        yield wrong, "timeline", had, needs
    total = sum(mean * n for n, _, mean in cells)
    answered = each.requests - each.lost
    # means are rounded down, here and there
    wrong = not total - answered <= each.mean_ns * answered <= total + each.requests
    had = f"latencies of {total} ns in its timeline"
    yield wrong, "timeline", had, f"{answered:,} times its mean, {each.mean_ns} ns"
    empty = bool(cells) and not line.requests[-1]
    yield empty, "timeline", "no request in its last cell", "one: there it ends"
    short = each.seconds * SECOND < (len(cells) - 1) * line.cell_ns
    had = f"{len(cells)} cells of {line.cell_ns} ns"
    yield short, "timeline", had, f"no more than {shown(each.seconds)} s take"


def _says(event: str, seconds: Fraction) -> bool:
    """Whether an event in words is at a time, as far as its words are exact."""
    try:
        said = exact(event.partition(" s: ")[0], "a time")
    except CmsError:
        return True
    return abs(said - seconds) * SECOND <= 1
