"""Shortages as JSON: what an infeasible solution's document says about what would do.

A document has the figures alone, not the schedules and certificates behind them: whoever doubts
them raises the limits, or lowers the demands, and solves again.
"""

from __future__ import annotations

from typing import Any

from ..problem.machine_problem import MachineProblem
from ..shortages.shortage import Shortage
from ..solving.solution import Proof
from .layout import number_to_json
from .node import Node
from .wording import one_of

_KEYS = (
    *("unservable", "more_machines", "machines_at_least", "machines_proof"),
    *("less_demand", "too_much_demand", "demand_proof", "seconds"),
)


def shortage_to_json(shortage: Shortage) -> dict[str, Any]:
    """Turn a shortage into the object of that name in a solution's document."""
    more, too_much = shortage.more_machines, shortage.too_much_demand
    return {
        "unservable": {job: list(blocks) for job, blocks in shortage.unservable.items()},
        "more_machines": None if more is None else dict(more),
        "machines_at_least": shortage.machines_at_least,
        "machines_proof": shortage.machines_proof.value,
        "less_demand": number_to_json(shortage.less_demand),
        "too_much_demand": None if too_much is None else number_to_json(too_much),
        "demand_proof": shortage.demand_proof.value,
        "seconds": shortage.seconds,
    }


def refuse_malformed_shortage(node: Node) -> None:
    """Check the form of a shortage, and that its figures can be true together.

    Raises
    ------
    FileError
        Naming the value at fault.
    """
    fields = node.object(_KEYS)
    for _, blocks in fields["unservable"].names("job"):
        for block in blocks.array():
            block.name("block")
    more = fields["more_machines"]
    found = None
    if more.value is not None:
        found = sum(number.integer(minimum=1) for _, number in more.names("machine type"))
    at_least = fields["machines_at_least"].integer()
    if found is not None and found < at_least:
        raise fields["machines_at_least"].wrong(f"at most {found}, the machines that would do")
    share, too_much = fields["less_demand"].number(), fields["too_much_demand"].number_or_null()
    if share > 1:
        raise fields["less_demand"].wrong("a number from 0 to 1")
    if too_much is not None and too_much <= share:
        raise fields["too_much_demand"].wrong(f"more than {number_to_json(share)}, which would do")
    for name in ("machines_proof", "demand_proof"):
        fields[name].one_of(list(Proof))
    fields["seconds"].number()


def refuse_other_shortage(node: Node, problem: MachineProblem) -> None:
    """Check that a shortage is about the jobs, blocks and machine types of a problem.

    Raises
    ------
    FileError
        Naming what the problem does not have.
    """
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
