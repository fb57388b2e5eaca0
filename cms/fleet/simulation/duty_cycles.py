"""Replay of plans whose services share instances in time: each is alone in its slot of a cycle."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...errors import InvalidOption
from ...time_sharing.duty_cycle import DutyCycleRule
from ...values.numbers import Number, exact, shown, whole
from ..serving.plan import Plan, ServicePlan
from ..serving.time_sharing import SharedServing, amount_of
from . import model
from .judging import counted, tells_too_little, works_off
from .model import MILLISECOND, SECOND
from .replay import seed_of
from .result import ServiceResult, Simulation
from .run import Count
from .statistics import Interval, Tally, Verdict, requests_needed

T = TypeVar("T", int, Fraction)
#: Arrivals at an instance with a duty cycle, and what reports call them.
CYCLE_ARRIVALS = {"poisson": "Poisson", "even": "evenly spaced"}
_ASKED_AFTER = 10_000  # requests: some hundredths of a second


class _Slot(NamedTuple):
    offset: Fraction
    length: Fraction
    cycle: Fraction
    amount: int
    rate: Fraction  # requests a second that one instance gets
    instances: int  # that are alike


class Batch(NamedTuple):
    """The requests that one slot takes: those from `first` on, and when it ends."""

    first: int
    taken: int
    waiting: int  # when the slot closes, itself among them
    ends: Any


def replay_duty_cycles(
    plan: Plan,
    *,
    arrivals: str = "even",
    rate: Number = 1,
    requests: int = 20_000,
    seed: int = 0,
    cancel: threading.Event | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Replay a plan whose services share instances in time, at the stated rates.

    An instance's cycle repeats as planned, whatever arrives, and batches that are not full take as
    long as full ones; so services on an instance do not feel each other, and each is replayed
    alone.

    With Poisson arrivals a limit is met, violated or undecided as in :func:`simulate`. Evenly
    spaced ones are exact: latencies are compared with the limit as rational numbers, and no request
    may be late. None is, at up to the planned rates: this is what the rules promise
    (:class:`cms.DutyCycleRule`).

    `arrivals`: ``"even"`` or ``"poisson"``, of an instance; its part of its service's rate is its
    part of the service's capacity. `requests`: of each service. The rest is as for
    :func:`simulate`.
    """
    serving = plan.serving
    if not isinstance(serving, SharedServing):
        said = "cycles are replayed of plans whose services share instances in time"
        raise InvalidOption(f"{said}; of others, simulate replays the queues")
    if arrivals not in CYCLE_ARRIVALS:
        raise InvalidOption(f"arrivals is {arrivals!r}; expected 'even' or 'poisson'")
    factor = exact(rate, "the factor of all rates", error=InvalidOption)
    wanted = whole(requests, "the number of requests", least=1, error=InvalidOption)
    seed = whole(seed, "the seed", least=0, error=InvalidOption)
    expected = wanted * sum(1 for each in plan.services if each.service.rate_rps * factor)
    count = Count(expected, on_progress, cancel)
    rest = serving.sharing.rule, wanted, count, arrivals
    runs = [_Run(plan, each, factor, *rest) for each in plan.services]
    return Simulation(
        services=tuple(run.replayed(seed, factor) for run in runs),
        arrivals=CYCLE_ARRIVALS[arrivals],
        routing="weighted random" if arrivals == "poisson" else "proportional", seed=seed,
        rate=factor, seconds=None, requests=wanted, on_failure="retry", rule=serving.rule_name,
        promised=arrivals == "even", problem_sha256=serving.problem.sha256, stopped=count.stopped,
    )  # fmt: skip


def _slots(plan: Plan, of: ServicePlan, factor: Fraction) -> tuple[_Slot, ...]:
    """Return the slots of a service, in the order of the plan's groups."""
    share = of.service.rate_rps * factor / of.provided_rps if of.provided_rps else Fraction(0)
    found = []
    for group in plan.groups:
        for each in group.instances:
            offset, cycle = Fraction(0), each.duty_cycle_ms or Fraction(0)
            for served in each.serves:
                length = served.length_ms or Fraction(0)
                if served.service == of.service.name:
                    amount, alike = int(amount_of(served.point)), group.count * each.count
                    rate = served.rate_rps * share
                    found.append(_Slot(offset, length, cycle, amount, rate, alike))
                offset += length
    return tuple(found)


class _Run:
    def __init__(
        self, plan: Plan, of: ServicePlan, factor: Fraction, rule: DutyCycleRule, wanted: int,
        count: Callable[[int], bool], arrivals: str,
    ) -> None:  # fmt: skip
        self.service, self.slots = of.service, _slots(plan, of, factor)
        self.rule, self.wanted, self.count = rule, wanted, count
        self.random = arrivals == "poisson"
        self.instances = sum(slot.instances for slot in self.slots)
        self.rate = sum((slot.rate * slot.instances for slot in self.slots), Fraction(0))
        self.load = self.rate / of.provided_rps if of.provided_rps else None
        self.batches = self.taken = self.busy_ns = self.deepest = self.lasted_ns = 0
        horizon = round(wanted * SECOND / self.rate) if self.rate else 1
        tells = requests_needed(self.load or Fraction(0), self.instances)
        needed = tells if self.random and self.rate else 0
        self.limit = of.service.latency_limit_ms or Fraction(0)  # those that share have limits
        self.tally = Tally(math.floor(self.limit * MILLISECOND), horizon, needed)
        longest = max((slot.cycle * MILLISECOND for slot in self.slots), default=Fraction(0))
        largest = max((slot.amount for slot in self.slots), default=0)
        slow = self.rate and wanted * SECOND > self.rate * model.LONGEST_NS
        for value, most, what in (
            (self.instances, model.MOST_STATIONS, "instances"),
            (self.rate, model.FASTEST, "requests/s"),
            (largest, model.LARGEST_BATCH, "requests in a batch"),
        ):
            if value > most:
                said = f"service {self.service.name!r} has {shown(value)} {what}"
                raise InvalidOption(f"{said}; at most {most:,} are simulated")
        if slow or longest * wanted > model.LONGEST_NS:
            said = f"the {wanted:,} requests of service {self.service.name!r} may take longer than"
            raise InvalidOption(f"{said} nine years; simulate fewer")

    def replayed(self, seed: int, factor: Fraction) -> ServiceResult:
        """Replay each slot, and describe the service's requests."""
        draws = np.random.Generator(np.random.PCG64(seed_of(seed, self.service.name)))
        given = Fraction(0)
        for slot in self.slots if self.rate else ():
            # numbers of requests: proportional to the rates, and as wanted in all
            parts = (given + nth * slot.rate for nth in range(slot.instances + 1))
            so_far = [round(self.wanted * part / self.rate) for part in parts]
            given += slot.instances * slot.rate
            for number, alike in Counter(b - a for a, b in pairwise(so_far)).items():
                for _ in range(alike if self.random else 1):
                    if number and not self.count(0):
                        self._replay(slot, number, 1 if self.random else alike, draws)
        return self._result(self.service.rate_rps * factor)

    def _replay(self, slot: _Slot, number: int, alike: int, draws: np.random.Generator) -> None:
        """Replay requests at instances that are alike, until the run ends."""
        # A Poisson stream is in nanoseconds, to which lengths are rounded up; evenly spaced
        # requests are exact, in parts of a millisecond.
        gap, parts, unit = 1000 / slot.rate, (slot.cycle, slot.length, slot.offset), MILLISECOND
        if self.random:
            gaps = draws.exponential(float(SECOND / slot.rate), number)
            times = np.cumsum(gaps).astype(np.int64).tolist()
        else:
            unit = math.lcm(*(part.denominator for part in (*parts, gap, self.limit)))
            times = [int(gap * unit) * nth for nth in range(number)]
        cycle, length, offset = (math.ceil(part * unit) for part in parts)
        took: list[int] = []
        told = 0
        for batch in batches(times, self.rule, cycle, length, offset, slot.amount):
            took += [batch.ends - at for at in times[batch.first : batch.first + batch.taken]]
            self.batches += alike
            self.taken += alike * batch.taken
            self.busy_ns += alike * math.ceil(slot.length * MILLISECOND)
            self.deepest = max(self.deepest, batch.waiting)
            if len(took) - told >= _ASKED_AFTER:
                stopped, told = self.count((len(took) - told) * alike), len(took)
                if stopped:
                    break
        self.count((len(took) - told) * alike)
        if not self.random:  # rounded to nanoseconds for the record: late requests stay late
            late, most = 1 + math.floor(self.limit * MILLISECOND), math.floor(self.limit * unit)
            took = [max(t * MILLISECOND // unit, late if t > most else 0) for t in took]
            times = [at * MILLISECOND // unit for at in times]
        clocks, waits = (np.array(each, dtype=np.int64) for each in (times[: len(took)], took))
        for _ in range(alike):
            self.tally.add(clocks, waits)
        self.lasted_ns = max(self.lasted_ns, int(clocks[-1] + waits[-1]))

    def _result(self, rate: Fraction) -> ServiceResult:
        tally, tolerated = self.tally, self.service.late_share or model.LATE_SHARE
        verdict, interval = tally.verdict(tolerated), tally.interval()
        if not self.random:
            tolerated, verdict = Fraction(0), Verdict.VIOLATED if tally.late else Verdict.MET
            share = tally.late_share * 10**6
            interval = Interval(*(Fraction(end(share), 10**6) for end in (math.floor, math.ceil)))
        if verdict is Verdict.MET and self.rate and tally.requests < self.wanted:
            verdict = Verdict.UNDECIDED  # the run was ended before other instances
        cause = "arrivals in clumps wait for further cycles; plan with more headroom"
        cause += " (headroom, --rate-margin)"
        if verdict is Verdict.MET:
            cause = ""
        elif self.load is not None and self.load > 1:
            cause = works_off(self.rate / self.load)
        elif verdict is Verdict.UNDECIDED:
            cause = tells_too_little(tally, self.load)
        return ServiceResult(
            name=self.service.name, rate_rps=rate, limit_ns=tally.limit_ns, tolerated=tolerated,
            instances=self.instances, interval=interval, verdict=verdict,
            overloaded=verdict is Verdict.VIOLATED and tally.overloaded(tolerated), cause=cause,
            **counted(
                tally, self.load, self.lasted_ns, self.busy_ns, self.instances, self.taken,
                self.batches, self.deepest,
            ),
        )  # fmt: skip


def batches(
    arrivals: Sequence[T], rule: DutyCycleRule, cycle: T, length: T, offset: T, amount: int
) -> Iterator[Batch]:
    """Yield the requests of each slot that takes any."""
    closes = offset if rule is DutyCycleRule.ROUND_ROBIN else 0 * offset
    last, at = -1, 0
    while at < len(arrivals):
        last = max(int(-(-(arrivals[at] - closes) // cycle)), last + 1)
        waiting = bisect_right(arrivals, closes + last * cycle, at) - at
        taken = min(waiting, amount)
        yield Batch(at, taken, waiting, offset + last * cycle + length)
        at += taken
