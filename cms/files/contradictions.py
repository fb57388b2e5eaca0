"""What a solution says twice must agree; no problem is needed to see that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from ..plugin.guarantee import Verdict
from ..solving.solution import Proof, Solution, Status, StopReason
from ..values.numbers import shown
from .node import Node

_PROOFS = {
    Status.OPTIMAL: (Proof.CHECKED, Proof.SOLVER),
    Status.INFEASIBLE: (Proof.CHECKED, Proof.SOLVER),
    Status.FEASIBLE: (Proof.NONE,),
    Status.NO_SCHEDULE: (Proof.NONE,),
}


def refuse_contradictions(fields: Mapping[str, Node], solution: Solution) -> None:
    """Compare the parts of a solution with each other.

    Parameters
    ----------
    fields : Mapping of str to Node
        The values of the document, to point at.
    solution : Solution
        What they say.

    Raises
    ------
    FileError
        At the first value that cannot be true beside the others. Whether they *are* true is for
        ``cms check``, which has the problem.
    """
    _schedule(fields, solution)
    _bounds(fields, solution)
    _guarantee(fields["guarantee"], solution)
    _history(fields["history"], solution)


def _schedule(fields: Mapping[str, Node], solution: Solution) -> None:
    since = f'since the status is "{solution.status}"'
    has_schedule = solution.status in (Status.OPTIMAL, Status.FEASIBLE)
    if has_schedule and solution.cost is None:
        raise fields["cost"].wrong(f"a number, {since}")
    if not has_schedule and solution.cost is not None:
        raise fields["cost"].wrong(f"null, {since}")
    if not has_schedule and solution.schedule != type(solution.schedule)():
        raise fields["schedule"].error(
            f"{fields['schedule'].label} has machines", expected=f"none, {since}"
        )
    fields["machine_count"].agree(solution.machine_count, "the machines of the schedule")
    fields["gap"].agree(solution.gap, "the cost less the lower bound")
    if solution.proof not in (possible := _PROOFS[solution.status]):
        words = " or ".join(f'"{proof}"' for proof in possible)
        raise fields["proof"].wrong(f"{words}, {since}")
    if solution.stop_reason is StopReason.PROVED and solution.proof is not Proof.CHECKED:
        raise fields["stop_reason"].wrong(
            f'another reason, since the proof is "{solution.proof}", not "checked"'
        )


def _bounds(fields: Mapping[str, Node], solution: Solution) -> None:
    cost, claimed = solution.cost, solution.claimed_bound
    if cost is None:
        return
    if claimed is not None and claimed > cost:
        raise fields["claimed_bound"].wrong(f"at most {shown(cost)}, the cost of the schedule")
    if solution.status is not Status.OPTIMAL:
        return
    if solution.proof is Proof.CHECKED and solution.lower_bound != cost:
        raise fields["lower_bound"].wrong(
            f"{shown(cost)}, the cost of the schedule that is said to be proved optimal"
        )
    if solution.proof is Proof.SOLVER and claimed is None:
        raise fields["claimed_bound"].wrong(
            "the bound by which a solver claims that the schedule is optimal"
        )


def _guarantee(node: Node, solution: Solution) -> None:
    given, cost = solution.guarantee, solution.cost
    if given is None:
        return
    if cost is None:
        raise node.error(f"{node.label} has a verdict", expected="null, since there is no schedule")
    if given.verdict is Verdict.VERIFIED:
        allowed = given.guarantee.allows(solution.lower_bound)
        if cost > allowed:
            raise node.at("verdict").error(
                f'{node.at("verdict").label} is "verified", but the cost {shown(cost)} is '
                f"more than factor x lower_bound + additive = {shown(allowed)}",
                expected='"open"',
            )


def _history(node: Node, solution: Solution) -> None:
    """Costs fall and bounds rise, towards those of the solution."""
    costs = [(at, line.cost) for at, line in enumerate(solution.history) if line.cost is not None]
    if solution.cost is None and costs:
        raise node.at(costs[0][0]).at("cost").wrong("null, since the solution has no cost")
    _require_order(node, "cost", costs, solution.cost, sign=-1)
    bounds = [(at, line.lower_bound) for at, line in enumerate(solution.history)]
    # Without a schedule, the bound that proves so may lie below one that was found before it.
    last = None if solution.cost is None else solution.lower_bound
    _require_order(node, "lower_bound", bounds, last, sign=1)


def _require_order(
    node: Node, key: str, values: list[tuple[int, Fraction]], last: Fraction | None, *, sign: int
) -> None:
    """Values of the lines they stand in may only rise (fall, if the sign is -1) to the last."""
    words = ("least", "most")[::sign]
    for (_, before), (at, after) in pairwise(values):
        if sign * (after - before) < 0:
            raise (
                node.at(at).at(key).wrong(f"at {words[0]} {shown(before)}, as in the line before")
            )
    if last is not None and values and sign * (last - values[-1][1]) < 0:
        at = values[-1][0]
        raise node.at(at).at(key).wrong(f"at {words[1]} {shown(last)}, the solution's")
