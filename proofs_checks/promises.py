"""The package's own algorithms on a tiny problem: what they answer and what they promise.

An answer is held against the exact optimum and against the exact value of whatever the algorithm
states its guarantee against; and that guarantee against the one its theorem gives, worked out in
the theorem's file. Anything that goes wrong, an algorithm that is not installed or promises nothing
included, is a :class:`Breach`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple, Protocol

from cms import CmsError, Problem, Reference, Solution, StopReason, UnsupportedProblem, check

from .bounds import reference
from .brute_force import optimum
from .finding import Breach, require
from .tiny import Tiny

#: Seconds for one answer; every one takes a small part of it.
_TIME_LIMIT = 600.0
#: By what part greedy's factors may exceed the theorem's: its gains and linear programs are in
#: floats, known to a part of 10^-5; and logarithms are rounded up to six digits after the point.
_FLOATS, _DIGITS = Fraction(2, 10**5), Fraction(2, 10**6)


def in_floats(factor: Fraction) -> Fraction:
    """Return what a theorem's factor may become where floats have a part in it."""
    return factor * (1 + _FLOATS) + _DIGITS


class Promise(NamedTuple):
    """What a theorem says an algorithm's guarantee is: ``cost <= factor * against + additive``."""

    against: Reference
    factor: Fraction
    additive: Fraction = Fraction(0)

    def allows(self, tiny: Tiny) -> Fraction:
        """Return the largest cost that keeps it."""
        return self.factor * reference(tiny, self.against) + self.additive


class Solver(Protocol):
    """What is checked: :func:`cms.solve`, or a function in its place."""

    def __call__(
        self, problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
    ) -> Solution:
        """Solve a problem by a method."""
        ...


def promised(
    solver: Solver, tiny: Tiny, method: str, promise: Promise | None, **options: object
) -> Solution:
    """Return a method's answer, after checking everything but the theorem at hand.

    A Breach if there is no answer, the schedule is not valid or cheaper than the optimum, the bound
    exceeds the optimum, the method's own guarantee is missing or allows more than the theorem's
    promise, each at the exact value of its reference, or the cost exceeds it. Without a promise the
    method's word is its status.
    """
    said = f"{method} {options}" if options else method
    solution = valid(solver, tiny, method, **options)
    cost, best = cost_of(solution), optimum(tiny).cost
    require(cost >= best, f"{said}: cost {cost} below the optimum {best}")
    bound = max(proved(solution, tiny.problem()), solution.claimed_bound or Fraction(0))
    require(bound <= best, f"{said}: lower bound {bound} above the optimum {best}")
    if promise is not None:
        _require_guarantee(solution, tiny, cost, promise, said)
    return solution


def _require_guarantee(
    solution: Solution, tiny: Tiny, cost: Fraction, promise: Promise, said: str
) -> None:
    """Require a guarantee that is kept and allows no more than the theorem's."""
    if solution.guarantee is None:
        raise Breach(f"{said}: no guarantee is stated")
    guarantee, most = solution.guarantee.guarantee, promise.allows(tiny)
    value = reference(tiny, guarantee.against)
    allowed = guarantee.allows(value)
    with_value = f"{guarantee} with {guarantee.against} = {value}"
    require(cost <= allowed, f"{said}: cost {cost}, but {with_value}")
    require(allowed <= most, f"{said}: {with_value} allows more than the theorem, {float(most)}")


def valid(solver: Solver, tiny: Tiny, method: str, **options: object) -> Solution:
    """Return a method's answer, whose schedule is valid and costs what it says; or a Breach."""
    said = f"{method} {options}" if options else method
    problem = tiny.problem()
    solution = answered(solver, problem, method, **options)
    cost = solution.cost
    if cost is None:
        raise Breach(f"{said}: no schedule ({solution.status})")
    require(not check(problem, solution.schedule), f"{said}: the schedule is not valid")
    require(solution.schedule.cost(problem) == cost, f"{said}: the cost is not the schedule's")
    return solution


def cost_of(solution: Solution) -> Fraction:
    """Return what an answer's schedule costs; a :class:`Breach` if it has none."""
    if solution.cost is None:
        raise Breach(f"no schedule ({solution.status})")
    return solution.cost


def way_of(solution: Solution) -> str:
    """Return by what an answer's schedule was found: the source of the line at which it came."""
    return next(line.source for line in solution.history if line.cost == solution.cost)


def answered(solver: Solver, problem: Problem, method: str, **options: object) -> Solution:
    """Return a method's answer; a :class:`Breach` if it fails or does not finish."""
    try:
        solution = solver(problem, method, options=options, time_limit=_TIME_LIMIT)
    except CmsError as fault:
        raise Breach(f"{method} {options}: {type(fault).__name__}: {fault}") from fault
    finished = solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED)
    require(finished, f"{method} {options}: ended by {solution.stop_reason}")
    return solution


def require_refusal(
    solver: Solver, problem: Problem, method: str, what: str, because: str = ""
) -> None:
    """Require that a method refuses what a problem is, and names the reason by this word."""
    try:
        answered(solver, problem, method)
    except Breach as breach:
        fault = breach.__cause__
        if not isinstance(fault, CmsError):
            raise
        refused = isinstance(fault, UnsupportedProblem) and because in str(fault)
        require(refused, f"{method} does not refuse {what} as such: {breach}")
        return
    raise Breach(f"{method} takes {what}")


def proved(solution: Solution, problem: Problem) -> Fraction:
    """Return what a solution's certificate proves; a :class:`Breach` if it does not hold."""
    try:
        return solution.certificate.bound(problem)
    except CmsError as fault:
        raise Breach(f"the certificate of {solution.method}: {fault}") from fault
