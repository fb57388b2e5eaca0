"""Whether the numbers of a simulation's file bear one another out, and what it says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ...errors import CmsError
from ...schedule.faults import Violation
from ...values.numbers import exact, shown
from .model import SECOND
from .result import ServiceResult, Simulation
from .statistics import Verdict

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
        parts = (
            [_left_out(each)]
            if each.verdict is Verdict.NOT_REPLAYED
            else [
                _counts(each, simulation), _late(each), _latencies(each), _verdict(each),
                _events(each, simulation, times), _timeline(each),
            ]
        )  # fmt: skip
        for part in parts:
            for wrong, kind, had, needs in part:
                if wrong:
                    yield Violation(kind, f"service {each.name!r}", had, needs)


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
        not few <= each.mean_fill <= most, "fill", f"batches of {shown(each.mean_fill)} requests",
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
        (Verdict.KEPT, bool(each.requests) and high > each.tolerated, "all of it"),
        (Verdict.BROKEN, low <= each.tolerated and not each.overloaded, "none of it"),
        (Verdict.UNDECIDED, low > each.tolerated, "some of it"),
    ):
        said = f"{needs} tolerated, since it is said to be {verdict}"
        yield wrong and each.verdict is verdict, "verdict", beyond, said
    odd = each.overloaded and each.verdict not in (Verdict.BROKEN, Verdict.NO_LIMIT)
    needs = "one that is broken, since its queues grew throughout"
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


def _timeline(each: ServiceResult) -> Iterator[_Check]:
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
