"""Of all plans at the least cost, the one that keeps most of what runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import inf
from typing import ClassVar

from ...errors import AlgorithmError, CmsError, InvalidOption
from ...solving.solution import Proof
from ...values.numbers import shown
from ..deployment.model import Deployment
from ..deployment.recounting import recounted
from ..deployment.wanted import DesiredState, desired_state
from ..serving.plan import Plan
from .constraints import PlacementConstraints, placement_constraints
from .infeasibility import PlacementInfeasible, explain_infeasibility
from .placement import TOO_LATE, build_result, price_constraints, require_same_devices
from .placement_result import GpuCost, PlacementResult
from .plan_bound import PlanBound
from .plan_space import PlanModel, PlanSpace, find_plans, works_of
from .program import Limits

__all__ = ["Nearest", "nearest"]

#: The share of the time left that is searched; what was chosen is put on GPUs in the rest.
_SEARCH = 0.9
#: Nodes of a search for plans that cost less than the one that was made.
_NODES = 2000


@dataclass(frozen=True)
class Nearest(PlacementResult):
    """The plan near what runs, and where it lies.

    Its `wanted` has instances at today's points among the plan's; it is for a transition. That
    `kept` is the most is said of all plans at this cost, on as many GPUs.

    Attributes
    ----------
    blind_kept : int or None
        What the plan as it was made would keep; None if that has no place on the fleet.
    """

    blind_kept: int | None = None
    scope: ClassVar[str] = ""

    @property
    def starts(self) -> int:
        """Instances that start anew."""
        return sum(self.wanted.counts.values()) - self.kept

    @property
    def stops(self) -> int:
        """Instances that stop, or do something else."""
        return self.running - self.kept

    def __str__(self) -> str:
        blind = (
            "the plan as it was made has no place"
            if self.blind_kept is None
            else f"the plan as it was made keeps {self.blind_kept}"
        )
        moves = f"{self.starts} instance{'s' * (self.starts != 1)} to start, {self.stops} to stop"
        kept = f"{self.kept_line} of all plans; {blind}"
        return "\n".join([self.summary, kept, moves, *self.prices])


def nearest(
    now: Deployment,
    plan: Plan,
    *,
    extra_gpus: int = 0,
    constraints: PlacementConstraints | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
    seed: int = 0,
) -> Nearest | PlacementInfeasible:
    """Choose, of the plans at the least cost, the one that keeps most of what runs.

    Instances may run what the plan's instances run, and today's may go on at their own points where
    the new limits admit them, at what they supply by the plan's rule. Of plans that keep equally
    many, one on few GPUs beyond the plan's, and then with few instances, is chosen: the best that a
    short search finds, not proved the fewest.

    `now`: What runs. `plan`: A plan of the least cost, by its certificate; where something foreign
    stays on GPUs, plans that use these may cost less, and are looked for. `extra_gpus`: So many
    more may be used to keep more. Default 0. `constraints`: None: those in the columns of the
    services. `time_limit`: Seconds; then the best plan found is returned, with its bound. Without
    one the answer is deterministic. `cancel`: Ends the search likewise. `seed`: Of the order in
    which parts of the fleet are improved.

    Returns
    -------
    Nearest or PlacementInfeasible
        Never keeps less than the plan as it was made, unless it costs less.

    InvalidOption if `extra_gpus` is negative. InvalidProblem if the plan has no schedule, or the
    fleet cannot be as it is written or has other devices than the plan. CmsError if time was up
    before anything was found.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode
    >>> from cms.fleet.placement import place
    >>> def plan(name):
    ...     serving = load_instance(name).build_problem()
    ...     return Plan(serving, solve(serving.problem))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(8))
    >>> now = place(desired_state(plan("S1")), Deployment((FleetNode("a", cards),))).deployment
    >>> found = nearest(now, plan("S2"))
    >>> found.kept >= found.blind_kept, found.kept <= found.most_kept
    (True, True)
    """
    if extra_gpus < 0:
        raise InvalidOption(f"extra_gpus is {extra_gpus}; expected 0 or more")
    limits = Limits(inf if time_limit is None else time_limit, cancel)
    wanted = desired_state(plan)
    constraints = placement_constraints(wanted.services) if constraints is None else constraints
    constraints.require(wanted.services)
    now = recounted(now, wanted.services, wanted.rule, works_of(plan).values())
    require_same_devices(wanted, now)
    plans = find_plans(now, plan)
    least = plan.solution.lower_bound if _is_certified(plan, plans) else Fraction(0)
    program = PlanModel(now, wanted, plans, constraints, least)
    model, most = program.model, sum(plans.running.values())
    fixed, blind = program.keep_plan(limits)
    if blind is None and not all(aim.has_ended for aim in fixed.aims.values()):
        raise CmsError(TOO_LATE)
    is_held = any(group.is_held for group in model.groups)
    cost_proof = Proof.NONE
    if blind is None or is_held or model.cost_of(blind)[0] > (plan.solution.cost or 0):
        cheapest = model.branch()
        values = cheapest.find_least(limits, blind, None if blind is None else _NODES)
        cost_proof = cheapest.prove_least(limits)
    else:
        values = blind
        if model.cost_of(blind)[0] == least:
            cost_proof = Proof.CHECKED
    if values is None:
        return _explain(now, plan, wanted, constraints, limits)
    cost, gpus = model.cost_of(values)
    if blind is not None and model.cost_of(blind) == (cost, gpus):
        values = blind
    highest = max((model.demand.price_of(group) for group in model.groups), default=Fraction(0))
    budget = cost + extra_gpus * highest, gpus + extra_gpus
    model.allow(budget)
    ended = True
    if program.kept_in(values) < most:
        searching = Limits(_SEARCH * limits.left, cancel) if limits.left < inf else limits
        values, ended = program.search(values, searching, seed)
    chosen = program.count_kinds(model.x, values), program.count_kinds(model.k, values)
    for v in (v for x in model.x for v in x.values()):
        model.program.equal({v: 1}, values[v])
    kept = program.kept_in(values)
    model.program.at_least(model.kept, kept)
    bound = PlanBound(model, plans, budget).find(chosen, kept, limits)
    if kept > bound:
        raise AlgorithmError("nearest", f"{kept} are kept, more than the bound {bound}")
    proof = Proof.SOLVER if ended and program.is_exact else Proof.NONE
    cost_proof = Proof.NONE if extra_gpus else cost_proof
    proved = (bound, Proof.CHECKED if kept == bound else proof), cost_proof
    counts = model.finish(limits, values)
    found = build_result(wanted, now, constraints, model, counts, limits, proved)

    def find_least(some: PlacementConstraints) -> GpuCost | None:
        other = PlanModel(now, wanted, plans, some, least).model
        best = other.find_least(limits, nodes=_NODES)
        return None if best is None else GpuCost(*other.cost_of(best))

    found = price_constraints(found, constraints, model, find_least)
    budgeted = replace(found.wanted, budget=found.spent)
    values_of = {each.name: getattr(found, each.name) for each in fields(found)}
    blind_kept = None if blind is None else program.kept_in(blind)
    return Nearest(**values_of | {"wanted": budgeted}, blind_kept=blind_kept)


def _is_certified(plan: Plan, plans: PlanSpace) -> bool:
    """Whether the plan's certificate bounds the cost of all plans: today's points give less."""
    works = works_of(plan)
    return all(
        (best := works.get((kind.gpu, kind.profile, kind.work.service))) is not None
        and kind.work.supply_rps <= best.supply_rps
        for kind in plans.kinds
    )


def _explain(
    now: Deployment,
    plan: Plan,
    wanted: DesiredState,
    constraints: PlacementConstraints,
    limits: Limits,
) -> PlacementInfeasible:
    """Say why no plan has a place: by the plan's certificate, or on a solver's word."""
    if limits.over:
        raise CmsError(TOO_LATE)
    serving, least = plan.serving, plan.solution.lower_bound
    keys = {gpu.key for gpu in serving.gpus}
    there = sum(card.gpu.key in keys for card in now.gpus())
    is_bound = all(each.cost == 1 for each in serving.problem.machine_types)
    if is_bound and _is_certified(plan, find_plans(now, plan)) and there < least:
        needed = f"{shown(least)} GPUs at least are needed, by the plan's certificate"
        return PlacementInfeasible((f"{needed}, and the fleet has {there}",), Proof.CHECKED)
    # prices are about the counts of one plan; that no other fits is what a solver says
    blind = explain_infeasibility(wanted, now, constraints, limits)
    reasons = tuple(f"of the plan as it was made: {why}" for why in blind.reasons)
    return PlacementInfeasible(("no plan has a place beside what stays", *reasons), Proof.SOLVER)
