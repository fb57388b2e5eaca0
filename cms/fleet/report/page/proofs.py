"""What a proof is, in plain words, and how anyone can recheck it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ....certificate.certificate import BlockPrices
from ....solving.words import verdict
from ....values.words import at_least, count
from .parts import Commands, Part, Section

if TYPE_CHECKING:
    from ....problem.machine_problem import MachineProblem
    from ....solving.solution import Solution

__all__ = ["proof_section", "recheck"]


def proof_section(
    solution: Solution, problem: MachineProblem, machine: str, source: str, more: str = ""
) -> Section:
    """Say what the certificate of a solution proves, and how.

    Parameters
    ----------
    solution : Solution
    problem : MachineProblem
        The one it solves.
    machine : str
        What the machines are called.
    source : str
        The file it is in.
    more : str
        What else lies between the two bounds.
    """
    leaves = list(solution.certificate.leaves())
    parts: list[Part] = [f"{verdict(solution, machine)}."]
    if solution.status == "infeasible" and solution.proof == "checked":
        parts.append(
            f"The proof: prices under which the demands are worth more than all {machine}s there "
            "are, however they are cut."
        )
    elif solution.lower_bound > 0:
        shared = not isinstance(leaves[0], BlockPrices)
        what = "a function of what is put on an instance" if shared else "a price on every instance"
        parts.append(
            f"The proof of the bound: {what}, such that whatever a {machine} can be cut into is "
            f"worth at most what the {machine} costs. Whoever serves all must then pay at least "
            f"what each service pays at these prices where it is cheapest; together that is at "
            f"least {at_least(solution.lower_bound)}, rounded up to what {machine}s can cost."
        )
        if len(leaves) > 1:
            parts.append(
                f"It distinguishes {count(len(leaves), 'case')}, one of which every plan falls "
                "into; each has prices of its own."
            )
    if more:
        parts.append(f"{more[:1].upper()}{more[1:]}.")
    parts.append(
        "The schedule (each service gets its rate, each GPU can be cut so) and the proof were "
        "rechecked from the file before this page was made, in whole numbers and fractions. So can "
        "you; the second checker shares no code with the first and needs Python alone:"
    )
    parts.append(recheck(source or "plan.json"))
    parts.append(f"SHA-256 of the problem: {problem.sha256}")
    return Section("proof", "The proof", parts)


def recheck(*sources: str) -> Commands:
    """The two commands that recheck files."""
    names = shlex.join(sources)
    return Commands(
        (
            (f"cms check {names}", "everything the file says, exactly"),
            (f"cms-check {names}", "the same by an independent checker"),
        )
    )
