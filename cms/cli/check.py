"""``cms check``: whether a schedule serves its problem, and a certificate proves the bound."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cms.errors import cut

from .documents import open_document
from .options import Json, Output, Quiet, usage_error
from .session import Exit, refuse_two_readers, refuse_unwritable, session_of

if TYPE_CHECKING:
    from cms.files import Node
    from cms.problem.problem import Problem
    from cms.schedule.faults import Violation
    from cms.solving.solution import Solution

_File = Annotated[
    Path,
    typer.Argument(
        metavar="problem.json",
        help="A problem file, or a plan file by itself; '-' is standard input.",
    ),
]
_Solution = Annotated[
    Path | None, typer.Argument(metavar="solution.json", help="A solution of that problem.")
]
_MOST_SHOWN = 20


def check(
    context: typer.Context,
    problem: _File,
    solution: _Solution = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Recheck a solution or a plan in exact arithmetic: every demand, every bound."""
    from cms.files import problem_from_json, read_problem, solution_from_json
    from cms.files.documents import read_document
    from cms.files.shortages import refuse_other_shortage

    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    refuse_unwritable((output, "--output"))
    refuse_two_readers((problem, "problem.json"), (solution, "solution.json"))
    with session.interrupts.abortable():
        plan = None
        if solution is None:
            plan = _open_plan(problem)
            # not with the plan's own reader, which stops at the first thing that does not hold
            posed, told = problem_from_json(plan.at("problem")), plan.at("solution")
        else:
            posed, told = read_problem(problem), read_document(solution, "cms-solution")
        answer = solution_from_json(told)
        faults = list(_faults(posed, answer))
        if not faults and "shortage" in told.value:
            refuse_other_shortage(told.at("shortage"), posed)
        if plan is not None and not faults:
            _read_whole(plan)
    document = {
        "valid": not faults,
        "status": answer.status.value,
        "proof": answer.proof.value,
        "machine_count": answer.machine_count,
        "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
    }
    if session.json:
        session.print_json(lambda: document)
    elif not quiet:
        session.print_text(_report(answer, faults, "machine" if plan is None else "GPU"))
    session.write(lambda: document, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _open_plan(path: Path) -> Node:
    """Parse a plan file, once: it may be standard input."""
    from cms.files import check_head

    kind, document = open_document(path)
    if kind in ("cms-problem", "cms-solution"):
        what = kind.removeprefix("cms-")
        raise usage_error(
            f"{path} holds a {what} alone; give both: cms check problem.json solution.json"
        )
    check_head(document, "cms-plan")
    return document


def _read_whole(plan: Node) -> None:
    """Let the reader compare the plan's services and GPUs with its problem and solution."""
    from cms.fleet.serving.plan_reading import plan_from_json

    plan_from_json(plan)


def _faults(problem: Problem, solution: Solution) -> Iterator[Violation]:
    """Everything a solution says that does not hold."""
    from cms.referee.check import check as check_schedule
    from cms.schedule.faults import Violation
    from cms.values.numbers import shown

    if solution.problem_sha256 != problem.sha256:
        yield Violation(
            "problem", "the solution", f"the problem SHA-256 {solution.problem_sha256[:16]}...",
            f"{problem.sha256[:16]}..., the SHA-256 of this problem",
        )  # fmt: skip
        return
    if solution.cost is not None:
        violations = check_schedule(problem, solution.schedule)
        yield from violations
        if not violations and (cost := solution.schedule.cost(problem)) != solution.cost:
            yield Violation(
                "cost", "the schedule", f"the cost {shown(cost)}",
                f"{shown(solution.cost)}, as the solution says",
            )  # fmt: skip
    yield from _bound_faults(problem, solution)


def _bound_faults(problem: Problem, solution: Solution) -> Iterator[Violation]:
    """What does not follow from the certificate; what is stated counts, not what could be."""
    from cms.certificate.certificate import round_up
    from cms.errors import InvalidCertificate
    from cms.schedule.faults import Violation
    from cms.values.numbers import shown

    try:
        proved = round_up(solution.certificate.bound(problem), problem.cost_step)
        infeasible = solution.certificate.proves_infeasible(problem)
    except InvalidCertificate as breach:
        yield Violation("certificate", "the certificate", f"a breach: {breach}", "none")
        return
    if infeasible:
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


def _optimality_faults(problem: Problem, solution: Solution) -> Iterator[Violation]:
    """Whether the bound that is said to meet the cost does so."""
    from cms.certificate.certificate import round_up
    from cms.schedule.faults import Violation
    from cms.values.numbers import shown

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


def _report(solution: Solution, faults: list[Violation], machine: str) -> str:
    from cms.fleet.report.words import count, decimal, printable, verdict

    if not faults:
        return f"valid: {verdict(solution, machine)}\n"
    lines = [f"not valid: {count(len(faults), 'fault')}"]
    lines += [f"- {printable(cut(str(fault)))}" for fault in faults[:_MOST_SHOWN]]
    if more := faults[_MOST_SHOWN:]:
        lines.append(f"... and {decimal(len(more))} more (all with --json)")
    return "\n".join(lines) + "\n"
