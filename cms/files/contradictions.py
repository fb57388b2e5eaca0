"""What a solution says twice must agree; no problem is needed to see that it does not."""

from __future__ import annotations

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


def refuse_contradictions(node: Node, solution: Solution) -> None:
    """Compare the parts of a solution, and point at the first value that cannot be true.

    Whether they *are* true is for ``cms check``, which has the problem.
    """
    status, proof, cost = solution.status, solution.proof, solution.cost
    claimed, since = solution.claimed_bound, f'since the status is "{status}"'
    has_schedule = status in (Status.OPTIMAL, Status.FEASIBLE)
    if has_schedule != (cost is not None):
        raise node.at("cost").wrong(f"{'a number' if has_schedule else 'null'}, {since}")
    if not has_schedule and solution.schedule != type(solution.schedule)():
        raise node.at("schedule").error(
            f"{node.at('schedule').label} has machines", expected=f"none, {since}"
        )
    node.at("machine_count").agree(solution.machine_count, "the machines of the schedule")
    node.at("gap").agree(solution.gap, "the cost less the lower bound")
    if proof not in _PROOFS[status]:
        words = " or ".join(f'"{possible}"' for possible in _PROOFS[status])
        raise node.at("proof").wrong(f"{words}, {since}")
    if solution.stop_reason is StopReason.PROVED and proof is not Proof.CHECKED:
        raise node.at("stop_reason").wrong(
            f'another reason, since the proof is "{proof}", not "checked"'
        )
    if cost is not None and claimed is not None and claimed > cost:
        raise node.at("claimed_bound").wrong(f"at most {shown(cost)}, the cost of the schedule")
    if cost is not None and status is Status.OPTIMAL:
        if proof is Proof.CHECKED and solution.lower_bound != cost:
            raise node.at("lower_bound").wrong(
                f"{shown(cost)}, the cost of the schedule that is said to be proved optimal"
            )
        if proof is Proof.SOLVER and claimed is None:
            raise node.at("claimed_bound").wrong(
                "the bound by which a solver claims that the schedule is optimal"
            )
    _guarantee(node.at("guarantee"), solution)
    _history(node.at("history"), solution)


def _guarantee(node: Node, solution: Solution) -> None:
    given, cost = solution.guarantee, solution.cost
    if given is None:
        return
    if cost is None:
        raise node.error(f"{node.label} has a verdict", expected="null, since there is no schedule")
    allowed = given.guarantee.allows(solution.lower_bound)
    if given.verdict is Verdict.VERIFIED and cost > allowed:
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
            expected = f"at {words[0]} {shown(before)}, as in the line before"
            raise node.at(at).at(key).wrong(expected)
    if last is not None and values and sign * (last - values[-1][1]) < 0:
        expected = f"at {words[1]} {shown(last)}, the solution's"
        raise node.at(values[-1][0]).at(key).wrong(expected)
