"""The least relaxation that saves enough, between what is proved too little and what was found.

One number of a service leads through states, a ladder. Between two breakpoints nothing changes: not
what a demand needs, not what an instance counts for. So numbers are never tried for their own sake.
A schedule that is found in one state holds from an earlier one on, and a certificate that proves a
state too dear does so up to a later one: both ends are moved that far, exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache
from itertools import chain
from math import gcd
from typing import Any, NamedTuple

from ...certificate.certificate import Certificate, next_below, round_up
from ...errors import InvalidCertificate
from ...infeasibility.search import Asking
from ...problem.problem import Problem
from ...problem.row import Row
from ...schedule.schedule import Schedule
from ...solving.ledger import Ledger
from ...solving.solution import Solution, StopReason
from ..serving import OperatingPoint, Plan, Service
from ..serving.latency_rule import Breakpoint
from .explaining import Given, plain_job
from .services import Posing

#: The parts that the time left is divided into for a question; what fails in it is tried once more.
PARTS_OF_THE_TIME = (4, 2)


class Ladder(NamedTuple):
    """One number of a service, from what it is to its loosest: beyond it nothing changes.

    What serves in one state serves in all later ones. `at`: the service with this number. `row`:
    its demand and supply. `following`: the first state after one that is not its like; beyond the
    end, anything. `between`: a state beyond the first, not its like, and before the second; None if
    none is. `first_after`: the number from which on all is as in the first state after one.
    """

    now: Fraction
    end: Fraction
    at: Callable[[Fraction], Service]
    row: Callable[[Fraction], Row]
    following: Callable[[Fraction], Fraction]
    between: Callable[[Fraction, Fraction], Fraction | None]
    first_after: Callable[[Fraction], Breakpoint]

    def serves(self, state: Fraction, blocks: Sequence[int]) -> bool:
        """Whether these numbers of blocks serve the service in a state."""
        row = self.row(state)
        return sum(n * gives for n, gives in zip(blocks, row.supply, strict=True)) >= row.demand


def rate_ladder(posing: Posing, service: Service) -> Ladder:
    """Lower a rate, down to 0: the sums that blocks can add up to are multiples of one number."""
    given, now, end = posing.row(service), service.rate_rps, Fraction(0)
    step = gcd(*given.supply) * now / given.demand if given.demand else end  # of the rate asked for

    def at(rate: Fraction) -> Service:
        return replace(service, rate_rps=rate)

    def following(state: Fraction) -> Fraction:
        return step * (-(-state // step) - 1) if step else end

    def between(low: Fraction, high: Fraction) -> Fraction | None:
        if not step:
            return None
        first, last = -(-low // step) - 1, high // step
        return step * ((first + last + 1) // 2) if first > last else None

    row = cache(lambda state: posing.row(at(state)))
    return Ladder(now, end, at, row, following, between, lambda state: Breakpoint(following(state)))


def limit_ladder(
    posing: Posing,
    service: Service,
    next_limit: Callable[[Service, OperatingPoint], Breakpoint | None],
) -> Ladder:
    """Loosen a latency limit, up to where no point counts for more any more."""
    now = end = service.latency_limit_ms or Fraction(0)
    points = [*chain.from_iterable(posing.candidates(service).values())]

    def at(limit: Fraction) -> Service:
        return replace(service, latency_limit_ms=limit)

    def breakpoints(state: Fraction) -> list[Breakpoint]:  # the next one of each point, ascending
        found = (next_limit(at(state), point) for point in points)
        return sorted({each for each in found if each is not None})

    while breakpoints(end):
        end *= 2

    def following(state: Fraction) -> Fraction:
        there = breakpoints(state)
        return _reached(there) if there else 2 * end

    def between(low: Fraction, high: Fraction) -> Fraction | None:
        first = following(low)
        if first >= high or row(first) == row(high):
            return None
        return max(first, (low + high) / 2)

    row = cache(lambda state: posing.row(at(state)))
    return Ladder(now, end, at, row, following, between, lambda state: breakpoints(state)[0])


def _reached(there: Sequence[Breakpoint]) -> Fraction:
    """Return a limit that the first breakpoint admits and that no later one does, a short one."""
    first, above = there[0]
    if not above:
        return first
    later = min((each.limit_ms for each in there if each.limit_ms > first), default=first + 1)
    parts = 1
    while not first < (limit := Fraction(first * parts // 1 + 1, parts)) <= later:
        parts *= 10
    return limit


def find_last(
    ladder: Ladder, low: Fraction, high: Fraction, holds: Callable[[Fraction], bool]
) -> tuple[Fraction, Fraction]:
    """Return the last state in which something holds, and the first in which it does not.

    It holds at ``low`` and not at ``high``, nor beyond any state in which it does not.
    """
    while (middle := ladder.between(low, high)) is not None:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


class What(StrEnum):
    """What of a service is relaxed."""

    RATE = "rate"
    LATENCY_LIMIT = "latency_limit"
    LATE_SHARE = "late_share"
    ALLOWED_PROFILES = "allowed_profiles"


class Outcome(StrEnum):
    """What is known about the relaxations of one number.

    ``LEAST``: one was found that saves enough, and all smaller ones are proved not to. ``FOUND``:
    one was found. ``NONE``: none saves enough: proved. ``OPEN``: none was found, and nothing is
    proved.
    """

    LEAST = "least"
    FOUND = "found"
    NONE = "none"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """What is known about relaxing one number of one service, all else as it is."""

    service: str
    what: What
    outcome: Outcome
    now: Fraction | None = None  #: the number; None for profiles
    #: From here on a plan of the wanted cost was found and checked; None if none was.
    enough: Fraction | None = None
    above: bool = False  #: whether it has to be above that, and not equal to it
    change: Fraction | None = None  #: how much that is of what it is now
    #: As loose as this, the wanted cost is proved impossible; None if that is not proved at all.
    #: Whatever lies between this and ``enough`` is like this, where the outcome is ``least``.
    short: Fraction | None = None
    #: Any one of these, allowed as well, is enough; where no single one is known to be, all.
    profiles: tuple[str, ...] = ()
    plan: Plan | None = None  #: with the relaxation, at the wanted cost
    #: It proves what is said of ``short``; of ``none`` it proves that nothing is enough.
    certificate: Certificate | None = None
    #: No smaller change than this is enough: proved. None if no change at all is.
    ruled_out: Fraction | None = Fraction(0)


class Base:
    """The best solution known of the plan's problem, and the cost that is to be reached.

    That is the next one below the solution's by default; `proof`: that it is impossible, if known.
    """

    def __init__(
        self, posing: Posing, solution: Solution, wanted: Fraction | None, asking: Asking
    ) -> None:
        assert solution.cost is not None
        self.posing, self.asking = posing, asking
        self.solution, self.cost = solution, solution.cost
        step = posing.problem.cost_step
        self.target = next_below(self.cost, step) if wanted is None else wanted
        proof = solution.certificate
        self.proof = proof if self.is_too_dear(posing.problem, proof) else None

    def is_too_dear(self, problem: Problem, certificate: Certificate) -> bool:
        """Whether a certificate proves that a problem costs more than is wanted.

        One whose proper counts do not hold for it proves nothing.
        """
        try:
            found = certificate.judged(problem)
        except InvalidCertificate:
            return False
        assert found is not None  # nothing stops it
        return found.infeasible or self.exceeds(found.value)

    def exceeds(self, bound: Fraction) -> bool:
        """Whether all that costs at least so much costs more than is wanted."""
        return round_up(max(bound, Fraction(0)), self.posing.problem.cost_step) > self.target

    def is_reached(self, answer: Solution) -> bool:
        """Whether a solution costs as little as is wanted."""
        return answer.cost is not None and answer.cost <= self.target


class Question(ABC):
    """One number of one service, or its profiles: the least relaxation of it that is enough."""

    def __init__(self, base: Base, service: Service, what: What, now: Fraction | None) -> None:
        self.base, self.service, self.what, self.now = base, service, what, now

    @abstractmethod
    def least_change(self) -> Fraction | None:
        """Return the part of the number that is too little by the plan's certificate, if known."""

    @abstractmethod
    def answer(self) -> Relaxation:
        """Return what is known, once plans were asked for where something is open."""

    def relaxation(
        self,
        outcome: Outcome,
        reached: Breakpoint | None = None,
        solution: Solution | None = None,
        other: Service | None = None,
        **more: Any,
    ) -> Relaxation:
        """Say what was found: a solution of the service as it was relaxed, `other`, if any."""
        change = None
        if reached is not None and self.now is not None:
            change = abs(reached.limit_ms - self.now) / self.now
        ruled_out = change if outcome is Outcome.LEAST else None
        if outcome in (Outcome.FOUND, Outcome.OPEN):
            proved = None if self.base.proof is None else self.least_change()
            ruled_out = proved or Fraction(0)
        plan = None
        if solution is not None and other is not None:
            plan = Plan(self.base.posing.anew(other), solution)
        return Relaxation(
            service=self.service.name, what=self.what, outcome=outcome, now=self.now,
            enough=None if reached is None else reached.limit_ms,
            above=reached is not None and reached.above, change=change, plan=plan,
            ruled_out=ruled_out, **more,
        )  # fmt: skip


class Climb(Question):
    """A rate or a limit: the search for the first state with a plan that costs little enough.

    ``low`` is the loosest state that ``proof`` proves to be too little. Every claim is checked.
    """

    def __init__(self, base: Base, service: Service, what: What, ladder: Ladder) -> None:
        super().__init__(base, service, what, ladder.now)
        self.ladder, self.low, self.high = ladder, ladder.now, ladder.end
        self.proof = base.proof
        self.solution: Solution | None = None
        self._has_begun = False

    def least_change(self) -> Fraction:
        """Go as far as the plan's own certificate reaches, unless there is no time left."""
        if not (self._has_begun or self.base.asking.over):
            self._has_begun = True
            if self.proof is not None and self.low != self.high:
                if self.base.is_too_dear(self._problem(self.high), self.proof):
                    self.low = self.high
                else:
                    self._climb(self.proof)
        return abs(self.low - self.ladder.now) / self.ladder.now

    def answer(self) -> Relaxation:
        """Return what is then known; ask for plans where something is open."""
        self.least_change()
        if not self._has_begun:
            return self.relaxation(Outcome.OPEN)
        end, is_enough = self.ladder.end, False
        if self.low != end and self._found(end):
            is_enough = True
            self._close_in()
        known: dict[str, Any] = {"certificate": self.proof}
        known["short"] = None if self.proof is None else self.low
        if not is_enough:
            outcome = Outcome.NONE if known["short"] == end else Outcome.OPEN
            return self.relaxation(outcome, **known)
        outcome, reached = Outcome.FOUND, Breakpoint(self.high)
        if self.proof is not None and self.ladder.between(self.low, self.high) is None:
            outcome, reached = Outcome.LEAST, self.ladder.first_after(self.low)
        other = self.ladder.at(self.high)
        return self.relaxation(outcome, reached, self._settled(), other, **known)

    def _settled(self) -> Solution:
        """The solution of the state that was reached: its schedule was found in a later one."""
        found = self.solution
        assert found is not None
        problem = self._problem(self.high)

        def bound(proof: Certificate) -> Fraction:
            try:
                return proof.bound(problem)
            except InvalidCertificate:  # its proper counts may be of another problem
                return Fraction(-1)

        proofs = found.certificate, self.base.solution.certificate, self.proof
        ledger = Ledger(problem, found.method, trusted=False, clock=lambda: found.seconds)
        ledger.hear(found.schedule)
        ledger.hear(max((proof for proof in proofs if proof is not None), key=bound))
        (status, proof), known = ledger.verdict, ledger.known
        return replace(
            found, status=status, proof=proof, schedule=known.best, cost=known.cost,
            stop_reason=StopReason.PROVED if ledger.proved else StopReason.FINISHED,
            certificate=known.certificate, lower_bound=known.lower_bound, claimed_bound=None,
            guarantee=None, problem_sha256=problem.sha256,
        )  # fmt: skip

    def _close_in(self) -> None:
        """Ask at the state after the one that is proved too little, then in the middle, in turn.

        A certificate is nearly always sharp, so that the first mostly has a schedule.
        """
        nearest = True
        while not self.base.asking.over:
            if (middle := self.ladder.between(self.low, self.high)) is None:
                return
            state = self.ladder.following(self.low) if nearest else middle
            nearest = not nearest
            before = self.low, self.high
            if self.ladder.row(state) == self.ladder.row(self.low):
                self.low = state
            elif not self._found(state) and before == (self.low, self.high):
                return  # it was given up

    def _found(self, state: Fraction) -> bool:
        """Ask for a plan in a state, twice if need be, and take note of what is then known."""
        problem, start = self._problem(state), self.base.solution.schedule
        for part in PARTS_OF_THE_TIME:
            if self.base.asking.over:
                return False
            answer = self.base.asking.answer(problem, part=part, start=start)
            if self.base.is_reached(answer):
                self.solution = answer
                self._descend(state, answer.schedule)
                return True
            if self.base.is_too_dear(problem, answer.certificate):
                self.low, self.proof = state, answer.certificate
                if state != self.ladder.end:
                    self._climb(answer.certificate)
                return False
            if answer.stop_reason is not StopReason.TIME_LIMIT:
                return False
            start = answer.schedule
        return False

    def _descend(self, state: Fraction, schedule: Schedule) -> None:
        """Find the first state in which a schedule serves."""
        problem, serves = self.base.posing.problem, self.ladder.serves
        blocks = [0] * len(problem.blocks)
        for group in schedule.groups:
            for (block, content), count in group.assignment.items():
                if content == self.service.name:
                    blocks[problem.block_index[block]] += count * group.count
        if serves(self.low, blocks):  # which was not proved to be too little
            self.high = self.low
            return
        _, self.high = find_last(self.ladder, self.low, state, lambda s: not serves(s, blocks))

    def _climb(self, certificate: Certificate) -> None:
        """Find the last state that a certificate proves to be too little.

        One service is priced again at each state, not all of them: of 200 that is what takes time.
        """
        ladder, name = self.ladder, self.service.name
        one = plain_job(self._problem(self.low), certificate, name)

        def is_priced(state: Fraction) -> bool:  # as it would be if all other jobs paid the same
            bound = one._replace(row=ladder.row(state)).bound_if(Given())
            return bound is None or self.base.exceeds(bound)

        def is_proved(state: Fraction) -> bool:
            return self.base.is_too_dear(self._problem(state), certificate)

        last, _ = find_last(ladder, self.low, self.high, is_priced)
        if last != self.low and not is_proved(last):
            last, _ = find_last(ladder, self.low, last, is_proved)
        if last != self.low:
            self.low, self.proof = last, certificate

    def _problem(self, state: Fraction) -> Problem:
        return self.base.posing.with_row(self.service.name, self.ladder.row(state))
