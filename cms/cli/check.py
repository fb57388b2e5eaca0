"""``cms check``: whether what a file holds is true, and what of it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cms
from cms.errors import cut
from cms.files import Parsed, problem_from_json, solution_from_json
from cms.files.documents import parse_document
from cms.files.model import read_as
from cms.files.schema_version import require_head
from cms.files.solutions import refuse_other_shortage
from cms.solving.recheck import faults_of
from cms.solving.words import verdict
from cms.values.numbers import shown
from cms.values.words import count, decimal, printable

from .command import command
from .options import File, attributes, usage_error
from .problem import check_folders
from .session import Exit, Session, open_document

if TYPE_CHECKING:
    from cms.fleet import Plan

_MOST_SHOWN = 20
#: Formats of problems, each of which is checked with its solution.
OF_TWO = ("cms-problem", "cms-colocation-problem")


class Rechecked(NamedTuple):
    """What a file holds, what of it does not hold, and what to say of it if all does."""

    found: Any
    faults: list[cms.Violation]
    said: dict[str, Any]
    words: str
    key: str = "valid"  # of what JSON says first
    head: str = "not valid"


@command(settings=False)
def check(session: Session, file: Path, solution: File = None, output: File = None) -> int:
    """Recheck a file: demands, bounds and places.

    It is a plan, deployment, transition or simulation, or a problem with its solution.
    """
    if file.is_dir():
        return answer(session, _solved(*check_folders(session, file, solution)), output)
    with session.reading("reading and checking"):
        kind, document = open_document(file)
        name = kind.removeprefix("cms-").replace("-", " ")
        if solution is None and name.removeprefix("colocation ") in ("problem", "solution"):
            raise usage_error(
                f"{file} holds a {name} alone; give both: cms check problem.json solution.json"
            )
        if solution is None:
            found = recheck(kind, document)
        else:  # the reader of problems names the format that it found
            found = recheck(
                kind if kind in OF_TWO else "cms-problem", document, parse_document(solution)
            )
    return answer(session, found, output)


def recheck(kind: str, *documents: Parsed) -> Rechecked:
    """Recheck a document, or a problem with its solution; what is no other kind is a plan."""
    return _RECHECKS.get(kind, _RECHECKS["cms-plan"])(*documents)


def say_what_does_not_hold(session: Session, faults: list[cms.Violation]) -> int:
    """Say what is wrong with a file that something was to be done with; return the exit code."""
    return answer(session, Rechecked(None, faults, {}, ""))


def answer(session: Session, found: Rechecked, output: Path | None = None) -> int:
    """Print what a check found, in words or as JSON, and return the exit code."""
    faults = found.faults
    told = [{**each._asdict(), "text": str(each)} for each in faults]
    document = {found.key: not faults, **found.said, "faults": told}
    lines = [f"{found.head}: {count(len(faults), 'fault')}"]
    lines += [f"- {printable(cut(str(fault)))}" for fault in faults[:_MOST_SHOWN]]
    if more := faults[_MOST_SHOWN:]:
        lines.append(f"... and {decimal(len(more))} more (all with --json)")
    session.say(document, "\n".join([*lines, ""]) if faults else found.words)
    session.write(lambda: document, output)
    return Exit.FAILED if faults else Exit.ANSWER


# -- kinds of documents ----------------------------------------------------------------------------


def _solved(answer: cms.Solution, faults: list[Any], plan: Plan | None = None) -> Rechecked:
    said = attributes(answer, "status proof machine_count")
    words = ("machine",) if plan is None else ("GPU", plan.serving.currency)
    return Rechecked(plan or answer, faults, said, f"valid: {verdict(answer, *words)}\n")


def _recheck_solution(problem: Parsed, told: Parsed) -> Rechecked:
    posed, answer = problem_from_json(problem), solution_from_json(told)
    faults = list(faults_of(posed, answer))
    if not faults and "shortage" in told.value:
        refuse_other_shortage(told.at("shortage"), posed)
    return _solved(answer, faults)


def _recheck_plan(document: Parsed) -> Rechecked:
    """Recheck a plan: first its solution, then its own reader, then limits beside neighbours."""
    from cms.fleet.serving import NeighbourServing, neighbour_faults, plan_from_json

    read_as(document, lambda value: require_head(value, "cms-plan"))
    solved = _recheck_solution(document.at("problem"), document.at("solution"))
    if faults := solved.faults:
        return solved
    whole = plan_from_json(document)
    if isinstance(whole.serving, NeighbourServing):
        if whole.outer is not None:
            faults += faults_of(whole.serving.outer, whole.outer)
        if whole.solution.cost is not None:
            faults += neighbour_faults(whole.serving, whole.solution.schedule)
    return _solved(whole.answer, faults, whole)


def _recheck_deployment(document: Parsed) -> Rechecked:
    from cms.fleet.deployment import check_deployment, deployment_from_json

    found = deployment_from_json(document)
    faults, of = list(check_deployment(found)), ""
    if (plan := found.plan) is not None:
        # which instances they are is not asked: a plan near what ran has others
        is_said, problem = {fault.where for fault in faults}, plan.serving.problem
        for job in problem.jobs:
            where, has = f"service {job.name}", found.capacity(job.name)
            if has < job.demand and where not in is_said:
                says = f"{shown(has)} requests/s", f"{shown(job.demand)}, as planned"
                faults.append(cms.Violation("capacity", where, *says))
        faults += faults_of(problem, solution_from_json(document.at("plan").at("solution")))
        of = f"; its plan: {verdict(plan.solution, 'GPU', plan.serving.currency)}"
    said = {"gpus": len([*found.gpus()]), "instances": len([*found.instances()])}
    return Rechecked(found, faults, said, f"valid: {found}{of}\n")


def _recheck_transition(document: Parsed) -> Rechecked:
    from cms.fleet.deployment.transition import check_transition, transition_from_json
    from cms.fleet.deployment.transition.checking import RECHECKED

    found = transition_from_json(document)
    said = {"actions": len(found.actions), "rechecked": list(RECHECKED)}
    words = f"valid: {found}\nrechecked, exactly: {'; '.join(RECHECKED)}\n"
    return Rechecked(found, list(check_transition(found)), said, words)


def _recheck_simulation(document: Parsed) -> Rechecked:
    from cms.fleet.simulation import Verdict, simulation_from_json
    from cms.fleet.simulation.judging import simulation_faults

    found = simulation_from_json(document)
    judged = [each for each in Verdict if each is not Verdict.NO_LIMIT]
    said = {each.value.replace(" ", "_"): found.count(each) for each in judged}
    words = f"valid in itself: {printable(found.sentence)}\n"
    return Rechecked(found, list(simulation_faults(found)), said, words)


def _recheck_day(document: Parsed) -> Rechecked:
    """Recheck a day of shared GPUs: its reader recounts all that follows."""
    from cms.fleet.simulation.colocation_loop.day import shared_day_from_json

    return Rechecked(shared_day_from_json(document), [], {}, "valid in itself\n")


def _recheck_colocation(problem: Parsed, told: Parsed) -> Rechecked:
    from cms.fleet.colocation import files
    from cms.fleet.colocation.solution import colocation_faults, equivalents

    posed = files.colocation_problem_from_json(problem)
    answer = files.colocation_solution_from_json(told, posed)
    said = attributes(answer, "status proof") | {"placed": answer.plan.placed}
    said |= attributes(answer, "value upper_bound")
    proof = ", proof checked" if answer.proof == "checked" else ""
    words = (
        f"valid: {decimal(answer.plan.placed)} workloads share a GPU, "
        f"{equivalents(answer.value)} of at most {equivalents(answer.upper_bound)} "
        f"GPU-equivalents: {answer.status}{proof}\n"
    )
    return Rechecked((posed, answer), list(colocation_faults(posed, answer)), said, words)


_RECHECKS: dict[str, Callable[..., Rechecked]] = {
    "cms-plan": _recheck_plan,
    "cms-deployment": _recheck_deployment,
    "cms-transition": _recheck_transition,
    "cms-simulation": _recheck_simulation,
    "cms-colocation-day": _recheck_day,
    "cms-problem": _recheck_solution,
    "cms-colocation-problem": _recheck_colocation,
}
