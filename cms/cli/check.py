"""``cms check``: whether a schedule serves its problem, and a certificate proves the bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import cut

from .documents import open_document
from .options import Json, Output, Quiet, usage_error
from .rechecking import (
    recheck_deployment,
    recheck_plan,
    recheck_sharing,
    recheck_simulation,
    recheck_solution,
    recheck_transition,
)
from .session import Exit, Session, refuse_two_readers, session_of
from .shards import check_folders

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.schedule.faults import Violation
    from cms.solving.solution import Solution

_File = Annotated[
    Path,
    typer.Argument(
        metavar="problem.json",
        help="A problem file or folder, or a plan, deployment, transition or simulation; '-' is "
        "standard input.",
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
    """Recheck a file: demands, bounds and places.

    It is a plan, deployment, transition or simulation, or a problem with its solution.
    """
    from cms.files.documents import parse_document

    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
    refuse_two_readers((problem, "problem.json"), (solution, "solution.json"))
    if problem.is_dir():
        answer, faults = check_folders(session, problem, solution)
        return _say_solution(session, answer, faults, "machine", output)
    with session.reading("reading and checking"):
        plan = False
        kind, document = open_document(problem)
        if kind == "cms-sharing-problem" and solution is not None:
            return _check_sharing(session, document, solution, output)
        if solution is None:
            if kind == "cms-deployment":
                return _check_deployment(session, document, output)
            if kind == "cms-transition":
                return _check_transition(session, document, output)
            if kind == "cms-simulation":
                return _check_simulation(session, document, output)
            _refuse_half(problem, kind)
            plan = True
            _, answer, faults = recheck_plan(document)
        else:
            answer, faults = recheck_solution(document, parse_document(solution))
    return _say_solution(session, answer, faults, "GPU" if plan else "machine", output)


def _say(
    session: Session,
    said: dict[str, Any],
    faults: Sequence[Violation],
    whole: str,
    output: Path | None,
) -> int:
    """Say what was rechecked, or what does not hold of it."""
    said = {"valid": not faults, **said}
    said["faults"] = [{**fault._asdict(), "text": str(fault)} for fault in faults]
    if session.json:
        session.print_json(lambda: said)
    elif not session.quiet:
        session.print_text(fault_lines("not valid", faults) or whole)
    session.write(lambda: said, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _say_solution(
    session: Session, answer: Solution, faults: list[Violation], machine: str, output: Path | None
) -> int:
    from cms.solving.words import verdict

    said = {
        "status": answer.status.value,
        "proof": answer.proof.value,
        "machine_count": answer.machine_count,
    }
    return _say(session, said, faults, f"valid: {verdict(answer, machine)}\n", output)


def _check_sharing(session: Session, document: Parsed, path: Path, output: Path | None) -> int:
    """Recheck who shares a GPU with whom, what that is worth, and how much more is possible."""
    from cms.files.documents import parse_document
    from cms.fleet.sharing.solution import equivalents
    from cms.values.words import decimal

    _, answer, faults = recheck_sharing(document, parse_document(path))
    said = {
        "status": answer.status.value,
        "proof": answer.proof.value,
        "placed": answer.plan.placed,
        "value": answer.value,
        "upper_bound": answer.upper_bound,
    }
    proof = ", proof checked" if answer.proof == "checked" else ""
    whole = (
        f"valid: {decimal(answer.plan.placed)} workloads share a GPU, "
        f"{equivalents(answer.value)} of at most {equivalents(answer.upper_bound)} "
        f"GPU-equivalents: {answer.status}{proof}\n"
    )
    return _say(session, said, faults, whole, output)


def _check_deployment(session: Session, document: Parsed, output: Path | None) -> int:
    """Recheck a deployment: each GPU, each service's rate, and the plan that it realises."""
    from cms.solving.words import verdict

    found, faults = recheck_deployment(document)
    said = {"gpus": len([*found.gpus()]), "instances": len([*found.instances()])}
    of = "" if found.plan is None else f"; its plan: {verdict(found.plan.solution, 'GPU')}"
    return _say(session, said, faults, f"valid: {found}{of}\n", output)


def _check_transition(session: Session, document: Parsed, output: Path | None) -> int:
    """Recheck a transition: its actions, and the worst of all executions that it allows."""
    from cms.fleet.deployment.transition.checking import RECHECKED

    found, faults = recheck_transition(document)
    said = {"actions": len(found.actions), "rechecked": list(RECHECKED)}
    whole = f"valid: {found}\nrechecked, exactly: {'; '.join(RECHECKED)}\n"
    return _say(session, said, faults, whole, output)


def _check_simulation(session: Session, document: Parsed, output: Path | None) -> int:
    """Recheck a simulation: that its verdicts follow from its counts."""
    from cms.fleet.simulation import Verdict
    from cms.values.words import printable

    found, faults = recheck_simulation(document)
    judged = [each for each in Verdict if each is not Verdict.NO_LIMIT]
    said = {each.value.replace(" ", "_"): found.count(each) for each in judged}
    whole = f"valid in itself: {printable(found.sentence)}\n"
    return _say(session, said, faults, whole, output)


def _refuse_half(path: Path, kind: str) -> None:
    """Say what is missing beside a problem or a solution alone."""
    if kind.removeprefix("cms-").removeprefix("sharing-") in ("problem", "solution"):
        what = kind.removeprefix("cms-").replace("-", " ")
        raise usage_error(
            f"{path} holds a {what} alone; give both: cms check problem.json solution.json"
        )


def say_what_does_not_hold(session: Session, faults: Sequence[Violation]) -> int:
    """Say what is wrong with a file that something was to be done with; return the exit code."""
    return _say(session, {}, faults, "", None)


def fault_lines(what: str, faults: Sequence[Violation]) -> str:
    """Say what is wrong, a line each; empty if nothing is."""
    from cms.values.words import count, decimal, printable

    if not faults:
        return ""
    lines = [f"{what}: {count(len(faults), 'fault')}"]
    lines += [f"- {printable(cut(str(fault)))}" for fault in faults[:_MOST_SHOWN]]
    if more := faults[_MOST_SHOWN:]:
        lines.append(f"... and {decimal(len(more))} more (all with --json)")
    return "\n".join(lines) + "\n"
