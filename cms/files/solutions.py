"""Solutions as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidOption
from ..plugin.guarantee import Guarantee, GuaranteeVerdict, Reference, Verdict
from ..schedule.schedule import Schedule
from ..shards.schedule import ShardedSchedule
from ..shortages.shortage import Shortage
from ..solving.solution import Incumbent, Proof, Solution, Status, StopReason
from . import fields as f
from .certificates import certificate_from_json
from .contradictions import refuse_contradictions
from .documents import check_head, head, read_document, read_folder_document
from .layout import write_document
from .node import Node
from .schedules import machines_to_json, schedule_from_json, schedule_to_json
from .shards.solutions import sharded_schedule_from_json, write_solution_folder
from .shortages import refuse_malformed_shortage, shortage_to_json
from .source import StrPath

_GUARANTEE = {
    "factor": f.NUMBER, "additive": f.NUMBER, "against": f.choice(Reference), "theorem": f.TEXT,
}  # fmt: skip
_VERDICT = {"verdict": f.choice(Verdict)}


def _read_verdict(node: Node) -> GuaranteeVerdict:
    found = f.read_object(node, _GUARANTEE | _VERDICT)
    return GuaranteeVerdict(verdict=found.pop("verdict"), guarantee=Guarantee(**found))


_INCUMBENT = f.record(
    Incumbent,
    seconds=f.SECONDS,
    cost=f.nullable(f.NUMBER),
    lower_bound=f.ANY_NUMBER,
    claimed_bound=f.nullable(f.ANY_NUMBER),
    source=f.TEXT,
)
#: What follows from other fields is written for readers: it is compared, not read.
_DERIVED = f.nullable(f.Field(lambda node: None, f.NUMBER.write))
_SOLUTION = {
    "problem_sha256": f.SHA256,
    "status": f.choice(Status),
    "proof": f.choice(Proof),
    "stop_reason": f.choice(StopReason),
    "method": f.TEXT,
    "seconds": f.SECONDS,
    "machine_count": _DERIVED,
    "cost": f.nullable(f.NUMBER),
    "lower_bound": f.ANY_NUMBER,
    "claimed_bound": f.nullable(f.ANY_NUMBER),
    "gap": _DERIVED,
}
_RUN = {
    "guarantee": f.nullable(
        f.Field(
            _read_verdict,
            lambda it: f.write_object(it.guarantee, _GUARANTEE) | f.write_object(it, _VERDICT),
        )
    ),
    "history": f.array(_INCUMBENT),
}


def read_solution(path: StrPath) -> Solution:
    """Read a solution from a JSON file.

    What it says is read, not believed: :func:`cms.check` and the certificate's ``bound`` tell
    whether it holds for a problem.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input. Or the folder of a solution in shards.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file. What a
        solution says twice (its machines, its gap, its problem) must agree, and its status, proof,
        bounds, guarantee and history must be able to be true together.

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
    folder = Path(os.fspath(path))
    if str(path) != "-" and folder.is_dir():
        node = read_folder_document(path, "solution.json", "cms-solution-folder")
        place = folder.absolute()
        return _read(
            node, "cms-solution-folder", lambda value: sharded_schedule_from_json(value, place)
        )
    return solution_from_json(read_document(path, "cms-solution"))


def write_solution(solution: Solution, path: StrPath) -> None:
    """Write a solution to a JSON file, one group of machines a line; of shards to a folder.

    Parameters
    ----------
    solution : Solution
        If its schedule is in shards, the counts are evaluated, and checked again while they are
        written.
    path : str or path-like
        The file; ``-`` is standard output. Or the folder, which must not be there yet.

    Raises
    ------
    FileError
        If the file or folder cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import Configuration, Problem, solve
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "solution.json"
    >>> write_solution(solve(Problem(configurations=Configuration({"7g": 1}))), path)
    >>> '"status": "optimal"' in path.read_text()
    True
    """
    schedule: Any = solution.schedule
    if isinstance(schedule, ShardedSchedule):
        write_solution_folder(_document(solution, None), schedule, Path(os.fspath(path)))
    else:
        write_document(lambda: solution_to_json(solution), path)


def solution_to_json(solution: Solution, shortage: Shortage | None = None) -> dict[str, Any]:
    """Turn a solution into the document that :func:`solution_from_json` reads.

    Where there is no schedule, `shortage` says what would do.
    """
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
        **dict.fromkeys(("format", "schema"), f.Field(lambda node: None, str)),
        **_SOLUTION,
        "schedule": f.Field(read_schedule, dict),
        "certificate": f.Field(lambda entry: _certificate(entry, node.at("problem_sha256")), dict),
        **_RUN,
        "shortage": f.Field(lambda entry: entry, dict).or_else(None),
    }
    found = f.read_object(node, whole)
    shortage = found.pop("shortage")
    for key in ("format", "schema", "machine_count", "gap"):
        del found[key]
    solution = Solution(**found | {"history": tuple(found["history"])})
    refuse_contradictions(node, solution)
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
