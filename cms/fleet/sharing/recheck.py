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
    """List everything a solution says that does not hold.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem = posed([2], [5], [[7]])
    >>> solution = share(problem)
    >>> list(sharing_faults(problem, solution))
    []
    >>> [fault.kind for fault in sharing_faults(problem, replace(solution, upper_bound=13))]
    ['bound', 'proof']
    """
    if solution.problem_sha256 != problem.sha256:
        yield Violation(
            "problem", "the solution", f"the problem SHA-256 {solution.problem_sha256[:16]}...",
            f"{problem.sha256[:16]}..., the SHA-256 of this problem",
        )  # fmt: skip
        return
    violations = check(problem, solution.plan)
    yield from violations
    if not violations and (value := problem.value(solution.plan)) != solution.value:
        yield Violation(
            "value", "the plan", f"the value {shown(value)}",
            f"{shown(solution.value)}, as the solution says",
        )  # fmt: skip
    try:
        proved = solution.certificate.upper_bound(problem)
    except InvalidCertificate as breach:
        yield Violation("certificate", "the certificate", f"a breach: {breach}", "none")
        return
    if solution.upper_bound < proved:
        yield Violation(
            "bound", "the certificate", f"an upper bound of {shown(proved)}",
            f"{shown(solution.upper_bound)}, as the solution says",
        )  # fmt: skip
    if solution.status == "optimal" and solution.upper_bound != solution.value:
        yield Violation(
            "proof", "the upper bound", f"the value {shown(solution.upper_bound)}",
            f"{shown(solution.value)}, what the plan that is said to be optimal is worth",
        )  # fmt: skip
    last = solution.history[-1] if solution.history else None
    if last and (last.value > solution.value or last.upper_bound < solution.upper_bound):
        yield Violation(
            "history", "the last line of the history",
            f"a value of {shown(last.value)} of at most {shown(last.upper_bound)}",
            f"{shown(solution.value)} of at most {shown(solution.upper_bound)}, as in the end",
        )  # fmt: skip
