"""The command line of ``cms-check`` for folders."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from proofs_checks.checker.verdict import told, unreadable

from .check import examine, examine_problem, read_document


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of shards like 0:100")
    return int(match[1]), int(match[2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="cms-check",
        description="Check a solution folder of a problem folder, shard by shard, by the "
        "definition.",
    )
    parser.add_argument("problem", type=Path, help="a problem folder")
    parser.add_argument("solution", type=Path, nargs="?", help="a solution folder")
    parser.add_argument(
        "--shards", type=_range, metavar="A:B", help="read the files of these shards alone"
    )
    options = parser.parse_args(arguments)
    paths = [options.problem / "problem.json"]
    if options.solution is not None:
        paths.append(options.solution / "solution.json")
    documents = []
    for path in paths:
        try:
            documents.append(read_document(path))
        except (OSError, ValueError) as fault:
            return unreadable(path, fault)
    where, words = options.solution or options.problem, ""
    try:
        if len(documents) == 1:
            faults, words = examine_problem(options.problem, documents[0], options.shards)
        else:
            faults, words = examine(
                options.problem, documents[0], options.solution, documents[1], options.shards
            )
    except OSError as fault:
        return unreadable(where, fault)
    except ValueError as fault:
        faults = [str(fault)]
    return told(where, faults, words)


if __name__ == "__main__":
    sys.exit(main())
