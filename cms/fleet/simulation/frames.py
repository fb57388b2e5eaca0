"""Replay of plans whose services share instances in time: every instance turns by its frame.

An instance's frame repeats as planned, whatever arrives, and batches that are not full take as long
as full ones. So the services on an instance do not feel each other, and each is replayed alone: a
slot as long as its batch, at one place of every frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from ...errors import InvalidOption
from ...mixes.frames import FrameRule
from ...values.numbers import Number, exact, whole
from ..serving.plan import Plan
from ..serving.posed import Served
from ..serving.time_sharing import SharedServing, amount_of

__all__ = ["FrameResult", "latencies", "replay_frames"]

T = TypeVar("T", int, Fraction)
_REQUESTS = 10_000
_NANOSECONDS = 10**6  # a millisecond


class FrameResult(NamedTuple):
    """What was found of one service.

    Attributes
    ----------
    service : str
    requests, late : int
        All of them, and those beyond the limit.
    limit_ms, longest_ms : Fraction
        The limit, and the longest latency: exact for evenly spaced arrivals, else in nanoseconds.
    """

    service: str
    requests: int
    late: int
    limit_ms: Fraction
    longest_ms: Fraction

    @property
    def late_share(self) -> Fraction:
        """How many of the requests were late."""
        return Fraction(self.late, self.requests) if self.requests else Fraction(0)


def replay_frames(
    plan: Plan,
    *,
    arrivals: str = "even",
    rate: Number = 1,
    requests: int = _REQUESTS,
    seed: int = 0,
) -> tuple[FrameResult, ...]:
    """Replay a plan whose services share instances in time, at the stated rates.

    Parameters
    ----------
    plan : Plan
        Its services share instances in time.
    arrivals : {"even", "poisson"}
        Whether the requests of an instance are evenly spaced, or come as a Poisson stream.
    rate : number, default 1
        What all rates are multiplied by.
    requests : int
        Of each service, about; instances get shares like their rates.
    seed : int, default 0
        Of the Poisson arrivals.

    Returns
    -------
    tuple of FrameResult
        One a service with a rate and an instance, in the order of the services.

    Raises
    ------
    InvalidOption
        If the plan's services do not share instances, or an argument cannot be meant.

    Notes
    -----
    Evenly spaced arrivals are exact. That no limit is missed by them at up to the planned rates is
    what the rules promise (:class:`cms.FrameRule`); with random ones it is a matter of head-room.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet import OperatingPoint, Service, as_problem
    >>> services = [Service("a", "m", 300, 60), Service("b", "m", 100, 60)]
    >>> points = [OperatingPoint("m", "a100-80gb", "mps:100", 1, 8, 800, 10)]
    >>> serving = as_problem(services, points, sharing="time")
    >>> plan = Plan(serving, solve(serving.problem, "mix_first_fit"))
    >>> [(each.late, str(each.longest_ms)) for each in replay_frames(plan)]
    [(0, '80/3'), (0, '20')]
    """
    serving = plan.serving
    if not isinstance(serving, SharedServing):
        raise InvalidOption(
            "frames are replayed of plans whose services share instances in time; of others, "
            "simulate replays the queues"
        )
    if arrivals not in ("even", "poisson"):
        raise InvalidOption(f"arrivals is {arrivals!r}; expected 'even' or 'poisson'")
    factor = exact(rate, "the factor of all rates", error=InvalidOption)
    wanted = whole(requests, "the number of requests", least=1, error=InvalidOption)
    random = np.random.default_rng(whole(seed, "the seed", least=0, error=InvalidOption))
    found = []
    for given in plan.services:
        service, limit = given.service, given.service.latency_limit_ms
        share = service.rate_rps * factor / given.provided_rps if given.provided_rps else None
        if not share or limit is None:
            continue
        total, late, longest = 0, 0, Fraction(0)
        for offset, served, frame, count in _slots(plan, service.name):
            own = served.rate_rps * share
            number = max(1, round(wanted * own / (service.rate_rps * factor)))
            for took in _instances(
                serving.sharing.rule, offset, served, frame, own, number, count, arrivals, random
            ):
                total, late = total + len(took), late + sum(ms > limit for ms in took)
                longest = max(longest, *took)
        found.append(FrameResult(service.name, total, late, limit, longest))
    return tuple(found)


def _slots(plan: Plan, service: str) -> Iterator[tuple[Fraction, Served, Fraction, int]]:
    """The slots of a service: where each begins, what it does, its frame, how many there are."""
    for group in plan.groups:
        for each in group.instances:
            offset, frame = Fraction(0), each.frame_ms or Fraction(0)
            for served in each.serves:
                if served.service == service:
                    yield offset, served, frame, group.count * each.count
                offset += served.length_ms or Fraction(0)


def _instances(
    rule: FrameRule,
    offset: Fraction,
    served: Served,
    frame: Fraction,
    rate: Fraction,
    number: int,
    count: int,
    arrivals: str,
    random: np.random.Generator,
) -> Iterator[list[Fraction]]:
    """The latencies of the requests of each instance, in milliseconds."""
    length, amount = served.length_ms or Fraction(0), int(amount_of(served.point))
    if arrivals == "even":
        gap = 1000 / rate
        evenly = [gap * nth for nth in range(number)]
        # instances that are alike go through the same
        yield latencies(evenly, rule, frame, length, offset, amount)
        return
    whole_frame, slot, start = (int(-(-ms * _NANOSECONDS // 1)) for ms in (frame, length, offset))
    for _ in range(count):
        gaps = random.exponential(float(1000 * _NANOSECONDS / rate), number)
        times = np.cumsum(gaps).astype(np.int64).tolist()
        took = latencies(times, rule, whole_frame, slot, start, amount)
        yield [Fraction(each, _NANOSECONDS) for each in took]


def latencies(
    arrivals: Sequence[T], rule: FrameRule, frame: T, length: T, offset: T, amount: int
) -> list[T]:
    """Return how long each request takes, in the unit of time of the arguments.

    Parameters
    ----------
    arrivals : sequence of number
        Ascending.
    rule : FrameRule
        Under ``round_robin`` a slot takes whoever is there when it begins, under
        ``collect_then_run`` whoever was there when its frame began.
    frame, length, offset : number
        How long a frame and the slot are, and when in the frame the slot begins.
    amount : int
        So many requests at most go into a slot.

    Examples
    --------
    >>> latencies([0, 1, 2, 3], FrameRule.ROUND_ROBIN, 10, 4, 2, amount=2)
    [6, 5, 14, 13]
    >>> latencies([0, 1, 2, 3], FrameRule.COLLECT_THEN_RUN, 10, 4, 2, amount=2)
    [6, 15, 14, 23]
    """
    closes = offset if rule is FrameRule.ROUND_ROBIN else offset - offset  # a zero of its kind
    found: list[T] = []
    last, at = -1, 0
    while at < len(arrivals):
        nth = max(int(-(-(arrivals[at] - closes) // frame)), last + 1)
        begins, closed, last = offset + nth * frame, closes + nth * frame, nth
        taken = 0
        while taken < amount and at < len(arrivals) and arrivals[at] <= closed:
            found.append(begins + length - arrivals[at])
            at, taken = at + 1, taken + 1
    return found
