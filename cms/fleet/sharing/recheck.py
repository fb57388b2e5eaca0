"""Whether a solution of a problem of sharing holds: plan, value, bound and proof, exactly."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import InvalidCertificate
from ...referee.kinds import check
from ...schedule.faults import Violation
from ...values.numbers import shown
from .problem import SharingProblem
from .solution import SharingSolution


def sharing_faults(problem: SharingProblem, solution: SharingSolution) -> Iterator[Violation]:
    """List everything a solution says that does not hold."""
    if solution.problem_sha256 != problem.sha256:
        has = f"the problem SHA-256 {solution.problem_sha256[:16]}..."
        needs = f"{problem.sha256[:16]}..., the SHA-256 of this problem"
        yield Violation("problem", "the solution", has, needs)
        return
    violations = check(problem, solution.plan)
    yield from violations
    said = f"{shown(solution.value)}, as the solution says"
    if not violations and (value := problem.value(solution.plan)) != solution.value:
        yield Violation("value", "the plan", f"the value {shown(value)}", said)
    try:
        proved = solution.certificate.upper_bound(problem)
    except InvalidCertificate as breach:
        yield Violation("certificate", "the certificate", f"a breach: {breach}", "none")
        return
    bound = solution.upper_bound
    if bound < proved:
        has, needs = f"an upper bound of {shown(proved)}", f"{shown(bound)}, as the solution says"
        yield Violation("bound", "the certificate", has, needs)
    if solution.status == "optimal" and bound != solution.value:
        needs = f"{shown(solution.value)}, what the plan that is said to be optimal is worth"
        yield Violation("proof", "the upper bound", f"the value {shown(bound)}", needs)
    last = solution.history[-1] if solution.history else None
    if last and (last.value > solution.value or last.upper_bound < bound):
        has = f"a value of {shown(last.value)} of at most {shown(last.upper_bound)}"
        needs = f"{shown(solution.value)} of at most {shown(bound)}, as in the end"
        yield Violation("history", "the last line of the history", has, needs)
