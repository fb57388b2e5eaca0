"""A plan and its placement in one search: of all plans for a fleet the cheapest that keeps most."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf

from ...errors import AlgorithmError, CmsError, InvalidOption
from ...solving.solution import Proof
from ...values.numbers import Number, exact, shown
from ..deployment.model import Deployment
from ..deployment.recounting import recounted
from ..deployment.wanted import DesiredState, desired_state
from ..serving.plan import Plan
from .constraint_rows import is_covered
from .constraints import PlacementConstraints, placement_constraints
from .infeasibility import PlacementInfeasible, explain_infeasibility
from .kept_bound import PlanBound
from .placement import (
    TOO_LATE,
    build_result,
    match_groups,
    place,
    price_constraints,
    require_same_devices,
)
from .placement_model import PlacementModel
from .placement_result import PlacementResult
from .plan_space import PlanModel, PlanSpace, find_plans, works_of
from .program import Limits

#: The share of the time left that is searched; what was chosen is put on GPUs in the rest.
_SEARCH = 0.9
#: Nodes of a search for plans that cost less than the one that was made, and where nothing runs:
#: 2,000 took 10 s of CPU on 1,500 GPUs of two prices, for the same number of GPUs.
_NODES, _FIRST_NODES = 2000, 200


def place_plan(
    plan: Plan,
    fleet: Deployment,
    *,
    extra_cost: Number = 0,
    constraints: PlacementConstraints | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
    seed: int = 0,
) -> PlacementResult | PlacementInfeasible:
    """Choose, of all plans under the constraints, the cheapest, and place it on a fleet.

    Of plans that cost the same one on the fewest GPUs is chosen, and of these the one that keeps
    most of what runs. Instances may run what the plan's instances run, and today's may go on at
    their own points where the new limits admit them, at what they supply by the plan's rule. Where
    nothing managed runs and nothing but replicas is asked for, the plan is placed as it was made.
    So are the instances of a plan for equal routing.

    `plan`: Its certificate bounds the cost of all plans if it was made for the GPUs that are there
    (`list_available`), or all are empty. `extra_cost`: So much more may be spent to keep more;
    then few GPUs and few instances are looked for in a short search. `constraints`: None: those in
    the columns of the services. `time_limit`: Seconds; then the best found is returned, with its
    bounds. Without one the answer is deterministic. `cancel`: Ends the search likewise. `seed`: Of
    the order in which parts of the fleet are improved.

    InvalidOption if `extra_cost` is negative, or given for equal routing. InvalidProblem if the
    plan has no schedule, or the fleet cannot be as it is written or has other devices than the
    plan. CmsError if time was up before anything was found.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode
    >>> def plan(name):
    ...     serving = load_instance(name).build_problem()
    ...     return Plan(serving, solve(serving.problem))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(8))
    >>> first = place_plan(plan("S1"), Deployment((FleetNode("a", cards),)))
    >>> found = place_plan(plan("S2"), first.deployment)
    >>> found.kept >= found.blind_kept, found.kept <= found.most_kept
    (True, True)
    """
    extra = exact(extra_cost, "extra_cost", error=InvalidOption)
    limits = Limits(inf if time_limit is None else time_limit, cancel)
    wanted = desired_state(plan)
    constraints = placement_constraints(wanted.services) if constraints is None else constraints
    constraints.require(wanted.services)
    if plan.routing == "equal":  # what else it may have is not known to be as good
        if extra:
            why = "a plan for equal routing is placed as it was made; leave it out"
            raise InvalidOption(f"extra_cost is {shown(extra)}, and {why}")
        return place(wanted, fleet, constraints=constraints, time_limit=time_limit, cancel=cancel)
    fleet = recounted(fleet, wanted.services, wanted.rule, works_of(plan).values())
    require_same_devices(wanted, fleet)
    return _PlanPlacer(plan, wanted, fleet, constraints, limits, seed).find(extra)


@dataclass(frozen=True)
class _PlanPlacer:
    """One search."""

    plan: Plan
    wanted: DesiredState
    fleet: Deployment
    constraints: PlacementConstraints
    limits: Limits
    seed: int

    @cached_property
    def plans(self) -> PlanSpace:
        """The plans to choose from."""
        return find_plans(self.fleet, self.plan)

    @property
    def replicas(self) -> dict[str, int]:
        """The replicas that the plan's problem asks for."""
        jobs = self.plan.unshared("placing").problem.jobs
        return {job.name: job.replicas.count for job in jobs if job.replicas is not None}

    def build(
        self, constraints: PlacementConstraints, wanted: DesiredState | None = None
    ) -> PlanModel:
        """Build the model of all plans under some constraints."""
        asked = constraints.min_replicas
        is_bound = self.is_certified and all(asked.get(s, 0) >= n for s, n in self.replicas.items())
        least = self.plan.solution.lower_bound if is_bound else Fraction(0)
        return PlanModel(self.fleet, wanted or self.wanted, self.plans, constraints, least)

    @property
    def is_certified(self) -> bool:
        """Whether the plan's certificate is about all plans: points of today that give no more."""
        works = works_of(self.plan)
        return all(
            (best := works.get((kind.gpu, kind.profile, kind.work.service))) is not None
            and kind.work.supply_rps <= best.supply_rps
            for kind in self.plans.kinds
        )

    def find(self, extra: Fraction) -> PlacementResult | PlacementInfeasible:
        """Find the placement."""
        program, made = self.build(self.constraints), None
        model = program.model
        if not self.fleet.kinds() and self.has_enough:
            found = match_groups(self.wanted, self.plan, self.fleet, self.limits)
            if isinstance(found, PlacementResult) and found.least_cost:
                made = replace(found, is_of_all_plans=True)
                if model.has_one_price:
                    return self.price(made, model)
        fixed, blind = program.keep_plan(self.limits)
        if made is None and blind is None and not all(a.has_ended for a in fixed.aims.values()):
            raise CmsError(TOO_LATE)
        nodes = _NODES if made is None else _FIRST_NODES
        values, (proof, least) = self.find_cheapest(model, blind, nodes)
        if made is not None and (values is None or made.spent <= model.cost_of(values)):
            is_least = values is not None and made.spent == model.cost_of(values)
            made = replace(made, cost_proof=proof if is_least else Proof.NONE, least_cost=least)
            return self.price(made, model)
        if values is None:
            return self.explain(program)
        return self.keep_most(program, values, blind, extra, (proof, least))

    @property
    def has_enough(self) -> bool:
        """Whether nothing is asked for but replicas, which the plan has."""
        there: Counter[str] = Counter()
        for kind, n in self.wanted.counts.items():
            there[kind.work.service] += n
        replicas = self.constraints.min_replicas
        is_all = self.constraints == PlacementConstraints(replicas)
        return is_all and all(there[service] >= n for service, n in replicas.items())

    def find_cheapest(
        self, model: PlacementModel, blind: list[int] | None, nodes: int
    ) -> tuple[list[int] | None, tuple[Proof, Fraction]]:
        """Find a plan at the least cost, the one that was made if it has that, and the proof."""
        least = model.certified
        if blind is not None and least and model.has_one_price:
            cost = model.cost_of(blind)[0]
            if cost <= (self.plan.solution.cost or 0):
                return blind, (Proof.CHECKED if cost == least else Proof.NONE, least)
        cheapest = model.branch()
        values = cheapest.find_least(self.limits, blind, None if blind is None else nodes)
        proof = cheapest.prove_least(self.limits)
        if values is not None and blind is not None:
            values = min(blind, values, key=model.cost_of)
        return values, proof

    def keep_most(
        self,
        program: PlanModel,
        values: list[int],
        blind: list[int] | None,
        extra: Fraction,
        cost_proof: tuple[Proof, Fraction],
    ) -> PlacementResult:
        """Improve a plan until it keeps most at its cost, and say what is proved of that."""
        model, limits = program.model, self.limits
        cost, gpus = model.cost_of(values)
        budget = cost + extra, sum(model.program.highs[v] for v in model.used) if extra else gpus
        model.allow(budget)
        ended = True
        if program.kept_in(values) < sum(self.plans.running.values()):
            searching = limits
            if limits.left < inf:
                searching = Limits(_SEARCH * limits.left, limits.cancel)
            values, ended = program.search(values, searching, self.seed)
        chosen = program.count_kinds(model.x, values), program.count_kinds(model.k, values)
        for v in (v for x in model.x for v in x.values()):
            model.program.equal({v: 1}, values[v])
        kept = program.kept_in(values)
        model.program.at_least(model.kept, kept)
        bound = PlanBound(model, self.plans, budget).find(chosen, kept, limits)
        if kept > bound:
            raise AlgorithmError("place", f"{kept} are kept, more than the bound {bound}")
        proof = Proof.SOLVER if ended and model.is_exact else Proof.NONE
        counts = model.finish(limits, values)
        proved = (
            (bound, Proof.CHECKED if kept == bound else proof),
            (Proof.NONE, cost_proof[1]) if extra else cost_proof,
        )
        found = build_result(
            self.wanted, self.fleet, self.constraints, model, counts, limits, proved
        )
        found = replace(
            found, wanted=replace(found.wanted, budget=found.spent), is_of_all_plans=True,
            blind_kept=None if blind is None else program.kept_in(blind),
        )  # fmt: skip
        return self.price(found, model)

    def price(self, found: PlacementResult, model: PlacementModel) -> PlacementResult:
        """Say what constraints cost, of all plans."""
        return price_constraints(
            found,
            self.constraints,
            model,
            lambda some: self.build(some).model.price_least(self.limits, _NODES),
            is_bound=not self.replicas,
        )

    def explain(self, program: PlanModel) -> PlacementInfeasible:
        """Say why no plan has a place: by the plan's certificate, or on a solver's word."""
        if self.limits.over:
            raise CmsError(TOO_LATE)
        serving, least = self.plan.serving, self.plan.solution.lower_bound
        there = sum(card.gpu.key in self.wanted.devices for card in self.fleet.gpus())
        is_bound = all(each.cost == 1 for each in serving.problem.machine_types)
        is_known = is_covered(self.plan, program.model.groups, program.model.demand)
        if is_bound and is_known and self.is_certified and there < least:
            needed = f"{shown(least)} GPUs at least are needed, by the plan's certificate"
            return PlacementInfeasible((f"{needed}, and the fleet has {there}",), Proof.CHECKED)
        return explain_infeasibility(
            self.wanted, self.fleet, self.constraints, self.limits,
            lambda state, some: self.build(some, state).model,
        )  # fmt: skip
