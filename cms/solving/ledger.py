"""What is known during a run: every claim is checked here, exactly, before it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from ..certificate.certificate import Branch, round_up
from ..checker.kinds import AnyProblem, AnySchedule, checker_for
from ..errors import AlgorithmError, ClusterError, FileError, InvalidCertificate, InvalidSchedule
from ..plugin.algorithm import Named, SolverBound
from ..running.stopping import Stopped, never
from ..schedule.faults import Violation
from ..values.numbers import shown
from .solution import Incumbent, Proof, Status

#: Violations a message spells out before it says how many more there are, and counts at most.
_SPELLED_OUT, _COUNTED = 3, 1000
#: Nodes and list entries of a pass of some tenths of a second, that is not given up.
_PASS = 100_000


class Known(NamedTuple):
    """A consistent state of knowledge; replaced as a whole, so that Ctrl-C never tears it."""

    best: Any
    cost: Fraction | None
    certificate: Any
    lower_bound: Fraction
    claimed_bound: Fraction | None
    infeasible: Proof
    history: tuple[Incumbent, ...]


class Ledger:
    """The only door for claims: each is checked, stamped with the time, and kept if it is better.

    A solver's word is accepted from a ``trusted`` algorithm alone.
    """

    def __init__(
        self, problem: AnyProblem, algorithm: str, *, trusted: bool, clock: Callable[[], float]
    ) -> None:
        self._problem, self._algorithm = problem, algorithm
        self._trusted, self._clock = trusted, clock
        self._solvers: dict[str, str] = {}
        self._checker = checker_for(problem)
        certificate, bound, infeasible, schedule = self._checker.first()
        self.known = Known(None, None, certificate, bound, None, Proof.NONE, ())
        if infeasible:
            self._accept("trivial", infeasible=Proof.CHECKED)
        elif schedule is not None:
            self._accept("trivial", best=schedule, cost=self._checker.cost(schedule))

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

    def start_from(self, schedule: AnySchedule) -> None:
        """Take the caller's schedule; InvalidSchedule with what is wrong if it is not valid."""
        if faults := _listed(self._checker.faults(schedule)):
            raise InvalidSchedule(f"start is not valid: {faults}")
        if self.known.cost is None:
            self._accept("start", best=schedule, cost=self._checker.cost(schedule))

    def bound_roughly(self, stopped: Callable[[], bool]) -> Iterator[Incumbent]:
        """Put a bound beside a schedule that has none, and no solver's word; yield new lines."""
        known = self.known
        if not known.cost or known.lower_bound or known.claimed_bound is not None:
            return
        from .rough_prices import rough_certificates

        with suppress(Stopped):
            for certificate in rough_certificates(self._problem, stopped):
                if found := self._certificate(certificate, stopped, undisturbed=0):
                    yield self._accept("rough prices", **found)

    def hear(self, claim: Any, *, stopped: Callable[[], bool] = never) -> Incumbent | None:
        """Check a claim; if it improves something, keep it and return the history's new line.

        Once ``stopped`` is true, a certificate's check is given up.
        """
        part, source = "", self._algorithm
        try:
            if type(claim) is Named:
                part, claim = f": {claim.part}", claim.claim
            if type(claim) is self._checker.schedules:
                found = self._schedule(claim)
            elif type(claim) in self._checker.certificates:
                found = self._certificate(claim, stopped)
            elif type(claim) is SolverBound:
                found, source = self._solver_bound(claim), claim.solver
            else:
                # A subclass could answer for itself when it is checked: a wrong type as well.
                kinds = self._checker.schedules, *self._checker.certificates
                names = ", ".join(kind.__name__ for kind in kinds)
                raise self._refusal(
                    f"claims an object of type {type(claim).__name__!r}; expected {names} or "
                    "SolverBound (or one of these in a Named), and no subclass of them"
                )
        except (AlgorithmError, FileError, ClusterError):
            raise  # a disk or a cluster is to blame for the latter, and no claim
        except Exception as fault:
            raise self._refusal(
                f"claims an object of type {type(claim).__name__!r} that cannot be checked: "
                f"{type(fault).__name__}: {fault}"
            ) from fault
        return self._accept(source + part, **found) if found else None

    def _accept(self, source: str, **found: Any) -> Incumbent:
        """Let a checked claim count, and add its line to the history."""
        known = self.known
        history, bound = known.history, (known.history or [known])[-1].lower_bound
        known = known._replace(**found)
        self._refuse_contradictions(known)
        # The solution's bound is its certificate's; along the history none may fall.
        bound = max(bound, known.lower_bound)
        line = Incumbent(self._clock(), known.cost, bound, known.claimed_bound, source)
        self.known = known._replace(history=(*history, line))
        return line

    def _schedule(self, schedule: Any) -> dict[str, Any]:
        try:
            cost = self._checker.cost(schedule)
        except InvalidSchedule as fault:
            raise self._refusal(f"claims a schedule that is not valid: {fault}") from fault
        if self.known.cost is not None and cost >= self.known.cost:
            return {}
        faults = _listed(self._checker.faults(schedule))
        if faults:
            raise self._refusal(
                f"claims a schedule of cost {shown(cost)} that is not valid: {faults}"
            )
        return {"best": schedule, "cost": cost}

    def _certificate(
        self, certificate: Any, stopped: Callable[[], bool], undisturbed: int = _PASS
    ) -> dict[str, Any]:
        try:
            _refuse_others(certificate, self._checker.certificates)
            proved = certificate.judged(self._problem, stopped=stopped, undisturbed=undisturbed)
        except InvalidCertificate as fault:
            raise self._refusal(f"claims a certificate that does not hold: {fault}") from fault
        if proved is None:
            return {}
        bound = round_up(proved.value, self._checker.step)
        found = {"certificate": certificate, "lower_bound": bound}
        if self._checker.limited and self.known.cost is None and proved.infeasible:
            return {**found, "infeasible": Proof.CHECKED}
        return found if bound > self.known.lower_bound else {}

    def _solver_bound(self, claim: SolverBound) -> dict[str, Any]:
        known = self.known
        if not self._trusted:
            raise self._refusal(
                f"claims {claim!r}; a solver's word is accepted from the algorithms of "
                "configurable-machines only, others prove their bounds with a certificate"
            )
        found: dict[str, Any] = {}
        if claim.value is not None:
            bound = round_up(claim.value, self._checker.step)
            if bound > max(known.claimed_bound or 0, known.lower_bound):
                found["claimed_bound"] = bound
        elif known.infeasible is Proof.NONE:
            found["infeasible"] = Proof.SOLVER
        self._solvers |= dict.fromkeys(found, claim.solver)
        return found

    def _refusal(self, message: str) -> AlgorithmError:
        return AlgorithmError(self._algorithm, message)

    def _refuse_contradictions(self, known: Known) -> None:
        if known.cost is None:
            return
        valid = f"a valid schedule costs {shown(known.cost)}"
        if known.infeasible is Proof.SOLVER:
            raise self._refusal(f"{valid}, and {self._solvers['infeasible']} claims there is none")
        if known.claimed_bound is not None and known.cost < known.claimed_bound:
            word = (
                f"{self._solvers['claimed_bound']} claims a bound of {shown(known.claimed_bound)}"
            )
            raise self._refusal(f"{valid}, and {word}")
        if known.cost < known.lower_bound:
            raise self._refusal(
                f"{valid}, and a bound of {shown(known.lower_bound)} passed its check as well, "
                "which is impossible: please report this as a fault of configurable-machines"
            )


def _listed(faults: Iterable[Violation]) -> str:
    """Spell out the first violations; nothing if there are none."""
    found = list(islice(faults, _COUNTED + 1))
    more = min(len(found), _COUNTED) - _SPELLED_OUT
    text = "; ".join(str(fault) for fault in found[:_SPELLED_OUT])
    many = "more than " if len(found) > _COUNTED else ""
    return f"{text}; and {many}{more} more violations" if more > 0 else text


def _refuse_others(certificate: Any, known: tuple[type, ...]) -> None:
    """Raise InvalidCertificate if a part of a tree could answer for itself."""
    parts = [certificate]
    while parts:
        part = parts.pop()
        if type(part) not in known:
            raise InvalidCertificate(
                f"a part of type {type(part).__name__!r}; expected "
                f"{' and '.join(kind.__name__ for kind in known)} only, and no subclass of them"
            )
        if type(part) is Branch:
            parts += part.below, part.above
