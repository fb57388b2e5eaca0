"""The command line: ``python -m proofs_checks.formal``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from proofs_checks.checker.interference import is_beside
from proofs_checks.checker.problem import Problem, fingerprint, problem_sha256, read_problem
from proofs_checks.checker.reading import Fault, as_a, check_head, number, parse_document, record

from .grammar import problem_document, read_words
from .program import KINDS, NotBuilt, verdicts
from .theorem import theorem
from .words import plan_words

_MEANING = {
    "rejected": "rejected: the schedule or the certificate does not hold",
    "infeasible": "infeasible: there is no schedule",
    "optimal": "optimal: the schedule is valid and costs {0}; no schedule costs less",
    "between": "between {0} and {1}: the schedule is valid and costs {1}; none costs less than {0}",
    "at least": "at least {0}: no schedule costs less than {0}",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        0 if the program proves what the document says, 1 if it does not, 2 if a file cannot be read
        or the program is not there.
    """
    parser = argparse.ArgumentParser(
        prog="python -m proofs_checks.formal",
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
    try:
        documents = [parse_document(path.read_text(encoding="utf-8-sig")) for path in paths]
    except (OSError, ValueError) as fault:
        print(f"{paths[-1]}: {fault}", file=sys.stderr)
        return 2
    try:
        problem, solution = _parts(documents)
        line = words_of(problem, solution)
        verdict = verdicts([line], options.integers)[0]
        missing = shortfall(solution, verdict)
    except NotBuilt as fault:
        print(fault, file=sys.stderr)
        return 2
    except CalledProcessError as fault:
        print(f"the program stopped: {fault.stderr.strip() or fault}", file=sys.stderr)
        return 2
    except ValueError as fault:
        print(f"{paths[-1]}: {fault}", file=sys.stderr)
        return 1
    if options.theorem and verdict != "rejected":
        print(theorem(read_words(line), verdict))
    else:
        print(f"{paths[-1]}: {said(verdict)}", file=sys.stderr if missing else sys.stdout)
    if missing:
        print(f"{paths[-1]}: {missing}", file=sys.stderr)
    return 1 if missing else 0


def _parts(documents: list[Any]) -> tuple[Problem, dict[str, Any]]:
    if len(documents) == 1:
        plan = documents[0]
        check_head(plan, "plan")
        if is_beside(plan):
            raise Fault("the plan counts with interference; the proved checker does not know it")
        documents = [plan.get("problem"), plan.get("solution")]
    check_head(documents[1], "solution")
    return read_problem(documents[0]), as_a(dict, documents[1], "the solution")


def words_of(problem: Problem, solution: dict[str, Any]) -> str:
    """The words of a solution, if a problem made of them again has the same digest.

    Raises
    ------
    Fault
        If that digest differs, the solution is about another problem, or a name is unknown.
    """
    sha256 = fingerprint(problem)
    certificate = record(solution.get("certificate"), "the certificate", "problem_sha256 tree")
    for digest in (solution.get("problem_sha256"), certificate["problem_sha256"]):
        if digest != sha256:
            raise Fault(f"the solution is about another problem; this one's SHA-256 is {sha256}")
    there = solution.get("status") in ("optimal", "feasible")
    line = plan_words(problem, solution.get("schedule") if there else None, certificate["tree"])
    names = list(problem.machine_types), problem.blocks, list(problem.jobs)
    if problem_sha256(problem_document(read_words(line), *names)) != sha256:
        raise Fault("the words for the program are not those of the problem: please report it")
    return line


def said(verdict: str) -> str:
    """Say in a sentence what a verdict means."""
    kind, *numbers = verdict.replace("at least", "at-least").split()
    return _MEANING[kind.replace("-", " ")].format(*numbers)


def shortfall(solution: dict[str, Any], verdict: str) -> str | None:
    """What a solution says that the verdict does not; None if the verdict says it all.

    A solver's word is not held against anything: what is proved beside it is.
    """
    if verdict == "rejected":
        return "nothing is proved"
    kind, *numbers = verdict.replace("at least", "at-least").split()
    found = [Fraction(text) for text in numbers]
    status, proof = solution.get("status"), solution.get("proof")
    if kind == "infeasible":
        return None if status == "infeasible" else f"the document says that it is {status}"
    if status == "infeasible" and proof == "checked":
        return "that there is no schedule is not proved"
    if status in ("optimal", "feasible") and kind == "at-least":
        return f"the document says that it is {status}, and has no schedule"
    if status == "optimal" and proof == "checked" and kind != "optimal":
        return "that no schedule costs less is not proved"
    if kind != "at-least" and number(solution.get("cost"), "the cost") != found[-1]:
        return f"the document says that the cost is {solution['cost']}"
    claimed = number(solution.get("lower_bound"), "the lower_bound", signed=True)
    if claimed > found[0]:
        return f"the document says that the lower bound is {claimed}"
    return None


if __name__ == "__main__":
    sys.exit(main())
