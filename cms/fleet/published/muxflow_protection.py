"""Models, without CUDA, of the protection of the online side of a shared GPU.

A quota refuses memory before it is allocated, a gate holds kernels back. On a device where one
kernel at a time holds the SMs, the gate bounds the slowdown of an online request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidProblem
from ...values.numbers import Number, exact, shown, whole
from ..colocation.problem import checked_percent


class MemoryQuota:
    """A limit of the GPU memory of offline work: `used_mib` is never more than `limit_mib`."""

    def __init__(self, limit_mib: Number) -> None:
        self.limit_mib = exact(limit_mib, "limit_mib of a memory quota")
        self.used_mib = Fraction(0)

    def allocate(self, mib: Number) -> bool:
        """Allocate `mib` MiB, or return False and allocate nothing."""
        wanted = self.used_mib + exact(mib, "memory to allocate")
        if wanted > self.limit_mib:
            return False
        self.used_mib = wanted
        return True

    def release(self, mib: Number) -> None:
        """Give `mib` MiB back, at most all of it."""
        given = exact(mib, "memory to release")
        if given > self.used_mib:
            said = f"memory to release is {shown(given)} MiB; expected at most what is allocated"
            raise InvalidProblem(f"{said}, {shown(self.used_mib)} MiB")
        self.used_mib -= given


class LaunchGate:
    """A token bucket before the kernels of offline work, shut while an online request is there.

    The tokens are seconds of the SMs. They come back at the share's rate; a kernel may start where
    the balance is not negative, and then costs its own length.

    `share`: per cent of the SMs' time, 0 to 100 (:func:`cms.fleet.sm_share`). At 0 it never opens.
    `burst`: the largest balance, and the first one, in seconds, >= 0.

    In any t seconds, kernels of at most share · t / 100 + burst + the longest kernel seconds start:
    before the last of them the balance was not negative, and it began at the burst or less.

    Examples
    --------
    >>> gate = LaunchGate(25)
    >>> gate.opens(online_waits=False), gate.opens(online_waits=True)
    (True, False)
    >>> gate.charge(2)
    >>> gate.wait()
    Fraction(8, 1)
    >>> gate.refill(8)
    >>> gate.opens(online_waits=False)
    True
    """

    def __init__(self, share: int, burst: Number = 0) -> None:
        self.rate = Fraction(checked_percent(share, "share of a launch gate"), 100)
        self.burst = exact(burst, "burst of a launch gate")
        self.balance = self.burst

    def opens(self, *, online_waits: bool) -> bool:
        """Whether a kernel may start now, given whether an online request waits or is served."""
        return not online_waits and self.wait() == 0

    def wait(self) -> Fraction | None:
        """Return the seconds until the tokens suffice; None: never."""
        if not self.rate:
            return None
        return max(-self.balance, Fraction(0)) / self.rate

    def charge(self, length: Number) -> None:
        """Pay for a kernel by its seconds."""
        self.balance -= exact(length, "length of a kernel", computed=True)

    def refill(self, elapsed: Number) -> None:
        """Let time pass, in seconds."""
        seconds = exact(elapsed, "elapsed", computed=True)
        self.balance = min(self.burst, self.balance + self.rate * seconds)


class Served(NamedTuple):
    """An online request: its arrival, its time on the SMs, its end; in seconds."""

    arrival: Fraction
    service: Fraction
    end: Fraction


class SharedDevice:
    """A device whose SMs one kernel at a time holds, in the order in which they were launched.

    Online requests are launched when they arrive. Offline work with a gate launches a kernel when
    the device is empty and the gate opens; without a gate it keeps ``ahead`` kernels launched. At
    one instant ends come first, then launches, then arrivals: a request that arrives with a launch
    waits for all of it.

    `kernels`: the lengths of the offline kernels, in their order, in seconds, > 0; maybe without
    end. `ahead`: kernels that are launched and have not ended, without a gate; >= 1. `served`:
    online requests, in the order of their ends. `launched`: start and length of each kernel.

    **With the gate every request is done at most one offline kernel later than without any offline
    work.** A request that arrives at an empty device waits for the rest of one kernel at most, and
    none starts before all online requests are done; until then the device does online work without
    a pause, which by itself could not have begun sooner. So a request of s seconds is slowed by a
    factor of at most 1 + (longest offline kernel) / s (:func:`slowdown_bound`);
    ``proofs_checks/launch_gate.py`` checks it.

    Examples
    --------
    A request of 2 s that arrives as a kernel of 6 s starts, with the gate and without:

    >>> for gate in (LaunchGate(50), None):
    ...     device = SharedDevice([6] * 9, gate, ahead=3)
    ...     device.advance(100, [(0, 2)])
    ...     print(device.served[0].end, slowdown_bound(6, 2))
    8 4
    20 4
    """

    def __init__(
        self, kernels: Iterable[Number], gate: LaunchGate | None = None, *, ahead: int = 1
    ) -> None:
        self.now = Fraction(0)
        self.served: list[Served] = []
        self.launched: list[tuple[Fraction, Fraction]] = []
        self._gate = gate
        self._ahead = whole(ahead, "ahead", least=1)
        self._kernels = map(_length, kernels)
        self._next = next(self._kernels, None)
        # What was launched and has not ended, in order: when it arrived (None: offline), how long.
        self._queue: deque[tuple[Fraction | None, Fraction]] = deque()
        self._end: Fraction | None = None  # of the first of them

    def advance(self, until: Number, requests: Iterable[tuple[Number, Number]] = ()) -> None:
        """Let time pass; online requests, by arrival, hold the SMs for their second number."""
        limit = exact(until, "until", computed=True)
        if limit < self.now:
            said = f"until is {shown(limit)}; expected at least now, {shown(self.now)}"
            raise InvalidProblem(said)
        arrivals = _arrivals(requests, self.now, limit)
        arrival = next(arrivals, None)
        while True:
            self._launch()
            if self._queue and self._end is None:
                self._end = self.now + self._queue[0][1]
            wait = None  # until the gate opens by itself, if the device is empty until then
            if self._gate is not None and self._next is not None and not self._queue:
                wait = self._gate.wait()
            opening = None if wait is None else self.now + wait
            times = (self._end, opening, arrival and arrival[0])
            moment = min((time for time in times if time is not None), default=limit + 1)
            past = min(moment, limit)
            if self._gate is not None:
                self._gate.refill(past - self.now)
            self.now = past
            if moment > limit:
                return
            if moment == self._end:
                begun, length = self._queue.popleft()
                self._end = None
                if begun is not None:
                    self.served.append(Served(begun, length, self.now))
            elif moment != opening and arrival is not None:
                self._queue.append(arrival)
                arrival = next(arrivals, None)

    def _launch(self) -> None:
        """Launch the offline kernels that may start now."""
        most = self._ahead if self._gate is None else 1
        while self._next is not None and sum(one is None for one, _ in self._queue) < most:
            if self._gate is not None:
                if not self._gate.opens(online_waits=bool(self._queue)):
                    return
                self._gate.charge(self._next)
            self._queue.append((None, self._next))
            self.launched.append((self.now, self._next))
            self._next = next(self._kernels, None)


def slowdown_bound(longest_kernel: Number, service: Number) -> Fraction:
    """Return the largest slowdown of a request, by its length, beside gated offline work.

    The longest offline kernel and the request's length, > 0, are in one unit of time.

    Examples
    --------
    >>> slowdown_bound(longest_kernel=6, service=2)
    Fraction(4, 1)
    """
    return 1 + exact(longest_kernel, "longest_kernel") / _length(service)


def _length(value: Number) -> Fraction:
    length = exact(value, "length of a kernel", computed=True)
    if not length:
        raise InvalidProblem("length of a kernel is 0; expected a number > 0")
    return length


def _arrivals(
    requests: Iterable[tuple[Number, Number]], start: Fraction, limit: Fraction
) -> Iterator[tuple[Fraction, Fraction]]:
    for number, service in requests:
        arrival = exact(number, "arrival of a request", computed=True)
        if not start <= arrival <= limit:
            wanted = f"{shown(start)} to {shown(limit)}, in the order of arrivals"
            raise InvalidProblem(f"arrival of a request is {shown(arrival)}; expected {wanted}")
        start = arrival
        yield arrival, _length(service)
