"""Shortages as JSON: what an infeasible solution's document says about what would do.

A document has the figures alone, not the schedules and certificates behind them: whoever doubts
them raises the limits, or lowers the demands, and solves again.
"""

from __future__ import annotations

from typing import Any

from ..problem.machine_problem import MachineProblem
from ..shortages.shortage import Shortage
from ..solving.solution import Proof
from . import fields as f
from .layout import number_to_json
from .node import Node
from .wording import one_of

_SHORTAGE = {
    "unservable": f.table("job", f.array(f.name("block"))),
    "more_machines": f.nullable(f.table("machine type", f.AT_LEAST_ONE)),
    "machines_at_least": f.COUNT,
    "machines_proof": f.choice(Proof),
    "less_demand": f.NUMBER,
    "too_much_demand": f.nullable(f.NUMBER),
    "demand_proof": f.choice(Proof),
    "seconds": f.SECONDS,
}


def shortage_to_json(shortage: Shortage) -> dict[str, Any]:
    """Turn a shortage into the object of that name in a solution's document."""
    return f.write_object(shortage, _SHORTAGE)


def refuse_malformed_shortage(node: Node) -> None:
    """Check the form of a shortage, and that its figures can be true together."""
    told = f.read_object(node, _SHORTAGE)
    more, share, too_much = (
        told[key] for key in ("more_machines", "less_demand", "too_much_demand")
    )
    if more is not None and sum(more.values()) < told["machines_at_least"]:
        raise node.at("machines_at_least").wrong(
            f"at most {sum(more.values())}, the machines that would do"
        )
    if share > 1:
        raise node.at("less_demand").wrong("a number from 0 to 1")
    if too_much is not None and too_much <= share:
        raise node.at("too_much_demand").wrong(f"more than {number_to_json(share)}, which would do")


def refuse_other_shortage(node: Node, problem: MachineProblem) -> None:
    """Check that a shortage is about the jobs, blocks and machine types of a problem."""
    jobs, blocks = set(problem.job_names), dict.fromkeys(problem.blocks)
    for job, entry in node.at("unservable").entries():
        if job not in jobs:
            raise entry.error(
                f"{entry.label} is about a job that the problem does not have", at_key=True
            )
        for block in entry.array():
            block.one_of(blocks)
    more = node.at("more_machines")
    types = dict.fromkeys(machine.name for machine in problem.machine_types)
    for machine, number in more.entries() if more.value is not None else ():
        if machine not in types:
            raise number.error(
                f"{number.label} is about a machine type that the problem does not have",
                expected=one_of(types),
                at_key=True,
            )
