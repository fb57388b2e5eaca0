"""The command line: ``cms-check --proved``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from proofs_checks.checker.interference import is_beside, refuse_classes
from proofs_checks.checker.problem import Problem, fingerprint, problem_sha256, read_problem
from proofs_checks.checker.reading import Fault, check_head, parse_document
from proofs_checks.checker.schedule import Group
from proofs_checks.checker.solution import examine
from proofs_checks.checker.usable import round_up
from proofs_checks.checker.verdict import printable, unreadable

from .forms import read_words
from .program import KINDS, NotBuilt, verdicts
from .theorem import theorem
from .words import plan_words, problem_document

_MEANING = {
    "Rejected": "rejected: the schedule or the certificate does not hold",
    "Infeasible": "infeasible: there is no schedule",
    "Optimal": "optimal: the schedule is valid and costs {0}; no schedule costs less",
    "Between": "between {0} and {1}: the schedule is valid and costs {1}; none costs less than {0}",
    "AtLeast": "at least {0}: no schedule costs less than {0}",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="cms-check --proved",
        description="Check a plan, or a solution of a problem, by the checker that is proved in "
        "Coq.",
    )
    parser.add_argument("problem", type=Path, help="a plan file, or a problem file")
    parser.add_argument("solution", type=Path, nargs="?", help="a solution file")
    parser.add_argument(
        "--integers", choices=KINDS, default=KINDS[0], help="zarith's, or Coq's own (slower)"
    )
    parser.add_argument(
        "--theorem", action="store_true", help="print the verdict as a theorem for Coq instead"
    )
    options = parser.parse_args(arguments)
    paths = [options.problem, *([options.solution] if options.solution else [])]
    documents = []
    for path in paths:
        try:
            documents.append(parse_document(path.read_text(encoding="utf-8-sig")))
        except (OSError, ValueError) as fault:
            return unreadable(path, fault)
    line = verdict = ""

    def prove(
        problem: Problem, groups: Sequence[Group] | None, tree: object
    ) -> tuple[Sequence[str], Fraction | None]:
        nonlocal line, verdict
        line = words_of(problem, groups, tree)
        verdict = verdicts([line], options.integers)[0]
        return proved(problem, verdict)

    try:
        missing, _ = examine(*_parts(documents), prove)
    except NotBuilt as fault:
        print(fault, file=sys.stderr)
        return 2
    except CalledProcessError as fault:
        print(f"the program stopped: {fault.stderr.strip() or fault}", file=sys.stderr)
        return 2
    except ValueError as fault:
        print(printable(f"{paths[-1]}: {fault}"), file=sys.stderr)
        return 1
    if options.theorem and verdict not in ("", "Rejected"):
        print(theorem(read_words(line), verdict))
    elif verdict:
        print(
            printable(f"{paths[-1]}: {said(verdict)}"), file=sys.stderr if missing else sys.stdout
        )
    for sentence in missing:
        print(printable(f"{paths[-1]}: {sentence}"), file=sys.stderr)
    return 1 if missing else 0


def _parts(documents: list[Any]) -> tuple[Problem, object]:
    if len(documents) == 1:
        plan = documents[0]
        check_head(plan, "plan")
        if is_beside(plan):
            raise Fault("the plan counts with interference; the proved checker does not know it")
        problem = read_problem(plan.get("problem"))
        refuse_classes(problem)
        return problem, plan.get("solution")
    return read_problem(documents[0]), documents[1]


def words_of(problem: Problem, groups: Sequence[Group] | None, tree: object) -> str:
    """The words of a plan, if a problem made of them again has the same digest."""
    line = plan_words(problem, groups, tree)
    if problem_sha256(problem_document(read_words(line).problem, problem)) != fingerprint(problem):
        raise Fault("the words for the program are not those of the problem: please report it")
    return line


def said(verdict: str) -> str:
    """Say in a sentence what a verdict means."""
    kind, *numbers = verdict.split()
    return _MEANING[kind].format(*numbers)


def proved(problem: Problem, verdict: str) -> tuple[Sequence[str], Fraction | None]:
    """What a verdict says, for the second checker to hold a document's claims against."""
    kind, *numbers = verdict.split()
    if kind == "Rejected":
        return ["nothing is proved"], None
    least = Fraction(numbers[0]) if numbers else None
    # The second checker rounds up what is proved: only to what is proved already.
    if least is not None and round_up(problem, least) != least:
        raise Fault(f"the second checker rounds {least} up, the proved one does not: report it")
    return [], least


if __name__ == "__main__":
    sys.exit(main())
