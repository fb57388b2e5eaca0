"""Whether a solution holds for its problem: schedule, cost, bounds and proof, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ..certificate.certificate import round_up
from ..checker.kinds import check
from ..errors import InvalidCertificate
from ..problem.machine_problem import MachineProblem
from ..schedule.faults import Violation
from ..values.numbers import shown
from .solution import Solution


def faults_of(problem: MachineProblem, solution: Solution) -> Iterator[Violation]:
    """List everything a solution says that does not hold."""
    if solution.problem_sha256 != problem.sha256:
        has = f"the problem SHA-256 {solution.problem_sha256[:16]}..."
        needs = f"{problem.sha256[:16]}..., the SHA-256 of this problem"
        yield Violation("problem", "the solution", has, needs)
        return
    cost = solution.cost
    if cost is not None:
        violations = check(problem, solution.schedule)
        yield from violations
        if not violations and (found := solution.schedule.cost(problem)) != cost:
            needs = f"{shown(cost)}, as the solution says"
            yield Violation("cost", "the schedule", f"the cost {shown(found)}", needs)
    whose, bound = "the certificate", solution.lower_bound
    try:
        judged = solution.certificate.judged(problem)
    except InvalidCertificate as breach:
        yield Violation("certificate", whose, f"a breach: {breach}", "none")
        return
    assert judged is not None  # it is never stopped
    if judged.infeasible:
        # that no schedule was found is true then as well, if less than could be said
        if cost is not None:
            needs = "infeasible, which its certificate proves"
            yield Violation("status", "the solution", f"the status {solution.status.value}", needs)
        return
    proved = round_up(judged.value, problem.cost_step)
    if bound > proved:
        needs = f"{shown(bound)}, as the solution says"
        yield Violation("bound", whose, f"a bound of {shown(proved)}", needs)
    highest = max((line.lower_bound for line in solution.history), default=bound)
    if highest > bound:
        has, needs = f"a lower bound of {shown(highest)}", f"at most {shown(bound)}, the solution's"
        yield Violation("history", "the history", has, needs)
    if (solution.status, solution.proof) == ("infeasible", "checked"):
        yield Violation("proof", whose, "a bound alone", "a proof of infeasibility")
    if solution.status == "optimal" and cost is not None:
        whose = "the lower bound"
        if solution.proof != "checked":
            bound = round_up(solution.claimed_bound or Fraction(0), problem.cost_step)
            whose = "the solver's bound"
        if bound != cost:
            needs = f"{shown(cost)}, the cost of the schedule that is said to be optimal"
            yield Violation("proof", whose, f"the value {shown(bound)}", needs)
