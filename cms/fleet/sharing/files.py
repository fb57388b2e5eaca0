"""Problems of sharing and their solutions as JSON; ``docs/reference/schemas`` has the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...files.documents import check_head, head, number_to_json, read_document, write_document
from ...files.node import Node
from ...files.source import StrPath
from ...solving.solution import Proof, Status, StopReason
from .certificate import AssignmentPrices
from .classes import OfflineClass, OnlineClass
from .plan import SharingPlan
from .problem import FORBIDDEN, SharingProblem
from .solution import SharingIncumbent, SharingSolution

PROBLEM, SOLUTION = "cms-sharing-problem", "cms-sharing-solution"
_ONLINE = (
    *("name", "count", "device", "sm_activity", "memory_mib", "memory_total_mib", "model"),
    *("slowdown_limit", "running", "weights"),
)
_OFFLINE = ("name", "count", "memory_mib", "model", "priority")
_SOLUTION = (
    *("format", "schema", "problem_sha256", "status", "proof", "stop_reason", "method", "seconds"),
    *("value", "upper_bound", "gap", "plan", "certificate", "history"),
)


def read_sharing_problem(path: StrPath) -> SharingProblem:
    """Read a problem of sharing from a JSON file; every number exactly as written.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem, path = posed([2], [5], [[7]]), pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> write_sharing_problem(problem, path)
    >>> read_sharing_problem(path) == problem
    True
    """
    return sharing_problem_from_json(read_document(path, PROBLEM))


def write_sharing_problem(problem: SharingProblem, path: StrPath) -> None:
    """Write a problem of sharing to a JSON file, one class a line.

    Parameters
    ----------
    problem : SharingProblem
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> write_sharing_problem(posed([2], [5], [[7]]), path)
    >>> path.read_text().splitlines()[1]
    '  "format": "cms-sharing-problem",'
    """
    write_document(lambda: sharing_problem_to_json(problem), path)


def read_sharing_solution(path: StrPath, problem: SharingProblem) -> SharingSolution:
    """Read a solution of a problem of sharing from a JSON file.

    What it says is read, not believed: :func:`sharing_faults` tells whether it holds.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.
    problem : SharingProblem
        The one it is about: the shares in the file must be those of its classes.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem, path = posed([2], [5], [[7]]), pathlib.Path(tempfile.mkdtemp()) / "share.json"
    >>> write_sharing_solution(problem, share(problem, "sharing_dedicated"), path)
    >>> read_sharing_solution(path, problem).plan.placed
    0
    """
    return sharing_solution_from_json(read_document(path, SOLUTION), problem)


def write_sharing_solution(
    problem: SharingProblem, solution: SharingSolution, path: StrPath
) -> None:
    """Write a solution to a JSON file, one pair of classes a line, with the share it gets.

    Parameters
    ----------
    problem : SharingProblem
        The one it is about.
    solution : SharingSolution
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem, path = posed([2], [5], [[7]]), pathlib.Path(tempfile.mkdtemp()) / "share.json"
    >>> solution = share(problem)
    >>> write_sharing_solution(problem, solution, path)
    >>> read_sharing_solution(path, problem) == solution
    True
    """
    write_document(lambda: sharing_solution_to_json(problem, solution), path)


def sharing_problem_to_json(problem: SharingProblem) -> dict[str, Any]:
    """Turn a problem into the document that :func:`sharing_problem_from_json` reads."""
    return {
        **head(PROBLEM),
        "margin": problem.margin,
        "lowest_share": problem.lowest_share,
        "offline": [
            {
                "name": work.name,
                "count": work.count,
                "memory_mib": number_to_json(work.memory_mib),
                "model": work.model,
                "priority": number_to_json(work.priority),
            }
            for work in problem.offline
        ],
        "online": [
            {
                "name": gpus.name,
                "count": gpus.count,
                "device": gpus.device,
                "sm_activity": number_to_json(gpus.sm_activity),
                "memory_mib": number_to_json(gpus.memory_mib),
                "memory_total_mib": _optional(gpus.memory_total_mib),
                "model": gpus.model,
                "slowdown_limit": _optional(gpus.slowdown_limit),
                "running": gpus.running,
                "weights": [None if w == FORBIDDEN else w for w in row.tolist()],
            }
            for gpus, row in zip(problem.online, problem.weights, strict=True)
        ],
    }


def sharing_problem_from_json(document: Node | Mapping[str, Any]) -> SharingProblem:
    """Turn a parsed document into a problem of sharing.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        Naming the class and the value at fault; a pair with a weight that memory, or a missing
        share, forbids is one.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, PROBLEM)
    fields = node.object(("format", "schema", "margin", "lowest_share", "offline", "online"))
    offline = [_offline(entry) for entry in fields["offline"].array()]
    rows: list[list[Node]] = []
    online = []
    for entry in fields["online"].array():
        parts = entry.object(_ONLINE)
        entry.about = f"online class {parts['name'].shown}"
        online.append(_online(entry, parts))
        rows.append(list(parts["weights"].array(len(offline))))
    weights = [
        [FORBIDDEN if each.value is None else each.integer() for each in row] for row in rows
    ]
    problem = node.build(
        SharingProblem,
        online=online,
        offline=offline,
        weights=weights,
        margin=fields["margin"].integer(),
        lowest_share=fields["lowest_share"].integer(),
    )
    for row, given in zip(rows, problem.weights.tolist(), strict=True):
        for each, weight in zip(row, given, strict=True):
            if weight == FORBIDDEN and each.value is not None:
                raise each.wrong("null: no share is left there, or the memory does not fit")
    return problem


def _offline(entry: Node) -> OfflineClass:
    parts = entry.object(_OFFLINE)
    entry.about = f"offline class {parts['name'].shown}"
    return entry.build(
        OfflineClass,
        parts["name"].name("offline class"),
        count=parts["count"].integer(),
        memory_mib=parts["memory_mib"].number(),
        model=parts["model"].name("model"),
        priority=parts["priority"].number(),
    )


def _online(entry: Node, parts: Mapping[str, Node]) -> OnlineClass:
    return entry.build(
        OnlineClass,
        parts["device"].name("device"),
        count=parts["count"].integer(),
        sm_activity=parts["sm_activity"].number(),
        memory_mib=parts["memory_mib"].number(),
        memory_total_mib=parts["memory_total_mib"].or_null(Node.number),
        model=parts["model"].text(),
        slowdown_limit=parts["slowdown_limit"].or_null(Node.number),
        running=parts["running"].or_null(lambda it: it.name("offline class")),
        name=parts["name"].name("online class"),
    )


def sharing_solution_to_json(problem: SharingProblem, solution: SharingSolution) -> dict[str, Any]:
    """Turn a solution into the document that :func:`sharing_solution_from_json` reads."""
    return {
        **head(SOLUTION),
        "problem_sha256": solution.problem_sha256,
        "status": solution.status.value,
        "proof": solution.proof.value,
        "stop_reason": solution.stop_reason.value,
        "method": solution.method,
        "seconds": solution.seconds,
        "value": solution.value,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "plan": [
            {**pair._asdict(), "share": problem.shares[problem.online_index[pair.online]]}
            for pair in solution.plan
        ],
        "certificate": {
            "problem_sha256": solution.problem_sha256,
            "online": dict(solution.certificate.online),
            "offline": dict(solution.certificate.offline),
        },
        "history": [line._asdict() for line in solution.history],
    }


def sharing_solution_from_json(
    document: Node | Mapping[str, Any], problem: SharingProblem
) -> SharingSolution:
    """Turn a parsed document into a solution.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.
    problem : SharingProblem

    Raises
    ------
    FileError
        Naming the value at fault.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, SOLUTION)
    fields = node.object(_SOLUTION)
    for digest in (fields["problem_sha256"], *_digest(fields["certificate"])):
        digest.agree(problem.sha256, "the SHA-256 of the problem")
    certificate = fields["certificate"].object(("problem_sha256", "online", "offline"))
    prices = [
        {name: price.integer() for name, price in certificate[side].names(f"{side} class")}
        for side in ("online", "offline")
    ]
    solution = SharingSolution(
        status=Status(fields["status"].one_of((Status.OPTIMAL, Status.FEASIBLE))),
        proof=Proof(fields["proof"].one_of((Proof.CHECKED, Proof.NONE))),
        stop_reason=StopReason(fields["stop_reason"].one_of(list(StopReason))),
        method=fields["method"].text(),
        seconds=_seconds(fields["seconds"]),
        plan=_plan(fields["plan"], problem),
        value=fields["value"].integer(),
        upper_bound=fields["upper_bound"].integer(),
        certificate=AssignmentPrices(*prices),
        history=tuple(_lines(fields["history"])),
        problem_sha256=problem.sha256,
    )
    fields["gap"].agree(solution.gap, "the upper bound less the value")
    wanted = Proof.CHECKED if solution.status is Status.OPTIMAL else Proof.NONE
    if solution.proof is not wanted:
        raise fields["proof"].wrong(f'"{wanted}", since the status is "{solution.status}"')
    if solution.stop_reason is StopReason.PROVED and solution.proof is not Proof.CHECKED:
        raise fields["stop_reason"].wrong("another reason, since nothing is proved")
    if (solution.status is Status.OPTIMAL) != (solution.gap == 0):
        raise fields["status"].wrong(f"the other one, since the gap is {solution.gap}")
    return solution


def _digest(certificate: Node) -> Iterator[Node]:
    yield certificate.object(("problem_sha256", "online", "offline"))["problem_sha256"]


def _plan(node: Node, problem: SharingProblem) -> SharingPlan:
    counts: dict[tuple[str, str], int] = {}
    for entry in node.array():
        parts = entry.object(("online", "offline", "count", "share"))
        online = parts["online"].name("online class")
        if online not in problem.online_index:
            raise parts["online"].wrong("an online class of the problem")
        share = problem.shares[problem.online_index[online]]
        parts["share"].agree(share, f"the share of online class {online!r}")
        pair = online, parts["offline"].name("offline class")
        if pair in counts:
            raise entry.error(f"{entry.label} is about a pair that is there already")
        counts[pair] = parts["count"].integer(minimum=1)
    return node.build(SharingPlan, counts)


def _lines(node: Node) -> Iterator[SharingIncumbent]:
    before: SharingIncumbent | None = None
    for entry in node.array():
        parts = entry.object(("seconds", "value", "upper_bound", "source"))
        line = SharingIncumbent(
            _seconds(parts["seconds"]),
            parts["value"].integer(),
            parts["upper_bound"].integer(),
            parts["source"].text(),
        )
        if before is not None and line.value < before.value:
            raise parts["value"].wrong(f"at least {before.value}, as in the line before")
        if before is not None and line.upper_bound > before.upper_bound:
            raise parts["upper_bound"].wrong(f"at most {before.upper_bound}, as in the line before")
        before = line
        yield line


def _seconds(node: Node) -> float:
    if isinstance(node.value, str):
        raise node.wrong("a JSON number", "write it without quotes")
    try:
        return float(node.number())
    except OverflowError:
        raise node.wrong("a time in seconds") from None


def _optional(value: Any) -> int | str | None:
    return None if value is None else number_to_json(value)
