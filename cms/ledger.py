"""What is known during a run: every claim is checked here, exactly, before it counts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from .algorithm import Named, SolverBound
from .certificate import BlockPrices, Branch, Certificate, first_certificate, round_up
from .check import Violation, check
from .errors import AlgorithmError, InvalidCertificate, InvalidSchedule
from .numbers import format_exact
from .problem import Problem
from .schedule import Schedule
from .solution import Incumbent, Proof, Status

#: Violations a message spells out before it says how many more there are.
_SPELLED_OUT = 3


class Known(NamedTuple):
    """A consistent state of knowledge; replaced as a whole, so that Ctrl-C never tears it."""

    best: Schedule | None
    cost: Fraction | None
    certificate: Certificate
    lower_bound: Fraction
    claimed_bound: Fraction | None
    infeasible: Proof
    history: tuple[Incumbent, ...]


class Ledger:
    """The only door for claims: each is checked, stamped with the time, and kept if it is better.

    Parameters
    ----------
    problem : Problem
    algorithm : str
        Whose claims they are, for the errors.
    trusted : bool
        Whether a solver's word is accepted from it.
    clock : callable
        Returns the seconds since the call of ``solve``.

    Examples
    --------
    >>> from cms.model import Configuration, Job
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("x", 3, {"b": 1})])
    >>> ledger = Ledger(problem, "demo", trusted=False, clock=lambda: 0.0)
    >>> ledger.offer(BlockPrices({"b": "1/2"}))
    True
    >>> ledger.known.lower_bound
    Fraction(2, 1)
    >>> ledger.offer(Schedule())
    Traceback (most recent call last):
        ...
    cms.errors.AlgorithmError: algorithm 'demo': claims a schedule of cost 0 that is not valid: \
job 'x' has 0 of its demand served, needs 3
    """

    known: Known
    limited: bool

    def __init__(
        self, problem: Problem, algorithm: str, *, trusted: bool, clock: Callable[[], float]
    ) -> None:
        self._problem, self._algorithm = problem, algorithm
        self._trusted, self._clock = trusted, clock
        self._part = ""
        # Without a limit on any machine type, only a job nothing can serve is beyond reach, and
        # the first certificate has seen to that: rays need no second evaluation then.
        self.limited = any(machine.limit is not None for machine in problem.machine_types)
        first = first_certificate(problem)
        self.known = Known(None, None, first, Fraction(0), None, Proof.NONE, ())
        # Seen at a glance, this spares every other problem a pass of pricing.
        if not _all_servable(problem, first) and first.proves_infeasible(problem):
            self._accept(
                "trivial",
                self.known._replace(
                    lower_bound=round_up(first.bound(problem), problem.cost_step),
                    infeasible=Proof.CHECKED,
                ),
            )
        elif _nothing_to_serve(problem):
            self._accept("trivial", self.known._replace(best=Schedule(), cost=Fraction(0)))

    @property
    def proved(self) -> bool:
        """Whether checked proofs leave nothing to search for."""
        known = self.known
        return known.infeasible is Proof.CHECKED or known.cost == known.lower_bound

    @property
    def verdict(self) -> tuple[Status, Proof]:
        """What is known about the problem, and on whose word."""
        known = self.known
        if known.infeasible is not Proof.NONE:
            return Status.INFEASIBLE, known.infeasible
        if known.cost is None:
            return Status.NO_SCHEDULE, Proof.NONE
        if known.cost == known.lower_bound:
            return Status.OPTIMAL, Proof.CHECKED
        if known.cost == known.claimed_bound:
            return Status.OPTIMAL, Proof.SOLVER
        return Status.FEASIBLE, Proof.NONE

    def start_from(self, schedule: Schedule) -> None:
        """Take the caller's schedule; InvalidSchedule with what is wrong if it is not valid."""
        faults = check(self._problem, schedule)
        if faults:
            raise InvalidSchedule(f"start is not valid: {_listed(faults)}")
        cost = schedule.cost(self._problem)
        if self.known.cost is None:
            self._accept("start", self.known._replace(best=schedule, cost=cost))

    def offer(self, claim: object) -> bool:
        """Check a claim if it would improve something; return whether it did.

        Raises
        ------
        AlgorithmError
            If it does not hold; the message says what was claimed and what is wrong.
        """
        self._part = ""
        if type(claim) is Named:
            self._part, claim = f": {claim.part}", claim.claim
        try:
            if type(claim) is Schedule:
                return self._schedule(claim)
            if type(claim) in (BlockPrices, Branch):
                return self._certificate(claim)  # type: ignore[arg-type]
            if type(claim) is SolverBound:
                return self._solver_bound(claim)
        except AlgorithmError:
            raise
        except Exception as fault:
            raise self._refusal(
                f"claims {_kind(claim)} that cannot be checked: {type(fault).__name__}: {fault}"
            ) from fault
        # A subclass could answer for itself when it is checked; so it is a wrong type as well.
        raise self._refusal(
            f"claims {_kind(claim)}; expected a Schedule, BlockPrices, a Branch or a SolverBound "
            "(or one of these in a Named), and no subclass of them"
        )

    def _schedule(self, schedule: Schedule) -> bool:
        known = self.known
        cost = self._cost(schedule)
        if known.cost is not None and cost >= known.cost:
            return False
        claim = f"claims a schedule of cost {format_exact(cost)}"
        faults = check(self._problem, schedule)
        if faults:
            raise self._refusal(f"{claim} that is not valid: {_listed(faults)}")
        if known.infeasible is Proof.SOLVER:
            raise self._refusal(
                f"{claim}, which is valid, after its solver's word that there is none"
            )
        if known.claimed_bound is not None and cost < known.claimed_bound:
            raise self._refusal(
                f"{claim}, which is valid, below the bound {format_exact(known.claimed_bound)} "
                "its solver gave its word for"
            )
        if cost < known.lower_bound:
            raise self._contradiction(cost, known.lower_bound)
        return self._accept(self._algorithm, known._replace(best=schedule, cost=cost))

    def _cost(self, schedule: Schedule) -> Fraction:
        try:
            return schedule.cost(self._problem)
        except InvalidSchedule as fault:
            raise self._refusal(f"claims a schedule that is not valid: {fault}") from fault

    def _certificate(self, certificate: Certificate) -> bool:
        known, problem = self.known, self._problem
        stranger = _stranger(certificate)
        if stranger is not None:
            raise self._refusal(
                f"claims a certificate with a part of type {stranger!r}; expected BlockPrices and "
                "Branch only, and no subclass of them"
            )
        try:
            bound = round_up(certificate.bound(problem), problem.cost_step)
            infeasible = (
                self.limited and known.cost is None and certificate.proves_infeasible(problem)
            )
        except InvalidCertificate as fault:
            raise self._refusal(f"claims a certificate that does not hold: {fault}") from fault
        if infeasible:
            # The solution's bound is its certificate's; along the history none may fall.
            return self._accept(
                self._algorithm,
                known._replace(
                    certificate=certificate, lower_bound=bound, infeasible=Proof.CHECKED
                ),
            )
        if bound <= known.lower_bound:
            return False
        if known.cost is not None and known.cost < bound:
            raise self._contradiction(known.cost, bound)
        return self._accept(
            self._algorithm, known._replace(certificate=certificate, lower_bound=bound)
        )

    def _solver_bound(self, claim: SolverBound) -> bool:
        known = self.known
        if not self._trusted:
            raise self._refusal(
                f"claims {claim!r}; a solver's word is accepted from the algorithms of "
                "configurable-machines only, others prove their bounds with a certificate"
            )
        if claim.value is None:
            if known.cost is not None:
                raise self._refusal(
                    f"claims by the word of {claim.solver} that there is no schedule; a valid one "
                    f"costs {format_exact(known.cost)}"
                )
            if known.infeasible is not Proof.NONE:
                return False
            return self._accept(claim.solver, known._replace(infeasible=Proof.SOLVER))
        bound = round_up(claim.value, self._problem.cost_step)
        if known.cost is not None and known.cost < bound:
            raise self._refusal(
                f"claims by the word of {claim.solver} that no schedule costs less than "
                f"{format_exact(bound)}; a valid one costs {format_exact(known.cost)}"
            )
        if bound <= max(known.claimed_bound or Fraction(0), known.lower_bound):
            return False
        return self._accept(claim.solver, known._replace(claimed_bound=bound))

    def _accept(self, source: str, known: Known) -> bool:
        previous = self.known.history[-1].lower_bound if self.known.history else Fraction(0)
        line = Incumbent(
            self._clock(),
            known.cost,
            max(previous, known.lower_bound),
            known.claimed_bound,
            source + self._part,
        )
        self.known = known._replace(history=(*known.history, line))
        return True

    def _refusal(self, message: str) -> AlgorithmError:
        return AlgorithmError(self._algorithm, message)

    def _contradiction(self, cost: Fraction, bound: Fraction) -> AlgorithmError:
        return self._refusal(
            f"a schedule of cost {format_exact(cost)} and a bound of {format_exact(bound)} both "
            "passed their checks, which is impossible: please report this problem as a fault of "
            "configurable-machines"
        )


def _all_servable(problem: Problem, first: BlockPrices) -> bool:
    """Whether every demand has a block that gives it something and is on some machine."""
    rows = problem.rows
    usable = [i for i, block in enumerate(problem.blocks) if block not in first.prices]
    served = (rows.supplies[:, usable] > 0).any(axis=1) | (rows.demands == 0)
    for j, row in rows.wide.items():
        served[j] = not row.demand or any(row.supply[i] for i in usable)
    return bool(served.all())


def _nothing_to_serve(problem: Problem) -> bool:
    rows = problem.rows
    return not rows.demands.any() and not any(row.demand for row in rows.wide.values())


def _listed(faults: tuple[Violation, ...]) -> str:
    more = len(faults) - _SPELLED_OUT
    text = "; ".join(str(fault) for fault in faults[:_SPELLED_OUT])
    return f"{text}; and {more} more violations" if more > 0 else text


def _kind(claim: object) -> str:
    return f"an object of type {type(claim).__name__!r}"


def _stranger(certificate: Certificate) -> str | None:
    """Return the type of a tree's first node that is not ours: it could lie about its own bound."""
    pending: list[object] = [certificate]
    while pending:
        node = pending.pop()
        if type(node) is Branch:
            pending += [node.below, node.above]
        elif type(node) is not BlockPrices:
            return type(node).__name__
    return None
