"""Why a plan is impossible, in the words of the people who asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .words import decimal

if TYPE_CHECKING:
    from ..serving import Plan


def reasons(plan: Plan) -> tuple[str, ...]:
    """Say why an infeasible plan is infeasible.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    tuple of str
        One sentence for each service that nothing can serve within its limit; if there is none,
        the GPUs are too few, and one sentence says so. Empty if the plan is not infeasible.
    """
    if plan.solution.status != "infeasible":
        return ()
    serving = plan.serving
    if serving.unservable:
        return tuple(serving.unservable.values())
    limited = [
        f"{decimal(machine.limit)} x {machine.name}"
        for machine in serving.problem.machine_types
        if machine.limit is not None
    ]
    only = " and ".join(limited)
    return (
        f"each service could be served by itself, but not all of them on only {only}: allow more "
        "(--max-gpus), lower the rates or relax the latency limits",
    )
