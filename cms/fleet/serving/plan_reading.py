"""Plans are read from JSON documents; their parts must agree with each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ...errors import CmsError
from ...files.documents import check_head, read_document
from ...files.node import Node
from ...files.numerals import is_whole
from ...files.problems import problem_from_json
from ...files.solutions import solution_from_json
from ...files.source import StrPath
from ...problem.machine_problem import MachineProblem
from ...problem.parts import Block
from ...problem.problem import Problem
from ...referee.kinds import check
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ..hardware import Gpu
from ..hardware.catalogue import described_device
from .fills import FillTimes
from .load_curve import LoadCurve, PointKey, key_of
from .neighbour_files import neighbours_from_json, outer_from_json
from .neighbours import NeighbourServing
from .operating_point import OperatingPoint
from .part_files import (
    POINT_KEYS,
    SERVICE_KEYS,
    evidence_to_json,
    point_from_json,
    service_from_json,
)
from .plan import Plan
from .plan_terms import refuse_other_terms
from .plan_writing import group_to_json
from .posing import AnyServing
from .queueing import QueueingRule
from .rule_files import curve_from_json, rule_from_json
from .service import Service
from .serving_problem import ServingProblem
from .shared_files import (
    points_from_json,
    refuse_other_points,
    refuse_other_rates,
    sharing_from_json,
)
from .time_sharing import SharedServing

T = TypeVar("T")
#: Something for each service and block that go together.
_Of: TypeAlias = FrozenMap[tuple[str, Block], T]

__all__ = ["plan_from_json", "read_plan"]


def read_plan(path: StrPath, *, rule: QueueingRule | None = None) -> Plan:
    """Read a plan from a JSON file.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.
    rule : QueueingRule, optional
        The rule of a plan that was made with a rule of one's own.

    Returns
    -------
    Plan
        Its schedule is checked again; the certificate is what ``cms check`` rechecks.

    Raises
    ------
    FileError
        With line and column, if the file is no plan or its parts contradict each other.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem, write_plan
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=100)
    >>> serving = as_problem(
    ...     [service], [OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "60.5", 33)]
    ... )
    >>> plan = Plan(serving, solve(serving.problem))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
    >>> write_plan(plan, path)
    >>> read_plan(path) == plan
    True
    """
    return plan_from_json(read_document(path, "cms-plan"), rule=rule)


def plan_from_json(document: Node | Mapping[str, Any], *, rule: QueueingRule | None = None) -> Plan:
    """Turn a parsed document into a plan.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.
    rule : QueueingRule, optional
        The rule of a plan that was made with a rule of one's own.

    Raises
    ------
    FileError
        If a part is missing or wrong, or the parts contradict each other.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, plan_to_json
    >>> serving = load_instance("S1").as_problem()
    >>> plan = Plan(serving, solve(serving.problem))
    >>> plan_from_json(plan_to_json(plan)) == plan
    True
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, "cms-plan")
    fields = node.object(
        (
            "format", "schema", "rule", "promise", "rate_margin", "max_processes", "services",
            "operating_points", "groups", "warnings", "unservable", "devices", "problem",
            "solution",
        ),
        ("sharing",),
    )  # fmt: skip
    problem = problem_from_json(fields["problem"])
    gpus = tuple(described_device(entry) for entry in fields["devices"].array())
    machines = [machine.name for machine in problem.machine_types]
    _require_same(fields["devices"], [gpu.key for gpu in gpus], machines)
    terms = None if "sharing" not in fields else fields["sharing"].value
    more = () if terms is None else ("planned_rps",)
    services = tuple(_service(entry, more) for entry in fields["services"].array())
    _require_same(fields["services"], [each.name for each in services], problem.job_names)
    _require_blocks(fields["problem"], problem, gpus)
    serving: AnyServing
    if isinstance(problem, TimeSharedProblem) and terms is not None:
        serving = _shared(fields, problem, services, gpus)
    elif isinstance(problem, Problem) and terms is None:
        serving = _alone(fields, problem, services, gpus, rule)
    else:
        other = "share blocks in time" if terms is None else "have blocks of their own"
        raise fields["problem"].error(
            f"in {fields['problem'].label} jobs {other}",
            expected='what "sharing" of the plan says: '
            + ("nothing, so a service a block" if terms is None else "sharing in time"),
        )
    refuse_other_terms(fields, serving)
    solution = solution_from_json(fields["solution"])
    for violation in check(problem, solution.schedule) if solution.cost is not None else ():
        raise fields["solution"].error(f"{fields['solution'].label} is not valid: {violation}")
    outer = outer_from_json(fields, serving) if isinstance(serving, NeighbourServing) else None
    try:
        plan = Plan(serving, solution, outer)
    except CmsError as fault:
        raise fields["solution"].error(f"{fields['solution'].label}: {fault}") from None
    _require_derived(fields, plan)
    return plan


def _alone(
    fields: Mapping[str, Node],
    problem: Problem,
    services: tuple[Service, ...],
    gpus: tuple[Gpu, ...],
    rule: QueueingRule | None,
) -> ServingProblem:
    """Read what a plan of instances that serve one service each was made from."""
    margin = fields["rate_margin"].number()
    for entry, job in zip(fields["services"].array(), problem.jobs, strict=True):
        entry.at("rate_rps").agree(job.demand / (1 + margin), "as in the problem")
    points, fills, curves = _points(fields["operating_points"], problem, services)
    serving = ServingProblem(
        problem=problem,
        services=services,
        gpus=gpus,
        rule=rule_from_json(fields["rule"], rule, curves),
        points=points,
        warnings=tuple(entry.text() for entry in fields["warnings"].array()),
        unservable=_unservable(fields["unservable"]),
        max_processes=fields["max_processes"].or_null(lambda it: it.integer(1)),
        fills=fills,
        rate_margin=margin,
    )
    promise = serving.promise
    terms = (
        None
        if promise is None
        else {each.name: getattr(promise, each.name) for each in dataclasses.fields(promise)}
    )
    fields["promise"].agree(terms, "what the rule promises")
    _require_supplies(fields["operating_points"], serving)
    return serving


def _shared(
    fields: Mapping[str, Node],
    problem: TimeSharedProblem,
    services: tuple[Service, ...],
    gpus: tuple[Gpu, ...],
) -> SharedServing:
    """Read what a plan of instances that services share in time was made from."""
    fields["rule"].agree(None, "since the rule of frames stands in sharing")
    fields["promise"].agree(None, "since the rules of frames are for evenly spaced arrivals")
    sharing = sharing_from_json(fields["sharing"])
    serving = SharedServing(
        problem=problem,
        services=services,
        gpus=gpus,
        sharing=sharing,
        points=points_from_json(fields["operating_points"], problem),
        warnings=tuple(entry.text() for entry in fields["warnings"].array()),
        unservable=_unservable(fields["unservable"]),
        max_processes=fields["max_processes"].or_null(lambda it: it.integer(1)),
        rate_margin=fields["rate_margin"].number(),
    )
    refuse_other_rates(fields, serving)
    refuse_other_points(fields["operating_points"], serving)
    alone = fields["sharing"].value.get("interference") is None
    return serving if alone else neighbours_from_json(fields, serving)


def _unservable(node: Node) -> FrozenMap[str, str]:
    return FrozenMap({name: entry.text() for name, entry in node.entries()})


def _service(node: Node, more: Sequence[str]) -> Service:
    keys = (*SERVICE_KEYS, "provided_rps", "instances", *more)
    return service_from_json(node, node.object(keys))


def _points(
    node: Node, problem: Problem, services: Iterable[Service]
) -> tuple[_Of[tuple[OperatingPoint, ...]], _Of[FillTimes], dict[PointKey, LoadCurve]]:
    names = dict.fromkeys(service.name for service in services)
    blocks = dict.fromkeys(problem.blocks)
    points: dict[tuple[str, Block], tuple[OperatingPoint, ...]] = {}
    fills: dict[tuple[str, Block], FillTimes] = {}
    curves: dict[PointKey, LoadCurve] = {}
    for entry in node.array():
        fields = entry.object(
            (
                *POINT_KEYS, "service", "block", "gpu", "batch_ms", "fill_ms", "evidence",
                "load_curve", "supply_rps",
            )
        )  # fmt: skip
        pair = fields["service"].one_of(names), fields["block"].one_of(blocks)
        if pair in points:
            raise entry.error(f"{entry.label} is the second point of {pair[0]!r} on {pair[1]}")
        points[pair] = (point := point_from_json(entry, fields),)
        fills[pair] = _fill_times(fields["fill_ms"], point)
        if fields["load_curve"].value is not None:
            curve = curve_from_json(fields["load_curve"])
            if curves.setdefault(key_of(point), curve) != curve:
                raise fields["load_curve"].error(
                    f"{fields['load_curve'].label} is the second load curve of {point}",
                    expected="one a point",
                )
    return FrozenMap(points), FrozenMap(fills), curves


def _fill_times(node: Node, point: OperatingPoint) -> FillTimes:
    """Read T(n); the smaller batches are what was measured, the full one follows."""
    times = {}
    for written, entry in node.entries():
        if written.startswith("x-"):  # a key of the user's own
            continue
        if not (is_whole(written) and written == str(int(written))):
            raise entry.error(
                f"{node.label} has the key {written!r}", expected="a number of requests",
                at_key=True,
            )  # fmt: skip
        times[int(written)] = entry.number()
    if not times or 0 in times or list(times)[-1] != point.batch:
        raise node.wrong(f"times of 1 or more requests, the last of {point.batch}, the batch")
    try:
        return FillTimes(times)
    except CmsError as fault:
        raise node.refused(fault) from None


def _require_supplies(node: Node, serving: ServingProblem) -> None:
    """Every supply of the problem has a point, and is what the rule makes of that point."""
    for entry in node.array():
        name, block = entry.at("service").text(), entry.at("block").text()
        stated, rule = entry.at("supply_rps"), serving.rule
        stated.agree(serving.supply(name, block), "as in the problem")
        (point,) = serving.points[name, block]
        stated.agree(rule.supply(serving.service(name), point), f"by the rule {rule.name!r}")
        found = evidence_to_json(rule, serving.service(name), point)
        entry.at("evidence").agree(found["evidence"], f"by the rule {rule.name!r}")
        if found["load_curve"] is None:
            entry.at("load_curve").agree(None, f"by the rule {rule.name!r}")
        elif entry.at("load_curve").value is None:
            raise entry.at("load_curve").wrong("a load curve, as other services have of this point")
        entry.at("gpu").agree(serving.instance_of(block)[0], f"where {block} is")
    for service in serving.services:
        for block in serving.problem.blocks:
            pair = service.name, block
            if serving.supply(*pair) and pair not in serving.points:
                raise node.error(
                    f"{node.label}: there is no point of service {service.name!r} on {block}",
                    expected="one, since the problem says that it serves it",
                )


def _require_blocks(node: Node, problem: MachineProblem, gpus: Sequence[Gpu]) -> None:
    """Several GPU types qualify their blocks; what stands before the colon must be one of them."""
    keys = [gpu.key for gpu in gpus]
    for block in problem.blocks if len(keys) > 1 else ():
        if block.partition(":")[0] not in keys or ":" not in block:
            raise node.at("blocks").error(
                f"{node.label} has the block {block!r}",
                expected=f'a GPU\'s key, ":" and a profile, where the keys are {", ".join(keys)}',
            )


def _require_same(node: Node, found: Sequence[str], wanted: Sequence[str]) -> None:
    if list(found) != list(wanted):
        expected = f"{', '.join(wanted)}, as in the problem"
        raise node.error(f"{node.label} are {', '.join(found)}", expected=expected)


def _require_derived(fields: Mapping[str, Node], plan: Plan) -> None:
    """Compare what is written out for readers with what the solution says."""
    for entry, given in zip(fields["services"].array(), plan.services, strict=True):
        entry.at("provided_rps").agree(given.provided_rps, "what its instances supply")
        entry.at("instances").agree(given.instances, "as the solution has")
    shared = isinstance(plan.serving, SharedServing)
    for entry in () if shared else fields["operating_points"].array():
        (point,) = plan.serving.points[entry.at("service").text(), entry.at("block").text()]
        entry.at("batch_ms").agree(point.batch_ms, "processes x batch / throughput")
        entry.at("fill_ms").at(str(point.batch)).agree(point.batch_ms, "as batch_ms")
    groups = [group_to_json(group) for group in plan.groups]
    fields["groups"].agree(groups, "as the solution has")
