"""What is to run: numbers of instances of each kind, and of GPUs of each type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ...errors import InvalidProblem
from ...problem.parts import GroupLimit
from ..hardware import Gpu
from ..serving.plan import Plan, PlanGroup
from ..serving.queueing import QueueingRule
from ..serving.service import Service
from .instance import Kind, Work

_UNSHARED = "plan without --time-sharing; 'cms replan --time-sharing' follows rates with such plans"


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What a plan promises of a deployment.

    Instances of one kind can stand for each other, wherever they are; which of them share a GPU is
    not part of it.

    `counts`: In the order of services, GPUs, profiles; each at least 1. `gpus`: How many GPUs of
    each type the plan uses, by key. `devices`: The GPUs by key. `plan`: Where it comes from.
    `prices`: What a GPU of a machine type of the plan costs, by name, which is the GPU's key unless
    the plan is for GPUs that are there; by default 1. `max_gpus`: The most GPUs of a type that may
    be used, by key; `group_limits`: of several machine types together. `budget`: A cost and a
    number of GPUs that may be used to keep more; None: no more than the least. `routing`: How
    requests are spread over the instances of a service.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan
    >>> serving = load_instance("S1").build_problem()
    >>> wanted = desired_state(Plan(serving, solve(serving.problem)))
    >>> wanted.gpus, sum(wanted.counts.values()) >= len(wanted.services)
    ({'a100-80gb': 2}, True)
    """

    counts: Mapping[Kind, int]
    gpus: Mapping[str, int]
    devices: Mapping[str, Gpu]
    services: tuple[Service, ...]
    rule: QueueingRule | None
    plan: Plan | None = None
    prices: Mapping[str, Fraction] = field(default_factory=dict)
    max_gpus: Mapping[str, int] = field(default_factory=dict)
    budget: tuple[Fraction, int] | None = None
    group_limits: tuple[GroupLimit, ...] = ()
    routing: str = "weighted"


def desired_state(plan: Plan) -> DesiredState:
    """Return what a plan promises.

    Blocks that idle are not part of it: whatever stands there then is as good.

    InvalidProblem if it has no schedule, so that nothing can be placed. UnsupportedProblem if
    services share its instances in time.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan
    >>> serving = load_instance("S1").build_problem()
    >>> desired_state(Plan(serving, solve(serving.problem))).gpus
    {'a100-80gb': 2}
    """
    serving = plan.unshared("placing", _UNSHARED)
    if plan.solution.cost is None:
        raise InvalidProblem(
            f"the plan has no schedule ({plan.solution.status}), so that there is nothing to place"
        )
    types = serving.problem.machine_types
    counts: Counter[Kind] = Counter()
    gpus: Counter[str] = Counter()
    for group in plan.groups:
        gpus[group.gpu] += group.count
        for kind, held in kinds_of(group).items():
            counts[kind] += held * group.count
    return DesiredState(
        {kind: counts[kind] for kind in sorted(counts, key=lambda kind: kind.order)},
        dict(sorted(gpus.items())),
        {gpu.key: gpu for gpu in serving.gpus},
        serving.services,
        serving.rule,
        plan,
        {each.name: each.cost for each in types},
        {each.name: n for each in types if (n := each.limit) is not None and not serving.available},
        group_limits=serving.problem.group_limits,
        routing=plan.routing,
    )


def kinds_of(group: PlanGroup) -> Counter[Kind]:
    """Count what serves on a GPU of a plan's group, by kind; what idles is left out."""
    found: Counter[Kind] = Counter()
    for each in group.instances:
        for served in each.serves:
            work = Work(served.service, served.point, served.rate_rps)
            found[Kind(group.gpu, each.profile, work)] += each.count
    return found
