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

__all__ = ["simulation_faults"]

#: Quantiles may be so many times too long, and the last batch be rounded down by a nanosecond.
_BIN, _ROUNDED = Fraction(1001, 1000), 1
_QUANTILES = (50, 90, 99)


def simulation_faults(simulation: Simulation) -> Iterator[Violation]:
    """List what contradicts itself; that the requests ran so, only a replay of the plan shows.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from fractions import Fraction
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
    >>> instance = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,))
    >>> chat = ModelledService("chat", Fraction(50), 40_000_000, Fraction(1, 100), (instance,))
    >>> found = simulate([chat], requests=1000)
    >>> list(simulation_faults(found))
    []
    >>> worse = replace(found.services[0], tolerated=Fraction(0), verdict=Verdict.KEPT)
    >>> [fault.kind for fault in simulation_faults(replace(found, services=(worse,)))]
    ['verdict']
    """
    if simulation.promised and not simulation.rule:
        yield Violation("promised", "the simulation", "a promise by no rule", "a rule")
    times: dict[int, Fraction] = {}
    for each in simulation.services:
        where = f"service {each.name!r}"
        if each.verdict is Verdict.NOT_REPLAYED:
            yield from _left_out(each, where)
            continue
        yield from _counts(each, where)
        yield from _run(each, where, simulation)
        yield from _late(each, where)
        yield from _latencies(each, where)
        yield from _verdict(each, where)
        yield from _events(each, where, simulation, times)


def _left_out(each: ServiceResult, where: str) -> Iterator[Violation]:
    if each.requests or each.late or each.lost or each.max_ns or each.timeline is not None:
        had = f"{each.requests:,} requests, {each.late:,} late"
        yield Violation("verdict", where, had, "none, since it is said to be not replayed")
    if not each.cause:
        yield Violation("verdict", where, "no cause", "one, since it is said to be not replayed")


def _counts(each: ServiceResult, where: str) -> Iterator[Violation]:
    """Of requests; the reader has compared the lost ones with the late ones, and these with all."""
    if each.retried > each.requests:
        had = f"{each.retried:,} requests retried"
        yield Violation("retried", where, had, f"at most its {each.requests:,} requests")
    if each.deepest_queue > each.requests + each.retried:
        had = f"a queue of {each.deepest_queue:,}"
        yield Violation("queue", where, had, f"at most its {each.requests:,} requests")
    answered = each.requests - each.lost
    most = each.requests + each.retried
    if not (min(answered, 1) <= each.mean_fill <= most):
        had = f"batches of {shown(each.mean_fill)} requests"
        yield Violation("fill", where, had, f"{min(answered, 1)} to {most:,}, by its requests")
    if each.limit_ns is None and each.late != each.lost:
        had = f"{each.late:,} late and {each.lost:,} lost"
        yield Violation("late", where, had, "as many, since it has no limit")


def _run(each: ServiceResult, where: str, simulation: Simulation) -> Iterator[Violation]:
    """What can have happened in the run as it is described."""
    if simulation.requests is not None and each.requests > simulation.requests:
        had = f"{each.requests:,} requests"
        yield Violation("requests", where, had, f"at most the {simulation.requests:,} of the run")
    if not simulation.events:
        if each.retried or each.lost not in (0, each.requests):
            had = f"{each.lost:,} of {each.requests:,} lost and {each.retried:,} retried"
            yield Violation("lost", where, had, "none or all lost: nothing happens in the run")
        if not each.instances and each.lost != each.requests:
            had = f"{each.requests - each.lost:,} requests answered"
            yield Violation("lost", where, had, "none: it has no instance")
    if (each.load is None) != (not each.instances):
        had = f"{each.instances} instances and {'no' if each.load is None else 'a'} load"
        yield Violation("load", where, had, "a load just if it has instances")
    if each.utilisation > 1:
        yield Violation("utilisation", where, f"{shown(each.utilisation)}", "at most 1")
    if each.requests and each.max_ns > each.seconds * SECOND + _ROUNDED:
        had = f"a latency of {each.max_ns} ns in {shown(each.seconds)} s"
        yield Violation("seconds", where, had, "a run as long as its longest latency")


def _late(each: ServiceResult, where: str) -> Iterator[Violation]:
    low, high = each.interval
    if not 0 <= low <= each.late_share <= high <= 1:
        yield Violation(
            "late", where, f"a late share of {shown(each.late_share)}",
            f"one within its interval, {shown(low)} to {shown(high)}, and that from 0 to 1",
        )  # fmt: skip
    if each.limit_ns is None:
        return
    late, answered = each.late - each.lost, each.requests - each.lost
    if (late > 0) != (each.max_ns > each.limit_ns):
        yield Violation(
            "late", where, f"{late:,} answered late, the longest after {each.max_ns} ns",
            f"late ones just if that is beyond {each.limit_ns} ns",
        )  # fmt: skip
    for percent, took in zip(_QUANTILES, (each.p50_ns, each.p90_ns, each.p99_ns), strict=True):
        within = answered - late >= math.ceil(Fraction(percent * answered, 100))
        if answered and (took > each.limit_ns * _BIN if within else took <= each.limit_ns):
            yield Violation(
                "late", where, f"{late:,} of {answered:,} answered late and {took} ns at "
                f"{percent} %", f"that {'within' if within else 'beyond'} {each.limit_ns} ns",
            )  # fmt: skip


def _latencies(each: ServiceResult, where: str) -> Iterator[Violation]:
    if not each.p50_ns <= each.p90_ns <= each.p99_ns <= each.max_ns:
        took = f"{each.p50_ns}, {each.p90_ns}, {each.p99_ns} and {each.max_ns} ns"
        needs = "quantiles that ascend"
        yield Violation("latency", where, f"{took} at 50, 90, 99 and 100 %", needs)
    least = each.p50_ns / (2 * _BIN) - _ROUNDED  # half of them take as long
    if not least <= each.mean_ns <= each.max_ns:
        had = f"a mean of {each.mean_ns} ns"
        needs = f"one from half its median, {each.p50_ns} ns, to its longest, {each.max_ns} ns"
        yield Violation("latency", where, had, needs)
    if (each.requests == each.lost) != (not each.p50_ns):
        had = f"a median of {each.p50_ns} ns"
        yield Violation("latency", where, had, "one > 0 just if a request is answered")


def _verdict(each: ServiceResult, where: str) -> Iterator[Violation]:
    low, high = each.interval
    beyond = f"an interval of {shown(low)} to {shown(high)}, {shown(each.tolerated)} tolerated"
    if each.verdict is Verdict.KEPT and each.requests and high > each.tolerated:
        said = "all of it tolerated, since it is said to be kept"
        yield Violation("verdict", where, beyond, said)
    if each.verdict is Verdict.BROKEN and low <= each.tolerated and not each.overloaded:
        said = "none of it tolerated, since it is said to be broken"
        yield Violation("verdict", where, beyond, said)
    if each.verdict is Verdict.UNDECIDED and low > each.tolerated:
        said = "some of it tolerated, since it is said to be undecided"
        yield Violation("verdict", where, beyond, said)
    if each.overloaded and each.verdict not in (Verdict.BROKEN, Verdict.NO_LIMIT):
        said = "one that is broken, since its queues grew throughout"
        yield Violation("verdict", where, f"the verdict {each.verdict}", said)


def _events(
    each: ServiceResult, where: str, simulation: Simulation, times: dict[int, Fraction]
) -> Iterator[Violation]:
    """Compare what a service says of events with the others, and its timeline with its counts."""
    before = (Fraction(0), -1)
    for one in each.recoveries:
        what = f"event {one.event} at {shown(one.seconds)} s"
        if one.event >= len(simulation.events):
            needs = f"one of {len(simulation.events)}, counted from 0"
            yield Violation("event", where, what, needs)
        elif not _says(simulation.events[one.event], one.seconds):
            yield Violation("event", where, what, f"the time of {simulation.events[one.event]!r}")
        elif one.seconds != times.setdefault(one.event, one.seconds):
            needs = f"{shown(times[one.event])} s, as another service says"
            yield Violation("event", where, what, needs)
        if (one.seconds, one.event) <= before:
            yield Violation("event", where, what, "events in the order of their times")
        before = (one.seconds, one.event)
    line = each.timeline
    if (line is not None) != bool(each.recoveries):
        had = f"{len(each.recoveries)} events and {'no' if line is None else 'a'} timeline"
        yield Violation("timeline", where, had, "a timeline just where there are events")
    if line is None:
        return
    for name, counted, all_ in (
        ("requests", sum(line.requests), each.requests), ("late", sum(line.late), each.late),
    ):  # fmt: skip
        if counted != all_:
            had = f"{counted:,} {name} in its timeline"
            yield Violation("timeline", where, had, f"{all_:,}, as it says beside it")
    for at, (requests, late, mean) in enumerate(
        zip(line.requests, line.late, line.mean_ns, strict=True)
    ):
        if late > requests or mean > each.max_ns or (mean and not requests):
            had = f"{late:,} of {requests:,} late, {mean} ns in the mean, in cell {at}"
            needs = f"at most all late, and no longer than {each.max_ns} ns"
            yield Violation("timeline", where, had, needs)
    total = sum(mean * n for mean, n in zip(line.mean_ns, line.requests, strict=True))
    answered = each.requests - each.lost
    # means are rounded down, here and there
    if not total - answered <= each.mean_ns * answered <= total + each.requests:
        had = f"latencies of {total} ns in its timeline"
        yield Violation("timeline", where, had, f"{answered:,} times its mean, {each.mean_ns} ns")
    if line.requests and not line.requests[-1]:
        yield Violation("timeline", where, "no request in its last cell", "one: there it ends")
    if each.seconds * SECOND < (len(line.requests) - 1) * line.cell_ns:
        had = f"{len(line.requests)} cells of {line.cell_ns} ns"
        yield Violation("timeline", where, had, f"no more than {shown(each.seconds)} s take")


def _says(event: str, seconds: Fraction) -> bool:
    """Whether an event in words is at a time, as far as its words are exact."""
    try:
        said = exact(event.partition(" s: ")[0], "a time")
    except CmsError:
        return True
    return abs(said - seconds) * SECOND <= 1
