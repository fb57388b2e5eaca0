"""The command line of ``cms-check`` for files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .colocation import examine_colocation, read_colocation
from .cut import cut_faults
from .deployment import examine_deployment
from .headroom import examine_headroom
from .interference import examine_beside, is_beside, refuse_classes
from .problem import fingerprint, read_problem
from .rates import group_faults, rate_faults
from .reading import check_head, parse_document, show
from .replay import examine_transition
from .solution import examine
from .verdict import told, unreadable

_KINDS = "cms-problem", "cms-plan", "cms-deployment", "cms-transition", "cms-colocation-problem"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="cms-check",
        description="Check a solution of a problem, a plan, a deployment or a transition, by the "
        "definition.",
        epilog="Folders of problems with more jobs than fit into memory: cms-check FOLDER [FOLDER] "
        "[--shards A:B]. By the checker that is proved in Coq: cms-check --proved FILE [FILE]. A "
        "table of sustainable loads: cms-check --loads FILE. The theorems: cms-check --theorems.",
    )
    parser.add_argument(
        "problem", type=Path, help="a problem file, or one of the others but a solution alone"
    )
    parser.add_argument("solution", type=Path, nargs="?", help="a solution file")
    options = parser.parse_args(arguments)
    paths = [options.problem, *([options.solution] if options.solution else [])]
    documents = []
    for path in paths:
        try:
            documents.append(parse_document(path.read_text(encoding="utf-8-sig")))
        except (OSError, ValueError) as fault:
            return unreadable(path, fault)
    words = ""
    try:
        faults, words = _examined(documents)
    except ValueError as fault:
        faults = [str(fault)]
    return told(paths[-1], faults, words)


def _examined(documents: list[Any]) -> tuple[list[str], str]:
    first = documents[0]
    kind = first.get("format") if len(documents) == 1 and isinstance(first, dict) else None
    if isinstance(kind, str) and kind not in _KINDS:
        return [f"the format is {show(kind)}; this checker reads {', '.join(_KINDS)}"], ""
    if kind == "cms-deployment":
        return examine_deployment(first)
    if kind == "cms-transition":
        return examine_transition(first)
    if kind == "cms-plan":
        check_head(first, "plan")
        documents = [first.get("problem"), first.get("solution")]
        if is_beside(first):
            return _examined_beside(first)
    if isinstance(documents[0], dict) and documents[0].get("format") == "cms-colocation-problem":
        colocation = read_colocation(documents[0])
        if len(documents) == 2:
            return examine_colocation(colocation, documents[1])
        return [], f"the problem is well-formed, with the SHA-256 {colocation.sha256}"
    problem = read_problem(documents[0])
    if kind == "cms-plan":
        refuse_classes(problem)
        if faults := [*cut_faults(first, problem), *rate_faults(first, problem)]:
            return faults, ""
    if len(documents) == 2:
        faults, words = examine(problem, documents[1])
        if kind == "cms-plan" and not faults:
            faults, more = examine_headroom(first, problem)
            faults = [*group_faults(first, problem), *faults]
            words = "; ".join(filter(None, (words, more)))
        return faults, words
    return [], f"the problem is well-formed, with the SHA-256 {fingerprint(problem)}"


def _examined_beside(plan: dict[str, Any]) -> tuple[list[str], str]:
    problem = read_problem(plan.get("problem"))
    faults, words = examine(problem, plan.get("solution"))
    faults = [*cut_faults(plan, problem), *rate_faults(plan, problem), *faults]
    faults = faults or [*group_faults(plan, problem)]
    if faults:
        return faults, ""
    faults, bounded = examine_beside(plan, problem)
    _, taken = examine_headroom(plan, problem)
    return faults, f"{words}; {bounded}; {taken}"


if __name__ == "__main__":
    sys.exit(main())
