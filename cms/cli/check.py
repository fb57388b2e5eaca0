"""``cms check``: whether a schedule serves its problem, and a certificate proves the bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cms.errors import cut

from .documents import open_document
from .options import Json, Output, Quiet, usage_error
from .session import Exit, Session, refuse_two_readers, refuse_unwritable, session_of

if TYPE_CHECKING:
    from cms.files import Node
    from cms.schedule.faults import Violation
    from cms.solving.solution import Solution

_File = Annotated[
    Path,
    typer.Argument(
        metavar="problem.json",
        help="A problem file, or a plan, deployment or transition; '-' is standard input.",
    ),
]
_Solution = Annotated[
    Path | None, typer.Argument(metavar="solution.json", help="A solution of that problem.")
]
_MOST_SHOWN = 20
#: What `check_transition` goes through.
_RECHECKED = (
    "every action can be done where it stands, and touches nothing of another's",
    "the target is reached, and legal",
    "in every execution that respects the waits all floors hold",
    "all layouts are legal",
    "and no more GPUs are in use than said",
    "the instances kept, counted",
)


def check(
    context: typer.Context,
    problem: _File,
    solution: _Solution = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Recheck a solution, plan, deployment or transition exactly: demands, bounds, places."""
    from cms.files import problem_from_json, solution_from_json
    from cms.files.documents import read_document
    from cms.files.shortages import refuse_other_shortage
    from cms.solving.recheck import faults_of

    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    refuse_unwritable((output, "--output"))
    refuse_two_readers((problem, "problem.json"), (solution, "solution.json"))
    with session.interrupts.abortable():
        plan = None
        kind, document = open_document(problem)
        if kind == "cms-sharing-problem" and solution is not None:
            return _check_sharing(session, document, solution, output)
        if solution is None:
            if kind == "cms-deployment":
                return _check_deployment(session, document, output)
            if kind == "cms-transition":
                return _check_transition(session, document, output)
            plan = _open_plan(problem, kind, document)
            # not with the plan's own reader, which stops at the first thing that does not hold
            posed, told = problem_from_json(plan.at("problem")), plan.at("solution")
        else:
            posed, told = problem_from_json(document), read_document(solution, "cms-solution")
        answer = solution_from_json(told)
        faults = list(faults_of(posed, answer))
        if not faults and "shortage" in told.value:
            refuse_other_shortage(told.at("shortage"), posed)
        if plan is not None and not faults:
            answer, faults = _read_whole(plan)
    said = {
        "valid": not faults,
        "status": answer.status.value,
        "proof": answer.proof.value,
        "machine_count": answer.machine_count,
        "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
    }
    if session.json:
        session.print_json(lambda: said)
    elif not quiet:
        session.print_text(_report(answer, faults, "machine" if plan is None else "GPU"))
    session.write(lambda: said, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _check_sharing(session: Session, document: Node, path: Path, output: Path | None) -> int:
    """Recheck who shares a GPU with whom, what that is worth, and how much more is possible."""
    from cms.files.documents import read_document
    from cms.fleet.report.words import decimal
    from cms.fleet.sharing.files import (
        SOLUTION,
        sharing_problem_from_json,
        sharing_solution_from_json,
    )
    from cms.fleet.sharing.recheck import sharing_faults
    from cms.fleet.sharing.solution import equivalents

    posed = sharing_problem_from_json(document)
    answer = sharing_solution_from_json(read_document(path, SOLUTION), posed)
    faults = list(sharing_faults(posed, answer))
    said = {
        "valid": not faults,
        "status": answer.status.value,
        "proof": answer.proof.value,
        "placed": answer.plan.placed,
        "value": answer.value,
        "upper_bound": answer.upper_bound,
        "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
    }
    if session.json:
        session.print_json(lambda: said)
    elif not session.quiet:
        proof = ", proof checked" if answer.proof == "checked" else ""
        whole = (
            f"valid: {decimal(answer.plan.placed)} workloads share a GPU, "
            f"{equivalents(answer.value)} of at most {equivalents(answer.upper_bound)} "
            f"GPU-equivalents: {answer.status}{proof}\n"
        )
        session.print_text(fault_lines("not valid", faults) or whole)
    session.write(lambda: said, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _check_deployment(session: Session, document: Node, output: Path | None) -> int:
    """Recheck a deployment: each GPU, each service's rate, and the plan that it realises."""
    from cms.files import solution_from_json
    from cms.fleet.deployment import check_deployment, deployment_from_json, wanted_of
    from cms.fleet.report.words import verdict
    from cms.schedule.faults import Violation
    from cms.solving.recheck import faults_of

    found = deployment_from_json(document)
    faults = list(check_deployment(found))
    if found.plan is not None:
        # wishes may have asked for more than the plan, and a plan near what ran has other
        # instances: none the worse where they supply all that was planned for
        wanted, there = wanted_of(found.plan), found.kinds()
        supplied = {
            service.name: sum(
                n * kind.work.supply_rps
                for kind, n in there.items()
                if kind.work.service == service.name
            )
            for service in wanted.services
        }
        demands = {job.name: job.demand for job in found.plan.serving.problem.jobs}
        faults += [
            Violation("count", "the deployment", f"{there[kind]} x {kind}", f"{count}, as planned")
            for kind, count in wanted.counts.items()
            if there[kind] < count and supplied[kind.work.service] < demands[kind.work.service]
        ]
        answer = solution_from_json(document.at("plan").at("solution"))
        faults += faults_of(found.plan.serving.problem, answer)
    said = {
        "valid": not faults,
        "gpus": sum(1 for _ in found.gpus()),
        "instances": sum(1 for _ in found.instances()),
        "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
    }
    if session.json:
        session.print_json(lambda: said)
    elif not session.quiet:
        of = "" if found.plan is None else f"; its plan: {verdict(found.plan.solution, 'GPU')}"
        session.print_text(fault_lines("not valid", faults) or f"valid: {found}{of}\n")
    session.write(lambda: said, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _check_transition(session: Session, document: Node, output: Path | None) -> int:
    """Recheck a transition: its actions, and the worst of all executions that it allows."""
    from cms.fleet.deployment.transition import check_transition, transition_from_json

    found = transition_from_json(document)
    faults = check_transition(found)
    said = {
        "valid": not faults,
        "actions": len(found.actions),
        "rechecked": list(_RECHECKED),
        "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
    }
    if session.json:
        session.print_json(lambda: said)
    elif not session.quiet:
        whole = f"valid: {found}\nrechecked, exactly: {'; '.join(_RECHECKED)}\n"
        session.print_text(fault_lines("not valid", list(faults)) or whole)
    session.write(lambda: said, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _open_plan(path: Path, kind: str, document: Node) -> Node:
    """Return a plan's document, or say what else the file is."""
    from cms.files import check_head

    if kind.removeprefix("cms-").removeprefix("sharing-") in ("problem", "solution"):
        what = kind.removeprefix("cms-").replace("-", " ")
        raise usage_error(
            f"{path} holds a {what} alone; give both: cms check problem.json solution.json"
        )
    check_head(document, "cms-plan")
    return document


def _read_whole(plan: Node) -> tuple[Solution, list[Violation]]:
    """Let the reader compare the plan's services and GPUs with its problem and solution.

    Under interference, what keeps its limits beside the worst is checked against the pairs, and
    what is proved against the problem that bounds.
    """
    from cms.fleet.serving import NeighbourServing, neighbour_faults
    from cms.fleet.serving.plan_reading import plan_from_json
    from cms.solving.recheck import faults_of

    whole = plan_from_json(plan)
    faults: list[Violation] = []
    if isinstance(whole.serving, NeighbourServing):
        if whole.outer is not None:
            faults += faults_of(whole.serving.outer, whole.outer)
        if whole.solution.cost is not None:
            faults += neighbour_faults(whole.serving, whole.solution.schedule)
    return whole.answer, faults


def _report(solution: Solution, faults: list[Violation], machine: str) -> str:
    from cms.fleet.report.words import verdict

    return fault_lines("not valid", faults) or f"valid: {verdict(solution, machine)}\n"


def fault_lines(what: str, faults: Sequence[Violation]) -> str:
    """Say what is wrong, a line each; empty if nothing is."""
    from cms.fleet.report.words import count, decimal, printable

    if not faults:
        return ""
    lines = [f"{what}: {count(len(faults), 'fault')}"]
    lines += [f"- {printable(cut(str(fault)))}" for fault in faults[:_MOST_SHOWN]]
    if more := faults[_MOST_SHOWN:]:
        lines.append(f"... and {decimal(len(more))} more (all with --json)")
    return "\n".join(lines) + "\n"
