"""Whether folders hold what they say, read shard by shard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proofs_checks.checker.certificate import least_bound, read_leaves, refuse_breach
from proofs_checks.checker.reading import Fault, parse_document
from proofs_checks.checker.schedule import machine_faults
from proofs_checks.checker.solution import claim_faults, judged, read_claims, story_faults

from .plan import block_faults, read_counts, read_plan, uncovered_jobs
from .problem import Folder, read_folder
from .totals import Totals


def _chosen(folder: Folder, shards: tuple[int, int] | None) -> range:
    every = range(len(folder.shards))
    if shards is None:
        return every
    first, end = shards
    if not 0 <= first < end <= len(every):
        raise Fault(f"there are {len(every)} shards; {first}:{end} is no part of them")
    return range(first, end)


def examine_problem(
    path: Path, document: Any, shards: tuple[int, int] | None = None
) -> tuple[list[str], str]:
    """List what is wrong with a problem folder, and say what it is otherwise."""
    folder = read_folder(path, document)
    chosen = _chosen(folder, shards)
    for at in chosen:
        folder.rows(folder.shards[at])
    words = f"the problem is well-formed, with the SHA-256 {folder.sha256()}"
    return [], words + _not_checked(folder, chosen, "")


def _not_checked(folder: Folder, chosen: range, more: str) -> str:
    number = len(folder.shards)
    if len(chosen) == number:
        return ""
    return (
        f". Of the {number} shards, those from {chosen.start} to {chosen.stop - 1} were read; "
        f"not checked: the files of the others{more}"
    )


def examine(
    path: Path,
    document: Any,
    solution_path: Path,
    solution: Any,
    shards: tuple[int, int] | None = None,
) -> tuple[list[str], str]:
    """List what is wrong with a solution folder, and say what it establishes otherwise."""
    folder = read_folder(path, document)
    chosen = _chosen(folder, shards)
    claims = read_claims(solution, "solution-folder")
    plan = read_plan(
        solution_path, claims.fields["schedule"], folder, has_schedule=claims.has_schedule
    )
    head = folder.head
    if claims.has_schedule:
        faults = machine_faults(head, plan.machines, "machines")
        if faults:
            return faults, ""
    elif plan.machines:
        return [f"the status is {claims.status}, but there is a schedule"], ""
    leaves = read_leaves(claims.certificate["tree"], head)
    for leaf in leaves:
        refuse_breach(leaf, head)
    found = claims.found(head, plan.machines) if claims.has_schedule else (None, None, None)
    faults = [
        *claim_faults(claims, folder.sha256(), found),
        *story_faults(claims, head, bounded=False),
    ]
    if faults:
        return faults, ""
    totals = Totals(folder, leaves) if len(chosen) == len(folder.shards) else None
    loads = [0] * len(head.blocks)
    for shard in (folder.shards[at] for at in chosen):
        rows = folder.rows(shard)
        if claims.has_schedule:
            counts = read_counts(plan, folder, shard)
            faults = uncovered_jobs(shard, rows, counts)
            if faults:
                return faults, ""
            loads = [a + b for a, b in zip(loads, counts.loads(), strict=True)]
        if totals is not None:
            totals.add(shard, rows)
    if totals is None:
        words = "machines and claims hold by themselves, and what was read of the shards does"
        return [], words + _not_checked(
            folder, chosen, ", whether all jobs' blocks are on the machines, and the lower bound"
        )
    faults = block_faults(head, plan, loads)
    if faults:
        return faults, ""
    bound = least_bound(leaves, head, totals)
    return judged(claims, head, plan.machines, folder.sha256(), bound, totals.wanted)


def read_document(path: Path) -> Any:
    """Read the document of a folder."""
    return parse_document(path.read_text(encoding="utf-8-sig"))


def check_folders(
    problem: Path, solution: Path | None = None, shards: tuple[int, int] | None = None
) -> list[str]:
    """Check a problem folder, and what a solution folder says about it; return sentences.

    ``shards``: look at the files of these alone, from the first to before the second; then neither
    the totals of blocks nor the bound are checked.
    """
    try:
        document = read_document(problem / "problem.json")
        if solution is None:
            return examine_problem(problem, document, shards)[0]
        claims = read_document(solution / "solution.json")
        return examine(problem, document, solution, claims, shards)[0]
    except ValueError as fault:
        return [str(fault)]
