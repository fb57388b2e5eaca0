"""Whether a solution holds for its problem: schedule, cost, bounds and proof, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ..certificate.certificate import round_up
from ..errors import InvalidCertificate
from ..problem.machine_problem import MachineProblem
from ..referee.check import check
from ..schedule.faults import Violation
from ..values.numbers import shown
from .solution import Solution


def faults_of(problem: MachineProblem, solution: Solution) -> Iterator[Violation]:
    """List everything a solution says that does not hold.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("x", 3, {"b": 1})])
    >>> solution = solve(problem)
    >>> [str(fault) for fault in faults_of(problem, solution)]
    []
    >>> [fault.kind for fault in faults_of(problem, replace(solution, lower_bound=3))]
    ['bound', 'proof']
    """
    if solution.problem_sha256 != problem.sha256:
        yield Violation(
            "problem", "the solution", f"the problem SHA-256 {solution.problem_sha256[:16]}...",
            f"{problem.sha256[:16]}..., the SHA-256 of this problem",
        )  # fmt: skip
        return
    if solution.cost is not None:
        violations = check(problem, solution.schedule)
        yield from violations
        if not violations and (cost := solution.schedule.cost(problem)) != solution.cost:
            yield Violation(
                "cost", "the schedule", f"the cost {shown(cost)}",
                f"{shown(solution.cost)}, as the solution says",
            )  # fmt: skip
    yield from _bound_faults(problem, solution)


def _bound_faults(problem: MachineProblem, solution: Solution) -> Iterator[Violation]:
    """What does not follow from the certificate; what is stated counts, not what could be."""
    try:
        found = solution.certificate.judged(problem)
    except InvalidCertificate as breach:
        yield Violation("certificate", "the certificate", f"a breach: {breach}", "none")
        return
    assert found is not None  # nobody stops it
    proved = round_up(found.value, problem.cost_step)
    if found.infeasible:
        # that no schedule was found is true then as well, if less than could be said
        if solution.cost is not None:
            yield Violation(
                "status", "the solution", f"the status {solution.status.value}",
                "infeasible, which its certificate proves",
            )  # fmt: skip
        return
    if solution.lower_bound > proved:
        yield Violation(
            "bound", "the certificate", f"a bound of {shown(proved)}",
            f"{shown(solution.lower_bound)}, as the solution says",
        )  # fmt: skip
    highest = max((line.lower_bound for line in solution.history), default=solution.lower_bound)
    if highest > solution.lower_bound:
        yield Violation(
            "history", "the history", f"a lower bound of {shown(highest)}",
            f"at most {shown(solution.lower_bound)}, the solution's",
        )  # fmt: skip
    if (solution.status, solution.proof) == ("infeasible", "checked"):
        yield Violation("proof", "the certificate", "a bound alone", "a proof of infeasibility")
    yield from _optimality_faults(problem, solution)


def _optimality_faults(problem: MachineProblem, solution: Solution) -> Iterator[Violation]:
    """Whether the bound that is said to meet the cost does so."""
    if solution.status != "optimal" or solution.cost is None:
        return
    if solution.proof == "checked":
        stated, whose = solution.lower_bound, "the lower bound"
    else:
        stated = round_up(solution.claimed_bound or Fraction(0), problem.cost_step)
        whose = "the solver's bound"
    if stated != solution.cost:
        yield Violation(
            "proof", whose, f"the value {shown(stated)}",
            f"{shown(solution.cost)}, the cost of the schedule that is said to be optimal",
        )  # fmt: skip
