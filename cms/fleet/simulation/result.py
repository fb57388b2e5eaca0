"""What a simulation found: a record a service, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...time_sharing.frames import FrameRule
from ...values.numbers import shown
from .statistics import Interval, Verdict

__all__ = ["Recovery", "ServiceResult", "Simulation", "Timeline"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a service came over an event.

    Parameters
    ----------
    event : int
        Which of the simulation's events.
    seconds : Fraction
        When.
    back_after_seconds : Fraction or None
        How long after it the late share was back for good, until the next event; 0 if it never
        left, None if it was not back by then.
    """

    event: int
    seconds: Fraction
    back_after_seconds: Fraction | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A service's run in cells of equal time, by when requests first arrived.

    Parameters
    ----------
    cell_ns : int
    requests, late, mean_ns : tuple of int
        In each cell; the mean latency is of the answered ones.
    """

    cell_ns: int
    requests: tuple[int, ...]
    late: tuple[int, ...]
    mean_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """What became of one service's requests; times in whole nanoseconds.

    Parameters
    ----------
    name : str
    rate_rps : Fraction
        Requests a second it was to get.
    limit_ns : int or None
        None: it has none, and its verdict is ``no limit``.
    tolerated : Fraction
        The share that may be late.
    instances : int
    seconds : Fraction
        How long it ran: to the last arrival, or to the end of the last batch.
    requests, late, lost, retried : int
        All; those beyond the limit, the lost among them; those never answered; those that were sent
        again after a failure.
    interval : Interval
        Of the late share, 99 %.
    mean_ns, p50_ns, p90_ns, p99_ns, max_ns : int
        Latencies of the answered requests; quantiles may be 0.1 % too long.
    load : Fraction or None
        The rate as a share of what its instances work off in full batches, before any event; None
        without instances.
    utilisation : Fraction
        Part of its processes' time that they worked: near 1 even at low loads, since a batch begins
        with whatever waits.
    mean_fill : Fraction
        Requests in a batch.
    deepest_queue : int
        Most requests that ever waited for one instance.
    verdict : Verdict
    overloaded : bool
        Whether the queues grew throughout.
    cause : str
        Why the limit was broken, where that can be told, that the run was too short for its load,
        or why the service was not replayed; else empty.
    recoveries : tuple of Recovery
        One for each event that concerns it.
    timeline : Timeline or None
        Where there are events.
    """

    name: str
    rate_rps: Fraction
    limit_ns: int | None
    tolerated: Fraction
    instances: int
    seconds: Fraction
    requests: int
    late: int
    lost: int
    retried: int
    interval: Interval
    mean_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int
    load: Fraction | None
    utilisation: Fraction
    mean_fill: Fraction
    deepest_queue: int
    verdict: Verdict
    overloaded: bool
    cause: str = ""
    recoveries: tuple[Recovery, ...] = ()
    timeline: Timeline | None = None

    @property
    def p99_share(self) -> Fraction | None:
        """The 99th percentile as a share of the limit; None without one."""
        return None if self.limit_ns is None else Fraction(self.p99_ns, self.limit_ns)

    @property
    def late_share(self) -> Fraction:
        """Late requests over all."""
        return Fraction(self.late, self.requests or 1)

    def __str__(self) -> str:
        said = f"{self.verdict.upper()}{' (overloaded)' if self.overloaded else ''}"
        if self.verdict is Verdict.NOT_REPLAYED:
            return f"{said}: {self.cause}"
        if self.limit_ns is None:
            lost = f", {self.lost:,} of {self.requests:,} requests lost" if self.lost else ""
            return f"{self.name}: {said}: p99 is {self.p99_ns / 10**6:.4g} ms{lost}"
        share, limit = self.p99_ns / self.limit_ns, shown(Fraction(self.limit_ns, 10**6))
        return (
            f"{self.name}: {said}: p99 is {share:.1%} of {limit} ms, "
            f"{float(self.late_share):.3%} of {self.requests:,} requests late"
        )


@dataclass(frozen=True, slots=True)
class Simulation:
    """A plan that was replayed.

    Parameters
    ----------
    services : tuple of ServiceResult
        In the order of the plan.
    arrivals, routing : str
        How requests came and were spread, in words.
    seed : int
    rate : Fraction
        What all rates were multiplied by.
    seconds : Fraction or None
        How long a service was to run.
    requests : int or None
        How many requests it was to get, or at most where `seconds` is given too.
    on_failure : str
        ``retry`` or ``lose``.
    events : tuple of str
        What happened, in words.
    rule : str
        The plan's queueing rule; empty if it was no plan.
    promised : bool
        Whether the rule promises anything about waiting.
    problem_sha256 : str
        The plan's problem.
    warnings : tuple of str
    stopped : bool
        Whether it was ended before its time.
    """

    services: tuple[ServiceResult, ...]
    arrivals: str
    routing: str
    seed: int
    rate: Fraction
    seconds: Fraction | None
    requests: int | None
    on_failure: str
    events: tuple[str, ...] = ()
    rule: str = ""
    promised: bool = False
    problem_sha256: str = ""
    warnings: tuple[str, ...] = ()
    stopped: bool = False

    def service(self, name: str) -> ServiceResult:
        """Return what was found of one service; KeyError if there is none of this name."""
        for each in self.services:
            if each.name == name:
                return each
        raise KeyError(name)

    def count(self, verdict: Verdict) -> int:
        """How many services have this verdict."""
        return sum(each.verdict == verdict for each in self.services)

    @property
    def sentence(self) -> str:
        """All in one sentence."""
        kept, free = self.count(Verdict.KEPT), self.count(Verdict.NO_LIMIT)
        total = len(self.services) - free
        under = f"{self.arrivals} arrivals, {self.routing} routing"
        length = [] if self.seconds is None else [f"{shown(self.seconds)} s each"]
        if self.requests is not None:
            fewer = any(  # a trace has an end
                each.requests < self.requests and each.verdict is not Verdict.NOT_REPLAYED
                for each in self.services
            )
            least = "at most " if self.seconds is not None or fewer else ""
            length.append(f"{least}{self.requests:,} requests each")
        more = [] if self.rate == 1 else [f"rates x {shown(self.rate)}"]
        if self.events:
            more.append(f"{len(self.events)} event{'s' * (len(self.events) > 1)}")
        said = ", ".join([f"{kept} of {total} limits kept under {under}", *more, *length])
        if opened := self.count(Verdict.UNDECIDED):
            said += f"; {opened} undecided"
        if left := self.count(Verdict.NOT_REPLAYED):
            said += f"; {left} not replayed"
        if free:
            said += f"; {free} service{'s' * (free > 1)} without a limit"
        if self.stopped:
            said += "; stopped before the end"
        if self.rule and not self.promised:
            framed = self.rule in [known.value for known in FrameRule]
            what = (
                "its limits to evenly spaced arrivals only" if framed else "nothing about waiting"
            )
            said += f"; this plan promised {what} (rule {self.rule})"
        return said

    def __str__(self) -> str:
        return "\n".join([*map(str, self.services), self.sentence])
