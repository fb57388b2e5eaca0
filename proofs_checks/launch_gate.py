"""The launch gate: beside gated offline work a request is late by one kernel at most.

**Statement.** On a device where one kernel at a time holds the SMs, in the order of their launches,
let offline work launch a kernel only when the device is empty, and the gate's balance, refilled at
the rate r up to b and charged with each kernel's length, is not negative. Let K be the longest
offline kernel.

1. Every online request is done at most K later than if there were no offline work. So a request of
   s seconds is slowed by a factor of at most 1 + K/s.
2. That is attained: by a request that arrives together with the launch of K at an empty device.
3. Without the gate, and m kernels launched ahead, that request is slowed by 1 + mK/s.
4. Kernels launched in any t seconds take at most rt + b + K.

**Machine-checked.** On random requests and kernels, against a plain simulation in whole ticks
(every completion and launch the same), tick by tick and at once: 1 for every request, 4 for every
two launches; 2 and 3 for random K, s and m; that on half of the random inputs at least the bound
is broken without the gate.

**On paper.** 1 and 4, as in :class:`cms.fleet.SharedDevice` and
:class:`cms.fleet.LaunchGate`.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import NamedTuple

from cms.fleet.published import LaunchGate, SharedDevice, slowdown_bound

from .finding import Tally, require, theorem


class Case(NamedTuple):
    """Requests (arrival, service), kernels and the gate, all in whole ticks."""

    requests: tuple[tuple[int, int], ...]
    kernels: tuple[int, ...]
    share: int
    burst: int
    ahead: int

    @property
    def long(self) -> int:
        """A time by which all requests are done, whatever the gate does."""
        return 1 + sum(self.kernels) + sum(service for _, service in self.requests) + 200


def drawn(rng: random.Random) -> Case:
    """Draw a case; the share is such that the gate opens at whole ticks."""
    arrivals = sorted(rng.randint(0, 100) for _ in range(rng.randint(1, 12)))
    return Case(
        tuple((arrival, rng.randint(1, 6)) for arrival in arrivals),
        tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 40))),
        rng.choice([5, 10, 20, 25, 50, 100]),
        rng.randint(0, 20),
        rng.randint(1, 4),
    )


def alone(requests: tuple[tuple[int, int], ...]) -> list[int]:
    """Return when requests are done without any offline work."""
    ends, free = [], 0
    for arrival, service in requests:
        free = max(free, arrival) + service
        ends.append(free)
    return ends


def in_ticks(case: Case, *, gated: bool) -> tuple[list[int], list[int]]:
    """Return when requests are done, and when kernels are launched, tick by tick."""
    ends, launches = [], []
    kernels, arriving = list(case.kernels), list(case.requests)
    queue: list[list[int]] = []  # ticks left, and whether it is online
    balance = 100 * case.burst
    for tick in range(case.long):
        if queue and queue[0][0] == 0 and queue.pop(0)[1]:
            ends.append(tick)
        while kernels:
            if gated and (queue or balance < 0):
                break
            if not gated and sum(1 for _, online in queue if not online) == case.ahead:
                break
            queue.append([kernels.pop(0), False])
            launches.append(tick)
            balance -= 100 * queue[-1][0]
        while arriving and arriving[0][0] == tick:
            queue.append([arriving.pop(0)[1], True])
        if queue:
            queue[0][0] -= 1
        balance = min(100 * case.burst, balance + case.share)
    return ends, launches


def gate_of(case: Case) -> LaunchGate:
    """Return the gate of a case as the package makes it."""
    return LaunchGate(case.share, case.burst)


def _replayed(case: Case, *, gated: bool, tick: int | None = None) -> SharedDevice:
    device = SharedDevice(case.kernels, gate_of(case) if gated else None, ahead=case.ahead)
    if tick is None:
        device.advance(case.long - 1, case.requests)
        return device
    for start in range(0, case.long - 1, tick):
        until = min(start + tick, case.long - 1)
        first = start if start == 0 else start + 1
        device.advance(until, [one for one in case.requests if first <= one[0] <= until])
    return device


def _agree(case: Case, rng: random.Random) -> list[Fraction]:
    """Hold the package against the plain simulation; return when requests are done with a gate."""
    for gated in (False, True):
        ends, launches = in_ticks(case, gated=gated)
        for tick in (None, rng.randint(1, 30)):
            device = _replayed(case, gated=gated, tick=tick)
            found = [one.end for one in device.served]
            require(found == ends, f"gated {gated}: done at {found}, by ticks {ends}")
            starts = [start for start, _ in device.launched]
            require(starts == launches, f"gated {gated}: launches {starts}, by ticks {launches}")
    return found


def _launched(case: Case) -> None:
    launched = _replayed(case, gated=True).launched
    rate, longest = Fraction(case.share, 100), max(case.kernels)
    for first, (start, _) in enumerate(launched):
        total = Fraction(0)
        for end, length in launched[first:]:
            total += length
            most = rate * (end - start) + case.burst + longest
            require(total <= most, f"{total} launched from {start} to {end}, at most {most}")


def _attained(rng: random.Random) -> None:
    longest, service, ahead = rng.randint(1, 50), rng.randint(1, 50), rng.randint(2, 5)
    bound = slowdown_bound(longest, service)
    for gate, factor in ((LaunchGate(rng.randint(1, 100)), 1), (None, ahead)):
        device = SharedDevice([longest] * ahead, gate, ahead=ahead)
        device.advance(10**6, [(0, service)])
        slowdown = device.served[0].end / service
        require(
            slowdown == 1 + factor * (bound - 1),
            f"kernels of {longest}, a request of {service}, {ahead} ahead: slowed {slowdown}",
        )


@theorem(
    "Launch gate",
    "delays, launches, the tight example; that without the gate all this breaks",
    ratio="delay / longest kernel",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 200) -> None:
    """Run the machine check."""
    broken = 0
    for number in range(cases):
        rng = random.Random(f"launch gate {seed} {number}")
        case = drawn(rng)
        with tally.case(f"input {number}: {case}"):
            ends, longest = _agree(case, rng), max(case.kernels)
            for (arrival, service), end, sooner in zip(
                case.requests, ends, alone(case.requests), strict=True
            ):
                require(end <= sooner + longest, f"done at {end}, alone at {sooner}")
                bound = slowdown_bound(longest, service)
                slowdown = Fraction(end - arrival, sooner - arrival)
                require(slowdown <= bound, f"slowed {slowdown}, at most {bound}")
                tally.seen(Fraction(end - sooner, longest))
            _launched(case)
            _attained(rng)
            late = zip(in_ticks(case, gated=False)[0], alone(case.requests), strict=True)
            broken += any(end > sooner + longest for end, sooner in late)
    with tally.case("without the gate"):
        require(2 * broken >= cases or cases < 10, f"the bound broke on {broken} of {cases} only")
