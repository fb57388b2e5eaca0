"""Solutions as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidOption
from ..plugin.guarantee import Guarantee, GuaranteeVerdict, Reference, Verdict
from ..problem.machine_problem import MachineProblem
from ..schedule.schedule import Schedule
from ..shards.schedule import ShardedSchedule
from ..shortages.shortage import Shortage
from ..solving.solution import Incumbent, Proof, Solution, Status, StopReason
from ..values.numbers import shown
from . import fields as f
from .claims import certificate_from_json, machines_to_json, schedule_from_json, schedule_to_json
from .documents import (
    check_head,
    head,
    number_to_json,
    read_document,
    read_folder_document,
    write_document,
)
from .node import Node
from .shards.folders import sharded_schedule_from_json, write_solution_folder
from .source import StrPath

_GUARANTEE = {
    "factor": f.NUMBER, "additive": f.NUMBER, "against": f.choice(Reference), "theorem": f.TEXT,
}  # fmt: skip
_VERDICT = {"verdict": f.choice(Verdict)}


def _read_verdict(node: Node) -> GuaranteeVerdict:
    found = f.read_object(node, _GUARANTEE | _VERDICT)
    return GuaranteeVerdict(verdict=found.pop("verdict"), guarantee=Guarantee(**found))


def _write_verdict(it: GuaranteeVerdict) -> dict[str, Any]:
    return f.write_object(it.guarantee, _GUARANTEE) | f.write_object(it, _VERDICT)


#: What is known without it is checked elsewhere, or compared: it is not read.
_DERIVED = f.Field(lambda node: None, f.nullable(f.NUMBER).write)
_BOUNDS = {
    "cost": f.nullable(f.NUMBER),
    "lower_bound": f.ANY_NUMBER,
    "claimed_bound": f.nullable(f.ANY_NUMBER),
}
_SOLUTION = {
    "problem_sha256": f.SHA256,
    "status": f.choice(Status),
    "proof": f.choice(Proof),
    "stop_reason": f.choice(StopReason),
    "method": f.TEXT,
    "seconds": f.SECONDS,
    "machine_count": _DERIVED,
    **_BOUNDS,
    "gap": _DERIVED,
}
_RUN = {
    "guarantee": f.nullable(f.Field(_read_verdict, _write_verdict)),
    "history": f.array(f.record(Incumbent, own=True, seconds=f.SECONDS, **_BOUNDS, source=f.TEXT)),
}


def read_solution(path: StrPath) -> Solution:
    """Read a solution from a JSON file, or the folder of a solution in shards.

    What it says is read, not believed: :func:`cms.check` and the certificate's ``bound`` tell
    whether it holds for a problem.

    Parameters
    ----------
    path : str or path-like
        The file or folder; ``-`` is standard input.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``; also if its parts contradict each other.

    Examples
    --------
    >>> read_solution("none.json")
    Traceback (most recent call last):
    cms.errors.FileError: none.json: there is no such file
    """
    folder, kind = Path(path), "cms-solution-folder"
    if str(path) == "-" or not folder.is_dir():
        return solution_from_json(read_document(path, "cms-solution"))
    node, there = read_folder_document(path, "solution.json", kind), folder.absolute()
    return _read(node, kind, lambda value: sharded_schedule_from_json(value, there))


def write_solution(solution: Solution, path: StrPath) -> None:
    """Write a solution to a JSON file, one group of machines a line; of shards to a folder.

    Parameters
    ----------
    solution : Solution
    path : str or path-like
        The file; ``-`` is standard output. Or the folder, which must not be there yet.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"7g": 1}), jobs=[Job("a", 9, {"7g": 4})])
    >>> solution = solve(problem)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "solution.json"
    >>> write_solution(solution, path)
    >>> read_solution(path).schedule == solution.schedule
    True
    """
    schedule: Any = solution.schedule
    if isinstance(schedule, ShardedSchedule):
        write_solution_folder(_document(solution, None), schedule, Path(path))
    else:
        write_document(lambda: solution_to_json(solution), path)


def solution_to_json(solution: Solution, shortage: Shortage | None = None) -> dict[str, Any]:
    """Turn a solution into the document that :func:`solution_from_json` reads."""
    kind: type = type(solution.schedule)
    if not issubclass(kind, Schedule):
        raise InvalidOption(f"a schedule of type {kind.__name__} has no document")
    document = _document(solution, schedule_to_json(solution.schedule))
    return document if shortage is None else document | {"shortage": shortage_to_json(shortage)}


def solution_summary(solution: Solution) -> dict[str, Any]:
    """Return the document of a solution in shards without the blocks of its jobs."""
    schedule: Any = solution.schedule
    return _document(
        solution, {"machines": [machines_to_json(*each) for each in schedule.machines.items()]}
    )


def _document(solution: Solution, schedule: dict[str, Any] | None) -> dict[str, Any]:
    sha256, tree = solution.problem_sha256, solution.certificate.to_json()
    return {
        **head("cms-solution"),
        **f.write_object(solution, _SOLUTION),
        "schedule": schedule,
        "certificate": {"problem_sha256": sha256, "tree": tree},
        **f.write_object(solution, _RUN),
    }


def solution_from_json(document: Node | Mapping[str, Any]) -> Solution:
    """Turn a parsed document into a solution."""
    node = document if isinstance(document, Node) else Node(document)
    return _read(node, "cms-solution", schedule_from_json)


def _read(node: Node, kind: str, read_schedule: Callable[[Node], Any]) -> Solution:
    check_head(node, kind)
    whole = {
        "format": _DERIVED,
        "schema": _DERIVED,
        **_SOLUTION,
        "schedule": f.Field(read_schedule),
        "certificate": f.Field(lambda entry: _certificate(entry, node.at("problem_sha256"))),
        **_RUN,
        "shortage": f.Field(lambda entry: entry).or_else(None),
    }
    found = f.read_object(node, whole)
    shortage = found.pop("shortage")
    found = {key: found[key] for key in found if whole[key] is not _DERIVED}
    solution = Solution(**found | {"history": tuple(found["history"])})
    _refuse_contradictions(node, solution)
    if shortage is not None:
        if solution.status is not Status.INFEASIBLE:
            raise shortage.error(
                f'{shortage.label} is there, but the status is "{solution.status}"',
                expected='the status "infeasible"',
            )
        refuse_malformed_shortage(shortage)
    return solution


def _certificate(entry: Node, sha256: Node) -> Any:
    fields = entry.object(("problem_sha256", "tree"))
    if fields["problem_sha256"].value != sha256.value:
        raise fields["problem_sha256"].wrong(
            f"{sha256.value} as in problem_sha256", "the certificate belongs to another problem"
        )
    return certificate_from_json(fields["tree"])


def _refuse_contradictions(node: Node, solution: Solution) -> None:
    status, proof, cost = solution.status, solution.proof, solution.cost
    has_schedule = status in (Status.OPTIMAL, Status.FEASIBLE)
    proves = status in (Status.OPTIMAL, Status.INFEASIBLE)
    no_machines = solution.schedule == type(solution.schedule)()
    is_proved = status is Status.OPTIMAL and proof is Proof.CHECKED
    for key, agrees, expected in (
        ("cost", has_schedule == (cost is not None), "a number" if has_schedule else "null"),
        ("schedule", has_schedule or no_machines, "one without machines"),
        ("proof", proves == (proof is not Proof.NONE), "checked or solver" if proves else "none"),
        (
            "lower_bound",
            not is_proved or solution.lower_bound == cost,
            f"the cost {shown(cost or 0)}",
        ),
    ):
        if not agrees:
            raise node.at(key).wrong(f'{expected}, since the status is "{status}"')
    node.at("machine_count").agree(solution.machine_count, "the machines of the schedule")
    node.at("gap").agree(solution.gap, "the cost less the lower bound")
    if solution.stop_reason is StopReason.PROVED and proof is not Proof.CHECKED:
        expected = f'another reason, since the proof is "{proof}", not "checked"'
        raise node.at("stop_reason").wrong(expected)
    if status is Status.OPTIMAL and not is_proved and solution.claimed_bound is None:
        raise node.at("claimed_bound").wrong("the bound by which a solver claims the optimum")
    if cost is not None and (solution.claimed_bound or cost) > cost:
        raise node.at("claimed_bound").wrong(f"at most {shown(cost)}, the cost of the schedule")
    if solution.guarantee is not None:
        told, verdict = node.at("guarantee"), solution.guarantee.verdict
        if cost is None:
            raise told.wrong("null, since there is no schedule")
        allowed = solution.guarantee.guarantee.allows(solution.lower_bound)
        if verdict is Verdict.VERIFIED and cost > allowed:
            why = f"the cost exceeds factor x lower_bound + additive = {shown(allowed)}"
            raise told.at("verdict").wrong(f'"open", since {why}')
    _refuse_disorder(node.at("history"), solution)


def _refuse_disorder(node: Node, solution: Solution) -> None:
    """Costs fall and bounds rise, towards those of the solution."""
    # Without a schedule, the bound that proves so may lie below one that was found before it.
    cost, bound = solution.cost, None if solution.cost is None else solution.lower_bound
    for at, line in reversed([*enumerate(solution.history)]):
        entry = node.at(at)
        if line.cost is not None:
            if cost is None or line.cost < cost:
                least = "null" if cost is None else f"at least {shown(cost)}"
                raise entry.at("cost").wrong(f"{least}, as the solution or a later line has it")
            cost = line.cost
        if bound is not None and line.lower_bound > bound:
            most = f"at most {shown(bound)}, as the solution or a later line has it"
            raise entry.at("lower_bound").wrong(most)
        bound = line.lower_bound


_SHORTAGE = {
    "unservable": f.table("job", f.array(f.name("block"))),
    "more_machines": f.nullable(f.table("machine type", f.AT_LEAST_ONE)),
    "machines_at_least": f.COUNT,
    "machines_proof": f.choice(Proof),
    "less_demand": f.NUMBER,
    "too_much_demand": f.nullable(f.NUMBER),
    "demand_proof": f.choice(Proof),
    "seconds": f.SECONDS,
}


def shortage_to_json(shortage: Shortage) -> dict[str, Any]:
    """Turn a shortage into the object of that name in a solution's document."""
    return f.write_object(shortage, _SHORTAGE)


def refuse_malformed_shortage(node: Node) -> None:
    """Check the form of a shortage, and that its figures can be true together."""
    told = f.read_object(node, _SHORTAGE)
    share, too_much = told["less_demand"], told["too_much_demand"]
    enough = sum((told["more_machines"] or {}).values())
    if told["more_machines"] is not None and enough < told["machines_at_least"]:
        raise node.at("machines_at_least").wrong(f"at most {enough}, the machines that would do")
    if share > 1:
        raise node.at("less_demand").wrong("a number from 0 to 1")
    if too_much is not None and too_much <= share:
        raise node.at("too_much_demand").wrong(f"more than {number_to_json(share)}, which would do")


def refuse_other_shortage(node: Node, problem: MachineProblem) -> None:
    """Check that a shortage is about the jobs, blocks and machine types of a problem."""
    jobs, blocks = dict.fromkeys(problem.job_names), dict.fromkeys(problem.blocks)
    types = dict.fromkeys(machine.name for machine in problem.machine_types)
    for job, entry in node.at("unservable").entries():
        entry.refuse_unknown(job, "job", jobs)
        for block in entry.array():
            block.one_of(blocks)
    more = node.at("more_machines")
    for machine, number in more.entries() if more.value is not None else ():
        number.refuse_unknown(machine, "machine type", types)
