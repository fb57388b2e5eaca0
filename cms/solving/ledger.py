"""What is known during a run: every claim is checked here, exactly, before it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from ..certificate.certificate import BlockPrices, Branch, Certificate, round_up
from ..certificate.first import first_certificate
from ..errors import AlgorithmError, InvalidCertificate, InvalidSchedule
from ..plugin.algorithm import Named, SolverBound
from ..problem.problem import Problem
from ..running.aside import in_words
from ..schedule.check import Violation, violations
from ..schedule.schedule import Schedule
from ..values.numbers import shown
from .solution import Incumbent, Proof, Status

#: Violations a message spells out before it says how many more there are, and counts at most.
_SPELLED_OUT, _COUNTED = 3, 1000


class Known(NamedTuple):
    """A consistent state of knowledge; replaced as a whole, so that Ctrl-C never tears it."""

    best: Schedule | None
    cost: Fraction | None
    certificate: Certificate
    lower_bound: Fraction
    claimed_bound: Fraction | None
    infeasible: Proof
    history: tuple[Incumbent, ...]


class News(NamedTuple):
    """What is known once a checked claim counts, and who made it."""

    source: str
    known: Known


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
    taken : callable, optional
        Rebuilds a claim before it is looked at, as a :class:`cms.plugin.border.Border` does.

    Examples
    --------
    >>> from cms import Configuration, Job
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
        self,
        problem: Problem,
        algorithm: str,
        *,
        trusted: bool,
        clock: Callable[[], float],
        taken: Callable[[object], object] | None = None,
    ) -> None:
        self._problem, self._algorithm = problem, algorithm
        self._trusted, self._clock, self._taken = trusted, clock, taken
        # Without a limit on any machine type, only a job nothing can serve is beyond reach, and
        # the first certificate has seen to that: rays need no second evaluation then.
        self.limited = any(machine.limit is not None for machine in problem.machine_types)
        first = first_certificate(problem)
        self.known = Known(None, None, first, Fraction(0), None, Proof.NONE, ())
        # Seen at a glance, this spares every other problem a pass of pricing.
        if not _all_servable(problem, first) and first.proves_infeasible(problem):
            bound = round_up(first.bound(problem), problem.cost_step)
            known = self.known._replace(lower_bound=bound, infeasible=Proof.CHECKED)
            self.accept(News("trivial", known))
        elif _nothing_to_serve(problem):
            known = self.known._replace(best=Schedule(), cost=Fraction(0))
            self.accept(News("trivial", known))

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
        faults = _listed(violations(self._problem, schedule))
        if faults:
            raise InvalidSchedule(f"start is not valid: {faults}")
        cost = schedule.cost(self._problem)
        if self.known.cost is None:
            self.accept(News("start", self.known._replace(best=schedule, cost=cost)))

    def offer(self, claim: object) -> bool:
        """Check a claim if it would improve something; return whether it did.

        Raises
        ------
        AlgorithmError
            If it does not hold; the message says what was claimed and what is wrong.
        """
        news = self.examined(claim)
        if news is not None:
            self.accept(news)
        return news is not None

    def accept(self, news: News) -> None:
        """Add a line to the history; the news are of the claim examined last."""
        known = news.known
        previous = self.known.history[-1].lower_bound if self.known.history else Fraction(0)
        line = Incumbent(
            self._clock(),
            known.cost,
            max(previous, known.lower_bound),
            known.claimed_bound,
            news.source,
        )
        self.known = known._replace(history=(*known.history, line))

    def examined(self, claim: object, *, stopped: Callable[[], bool] | None = None) -> News | None:
        """Check a claim, and leave the ledger as it is.

        Parameters
        ----------
        claim : object
        stopped : callable, optional
            Once it is true, a certificate's check is given up: of a third party's at once, of our
            own between two leaves, since a pass over the jobs takes little and may prove much.

        Returns
        -------
        News or None
            None if the claim improves nothing, or its check was given up.

        Raises
        ------
        AlgorithmError
            If it does not hold.
        """
        part = ""
        try:
            if self._taken is not None:
                claim = self._taken(claim)
            if type(claim) is Named:
                part, claim = f": {claim.part}", claim.claim
            if type(claim) is Schedule:
                news = self._schedule(claim)
            elif type(claim) in (BlockPrices, Branch):
                news = self._certificate(claim, stopped)  # type: ignore[arg-type]
            elif type(claim) is SolverBound:
                news = self._solver_bound(claim)
            else:
                raise self._wrong_type(claim)
        except AlgorithmError:
            raise
        except Exception as fault:
            raise self._refusal(
                f"claims {_kind(claim)} that cannot be checked: {in_words(fault)}"
            ) from fault
        return None if news is None else news._replace(source=news.source + part)

    def _wrong_type(self, claim: object) -> AlgorithmError:
        # A subclass could answer for itself when it is checked; so it is a wrong type as well.
        return self._refusal(
            f"claims {_kind(claim)}; expected a Schedule, BlockPrices, a Branch or a SolverBound "
            "(or one of these in a Named), and no subclass of them"
        )

    def _schedule(self, schedule: Schedule) -> News | None:
        known = self.known
        cost = self._cost(schedule)
        if known.cost is not None and cost >= known.cost:
            return None
        claim = f"claims a schedule of cost {shown(cost)}"
        faults = _listed(violations(self._problem, schedule))
        if faults:
            raise self._refusal(f"{claim} that is not valid: {faults}")
        if known.infeasible is Proof.SOLVER:
            raise self._refusal(
                f"{claim}, which is valid, after its solver's word that there is none"
            )
        if known.claimed_bound is not None and cost < known.claimed_bound:
            raise self._refusal(
                f"{claim}, which is valid, below the bound {shown(known.claimed_bound)} "
                "its solver gave its word for"
            )
        if cost < known.lower_bound:
            raise self._contradiction(cost, known.lower_bound)
        return News(self._algorithm, known._replace(best=schedule, cost=cost))

    def _cost(self, schedule: Schedule) -> Fraction:
        try:
            return schedule.cost(self._problem)
        except InvalidSchedule as fault:
            raise self._refusal(f"claims a schedule that is not valid: {fault}") from fault

    def _certificate(
        self, certificate: Certificate, stopped: Callable[[], bool] | None
    ) -> News | None:
        known, problem = self.known, self._problem
        try:
            proved = certificate.judged(problem, stopped=stopped, in_passes=not self._trusted)
        except InvalidCertificate as fault:
            raise self._refusal(f"claims a certificate that does not hold: {fault}") from fault
        if proved is None:
            return None
        bound = round_up(proved.value, problem.cost_step)
        if self.limited and known.cost is None and proved.infeasible:
            # The solution's bound is its certificate's; along the history none may fall.
            known = known._replace(infeasible=Proof.CHECKED)
            return News(self._algorithm, known._replace(certificate=certificate, lower_bound=bound))
        if bound <= known.lower_bound:
            return None
        if known.cost is not None and known.cost < bound:
            raise self._contradiction(known.cost, bound)
        return News(self._algorithm, known._replace(certificate=certificate, lower_bound=bound))

    def _solver_bound(self, claim: SolverBound) -> News | None:
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
                    f"costs {shown(known.cost)}"
                )
            if known.infeasible is not Proof.NONE:
                return None
            return News(claim.solver, known._replace(infeasible=Proof.SOLVER))
        bound = round_up(claim.value, self._problem.cost_step)
        if known.cost is not None and known.cost < bound:
            raise self._refusal(
                f"claims by the word of {claim.solver} that no schedule costs less than "
                f"{shown(bound)}; a valid one costs {shown(known.cost)}"
            )
        if bound <= max(known.claimed_bound or Fraction(0), known.lower_bound):
            return None
        return News(claim.solver, known._replace(claimed_bound=bound))

    def _refusal(self, message: str) -> AlgorithmError:
        return AlgorithmError(self._algorithm, message)

    def _contradiction(self, cost: Fraction, bound: Fraction) -> AlgorithmError:
        return self._refusal(
            f"a schedule of cost {shown(cost)} and a bound of {shown(bound)} both "
            "passed their checks, which is impossible: please report this problem as a fault of "
            "configurable-machines"
        )


def _all_servable(problem: Problem, first: BlockPrices) -> bool:
    """Whether every demand has a block that gives it something and is on some machine."""
    usable = [i for i, block in enumerate(problem.blocks) if block not in first.prices]
    return bool(problem.rows.servable(usable).all())


def _nothing_to_serve(problem: Problem) -> bool:
    return not problem.rows.wants.any()


def _listed(faults: Iterable[Violation]) -> str:
    """Spell out the first violations; nothing if there are none."""
    found = list(islice(faults, _COUNTED + 1))
    more = min(len(found), _COUNTED) - _SPELLED_OUT
    text = "; ".join(str(fault) for fault in found[:_SPELLED_OUT])
    many = "more than " if len(found) > _COUNTED else ""
    return f"{text}; and {many}{more} more violations" if more > 0 else text


def _kind(claim: object) -> str:
    return f"an object of type {type(claim).__name__!r}"
