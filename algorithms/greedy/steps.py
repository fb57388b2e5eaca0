"""The machine-by-machine greedy with item greedy inside (theory 2.1, 2.2), as one plain loop.

The functions here use numbers, and arrays or lists by index, alone: for few jobs they run as they
stand, on Python integers of any size; for many ``compiled`` compiles the same source for int64.

Gains are floats and only choose: a choice is within a few 2^-52 of the best one, which the
guarantee's factor allows for. What is counted (residual demands, blocks, machines) are integers.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

#: A gain that is no more than this would vanish as a float; it must not count as none.
_LEAST_GAIN = 1e-300
# In this order, so that each finds those it calls compiled already.
_COMPILED = (
    "worth",
    "rate",
    "refresh",
    "fill",
    "undo",
    "bound",
    "top",
    "consider",
    "choose",
    "apply",
    "take",
)


class State(NamedTuple):
    """A run's numbers, flat and by index.

    Attributes
    ----------
    n, k, size : int
        Jobs, block types, and the leaves of a tree over the jobs (a power of two >= n).
    counts : c * k ints
        Blocks of each type in each configuration.
    many : c * k floats
        The same as floats, for bounds; none is too large for one.
    costs : c floats
    supply : n * k ints
    divisors : n numbers
        What a unit of each job's demand is divided by to be weighed.
    done : n ints
        A job is met as soon as no more than this is left of it.
    residual : n ints
    gains : k * n floats
        What one block of a type gains for a job by itself.
    best : k * 2 * size ints
        Trees of the jobs of the largest gains; the job of a type's root is the best of all.
    given : n * k ints
    machines : c ints
    left, amount : k and n ints
        For a machine's filling: blocks left of each type, and what jobs get.
    picks : 3 * (most picks) ints
        A machine's filling: type, job and number, one after the other.
    gained : most picks ints
    tally : ints
        Jobs not met yet; picks of the present machine.
    """

    n: int
    k: int
    size: int
    counts: Any
    many: Any
    costs: Any
    supply: Any
    divisors: Any
    done: Any
    residual: Any
    gains: Any
    best: Any
    given: Any
    machines: Any
    left: Any
    amount: Any
    picks: Any
    gained: Any
    tally: Any


def worth(gain: Any, divisor: Any) -> float:
    """Weigh a gain."""
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
    """Fill a machine of a configuration, best pair first; returns what it gains.

    The jobs' residual demands are lowered; ``undo`` takes that back.
    """
    total, picks = 0.0, 0
    for i in range(s.k):
        s.left[i] = s.counts[c * s.k + i]
    while True:
        at, most = -1, 0.0
        for i in range(s.k):
            if s.left[i] > 0:
                j = s.best[i * 2 * s.size + 1]
                gain = s.gains[i * s.n + j]
                if gain > most:
                    at, most = i, gain
        if at < 0:
            s.tally[1] = picks
            return total
        j = s.best[at * 2 * s.size + 1]
        f, r = s.supply[j * s.k + at], s.residual[j]
        # As many at once as gain as much as the first.
        number = r // f
        if number > s.left[at]:
            number = s.left[at]
        if number < 1:
            number = 1
        gained = number * f
        if gained > r:
            gained = r
        s.picks[3 * picks], s.picks[3 * picks + 1], s.picks[3 * picks + 2] = at, j, number
        s.gained[picks] = gained
        picks += 1
        total += worth(gained, s.divisors[j])
        s.residual[j] = r - gained
        s.left[at] -= number
        refresh(s, j)


def undo(s: State) -> None:
    """Take the last filling back."""
    for at in range(s.tally[1] - 1, -1, -1):
        s.residual[s.picks[3 * at + 1]] += s.gained[at]
    for at in range(s.tally[1]):
        refresh(s, s.picks[3 * at + 1])


def bound(s: State, c: int) -> float:
    """Return a rate that no filling of a configuration exceeds: each block as if it were alone."""
    most = 0.0
    for i in range(s.k):
        j = s.best[i * 2 * s.size + 1]
        most += s.many[c * s.k + i] * s.gains[i * s.n + j]
    return rate(most, s.costs[c]) * (1.0 + 1e-12)


def top(s: State) -> int:
    """Return the configuration that could gain most for its cost; -1 if none gains anything."""
    found, highest = -1, 0.0
    for c in range(len(s.costs)):
        could = bound(s, c)
        if could > highest:
            found, highest = c, could
    return found


def consider(s: State, c: int, chosen: int, best: float) -> tuple[int, float]:
    """Return the better one of a configuration and the one chosen so far, with its rate."""
    if c == chosen or bound(s, c) < best:
        return chosen, best
    gain = rate(fill(s, c), s.costs[c])
    undo(s)
    if chosen < 0 or gain > best or (gain == best and c < chosen):
        return c, gain
    return chosen, best


def choose(s: State) -> int:
    """Return the configuration whose filling gains most for its cost, the first of equal ones."""
    # The one that could gain most first: it rules most of the others out.
    first = top(s)
    if first < 0:
        return -1
    chosen, best = consider(s, first, -1, 0.0)
    for c in range(len(s.costs)):
        if c != first:
            chosen, best = consider(s, c, chosen, best)
    return chosen


def rate(gain: float, cost: float) -> float:
    """Return gain by cost; machines that cost nothing come first."""
    return gain / cost if cost > 0 else gain * 1e200


def apply(s: State) -> int:
    """Open the machine of the present picks, as often as it gains the same; returns how often.

    Its jobs' residual demands are those before it was filled.
    """
    picks = s.tally[1]
    for at in range(picks):
        i, j, number = s.picks[3 * at], s.picks[3 * at + 1], s.picks[3 * at + 2]
        s.amount[j] += number * s.supply[j * s.k + i]
    copies, needed, open_jobs, first = 1, 0, 0, True
    for at in range(picks):
        j = s.picks[3 * at + 1]
        amount = s.amount[j]
        if amount <= 0:
            continue  # seen at an earlier pick
        s.amount[j] = -amount
        same = s.residual[j] // amount
        if first or same < copies:
            copies, first = same, False
        if s.residual[j] > s.done[j]:
            open_jobs += 1
            enough = (s.residual[j] - s.done[j] + amount - 1) // amount
            if enough > needed:
                needed = enough
    # No more than are needed if no other job is waiting.
    if open_jobs == s.tally[0] and copies > needed:
        copies = needed
    if copies < 1:
        copies = 1
    for at in range(picks):
        i, j, number = s.picks[3 * at], s.picks[3 * at + 1], s.picks[3 * at + 2]
        s.given[j * s.k + i] += copies * number
        if s.amount[j] < 0:
            before = s.residual[j]
            after = before + copies * s.amount[j]
            if after < 0:
                after = 0
            s.residual[j] = after
            if before > s.done[j] and after <= s.done[j]:
                s.tally[0] -= 1
            s.amount[j] = 0
            refresh(s, j)
    return copies


def take(s: State, c: int) -> None:
    """Open the machine that a configuration is filled to, as often as it gains the same."""
    fill(s, c)
    picked = s.tally[1]
    undo(s)
    s.tally[1] = picked
    s.machines[c] += apply(s)


def advance(s: State, steps: int) -> int:
    """Open machines for so many steps, or until all jobs are met; returns the steps left over."""
    while steps > 0 and s.tally[0] > 0:
        c = choose(s)
        if c < 0:
            return -1
        take(s, c)
        steps -= 1
    return steps


def start(s: State, first: int, stop: int) -> None:
    """Put some jobs into the trees; all of them, in order, before anything else."""
    for j in range(first, stop):
        refresh(s, j)


@cache
def compiled() -> tuple[Any, Any]:
    """Return ``start`` and ``advance``, compiled for arrays of int64 and float64, once a process.

    They leave the interpreter to other threads.
    """
    from cms.knapsack import machine_code

    found = machine_code.twins(globals(), _COMPILED)
    made = (FunctionType(each.__code__, found, each.__name__) for each in (start, advance))
    first, second = (machine_code.compiled(each, [__file__]) for each in made)
    return first, second
