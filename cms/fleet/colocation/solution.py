"""``colocate`` and its answer: a checked plan and a checked upper bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from ...checker.kinds import check
from ...errors import InvalidCertificate
from ...plugin.algorithm import Algorithm
from ...plugin.registry import algorithm_of
from ...schedule.faults import Violation
from ...solving.driver import Arguments, CancelEvent
from ...solving.solution import GROUPS_SHOWN, Incumbent, Proof, Status, StopReason, printed
from ...solving.solve import run_checked
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from .certificate import AssignmentPrices
from .problem import FULL_WEIGHT, ColocationPlan, ColocationProblem

_NO_OPTIONS: Mapping[str, object] = FrozenMap()


class ColocationIncumbent(NamedTuple):
    """A line of the history, in millionths: values never fall along it, upper bounds never rise."""

    seconds: float
    value: int
    upper_bound: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColocationSolution:
    """A plan, an upper bound with its certificate, and how the run went; immutable, picklable."""

    status: Status  #: ``OPTIMAL`` or ``FEASIBLE``: to share nothing is a plan.
    proof: Proof  #: ``CHECKED`` where the certificate's bound meets the plan's value
    stop_reason: StopReason
    method: str  #: The algorithm's name
    seconds: float  #: Wall-clock time of the whole call
    plan: ColocationPlan  #: Checked exactly
    value: int  #: Of the plan, in millionths of a GPU's throughput for a workload of priority 1
    upper_bound: int  #: Of all plans, by the certificate
    certificate: AssignmentPrices
    history: tuple[ColocationIncumbent, ...]
    problem_sha256: str

    @property
    def gap(self) -> int:
        """``upper_bound - value``."""
        return self.upper_bound - self.value

    @property
    def relative_gap(self) -> Fraction:
        """``gap / upper_bound``, 0 for a bound of 0."""
        return Fraction(self.gap, self.upper_bound) if self.upper_bound else Fraction(0)

    def __str__(self) -> str:
        facts = {
            "status": self.status + (" (checked proof)" if self.proof is Proof.CHECKED else ""),
            "workloads": shown(self.plan.placed), "value": equivalents(self.value),
            "upper bound": equivalents(self.upper_bound),
        }  # fmt: skip
        if self.gap:
            facts["gap"] = f"{equivalents(self.gap)} ({float(self.relative_gap):.3%})"
        why = self.stop_reason.replace("_", " ")
        facts["method"] = f"{self.method}, {self.seconds:.2f} s, ended: {why}"
        return printed(facts.items(), self.plan.excerpt(GROUPS_SHOWN))


def equivalents(value: int) -> str:
    """Write a value in GPU-equivalents, exactly: 431.2 for 431_200_000."""
    return shown(Fraction(value, FULL_WEIGHT))


def _incumbent(problem: ColocationProblem, line: Incumbent) -> ColocationIncumbent:
    """Turn losses into values."""
    value = 0 if line.cost is None else problem.most - int(line.cost)
    bound = problem.most - int(line.lower_bound)
    return ColocationIncumbent(line.seconds, value, bound, line.source)


def colocate(
    problem: ColocationProblem,
    method: str | Algorithm = "muxflow",
    *,
    options: Mapping[str, object] = _NO_OPTIONS,
    time_limit: float | None = 60.0,
    gap: int = 0,
    seed: int = 0,
    threads: int | None = None,
    start: ColocationPlan | None = None,
    cancel: CancelEvent | None = None,
    on_improvement: Callable[[ColocationIncumbent], object] | None = None,
) -> ColocationSolution:
    """Match offline workloads with GPUs for the most value, and prove an upper bound.

    The run is that of :func:`cms.solve`: every claim of the method is checked exactly before it
    counts, ``OPTIMAL`` too.

    `gap`: upper bound less value, in millionths, at which the run stops. `start`: a valid plan to
    improve. `on_improvement` is called with each new :class:`ColocationIncumbent` of the history.
    The rest is as for :func:`cms.solve`.

    Examples
    --------
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> colocate(posed([6], [5, 9], [[800_000, 600_000]])).value
    4600000
    """
    algorithm, trusted = algorithm_of(method)
    hear = on_improvement
    report = None if hear is None else lambda line: hear(_incumbent(problem, line))
    arguments = Arguments(
        options=options, time_limit=time_limit, gap=gap, seed=seed, threads=threads, start=start,
        cancel=cancel, on_improvement=report,
    )  # fmt: skip
    found: Any = run_checked(algorithm, trusted, problem, arguments)
    return ColocationSolution(  # values instead of losses; no plan is to share nothing
        status=Status.FEASIBLE if found.cost is None else found.status, proof=found.proof,
        stop_reason=found.stop_reason, method=found.method, seconds=found.seconds,
        plan=found.schedule, value=0 if found.cost is None else problem.most - int(found.cost),
        upper_bound=problem.most - int(found.lower_bound), certificate=found.certificate,
        history=tuple(_incumbent(problem, line) for line in found.history),
        problem_sha256=found.problem_sha256,
    )  # fmt: skip


def colocation_faults(
    problem: ColocationProblem, solution: ColocationSolution
) -> Iterator[Violation]:
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
