"""A plan and its placement in one search: of all plans for a fleet the cheapest that keeps most.

It is the placement model with counts as variables. Every service's rate is a row of whole numbers,
and what runs today may go on at its own point wherever the new limits admit that.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import inf

from ...errors import AlgorithmError, CmsError, InvalidOption
from ...solving.solution import Proof
from ...values.numbers import Number, exact, shown
from ..deployment.instance import Kind
from ..deployment.model import Deployment
from ..deployment.recounting import recounted
from ..deployment.wanted import DesiredState, desired_state
from ..serving.plan import Plan
from .constraint_rows import build_model, find_growing_services, is_covered, list_kinds
from .constraints import PlacementConstraints, placement_constraints
from .kept_bound import PlanBound
from .placement import (
    TOO_LATE,
    build_result,
    match_groups,
    place,
    price_constraints,
    require_same_devices,
)
from .placement_model import Demand, KindGroup, PlacementModel
from .placement_result import PlacementInfeasible, PlacementResult, explain_infeasibility
from .program import Limits

#: The share of the time left that is searched; what was chosen is put on GPUs in the rest.
_SEARCH = 0.9
#: Nodes of a search for plans that cost less than the one that was made, and where nothing runs:
#: 2,000 took 10 s of CPU on 1,500 GPUs of two prices, for the same number of GPUs.
_NODES, _FIRST_NODES = 2000, 200
#: Most variables of a program that is searched as a whole for plans that keep more, and most nodes.
_WHOLE, _WHOLE_NODES = 6000, 20_000
#: GPUs that are free in a neighbourhood, how many in a row may change nothing, and most nodes of
#: its search, and of that for fewer instances.
_FREE_GROUPS, _PATIENCE, _FEW_NODES = 10, 10, 200


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
    limits = Limits(time_limit, cancel)
    wanted = desired_state(plan)
    constraints = placement_constraints(wanted.services) if constraints is None else constraints
    constraints.require(wanted.services)
    if plan.routing == "equal":  # what else it may have is not known to be as good
        if extra:
            why = "a plan for equal routing is placed as it was made; leave it out"
            raise InvalidOption(f"extra_cost is {shown(extra)}, and {why}")
        return place(wanted, fleet, constraints=constraints, time_limit=time_limit, cancel=cancel)
    works = [kind.work for kind in list_served(plan).values()]
    fleet = recounted(fleet, wanted.services, wanted.rule, works)
    require_same_devices(wanted, fleet)
    return _PlanPlacer(plan, wanted, fleet, constraints, limits, seed).find(extra)


def list_served(plan: Plan) -> dict[tuple[str, str, str], Kind]:
    """Return what instances may do at the plan's points: ``{(GPU, profile, service): kind}``."""
    kinds = (kind for kind in list_kinds(plan) if kind.work.supply_rps)
    return {(kind.gpu, kind.profile, kind.work.service): kind for kind in kinds}


def build_plan_demand(now: Deployment, wanted: DesiredState, plan: Plan) -> Demand:
    """Return what all plans may have: the plan's points, and those of today that still do.

    The supplies of `now` are counted as the plan does.
    """
    served = list_served(plan)
    found = {*served.values()}
    for kind in now.kinds():
        new = served.get((kind.gpu, kind.profile, kind.work.service), kind)
        # the same setting with other figures was measured anew since
        if _is_admitted(plan, kind) and (new == kind or kind.order != new.order):
            found.add(kind)
    kinds = sorted(found, key=lambda kind: (kind.order, str(kind.work.supply_rps)))
    groups = [KindGroup((number,), can_grow=True) for number in range(len(kinds))]
    rates = {job.name: job.demand for job in plan.serving.problem.jobs}
    return Demand(wanted, kinds, [0] * len(kinds), groups, rates)


def _is_admitted(plan: Plan, kind: Kind) -> bool:
    """Whether an instance that runs today may count for what it does under the plan."""
    serving, work = plan.unshared("a deployment"), kind.work
    service = next((each for each in serving.services if each.name == work.service), None)
    return (
        service is not None
        and service.model == work.point.model
        and bool(work.supply_rps and serving.rule.supply(service, work.point))
        and kind.gpu in {gpu.key for gpu in serving.gpus}
        and work.point.processes <= (serving.max_processes or work.point.processes)
    )


class _PlanPlacer:
    """One search."""

    def __init__(
        self,
        plan: Plan,
        wanted: DesiredState,
        fleet: Deployment,
        constraints: PlacementConstraints,
        limits: Limits,
        seed: int,
    ) -> None:
        self.plan, self.wanted, self.fleet = plan, wanted, fleet
        self.constraints, self.limits, self.seed = constraints, limits, seed
        self.demand = build_plan_demand(fleet, wanted, plan)
        jobs = plan.unshared("placing").problem.jobs  # the replicas that the problem asks for
        self.replicas = {job.name: job.replicas.count for job in jobs if job.replicas is not None}
        best = list_served(plan)
        # whether the plan's certificate is about all plans: points of today give no more
        self.is_certified = all(
            new is not None and kind.work.supply_rps <= new.work.supply_rps
            for kind in self.demand.kinds
            for new in [best.get((kind.gpu, kind.profile, kind.work.service))]
        )
        self.model = self.build(wanted, constraints)

    def build(self, wanted: DesiredState, constraints: PlacementConstraints) -> PlacementModel:
        """Build the model of all plans under some limits and constraints."""
        asked = constraints.min_replicas
        is_bound = self.is_certified and all(asked.get(s, 0) >= n for s, n in self.replicas.items())
        least = self.plan.solution.lower_bound if is_bound else Fraction(0)
        return build_model(replace(self.demand, wanted=wanted), self.fleet, constraints, least)

    def find(self, extra: Fraction) -> PlacementResult | PlacementInfeasible:
        """Find the placement."""
        made, model, asked = None, self.model, self.constraints.min_replicas
        there = Counter(k.work.service for k in Counter(self.wanted.counts).elements())
        has_enough = all(there[service] >= n for service, n in asked.items())
        no_more = has_enough and self.constraints == PlacementConstraints(asked)
        if no_more and not self.fleet.kinds():
            found = match_groups(self.wanted, self.plan, self.fleet, self.limits)
            if isinstance(found, PlacementResult) and found.least_cost:
                made = replace(found, is_of_all_plans=True)
                if model.has_one_price:
                    return self.price(made)
        fixed, blind = self.keep_plan()
        if made is None and blind is None and not fixed.has_ended:
            raise CmsError(TOO_LATE)
        nodes = _NODES if made is None else _FIRST_NODES
        values, (proof, least) = self.find_cheapest(blind, nodes)
        if made is not None and (values is None or made.spent <= model.cost_of(values)):
            is_least = values is not None and made.spent == model.cost_of(values)
            made = replace(made, cost_proof=proof if is_least else Proof.NONE, least_cost=least)
            return self.price(made)
        if values is None:
            return self.explain()
        return self.keep_most(values, blind, extra, (proof, least))

    def keep_plan(self) -> tuple[PlacementModel, list[int] | None]:
        """Find what the plan as it was made keeps, with what constraints add to it."""
        model, growing = self.model.branch(), find_growing_services(self.wanted, self.constraints)
        grown: dict[int, int] = {}
        for number, kind in enumerate(self.demand.kinds):
            terms = {x[number]: 1 for x in model.x if number in x}
            count = self.wanted.counts.get(kind, 0)
            if kind.work.service in growing:
                model.program.at_least(terms, count)
                grown |= dict.fromkeys(terms, -1)
            else:
                model.program.equal(terms, count)
        best = model.find_least(self.limits)
        for name, aim in (("grown", grown), ("kept", model.kept)) if best is not None else ():
            best = model.pursue(name, aim, self.limits, best)
        return model, best

    def find_cheapest(
        self, blind: list[int] | None, nodes: int
    ) -> tuple[list[int] | None, tuple[Proof, Fraction]]:
        """Find a plan at the least cost, the one that was made if it has that, and the proof."""
        model = self.model
        least = model.certified
        if blind is not None and least and model.has_one_price:
            cost = model.cost_of(blind).cost
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
        values: list[int],
        blind: list[int] | None,
        extra: Fraction,
        cost_proof: tuple[Proof, Fraction],
    ) -> PlacementResult:
        """Improve a plan until it keeps most at its cost, and say what is proved of that."""
        model, limits = self.model, self.limits
        cost, gpus = model.cost_of(values)
        budget = cost + extra, sum(model.program.highs[v] for v in model.used) if extra else gpus
        model.allow(budget)
        ended = True
        if model.kept_in(values) < model.running.total():
            searching = limits
            if limits.left < inf:
                searching = Limits(_SEARCH * limits.left, limits.cancel)
            values, ended = self.search(values, searching)
        for v in (v for x in model.x for v in x.values()):
            model.program.equal({v: 1}, values[v])
        kept = model.kept_in(values)
        model.program.at_least(model.kept, kept)
        bound = PlanBound(model, budget).find(values, limits)
        if kept > bound:
            raise AlgorithmError("place", f"{kept} are kept, more than the bound {bound}")
        proof = Proof.SOLVER if ended and model.is_exact else Proof.NONE
        proved = (
            (bound, Proof.CHECKED if kept == bound else proof),
            (Proof.NONE, cost_proof[1]) if extra else cost_proof,
        )
        decision = model.finish(limits, values)
        found = build_result(self.fleet, self.constraints, model, decision, limits, proved)
        return self.price(
            replace(
                found, wanted=replace(found.wanted, budget=found.spent), is_of_all_plans=True,
                blind_kept=None if blind is None else model.kept_in(blind),
            )
        )  # fmt: skip

    def search(self, best: list[int], limits: Limits) -> tuple[list[int], bool]:
        """Improve a solution; returns also whether the solver says that none keeps more.

        The whole program first; where that does not come to its end, one part after the other.
        Then a short search for fewer GPUs and instances that keep the same number.
        """
        model, ended = self.model, False
        program, kept = model.program, model.kept
        if len(program.highs) <= _WHOLE:
            values, ended = program.maximise(kept, limits, best, _WHOLE_NODES)
            best = values or best
        rng, tries, most = random.Random(self.seed), 0, model.running.total()
        while not ended and tries < _PATIENCE and not limits.over and model.kept_in(best) < most:
            found = program.improve(best, self._free(rng), kept, limits, _FEW_NODES)
            tries = 0 if model.kept_in(found) > model.kept_in(best) else tries + 1
            best = found
        program.at_least(kept, model.kept_in(best))
        instances = {v: -1 for x in model.x for v in x.values()}
        many = 1 + sum(best[v] for v in instances)
        few = instances | dict.fromkeys(model.used, -many)
        return program.maximise(few, limits, best, _FEW_NODES).values or best, ended

    def _free(self, rng: random.Random) -> set[int]:
        """Choose GPUs that share services, and free them and what these services have anywhere."""
        model, service_of = self.model, [kind.work.service for kind in self.demand.kinds]
        service = [{service_of[h.kind] for h in g.instances if h.kind >= 0} for g in model.groups]
        first = rng.randrange(len(model.groups))
        order = sorted(
            range(len(model.groups)),
            key=lambda s: (s != first, -len(service[s] & service[first]), rng.random()),
        )
        half = _FREE_GROUPS // 2
        chosen = {*order[:half], *rng.sample(order, min(len(order), half))}
        services = set().union(*(service[s] for s in chosen))
        names = sorted(self.demand.rates)
        services |= {*rng.sample(names, min(len(names), 4))}
        free = {v for y in model.y for (s, _), v in y.items() if s in chosen}
        parts = (pair for part in (*model.x, *model.k) for pair in part.items())
        return free | {v for number, v in parts if service_of[number] in services}

    def price(self, found: PlacementResult) -> PlacementResult:
        """Say what constraints cost, of all plans."""
        return price_constraints(
            found,
            self.constraints,
            self.model,
            lambda some: self.build(self.wanted, some).price_least(self.limits, _NODES),
            is_bound=not self.replicas,
        )

    def explain(self) -> PlacementInfeasible:
        """Say why no plan has a place: by the plan's certificate, or on a solver's word."""
        if self.limits.over:
            raise CmsError(TOO_LATE)
        serving, least = self.plan.serving, self.plan.solution.lower_bound
        there = sum(card.gpu.key in self.wanted.devices for card in self.fleet.gpus())
        is_bound = all(each.cost == 1 for each in serving.problem.machine_types)
        is_known = is_covered(self.model.groups, self.demand)
        if is_bound and is_known and self.is_certified and there < least:
            needed = f"{shown(least)} GPUs at least are needed, by the plan's certificate"
            return PlacementInfeasible((f"{needed}, and the fleet has {there}",), Proof.CHECKED)
        return explain_infeasibility(
            self.wanted, self.fleet, self.constraints, self.limits, self.build
        )
