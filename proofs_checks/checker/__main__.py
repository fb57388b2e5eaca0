"""The command line: ``python -m proofs_checks.checker``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .problem import fingerprint, read_problem
from .reading import check_head, parse_document
from .solution import examine

# Of a million jobs without a machine nobody reads the last.
_SPELLED_OUT = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        0 if everything holds, 1 if something does not, 2 if a file cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog="python -m proofs_checks.checker",
        description="Check a solution of a problem, or a plan, by the definition.",
    )
    parser.add_argument("problem", type=Path, help="a problem file, or a plan file alone")
    parser.add_argument("solution", type=Path, nargs="?", help="a solution file")
    options = parser.parse_args(arguments)
    paths = [options.problem, *([options.solution] if options.solution else [])]
    documents = []
    for path in paths:
        try:
            documents.append(parse_document(path.read_text(encoding="utf-8-sig")))
        except (OSError, ValueError) as fault:
            print(f"{path}: {fault}", file=sys.stderr)
            return 2
    try:
        plan = documents[0]
        if len(documents) == 1 and isinstance(plan, dict) and plan.get("format") == "cms-plan":
            check_head(plan, "plan")
            documents = [plan.get("problem"), plan.get("solution")]
        problem = read_problem(documents[0])
        words = f"the problem is well-formed, with the SHA-256 {fingerprint(problem)}"
        faults: list[str] = []
        if len(documents) == 2:
            faults, words = examine(problem, documents[1])
    except ValueError as fault:
        faults = [str(fault)]
    for sentence in faults[:_SPELLED_OUT] or [words]:
        print(f"{paths[-1]}: {sentence}", file=sys.stderr if faults else sys.stdout)
    if len(faults) > _SPELLED_OUT:
        print(f"{paths[-1]}: and {len(faults) - _SPELLED_OUT} faults more", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
