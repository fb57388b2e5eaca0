"""The least relaxation that saves enough, between what is proved too little and what was found.

A schedule that is found in one state holds from an earlier one on, and a certificate that proves a
state too dear does so up to a later one: both ends are moved that far, exactly.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import NamedTuple

from ...certificate.certificate import Certificate, next_below, round_up
from ...errors import InvalidCertificate
from ...infeasibility.search import Asking
from ...problem.parts import Configuration
from ...problem.problem import Problem
from ...schedule.schedule import MachineGroup, Schedule, machine_cost
from ...solving.ledger import Ledger
from ...solving.solution import Solution, StopReason
from .ladders import Ladder, find_last
from .one_job import Given, plain_job
from .posing import Posing

#: The parts that the time left is divided into for a question; what fails in it is tried once more.
PARTS_OF_THE_TIME = (4, 2)


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


class Base:
    """The best solution known of the plan's problem, and the cost that is to be reached.

    That is the next one below the solution's by default; ``proved``: it is proved impossible.
    """

    def __init__(self, posing: Posing, solution: Solution, wanted: Fraction | None) -> None:
        assert solution.cost is not None
        self.posing, self.solution, self.cost = posing, solution, solution.cost
        step = posing.problem.cost_step
        self.target = next_below(self.cost, step) if wanted is None else wanted
        self.proved = self.is_too_dear(posing.problem, solution.certificate)

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

    @staticmethod
    def bound(problem: Problem, certificate: Certificate) -> Fraction:
        """Return what a certificate proves about a problem; -1 if it does not hold for it."""
        try:
            return certificate.bound(problem)
        except InvalidCertificate:
            return Fraction(-1)

    def is_reached(self, answer: Solution) -> bool:
        """Whether a solution costs as little as is wanted."""
        return answer.cost is not None and answer.cost <= self.target


class Least(NamedTuple):
    """What is known about relaxing one number of a service."""

    outcome: Outcome
    reached: Fraction | None = None  # the number in the state that was found
    short: Fraction | None = None  # the loosest that is proved to be too little
    solution: Solution | None = None  # of the state that was found
    certificate: Certificate | None = None  # that ``short``, or the ladder's end, is too little


class Climb:
    """The search for the first state of a ladder with a plan that costs little enough.

    ``low`` is the loosest state that ``proof`` proves to be too little. Every claim is checked.
    """

    def __init__(self, ladder: Ladder, base: Base, asking: Asking) -> None:
        self.ladder, self.base, self.asking = ladder, base, asking
        self.name = ladder.service.name
        self.low, self.high = ladder.now, ladder.end
        self.proof = base.solution.certificate if base.proved else None
        self.solution: Solution | None = None
        if self.proof is not None and self.low != self.high:  # go as far as the plan's own reaches
            if base.is_too_dear(self._problem(self.high), self.proof):
                self.low = self.high
            else:
                self._climb(self.proof)

    def finish(self) -> Least:
        """Return what is then known; ask for plans where something is open."""
        short = None if self.proof is None else self.low
        if self.low == self.ladder.end or not self._found(self.ladder.end):
            settled = self.proof is not None and self.low == self.ladder.end
            outcome = Outcome.NONE if settled else Outcome.OPEN
            return Least(outcome, None, short, None, self.proof)
        self._close_in()
        closed = self.proof is not None and self.ladder.between(self.low, self.high) is None
        outcome = Outcome.LEAST if closed else Outcome.FOUND
        short = None if self.proof is None else self.low
        return Least(outcome, self.high, short, self._settled(), self.proof)

    def _settled(self) -> Solution:
        """The solution of the state that was reached: its schedule was found in a later one."""
        found = self.solution
        assert found is not None
        problem = self._problem(self.high)
        proofs = found.certificate, self.base.solution.certificate, self.proof
        known = (proof for proof in proofs if proof is not None)
        best = max(known, key=lambda proof: self.base.bound(problem, proof))
        ledger = Ledger(problem, found.method, trusted=False, clock=lambda: found.seconds)
        ledger.hear(found.schedule)
        ledger.hear(best)
        status, proof = ledger.verdict
        return replace(
            found,
            status=status,
            proof=proof,
            stop_reason=StopReason.PROVED if ledger.proved else StopReason.FINISHED,
            schedule=ledger.known.best,
            cost=ledger.known.cost,
            certificate=ledger.known.certificate,
            lower_bound=ledger.known.lower_bound,
            claimed_bound=None,
            guarantee=None,
            problem_sha256=problem.sha256,
        )

    def _close_in(self) -> None:
        """Ask at the state after the one that is proved too little, then in the middle, in turn.

        A certificate is nearly always sharp, so that the first mostly has a schedule.
        """
        nearest = True
        while not self.asking.over:
            middle = self.ladder.between(self.low, self.high)
            if middle is None:
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
            if self.asking.over:
                return False
            answer = self.asking.answer(problem, part=part, start=start)
            if self.base.is_reached(answer):
                schedule = self._filled(answer.schedule)
                self.solution = replace(answer, schedule=schedule, cost=schedule.cost(problem))
                self._descend(state, schedule)
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

    def _filled(self, schedule: Schedule) -> Schedule:
        """Add machines for the service alone while the cost stays what is wanted.

        Where much is relaxed a schedule may cost less than is wanted: what it lacks to that serves
        where less is relaxed.
        """
        problem = self.base.posing.problem
        supply = problem.rows.row(problem.job_index(self.name)).supply
        index = problem.block_index

        def worth(shape: Configuration) -> Fraction:
            gives = sum(supply[index[block]] * n for block, n in shape.blocks.items())
            return Fraction(gives) / machine_cost(problem, shape)

        shapes = [each for each in problem.listed_configurations if machine_cost(problem, each)]
        left, added = self.base.target - schedule.cost(problem), list[MachineGroup]()
        there = Counter[str]()
        for shape, count in schedule.machines.items():
            there[problem.machine_type(shape.machine).name] += count
        for shape in sorted(shapes, key=worth, reverse=True):
            room = left / machine_cost(problem, shape)
            most = problem.room_for(shape.machine, there)
            count = floor(room) if most is None else min(floor(room), most)
            given = {
                (block, self.name): n for block, n in shape.blocks.items() if supply[index[block]]
            }
            if count > 0 and given:
                added.append(MachineGroup(shape, given, count))
                there[problem.machine_type(shape.machine).name] += count
                left -= count * machine_cost(problem, shape)
        return Schedule([*schedule.groups, *added]) if added else schedule

    def _descend(self, state: Fraction, schedule: Schedule) -> None:
        """Find the first state in which a schedule serves."""
        problem, serves = self.base.posing.problem, self.ladder.serves
        blocks = [0] * len(problem.blocks)
        for group in schedule.groups:
            for (block, content), count in group.assignment.items():
                if content == self.name:
                    blocks[problem.block_index[block]] += count * group.count
        if serves(self.low, blocks):  # which was not proved to be too little
            self.high = self.low
            return
        _, self.high = find_last(self.ladder, self.low, state, lambda s: not serves(s, blocks))

    def _climb(self, certificate: Certificate) -> None:
        """Find the last state that a certificate proves to be too little."""
        ladder = self.ladder
        one = plain_job(self._problem(self.low), certificate, self.name)

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
        return self.base.posing.with_row(self.name, self.ladder.row(state))
