"""Solutions as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import InvalidOption
from ..plugin.guarantee import Guarantee, GuaranteeVerdict, Reference, Verdict
from ..schedule.schedule import Schedule
from ..shards.schedule import ShardedSchedule
from ..shortages.shortage import Shortage
from ..solving.solution import Incumbent, Proof, Solution, Status, StopReason
from .certificates import certificate_from_json
from .contradictions import refuse_contradictions
from .documents import check_head, head, read_document, read_folder_document
from .layout import number_to_json, write_document
from .node import Node
from .schedules import schedule_from_json, schedule_to_json
from .shards.solutions import schedule_reader, write_solution_folder
from .shortages import refuse_malformed_shortage, shortage_to_json
from .source import StrPath

_KEYS = (
    *("format", "schema", "problem_sha256", "status", "proof", "stop_reason", "method", "seconds"),
    *("machine_count", "cost", "lower_bound", "claimed_bound", "gap"),
    *("schedule", "certificate", "guarantee", "history"),
)


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
        return _solution(node, "cms-solution-folder", schedule_reader(folder))
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

    Parameters
    ----------
    solution : Solution
    shortage : Shortage, optional
        What would do, where there is no schedule.

    Raises
    ------
    InvalidOption
        If the solution is of a problem of another kind, which has no document.
    """
    kind: type = type(solution.schedule)
    if not issubclass(kind, Schedule):
        raise InvalidOption(f"a schedule of type {kind.__name__} has no document")
    document = _document(solution, schedule_to_json(solution.schedule))
    return document if shortage is None else document | {"shortage": shortage_to_json(shortage)}


def solution_summary(solution: Solution) -> dict[str, Any]:
    """Return the document of a solution in shards without the blocks of its jobs."""
    schedule: Any = solution.schedule
    machines = [
        {"machine": shape.machine, "configuration": dict(shape.blocks), "count": number}
        for shape, number in schedule.machines.items()
    ]
    return _document(solution, {"machines": machines})


def _document(solution: Solution, schedule: dict[str, Any] | None) -> dict[str, Any]:
    """Put all parts of a solution in their order."""
    return {
        **head("cms-solution"),
        "problem_sha256": solution.problem_sha256,
        "status": solution.status.value,
        "proof": solution.proof.value,
        "stop_reason": solution.stop_reason.value,
        "method": solution.method,
        "seconds": solution.seconds,
        "machine_count": _optional(solution.machine_count),
        "cost": _optional(solution.cost),
        "lower_bound": number_to_json(solution.lower_bound),
        "claimed_bound": _optional(solution.claimed_bound),
        "gap": _optional(solution.gap),
        "schedule": schedule,
        "certificate": {
            "problem_sha256": solution.problem_sha256,
            "tree": solution.certificate.to_json(),
        },
        "guarantee": _guarantee_to_json(solution.guarantee),
        "history": [
            {
                "seconds": line.seconds,
                "cost": _optional(line.cost),
                "lower_bound": number_to_json(line.lower_bound),
                "claimed_bound": _optional(line.claimed_bound),
                "source": line.source,
            }
            for line in solution.history
        ],
    }


def solution_from_json(document: Node | Mapping[str, Any]) -> Solution:
    """Turn a parsed document into a solution.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from. A ``shortage``
        in it is a remark for people: its form is checked, and it is left aside.

    Raises
    ------
    FileError
        Naming the value at fault.
    """
    node = document if isinstance(document, Node) else Node(document)
    return _solution(node, "cms-solution", schedule_from_json)


def _solution(node: Node, kind: str, read_schedule: Callable[[Node], Any]) -> Solution:
    """Read a solution whose schedule is read as said."""
    check_head(node, kind)
    fields = node.object(_KEYS, ("shortage",))
    sha256 = _sha256(fields["problem_sha256"])
    certificate = fields["certificate"].object(("problem_sha256", "tree"))
    if certificate["problem_sha256"].value != sha256:
        raise certificate["problem_sha256"].wrong(
            f"{sha256} as in problem_sha256", "the certificate belongs to another problem"
        )
    solution = Solution(
        status=Status(fields["status"].one_of(list(Status))),
        proof=Proof(fields["proof"].one_of(list(Proof))),
        stop_reason=StopReason(fields["stop_reason"].one_of(list(StopReason))),
        method=fields["method"].text(),
        seconds=_seconds(fields["seconds"]),
        schedule=read_schedule(fields["schedule"]),
        cost=fields["cost"].number_or_null(),
        certificate=certificate_from_json(certificate["tree"]),
        lower_bound=fields["lower_bound"].number(minimum=None),
        claimed_bound=fields["claimed_bound"].number_or_null(minimum=None),
        guarantee=_guarantee_from_json(fields["guarantee"]),
        history=tuple(_incumbent(entry) for entry in fields["history"].array()),
        problem_sha256=sha256,
    )
    refuse_contradictions(fields, solution)
    if "shortage" in fields:
        if solution.status is not Status.INFEASIBLE:
            raise fields["shortage"].error(
                f'{fields["shortage"].label} is there, but the status is "{solution.status}"',
                expected='the status "infeasible"',
            )
        refuse_malformed_shortage(fields["shortage"])
    return solution


# -- parts -------------------------------------------------------------------------------------


def _optional(value: Fraction | int | None) -> int | str | None:
    return None if value is None else number_to_json(value)


def _guarantee_to_json(given: GuaranteeVerdict | None) -> dict[str, Any] | None:
    if given is None:
        return None
    guarantee = given.guarantee
    return {
        "factor": number_to_json(guarantee.factor),
        "additive": number_to_json(guarantee.additive),
        "against": guarantee.against.value,
        "theorem": guarantee.theorem,
        "verdict": given.verdict.value,
    }


def _guarantee_from_json(node: Node) -> GuaranteeVerdict | None:
    if node.value is None:
        return None
    fields = node.object(("factor", "additive", "against", "theorem", "verdict"))
    guarantee = Guarantee(
        fields["factor"].number(),
        fields["additive"].number(),
        Reference(fields["against"].one_of(list(Reference))),
        fields["theorem"].text(),
    )
    return GuaranteeVerdict(guarantee, Verdict(fields["verdict"].one_of(list(Verdict))))


def _incumbent(entry: Node) -> Incumbent:
    fields = entry.object(("seconds", "cost", "lower_bound", "claimed_bound", "source"))
    return Incumbent(
        _seconds(fields["seconds"]),
        fields["cost"].number_or_null(),
        fields["lower_bound"].number(minimum=None),
        fields["claimed_bound"].number_or_null(minimum=None),
        fields["source"].text(),
    )


def _seconds(node: Node) -> float:
    """Read a time: the only floats of our files; they prove nothing and come back as written."""
    if isinstance(node.value, str):
        raise node.wrong("a JSON number", "write it without quotes")
    try:
        return float(node.number())
    except OverflowError:
        raise node.wrong("a time in seconds") from None


def _sha256(node: Node) -> str:
    text = node.text()
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise node.wrong("64 hexadecimal digits in lower case")
    return text
