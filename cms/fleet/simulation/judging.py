"""What a replay says of a service, and whether what a file says of it bears itself out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from operator import mul
from typing import Any

import numpy as np

from ...errors import CmsError
from ...schedule.faults import Violation
from ...values.numbers import exact, shown
from .model import SECOND, Bools, ModelledService
from .replay import ServiceReplay
from .result import Recovery, ServiceResult, Simulation, Timeline
from .statistics import NEVER_ENOUGH, Tally, Verdict

# The late share is back when three spans of time in a row are fine, each of at least 20 requests
# on average.
_GOOD_CELLS, _JUDGED_REQUESTS = 3, 20


def result_of(found: ServiceReplay) -> ServiceResult:
    """Say what became of a service's requests."""
    service, script, tally, state = found.service, found.script, found.tally, found.state
    verdict = tally.verdict(service.late_share)
    open_ended = verdict in (Verdict.VIOLATED, Verdict.NO_LIMIT)
    timeline = None
    if script.marks:
        requests, late, seconds, rests = map(tuple, tally.cells.tolist())
        parts = zip(seconds, rests, requests, strict=True)
        means = ((whole * SECOND + rest) // (n or 1) for whole, rest, n in parts)
        timeline = Timeline(tally.cell_ns, requests, late, tuple(means))
    work = (
        int(state.busy.sum()), sum(station.processes for station in script.stations),
        int(state.taken.sum()), int(state.batches.sum()), int(state.deepest.max(initial=0)),
    )  # fmt: skip
    return ServiceResult(
        **_asked(service), **counted(tally, service.load, found.lasted_ns, *work),
        retried=found.retried, interval=tally.interval(), verdict=verdict,
        overloaded=open_ended and tally.overloaded(service.late_share),
        cause=_cause(found, verdict), recoveries=tuple(_recoveries(found)), timeline=timeline,
    )  # fmt: skip


def left_out(service: ModelledService) -> ServiceResult:
    """Say of a service that it was not replayed, and why."""
    told = _asked(service)
    return ServiceResult(**told, verdict=Verdict.NOT_REPLAYED, cause=service.not_replayed)


def _asked(service: ModelledService) -> dict[str, Any]:
    return {
        "name": service.name, "rate_rps": service.rate, "limit_ns": service.limit_ns,
        "tolerated": service.late_share, "instances": len(service.instances),
    }  # fmt: skip


def counted(
    tally: Tally, load: Fraction | None, lasted_ns: int, busy_ns: int, processes: int, taken: int,
    batches: int, deepest: int,
) -> dict[str, Any]:  # fmt: skip
    """Return what was counted as a service's record has it."""
    quantiles = {f"p{n}_ns": tally.quantile(Fraction(n, 100)) for n in (50, 90, 99)}
    return {
        "seconds": Fraction(lasted_ns, SECOND), "requests": tally.requests, "late": tally.late,
        "lost": tally.lost, "mean_ns": tally.total_ns // (tally.requests - tally.lost or 1),
        **quantiles, "max_ns": tally.largest, "load": None if load is None else _short(load),
        "utilisation": _short(Fraction(busy_ns, processes * lasted_ns or 1)),
        "mean_batch_size": _short(Fraction(taken, batches or 1)), "deepest_queue": deepest,
    }  # fmt: skip


def _short(ratio: Fraction) -> Fraction:
    return Fraction(round(ratio * 10**6), 10**6)


def _cause(found: ServiceReplay, verdict: Verdict) -> str:
    """Say why a limit was violated, what keeps a rate from being served, or how many would tell."""
    service, tally, load = found.service, found.tally, found.service.load
    if verdict is Verdict.UNDECIDED and tally.needed != NEVER_ENOUGH:
        return tells_too_little(tally, load)
    if verdict is Verdict.MET:
        return ""
    if not service.instances:
        return "no instance serves it" if service.rate else ""
    if tally.lost:
        return f"{tally.lost:,} requests were lost"
    if load is not None and load >= 1:
        return works_off(service.rate / load)
    unlike = len({each.weight for each in service.instances}) > 1
    if verdict is Verdict.VIOLATED and found.routing.equal and unlike:
        state, stations = found.state, found.script.stations
        worst = int(np.argmax(state.busy / [one.processes for one in stations]))
        given = state.taken[worst] / (state.taken.sum() or 1)
        supply = stations[worst].weight / sum(one.weight for one in stations)
        got, has = (f"{float(each):.0%}".replace("%", " %") for each in (given, supply))
        said = f"instance {stations[worst].instance} got {got} of the requests"
        return f"equal weights for unlike instances: {said} and has {has} of the supply"
    return ""


def works_off(most: Fraction) -> str:
    """Say how many requests a second a service's instances work off."""
    return f"its instances work off {shown(round(most, 1))} requests/s at most"


def tells_too_little(tally: Tally, load: Fraction | None) -> str:
    """Say how many requests would tell; empty if there were enough."""
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


def _recoveries(found: ServiceReplay) -> Iterator[Recovery]:
    """Say when each event's effect on the late share was over."""
    cells, cell_ns, marks = found.tally.cells, found.tally.cell_ns, found.script.marks
    if number := cells.shape[1]:  # cells are joined until each has enough requests to be judged
        joined = max(-(-_JUDGED_REQUESTS * number // max(int(cells[0].sum()), 1)), 1)
        cells, cell_ns = np.add.reduceat(cells, np.arange(0, number, joined), 1), cell_ns * joined
    allowed = float(found.service.late_share) * cells[0]
    bad = cells[1] > allowed + 3 * np.sqrt(allowed)
    ends = [at for at, _ in marks[1:]] + [cell_ns * len(bad)]
    for (at, number), end in zip(marks, ends, strict=False):
        first, last = at // cell_ns, min(-(-end // cell_ns), len(bad))
        after = _back(bad[first:last])
        passed = (first + after) * cell_ns - at if after else 0
        back = None if after is None else Fraction(passed, SECOND)
        yield Recovery(number, Fraction(at, SECOND), back)


def _back(bad: Bools) -> int | None:
    """Return after how many cells three good ones in a row begin, once one was bad."""
    if not bad.any():
        return 0
    for at in range(int(np.argmax(bad)) + 1, len(bad) - _GOOD_CELLS + 1):
        if not bad[at : at + _GOOD_CELLS].any():
            return at
    return None


#: Quantiles may be 0.1 % too long, and the last batch be rounded down by a nanosecond.
_BIN, _ROUNDED = Fraction(1001, 1000), 1
#: Whether it is violated, its kind, the value, and the expectation
_Check = tuple[bool, str, str, str]


def simulation_faults(simulation: Simulation) -> Iterator[Violation]:
    """List what contradicts itself; that the requests ran so, only a replay of the plan shows."""
    if simulation.promised and not simulation.rule:
        yield Violation("promised", "the simulation", "a promise by no rule", "a rule")
    times: dict[int, Fraction] = {}
    for each in simulation.services:
        if each.verdict is Verdict.NOT_REPLAYED:
            checks = _left_out(each)
        else:
            checks = chain(_counts(each, simulation), _late(each), _verdict(each))
            checks = chain(checks, _events(each, simulation, times), _timeline(each))
        for wrong, kind, had, needs in checks:
            if wrong:
                yield Violation(kind, f"service {each.name!r}", had, needs)


def _left_out(each: ServiceResult) -> Iterator[_Check]:
    needs = "since it is not replayed"
    found = bool(each.requests or each.late or each.lost or each.max_ns or each.timeline)
    yield found, "verdict", f"{each.requests:,} requests", f"none, {needs}"
    yield not each.cause, "verdict", "no cause", f"one, {needs}"


def _counts(each: ServiceResult, run: Simulation) -> Iterator[_Check]:
    """Check numbers of requests; the reader has compared lost, late and all of them."""
    n, answered, quiet = each.requests, each.requests - each.lost, not run.events
    limit = n if run.requests is None else run.requests
    yield n > limit, "requests", f"{n:,} requests", f"at most the {limit:,} of the run"
    yield each.retried > n, "retried", f"{each.retried:,} requests retried", f"at most {n:,}"
    had = f"{each.late:,} late, {each.lost:,} lost and {each.retried:,} retried of {n:,}"
    odd = each.limit_ns is None and each.late != each.lost
    yield odd, "late", had, "late ones that were lost only: it has no limit"
    odd = quiet and (bool(each.retried) or each.lost not in (0, n))
    yield odd, "lost", had, "none or all lost: nothing happens in the run"
    odd = quiet and not each.instances and bool(answered)
    yield odd, "lost", had, "all of them lost: it has no instance"
    few, most, size = min(answered, 1), n + each.retried, each.mean_batch_size
    had, needs = f"a queue of {each.deepest_queue:,}", f"at most its {most:,} requests"
    yield each.deepest_queue > most, "queue", had, needs
    had, needs = f"batches of {shown(size)} requests", f"{few} to {most:,}, by its requests"
    yield not few <= size <= most, "batch", had, needs
    had = f"{each.instances} instances and {'no' if each.load is None else 'a'} load"
    odd = (each.load is None) != (not each.instances)
    yield odd, "load", had, "a load just if it has instances"
    had = f"a latency of {each.max_ns} ns in {shown(each.seconds)} s"
    odd = bool(n) and each.max_ns > each.seconds * SECOND + _ROUNDED
    yield odd, "seconds", had, "a run as long as its longest latency"
    yield each.utilisation > 1, "utilisation", shown(each.utilisation), "at most 1"


def _events(each: ServiceResult, run: Simulation, times: dict[int, Fraction]) -> Iterator[_Check]:
    """Compare the events of a service with those of the run and of the other services."""
    before = (Fraction(0), -1)
    for one in each.recoveries:
        had, n = f"event {one.event} at {shown(one.seconds)} s", len(run.events)
        yield one.event >= n, "event", had, f"one of {n}, counted from 0"
        if one.event < n:
            wrong = not _is_at(run.events[one.event], one.seconds)
            yield wrong, "event", had, f"the time of {run.events[one.event]!r}"
            first = times.setdefault(one.event, one.seconds)
            yield one.seconds != first, "event", had, f"{shown(first)} s, as of another service"
        ordered = (one.seconds, one.event) > before
        yield not ordered, "event", had, "events in the order of their times"
        before = (one.seconds, one.event)


def _is_at(event: str, seconds: Fraction) -> bool:
    """Whether an event in words is at a time, as far as its words are exact."""
    try:
        return abs(exact(event.partition(" s: ")[0], "a time") - seconds) * SECOND <= 1
    except CmsError:
        return True


def _late(each: ServiceResult) -> Iterator[_Check]:
    low, high = each.interval
    inside = 0 <= low <= each.late_share <= high <= 1
    needs = f"one within its interval, {shown(low)} to {shown(high)}, and that from 0 to 1"
    yield not inside, "late", f"a late share of {shown(each.late_share)}", needs
    took = each.p50_ns, each.p90_ns, each.p99_ns, each.max_ns
    had = f"{took[0]}, {took[1]}, {took[2]} and {took[3]} ns at 50, 90, 99 and 100 %"
    yield [*took] != sorted(took), "latency", had, "quantiles that ascend"
    had, answered = f"a median of {each.p50_ns} ns", each.requests - each.lost
    yield bool(answered) != bool(each.p50_ns), "latency", had, "one > 0 if a request is answered"
    least = each.p50_ns / (2 * _BIN) - _ROUNDED  # half of them take as long
    had = f"a mean of {each.mean_ns} ns"
    needs = f"one from half its median, {each.p50_ns} ns, to its longest, {each.max_ns} ns"
    yield not least <= each.mean_ns <= each.max_ns, "latency", had, needs
    if each.limit_ns is None:
        return
    late = each.late - each.lost
    had = f"{late:,} answered late, the longest after {each.max_ns} ns"
    needs = f"late ones just if that is beyond {each.limit_ns} ns"
    yield (late > 0) != (each.max_ns > each.limit_ns), "late", had, needs
    for percent, ns in ((50, each.p50_ns), (90, each.p90_ns), (99, each.p99_ns)):
        within = answered - late >= math.ceil(Fraction(percent * answered, 100))
        wrong = ns > each.limit_ns * _BIN if within else ns <= each.limit_ns
        had = f"{late:,} of {answered:,} answered late and {ns} ns at {percent} %"
        needs = f"that {'within' if within else 'beyond'} {each.limit_ns} ns"
        yield bool(answered) and wrong, "late", had, needs


def _verdict(each: ServiceResult) -> Iterator[_Check]:
    low, high = each.interval
    beyond = f"an interval of {shown(low)} to {shown(high)}, {shown(each.tolerated)} tolerated"
    for verdict, wrong, needs in (
        (Verdict.MET, bool(each.requests) and high > each.tolerated, "all of it"),
        (Verdict.VIOLATED, low <= each.tolerated and not each.overloaded, "none of it"),
        (Verdict.UNDECIDED, low > each.tolerated, "some of it"),
    ):
        said = f"{needs} tolerated, since the verdict is {verdict}"
        yield wrong and each.verdict is verdict, "verdict", beyond, said
    odd = each.overloaded and each.verdict not in (Verdict.VIOLATED, Verdict.NO_LIMIT)
    needs = f"{Verdict.VIOLATED}, since its queues grew throughout"
    yield odd, "verdict", f"the verdict {each.verdict}", needs


def _timeline(each: ServiceResult) -> Iterator[_Check]:
    line = each.timeline
    had = f"{len(each.recoveries)} events and {'no' if line is None else 'a'} timeline"
    needs = "a timeline just where there are events"
    yield (line is not None) != bool(each.recoveries), "timeline", had, needs
    if line is None:
        return
    for name, number in (("requests", each.requests), ("late", each.late)):
        total = sum(getattr(line, name))
        yield total != number, "timeline", f"{total:,} {name} in it", f"{number:,}, as beside it"
    cells = list(zip(line.requests, line.late, line.mean_ns, strict=True))
    for at, (requests, late, mean) in enumerate(cells):
        wrong = late > requests or mean > each.max_ns or bool(mean and not requests)
        had = f"{late:,} of {requests:,} late, {mean} ns in the mean, in cell {at}"
        yield wrong, "timeline", had, f"at most all late, and no longer than {each.max_ns} ns"
    empty = bool(cells) and not line.requests[-1]
    yield empty, "timeline", "no request in its last cell", "one: there it ends"
    cut_off = each.seconds * SECOND < (len(cells) - 1) * line.cell_ns
    needs = f"no more than {shown(each.seconds)} s take"
    yield cut_off, "timeline", f"{len(cells)} cells of {line.cell_ns} ns", needs
    # means are rounded down
    total, answered = sum(map(mul, line.mean_ns, line.requests)), each.requests - each.lost
    wrong = not total - answered <= each.mean_ns * answered <= total + each.requests
    needs = f"{answered:,} times its mean, {each.mean_ns} ns"
    yield wrong, "timeline", f"latencies of {total} ns in it", needs
