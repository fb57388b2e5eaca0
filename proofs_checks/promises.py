"""The package's own algorithms on a tiny problem: what they answer and what they promise.

An answer is held against the exact optimum and against the exact value of whatever the algorithm
states its guarantee against. Anything that goes wrong, an algorithm that is not installed included,
is a :class:`Breach`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from cms import CmsError, Problem, Solution, StopReason, check

from .bounds import reference
from .brute_force import optimum
from .finding import Breach, require
from .tiny import Tiny

#: Seconds for one answer; every one takes a small part of it.
_TIME_LIMIT = 60.0


class Solver(Protocol):
    """What is checked: :func:`cms.solve`, or a function in its place."""

    def __call__(
        self, problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
    ) -> Solution:
        """Solve a problem by a method."""
        ...


def promised(solver: Solver, tiny: Tiny, method: str, **options: object) -> Fraction:
    """Return what a method's schedule costs, after checking everything but the theorem at hand.

    Parameters
    ----------
    solver : Solver
    tiny : Tiny
    method : str
    **options
        The method's options.

    Returns
    -------
    Fraction

    Raises
    ------
    Breach
        If there is no answer, the schedule is not valid or cheaper than the optimum, the bound
        exceeds the optimum, or the cost exceeds what the method's own guarantee allows at the exact
        value of its reference.
    """
    said = f"{method} {options}" if options else method
    problem = tiny.problem()
    solution = answered(solver, problem, method, **options)
    cost, best = solution.cost, optimum(tiny).cost
    if cost is None:
        raise Breach(f"{said}: no schedule ({solution.status})")
    require(not check(problem, solution.schedule), f"{said}: the schedule is not valid")
    require(solution.schedule.cost(problem) == cost, f"{said}: the cost is not the schedule's")
    require(cost >= best, f"{said}: cost {cost} below the optimum {best}")
    bound = max(proved(solution, problem), solution.claimed_bound or Fraction(0))
    require(bound <= best, f"{said}: lower bound {bound} above the optimum {best}")
    if solution.guarantee is not None:
        guarantee = solution.guarantee.guarantee
        value = reference(tiny, guarantee.against)
        require(
            cost <= guarantee.allows(value),
            f"{said}: cost {cost}, but {guarantee} with {guarantee.against} = {value}",
        )
    return cost


def answered(solver: Solver, problem: Problem, method: str, **options: object) -> Solution:
    """Return a method's answer; a :class:`Breach` if it fails or does not finish."""
    try:
        solution = solver(problem, method, options=options, time_limit=_TIME_LIMIT)
    except CmsError as fault:
        raise Breach(f"{method} {options}: {type(fault).__name__}: {fault}") from fault
    finished = solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED)
    require(finished, f"{method} {options}: ended by {solution.stop_reason}")
    return solution


def proved(solution: Solution, problem: Problem) -> Fraction:
    """Return what a solution's certificate proves; a :class:`Breach` if it does not hold."""
    try:
        return solution.certificate.bound(problem)
    except CmsError as fault:
        raise Breach(f"the certificate of {solution.method}: {fault}") from fault
