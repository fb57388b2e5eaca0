"""Searches of :func:`cms.explain_infeasibility`: fewest more machines, most of the demand.

Both ask :func:`cms.solve.solve`, so that every schedule is checked and every bound certified before
it counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from ..certificate.certificate import Certificate
from ..checker.kinds import check
from ..errors import InvalidCertificate
from ..plugin.algorithm import Algorithm
from ..problem.problem import Problem
from ..running.interrupt import CtrlC
from ..schedule.schedule import Schedule
from ..solving.driver import CancelEvent
from ..solving.solution import Proof, Solution, Status, StopReason
from ..solving.solve import solve
from ..values.frozen import FrozenMap
from .variants import (
    PARTS,
    at_share,
    beyond_limits,
    extended,
    for_nothing,
    machines_used,
    with_more,
    within_limits,
)

#: A share of the demands gets this part of the time left; what fails in it is tried once more.
_PART_OF_THE_TIME = 4


@dataclass(slots=True)
class Asking:
    """How questions are put to ``solve`` until ``end``, a time of ``time.monotonic()``.

    Its ``is_set`` makes it the ``cancel`` of every call: a Ctrl-C that comes between two of them
    counts as well.
    """

    method: str | Algorithm
    seed: int
    threads: int | None
    end: float
    interrupt: CtrlC
    cancel: CancelEvent | None
    interrupted: bool = False

    def is_set(self) -> bool:
        """Whether the caller wants an end."""
        cancelled = self.cancel is not None and self.cancel.is_set()
        return self.interrupted or self.interrupt.pressed or cancelled

    @property
    def over(self) -> bool:
        """Whether there is to be no further question."""
        return self.is_set() or time.monotonic() >= self.end

    def answer(
        self,
        problem: Problem,
        *,
        gap: Fraction | int = 0,
        part: int = 1,
        start: Schedule | None = None,
    ) -> Solution:
        """Solve a problem in one of the equal parts of the time left, from a schedule if given."""
        left = max(0.0, self.end - time.monotonic()) / part
        solution = solve(
            problem,
            self.method,
            time_limit=None if math.isinf(left) else left,
            gap=gap,
            seed=self.seed,
            threads=self.threads,
            start=start,
            cancel=self,
        )
        # A KeyboardInterrupt from a handler of the caller's own is known to `solve` alone.
        self.interrupted |= solution.stop_reason is StopReason.INTERRUPTED
        return solution


class Machines(NamedTuple):
    """Machines beyond the limits, as in :class:`~cms.infeasibility.shortage.Shortage`."""

    more: FrozenMap[str, int] | None
    schedule: Schedule
    at_least: int
    proof: Proof
    certificate: Certificate | None


def fewest_machines(problem: Problem, asking: Asking, solution: Solution | None = None) -> Machines:
    """Find the fewest machines beyond the limits that would do."""
    if not problem.limits:
        return Machines(FrozenMap(), Schedule(), 0, Proof.CHECKED, None)
    larger = extended(problem)
    answer = asking.answer(larger.problem, part=2)
    certificate = answer.certificate if answer.lower_bound > 0 else None
    at_least = math.ceil(answer.lower_bound) if certificate is not None else 0
    if solution is not None and solution.proof is Proof.CHECKED:
        at_least = max(1, at_least)
    if answer.cost is None:
        return Machines(None, Schedule(), at_least, Proof.NONE, certificate)
    schedule = larger.restore(answer.schedule)
    # A schedule that is not the best may leave machines within the limits unused.
    used = machines_used(larger.problem, answer.schedule)
    twins = {own: used[twin] for twin, own in larger.origin.items() if used[twin]}
    more = FrozenMap(beyond_limits(problem, schedule, twins))
    # A translated schedule is checked once more, with the limits raised by what was counted.
    if faults := check(with_more(problem, more), schedule):
        raise AssertionError(f"a checked schedule does not hold when translated: {faults[0]}")
    proof = Proof.CHECKED if sum(more.values()) == at_least else answer.proof
    return Machines(more, schedule, at_least, proof, certificate)


class Demand(NamedTuple):
    """A share of every demand; see :class:`cms.infeasibility.shortage.Shortage`."""

    share: Fraction
    schedule: Schedule
    too_much: Fraction | None
    proof: Proof


def largest_share(
    problem: Problem, asking: Asking, machines: Machines, solution: Solution | None
) -> Demand:
    """Find the largest share of every demand that can be met within the limits."""
    if machines.more is not None and not machines.more:
        return Demand(Fraction(1), machines.schedule, None, Proof.CHECKED)
    search = _ShareSearch(problem, asking)
    if solution is not None:
        search.impossible(PARTS, solution)
    if machines.certificate is not None:
        search.lower(PARTS, machines.certificate, lambda smaller: extended(smaller).problem)
    search.run()
    return search.demand


def most_growth(
    problem: Problem, asking: Asking, schedule: Schedule, certificate: Certificate, cost: Fraction
) -> Demand | None:
    """Find the largest share of every demand, 1 or more, that can be met within the limits."""
    if not problem.rows.wants.any():
        return None
    search = _ShareSearch(problem, asking, met=PARTS, least=PARTS, end=_UNKNOWN, schedule=schedule)
    search.lower(search.end, certificate, lambda asked: asked, cost)
    search.run()
    return search.demand


#: No share is known to be too much.
_UNKNOWN = PARTS << 60


@dataclass(slots=True)
class _ShareSearch:
    """What is known about the shares of the demands, in parts of :data:`PARTS`.

    `met` is the largest share with a schedule, `least` the first of these; all are below `end`.
    Those between `met` and `untried` are open; that one is proved impossible, called so by a
    solver, or was given up. `proved` and `claimed` are the smallest that a checked certificate, or
    a solver's word, shows impossible. `gave_up` says whether the time for a share ran out.
    """

    problem: Problem
    asking: Asking
    met: int = 0
    least: int = 0
    end: int = PARTS + 1
    untried: int = field(init=False)
    proved: int = field(init=False)
    claimed: int = field(init=False)
    gave_up: bool = False
    schedule: Schedule = field(default_factory=Schedule)

    def __post_init__(self) -> None:
        self.untried = self.proved = self.claimed = self.end

    @property
    def demand(self) -> Demand:
        proof = Proof.NONE
        if self.met + 1 == self.proved:
            proof = Proof.CHECKED
        elif self.met + 1 == self.claimed:
            proof = Proof.SOLVER
        too_much = Fraction(self.proved, PARTS) if self.proved < self.end else None
        return Demand(Fraction(self.met, PARTS), self.schedule, too_much, proof)

    def run(self) -> None:
        """Go down from what is impossible in growing steps, to the first schedule; then bisect.

        A share that is met is doubled until one is too much, if none is known to be. A certificate
        of prices is nearly always sharp, so that the first step mostly finds a schedule.
        """
        while self.untried == self.end > 2 * self.met > 0 and not self.asking.over:
            self._ask(2 * self.met, _PART_OF_THE_TIME)
        step = 1
        lowest = self.least + 1
        while self.met < lowest < self.untried and not self.asking.over:
            self._ask(max(lowest, self.untried - step), _PART_OF_THE_TIME)
            step *= 2
        while self.met + 1 < self.untried and not self.asking.over:
            self._ask((self.met + self.untried) // 2, _PART_OF_THE_TIME)
        # What was given up for want of time gets all that is left, as long as that helps.
        while self.gave_up and self.met + 1 < min(self.proved, self.claimed):
            before = self.met
            self._ask(self.met + 1, 1)
            if self.met == before or self.asking.over:
                break

    def impossible(self, parts: int, solution: Solution) -> None:
        if solution.proof is Proof.CHECKED:
            self.lower(parts, solution.certificate, for_nothing)
        else:
            self.claimed = min(self.claimed, parts)
            self.untried = min(self.untried, parts)

    def lower(
        self,
        parts: int,
        certificate: Certificate,
        asked: Callable[[Problem], Problem],
        most: Fraction | int = 0,
    ) -> None:
        """Find the smallest share that a certificate proves impossible, which it does of `parts`.

        What is proved at one share is proved at all larger ones. Of the end, of which nothing is
        known, shares are doubled until the certificate's bound, if it grows at all, is too high.
        """
        if self.proved <= parts < self.end:
            return
        low, high = self.met, parts
        while high - low > 1 and not self.asking.over:
            unknown = 2 * low < high == self.end
            middle = 2 * low if unknown else (low + high) // 2
            smaller = asked(at_share(self.problem, middle))
            try:
                found = certificate.judged(smaller, stopped=lambda: self.asking.over)
            except InvalidCertificate:
                # Its proper counts may be too few for larger demands; it has to hold otherwise.
                if not any(leaf.proper for leaf in certificate.leaves()):
                    raise
                break
            if found is None or (unknown and found.value <= 0):
                break
            low, high = (low, middle) if found.value > most else (middle, high)
        self.proved = high
        self.untried = min(self.untried, high)

    def _ask(self, parts: int, part: int) -> None:
        asked, most = within_limits(at_share(self.problem, parts))
        solution = self.asking.answer(asked, gap=most, part=part)
        if solution.cost is not None:
            self.met, self.schedule = parts, solution.schedule
        elif solution.status is Status.INFEASIBLE:
            self.impossible(parts, solution)
        elif solution.lower_bound > most:
            self.lower(parts, solution.certificate, lambda smaller: within_limits(smaller)[0], most)
        else:
            self.untried = min(self.untried, parts)
            self.gave_up |= solution.stop_reason is StopReason.TIME_LIMIT
