"""Placement constraints as rows of the placement model; all of them are linear in counts.

They can ask for more instances and more GPUs than the plan's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from ...problem.parts import Job
from ..deployment.instance import Kind, Work
from ..deployment.model import Deployment
from ..deployment.wanted import DesiredState, desired_state
from ..serving.plan import Plan
from .constraints import PlacementConstraints, find_domains
from .gpu_group import GpuGroup, group_equivalent_gpus
from .placement_model import Demand, KindGroup, OptionGroup, PlacementModel
from .program import Program

#: Most units of a rate in a row; beyond, supplies are rounded down and rates up to the second
#: number of units, few enough for a solver's tolerance to be less than one.
_MOST_UNITS, _ROUNDED_UNITS = 10**7, 10**5


def find_growing_services(wanted: DesiredState, constraints: PlacementConstraints) -> set[str]:
    """Return the services that constraints may add instances to."""
    if constraints.share is not None:
        return {service.name for service in wanted.services}
    return {name for name, n in constraints.min_replicas.items() if n}


def build_demand(wanted: DesiredState, constraints: PlacementConstraints) -> Demand:
    """Return what is wanted, with the kinds that constraints could add instances of.

    A service that needs more instances may get them at any point of the plan's problem, at its
    supply there; for equal routing at none that supplies less than those it has.
    """
    grows = find_growing_services(wanted, constraints)
    apart = grows | {*constraints.spread, *constraints.max_per_gpu}
    apart |= {name for pair in constraints.anti_affinity for name in pair}
    counts = dict(wanted.counts)
    if wanted.plan is not None and grows:
        least: dict[str, Fraction] = {}
        for kind in wanted.counts if wanted.routing == "equal" else ():
            own = kind.work
            least[own.service] = min(own.supply_rps, least.get(own.service, own.supply_rps))
        for kind in list_kinds(wanted.plan):
            service = kind.work.service
            if service in grows and kind.work.supply_rps >= least.get(service, 0):
                counts.setdefault(kind, 0)
    kinds = tuple(sorted(counts, key=lambda kind: kind.order))
    groups: list[KindGroup] = []
    together: dict[tuple[str, str], list[int]] = {}
    for number, kind in enumerate(kinds):
        if (service := kind.work.service) in apart:
            groups.append(KindGroup((number,), service in grows))
        else:
            together.setdefault((kind.gpu, kind.profile), []).append(number)
    groups += [KindGroup(tuple(numbers)) for _, numbers in sorted(together.items())]
    return Demand(wanted, kinds, [counts[kind] for kind in kinds], groups)


def list_kinds(plan: Plan) -> list[Kind]:
    """Return what instances may do by the points of a plan's problem, at their supplies there."""
    serving = plan.serving
    return [
        Kind(*serving.instance_of(block), Work(service, served.point, served.rate_rps))
        for service, block in serving.points
        for served in serving.served(service, block)
    ]


def certified_cost(wanted: DesiredState) -> Fraction:
    """Return what the certificate of the plan says that the counts cost at least on empty GPUs."""
    if (plan := wanted.plan) is None:
        return Fraction(0)
    own, caps = desired_state(plan), wanted.max_gpus
    is_same = (own.counts, own.prices) == (wanted.counts, wanted.prices)
    is_same &= {*own.group_limits} <= {*wanted.group_limits}
    is_same &= all(caps.get(key, cap + 1) <= cap for key, cap in own.max_gpus.items())
    return plan.solution.lower_bound if is_same else Fraction(0)


def list_blocks(plan: Plan | None) -> list[tuple[str, str]]:
    """Return the GPU and profile of each block of a plan for GPUs that are there."""
    if plan is None or not plan.serving.available:
        return []
    return [plan.serving.instance_of(block) for block in plan.serving.problem.blocks]


def is_covered(groups: Iterable[GpuGroup], demand: Demand) -> bool:
    """Whether all GPUs are machines of the plan's problem, so that its bounds hold for them."""
    plan = demand.wanted.plan
    there: Counter[str] = Counter()
    prices: dict[str, Fraction] = {}
    for group in groups:
        there[group.available.name] += len(group.members)
        prices[group.available.name] = demand.price_of(group)
    types = {} if plan is None else {it.name: it for it in plan.serving.problem.machine_types}
    is_there = plan is not None and bool(plan.serving.available)
    return all(
        name in types
        and types[name].cost <= prices[name]
        and not (is_there and n > (types[name].limit or 0))
        for name, n in there.items()
    )


def build_model(
    demand: Demand,
    fleet: Deployment,
    constraints: PlacementConstraints,
    least: Fraction = Fraction(0),
) -> PlacementModel:
    """Build the placement model with the rows of constraints, and of the rates of a demand.

    `least`: What GPUs cost at least by the plan's certificate. It is no bound where GPUs are there
    that the plan does not know, such as those on which something foreign stays.
    """
    words = {*constraints.spread.values()} | ({"node"} if constraints.share is not None else set())
    domains = find_domains(fleet, min(words)) if words else None  # a zone is made of nodes
    blocks = list_blocks(demand.wanted.plan)
    groups = group_equivalent_gpus(fleet, demand.numbers, domains, blocks)
    model = PlacementModel(groups, demand, _list_pools(groups, demand.kinds, constraints))
    _Rows(model, fleet).add(constraints)
    if least and model.cost and is_covered(groups, demand):
        model.program.at_least(model.cost, ceil(least / model.cost_step))
        model.certified = least
    for service, rate in demand.rates.items():
        if rate:
            supplies = {n: demand.kinds[n].work.supply_rps for n in demand.of_service[service]}
            units, low, is_exact = scale_rates(supplies, rate)
            model.is_exact &= is_exact
            terms = {v: units[i] for x in model.x for i, v in x.items() if i in units}
            model.program.at_least(terms, low)
    return model


def _list_pools(
    groups: Sequence[GpuGroup], kinds: Sequence[Kind], constraints: PlacementConstraints
) -> list[OptionGroup]:
    """List a pool for each domain that constraints name; options on which GPUs matter alone."""
    shared: dict[str, list[tuple[int, int]]] = {}
    alone: list[OptionGroup] = []
    for s, group in enumerate(groups):
        for c, option in enumerate(group.options):
            shut = _exclude(
                group.gpu.key, {profile for profile, _ in option.counts}, kinds, constraints
            )
            if shut is None:
                shared.setdefault(group.domain, []).append((s, c))
            else:
                alone += [OptionGroup(group.domain, ((s, c),), out, is_even=True) for out in shut]
    return [OptionGroup(domain, tuple(own)) for domain, own in shared.items()] + alone


def _exclude(
    gpu: str, profiles: set[str], kinds: Sequence[Kind], constraints: PlacementConstraints
) -> list[frozenset[int]] | None:
    """Return which kinds to keep out of a GPU with these profiles; None: any may be on it."""
    if not (constraints.anti_affinity or constraints.max_per_gpu):
        return None
    here: dict[str, set[int]] = {}
    for number, kind in enumerate(kinds):
        if kind.gpu == gpu and kind.profile in profiles:
            here.setdefault(kind.work.service, set()).add(number)
    pairs = [pair for pair in constraints.anti_affinity if here.keys() >= {*pair}]
    if not pairs and here.keys().isdisjoint(constraints.max_per_gpu):
        return None
    # the smallest sets of services to be kept out, so that no pair is on one GPU
    covers = {frozenset[str]()}
    for pair in pairs:
        covers = {out if out & {*pair} else out | {name} for out in covers for name in pair}
    least = sorted((out for out in covers if not any(o < out for o in covers)), key=sorted)
    return [frozenset(n for name in out for n in here[name]) for out in least]


class _Rows:
    """Adds the rows of constraints to a model."""

    def __init__(self, model: PlacementModel, fleet: Deployment) -> None:
        self.model, self.wanted, self.fleet = model, model.demand.wanted, fleet
        # a service that is named is in groups of its own
        kinds, groups = model.demand.kinds, model.demand.groups
        self.work_of = [kinds[group.kinds[0]].work for group in groups]

    def add(self, constraints: PlacementConstraints) -> None:
        """Add the rows of each constraint."""
        program, plan = self.model.program, self.wanted.plan
        jobs = {} if plan is None else {job.name: job for job in plan.serving.problem.jobs}
        for service, least in constraints.min_replicas.items():
            program.at_least(self._instances(service), least)
            job = jobs.get(service) if least else None
            if isinstance(job, Job) and job.replicas is not None and job.demand:
                # as many as the plan's problem asks for each serve their share
                able = self._instances(service, least=job.replicas.share * job.demand)
                program.at_least(able, job.replicas.count)
        for service, word in constraints.spread.items():
            self._spread(service, word)
        for service, most in constraints.max_per_gpu.items():
            for q, y in enumerate(self.model.y):
                if terms := self._instances(service, [q]):
                    program.at_most(terms | dict.fromkeys(y.values(), -most), 0)
        for entry in self.wanted.services if constraints.share is not None else ():
            if needed := (constraints.share or 0) * entry.rate_rps:
                self._survive(entry.name, needed)

    def _instances(
        self, service: str, pools: Iterable[int] | None = None, least: Fraction = Fraction(0)
    ) -> dict[int, int]:
        """Return the variables of a service's instances that supply at least so much."""
        return {
            v: 1
            for q in (range(len(self.model.pools)) if pools is None else pools)
            for i, v in self.model.x[q].items()
            if self.work_of[i].service == service and self.work_of[i].supply_rps >= least
        }

    def _spread(self, service: str, word: str) -> None:
        keys = {kind.gpu for kind in self.model.demand.kinds if kind.work.service == service}
        of, pools = find_domains(self.fleet, word), enumerate(self.model.pools)
        known = {of[card.node] for card in self.fleet.gpus() if card.gpu.key in keys}
        every = self._instances(service)
        # a pool's domain is a node or, if no constraint names nodes, a zone
        place_of = {q: of.get(pool.domain, pool.domain) for q, pool in pools}
        for place in sorted(known):
            here = self._instances(service, [q for q, it in place_of.items() if it == place])
            # here <= (all + places - 1) / places, rounded down: the equal share, rounded up
            terms = {v: len(known) * (v in here) - 1 for v in every}
            self.model.program.at_most(terms, len(known) - 1)

    def _survive(self, service: str, needed: Fraction) -> None:
        model = self.model
        supplies = {
            i: work.supply_rps for i, work in enumerate(self.work_of) if work.service == service
        }
        units, least, is_exact = scale_rates(supplies, needed)
        is_equal = self.wanted.routing == "equal"
        model.is_exact &= is_exact or is_equal
        for node in self.fleet.nodes:
            left = {
                v: i
                for pool, x in zip(model.pools, model.x, strict=True)
                for i, v in x.items()
                if i in supplies and pool.domain != node.name
            }
            if is_equal:
                _share_equally(model.program, {v: supplies[i] for v, i in left.items()}, needed)
            else:
                model.program.at_least({v: units[i] for v, i in left.items()}, least)


def _share_equally(program: Program, supplies: Mapping[int, Fraction], needed: Fraction) -> None:
    """Have instances supply a rate in equal shares: as many times as the smallest of them."""
    chosen: dict[int, int] = {}
    for smallest in sorted({*supplies.values()}):
        is_smallest = program.variable(1)  # or less than any instance there is
        chosen[is_smallest] = 1
        count = dict.fromkeys(supplies, 1)
        program.at_least(count | {is_smallest: -ceil(needed / smallest)}, 0)
        if smaller := {v: 1 for v, supply in supplies.items() if supply < smallest}:
            most = sum(program.highs[v] for v in smaller)
            program.at_most(smaller | {is_smallest: most}, most)
    program.at_least(chosen, 1)


def scale_rates(
    supplies: Mapping[int, Fraction], demand: Fraction
) -> tuple[dict[int, int], int, bool]:
    """Return supplies and a demand in whole units, and whether nothing was rounded."""
    unit = Fraction(lcm(demand.denominator, *(each.denominator for each in supplies.values())))
    step = gcd(*(int(each * unit) for each in supplies.values())) or 1
    is_exact = demand * unit / step <= _MOST_UNITS
    unit = unit / step if is_exact else _ROUNDED_UNITS / demand
    least = ceil(demand * unit)
    # no supply needs to count for more than all that is wanted
    return {at: min(least, floor(each * unit)) for at, each in supplies.items()}, least, is_exact
