"""The machine-by-machine greedy with item greedy inside (theory 2.1, 2.2), as one plain loop.

For few jobs it runs on Python integers of any size; for many the same source is compiled for int64.
Gains are floats and only choose, within a few 2^-52 of the best, which the guarantee's factor
allows for; what is counted are integers.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

#: Smaller positive gains are raised to this, so that they do not become 0.
_LEAST_GAIN = 1e-300
# In this order, so that each finds those it calls compiled already.
_COMPILED = (
    "worth", "refresh", "fill", "rate", "bound", "choose", "apply", "start", "advance",
)  # fmt: skip


class State(NamedTuple):
    """A run's numbers, flat and by index, of n jobs, k block types and c configurations.

    ``counts`` (c k) are counted and ``many`` weighed. What a unit of a job's demand is worth is one
    over its divisor (n); ``residual`` is left of its target, and it is met as soon as no more than
    ``done`` is. ``gains`` (k n) are those of one block by itself, in trees over ``size`` leaves, a
    power of two: ``best`` (k 2 size) has the job of the largest one at each root. Of a machine
    being filled: blocks ``left`` (k), the ``amount`` that jobs get (n), ``picks`` (type, job and
    number, one after the other) and what each ``gained``. ``tally``: jobs not met yet, and picks.
    """

    n: int
    k: int
    size: int
    counts: Any
    many: Any
    costs: Any
    supply: Any
    given: Any
    divisors: Any
    residual: Any
    done: Any
    gains: Any
    best: Any
    machines: Any
    left: Any
    amount: Any
    picks: Any
    gained: Any
    tally: Any


def worth(gain: Any, divisor: Any) -> float:
    """Divide a gain by its job's divisor; a positive gain never becomes 0."""
    if gain <= 0:
        return 0.0
    weighed: float = max(gain / divisor, _LEAST_GAIN)
    return weighed


def refresh(s: State, j: int) -> None:
    """Bring a job's gains, and the trees above it, up to date."""
    for i in range(s.k):
        f, r = s.supply[j * s.k + i], s.residual[j]
        s.gains[i * s.n + j] = worth(f if f < r else r, s.divisors[j])
        base, row = i * 2 * s.size, i * s.n
        node = (s.size + j) >> 1
        while node:
            one, two = s.best[base + 2 * node], s.best[base + 2 * node + 1]
            # Of equal gains the job of the lower index.
            if two < 0 or (one >= 0 and s.gains[row + one] >= s.gains[row + two]):
                s.best[base + node] = one
            else:
                s.best[base + node] = two
            node >>= 1


def fill(s: State, c: int) -> float:
    """Fill a machine of a configuration, best pair first, into the picks; return what it gains."""
    total, picks = 0.0, 0
    for i in range(s.k):
        s.left[i] = s.counts[c * s.k + i]
    while True:
        at, most = -1, 0.0
        for i in range(s.k):
            if s.left[i] > 0:
                gain = s.gains[i * s.n + s.best[i * 2 * s.size + 1]]
                if gain > most:
                    at, most = i, gain
        if at < 0:
            break
        j = s.best[at * 2 * s.size + 1]
        f, r = s.supply[j * s.k + at], s.residual[j]
        # As many at once as gain as much as the first.
        number = max(1, min(r // f, s.left[at]))
        gained = min(number * f, r)
        s.picks[3 * picks], s.picks[3 * picks + 1], s.picks[3 * picks + 2] = at, j, number
        s.gained[picks] = gained
        picks += 1
        total += worth(gained, s.divisors[j])
        s.residual[j] = r - gained
        s.left[at] -= number
        refresh(s, j)
    # The residual demands are as they were before.
    for pick in range(picks):
        s.residual[s.picks[3 * pick + 1]] += s.gained[pick]
    for pick in range(picks):
        refresh(s, s.picks[3 * pick + 1])
    s.tally[1] = picks
    return total


def rate(gain: float, cost: float) -> float:
    """Return gain by cost; machines that cost nothing come first."""
    return gain / cost if cost > 0 else gain * 1e200


def bound(s: State, c: int) -> float:
    """Return a rate that no filling of a configuration exceeds: each block as if it were alone."""
    most = 0.0
    for i in range(s.k):
        most += s.many[c * s.k + i] * s.gains[i * s.n + s.best[i * 2 * s.size + 1]]
    return rate(most, s.costs[c]) * (1.0 + 1e-12)


def choose(s: State) -> int:
    """Return the configuration whose filling gains most for its cost, the first of equal ones."""
    # The one that could gain most first: it rules most of the others out.
    first, highest = -1, 0.0
    for c in range(len(s.costs)):
        could = bound(s, c)
        if could > highest:
            first, highest = c, could
    if first < 0:
        return -1
    chosen, best = first, rate(fill(s, first), s.costs[first])
    for c in range(len(s.costs)):
        if c != first and bound(s, c) >= best:
            gained = rate(fill(s, c), s.costs[c])
            if gained > best or (gained == best and c < chosen):
                chosen, best = c, gained
    return chosen


def apply(s: State) -> int:
    """Open the machine of the present picks, as often as it gains the same; return how often."""
    picks = s.tally[1]
    for at in range(picks):
        i, j, number = s.picks[3 * at], s.picks[3 * at + 1], s.picks[3 * at + 2]
        s.amount[j] += number * s.supply[j * s.k + i]
    copies, needed, open_jobs = -1, 0, 0
    for at in range(picks):
        j = s.picks[3 * at + 1]
        amount = s.amount[j]
        if amount <= 0:
            continue  # seen at an earlier pick
        s.amount[j] = -amount
        same = s.residual[j] // amount
        if copies < 0 or same < copies:
            copies = same
        if s.residual[j] > s.done[j]:
            open_jobs += 1
            needed = max(needed, (s.residual[j] - s.done[j] + amount - 1) // amount)
    # No more than are needed if no other job is waiting.
    if open_jobs == s.tally[0]:
        copies = min(copies, needed)
    copies = max(copies, 1)
    for at in range(picks):
        i, j, number = s.picks[3 * at], s.picks[3 * at + 1], s.picks[3 * at + 2]
        s.given[j * s.k + i] += copies * number
        if s.amount[j] < 0:
            before = s.residual[j]
            after = max(0, before + copies * s.amount[j])
            s.residual[j] = after
            if before > s.done[j] and after <= s.done[j]:
                s.tally[0] -= 1
            s.amount[j] = 0
            refresh(s, j)
    return copies


def advance(s: State, steps: int) -> int:
    """Open machines for some steps, or until all jobs are met; return the steps left over."""
    while steps > 0 and s.tally[0] > 0:
        c = choose(s)
        if c < 0:
            return -1
        fill(s, c)
        s.machines[c] += apply(s)
        steps -= 1
    return steps


def start(s: State, first: int, stop: int) -> None:
    """Put some jobs into the trees; all of them, in order, before anything else."""
    for j in range(first, stop):
        refresh(s, j)


@cache
def compiled() -> tuple[Any, Any]:
    """Return ``start`` and ``advance``, compiled for arrays of int64 and float64."""
    from cms.knapsack.machine_code import compile_functions

    first, second = compile_functions(globals(), _COMPILED, ["start", "advance"])
    return first, second
