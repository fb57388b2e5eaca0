"""Plans become JSON documents (format ``cms-plan``): everything to draw, replay or recheck one.

A plan embeds the documents of its problem and solution, so that both can be rechecked from it, the
services with their limits, the operating point behind every supply (processes, batch, throughput,
latency), the queueing rule and the device files. What each service gets and how each GPU is cut is
written out too, for programs that only want to read a plan.
"""

from __future__ import annotations

from typing import Any

from ...files.documents import head, number_to_json, write_document
from ...files.problems import problem_to_json
from ...files.solutions import solution_to_json
from ...files.source import StrPath
from ...problem.parts import Block
from ...shortages.shortage import Shortage
from .neighbour_files import interference_to_json
from .neighbours import NeighbourServing
from .part_files import (
    device_to_json,
    evidence_to_json,
    number_or_null,
    point_to_json,
    service_to_json,
)
from .plan import GpuGroup, Plan, ServicePlan
from .posed import Served
from .posing import AnyServing
from .serving_problem import ServingProblem
from .shared_files import shared_points_to_json, sharing_to_json
from .time_sharing import SharedServing

__all__ = ["group_to_json", "plan_to_json", "promise_to_json", "write_plan"]


def write_plan(plan: Plan, path: StrPath) -> None:
    """Write a plan to a JSON file.

    Parameters
    ----------
    plan : Plan
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, read_plan
    >>> serving = load_instance("S1").as_problem()
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
    >>> write_plan(Plan(serving, solve(serving.problem)), path)
    >>> read_plan(path).solution.machine_count
    2
    """
    write_document(lambda: plan_to_json(plan), path)


def plan_to_json(plan: Plan, shortage: Shortage | None = None) -> dict[str, Any]:
    """Turn a plan into the document that :func:`read_plan` reads.

    Parameters
    ----------
    plan : Plan
    shortage : Shortage, optional
        What would do, where there is no schedule; it goes into the solution.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, plan_to_json
    >>> serving = load_instance("S1").as_problem()
    >>> document = plan_to_json(Plan(serving, solve(serving.problem)))
    >>> document["format"], len(document["groups"])
    ('cms-plan', 2)
    """
    serving = plan.serving
    shared = isinstance(serving, SharedServing)
    return {
        **head("cms-plan"),
        **_terms_to_json(plan),
        "promise": promise_to_json(serving),
        "rate_margin": number_to_json(serving.rate_margin),
        "max_processes": serving.max_processes,
        "services": [_service_to_json(each, planned=shared) for each in plan.services],
        "operating_points": _points_to_json(serving),
        "groups": [group_to_json(group) for group in plan.groups],
        "warnings": list(serving.warnings),
        "unservable": dict(serving.unservable),
        "devices": [device_to_json(gpu) for gpu in serving.gpus],
        "problem": problem_to_json(serving.problem),
        "solution": solution_to_json(plan.solution, shortage),
    }


def _terms_to_json(plan: Plan) -> dict[str, Any]:
    serving = plan.serving
    if isinstance(serving, SharedServing):
        terms = sharing_to_json(serving.sharing)
        if isinstance(serving, NeighbourServing):
            terms["interference"] = interference_to_json(serving, plan.outer)
        return {"rule": None, "sharing": terms}
    return {"rule": serving.rule.to_json()}


def _points_to_json(serving: AnyServing) -> list[dict[str, Any]]:
    if isinstance(serving, SharedServing):
        return shared_points_to_json(serving)
    return [
        _point_to_json(serving, served, block)
        for service in serving.services
        for block in serving.problem.blocks
        for served in serving.served(service.name, block)
    ]


def _service_to_json(given: ServicePlan, *, planned: bool) -> dict[str, Any]:
    return {
        **service_to_json(given.service),
        **({"planned_rps": number_to_json(given.planned_rps)} if planned else {}),
        "provided_rps": number_to_json(given.provided_rps),
        "instances": given.instances,
    }


def _point_to_json(serving: ServingProblem, served: Served, block: Block) -> dict[str, Any]:
    point = served.point
    gpu, _ = serving.instance_of(block)
    return {
        "service": served.service,
        "block": block,
        "gpu": gpu,
        **point_to_json(point),
        "batch_ms": number_to_json(point.batch_ms),
        "fill_ms": {
            str(n): number_to_json(time)
            for n, time in serving.fill_times(served.service, block).times_ms.items()
        },
        **evidence_to_json(serving.rule, serving.service(served.service), point),
        "supply_rps": number_to_json(served.rate_rps),
    }


def promise_to_json(serving: AnyServing) -> dict[str, Any] | None:
    """Write what the plan may say of latencies; None if that is nothing."""
    promise = serving.promise
    if promise is None:
        return None
    return {
        "late_share": number_to_json(promise.late_share),
        "arrivals": promise.arrivals,
        "routing": promise.routing,
        "queue": promise.queue,
        "rate_margin": number_to_json(promise.rate_margin),
    }


def group_to_json(group: GpuGroup) -> dict[str, Any]:
    """Write GPUs that are cut alike; a service and a block lead to the operating point."""
    return {
        "gpu": group.gpu,
        "count": group.count,
        "instances": [
            {
                "block": each.block,
                "profile": each.profile,
                "count": each.count,
                **({} if (frame := each.frame_ms) is None else {"frame_ms": number_to_json(frame)}),
                "serves": [_served_to_json(one) for one in each.serves],
            }
            for each in group.instances
        ],
    }


def _served_to_json(served: Served) -> dict[str, Any]:
    return {
        "service": served.service,
        "processes": served.point.processes,
        "batch": served.point.batch,
        **({} if (slot := served.length_ms) is None else {"length_ms": number_to_json(slot)}),
        "rate_rps": number_to_json(served.rate_rps),
        "slack_ms": number_or_null(served.slack_ms),
    }
