"""Placement constraints as rows of the placement model; all of them are linear in counts.

They can ask for more instances and more GPUs than the plan's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from ...problem.parts import Job
from ..deployment.instance import Kind, Work
from ..deployment.model import Deployment
from ..deployment.wanted import DesiredState, desired_state
from ..serving.plan import Plan
from ..serving.service import Service
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
    apart |= {name for pair in constraints.pairs for name in pair}
    counts = dict(wanted.counts)
    if wanted.plan is not None and grows:
        serving = wanted.plan.serving
        least: dict[str, Fraction] = {}
        for kind in wanted.counts if wanted.routing == "equal" else ():
            own = kind.work
            least[own.service] = min(own.supply_rps, least.get(own.service, own.supply_rps))
        for service, block in serving.points:
            if service in grows:
                gpu, profile = serving.instance_of(block)
                for served in serving.served(service, block):
                    work = Work(service, served.point, served.rate_rps)
                    if work.supply_rps < least.get(service, 0):
                        continue
                    counts.setdefault(Kind(gpu, profile, work), 0)
    kinds = tuple(sorted(counts, key=lambda kind: kind.order))
    groups: list[KindGroup] = []
    together: dict[tuple[str, str], list[int]] = {}
    for number, kind in enumerate(kinds):
        if kind.work.service in apart:
            grow = kind.work.service in grows
            groups.append(KindGroup(kind.gpu, kind.profile, (number,), grow))
        else:
            together.setdefault((kind.gpu, kind.profile), []).append(number)
    groups += [KindGroup(*block, tuple(numbers)) for block, numbers in sorted(together.items())]
    return Demand(
        kinds,
        tuple(counts[kind] for kind in kinds),
        wanted.gpus,
        tuple(groups),
        wanted.prices,
        wanted.max_gpus,
        wanted.group_limits,
    )


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


def is_covered(plan: Plan | None, groups: Iterable[GpuGroup], demand: Demand) -> bool:
    """Whether all GPUs are machines of a plan's problem, so that its bounds hold for them."""
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
    wanted: DesiredState,
    fleet: Deployment,
    constraints: PlacementConstraints,
    demand: Demand,
    least: Fraction,
) -> PlacementModel:
    """Build the placement model with the rows of constraints.

    `least`: What GPUs cost at least by the plan's certificate. It is no bound where GPUs are there
    that the plan does not know, such as those on which something foreign stays.
    """
    domains = None
    if constraints.share is not None or "node" in constraints.spread.values():
        domains = find_domains(fleet, "node")
    elif constraints.spread:
        domains = find_domains(fleet, "zone")
    groups = group_equivalent_gpus(fleet, demand.numbers, domains, list_blocks(wanted.plan))
    writer = _ConstraintWriter(constraints, fleet, wanted, demand.kinds)
    model = PlacementModel(groups, demand, writer.pools(groups))
    writer.write(model)
    if least and model.cost and is_covered(wanted.plan, groups, demand):
        model.program.at_least(model.cost, ceil(least / model.cost_step))
        model.certified = least
    return model


@dataclass(frozen=True)
class _ConstraintWriter:
    constraints: PlacementConstraints
    fleet: Deployment
    wanted: DesiredState
    kinds: Sequence[Kind]

    def pools(self, groups: Sequence[GpuGroup]) -> list[OptionGroup]:
        """A pool for each domain that constraints name; options on which GPUs matter alone."""
        shared: dict[str, list[tuple[int, int]]] = {}
        alone: list[OptionGroup] = []
        for s, group in enumerate(groups):
            for c, option in enumerate(group.options):
                shut = self._excluded(group.gpu.key, {profile for profile, _ in option.counts})
                if shut is None:
                    shared.setdefault(group.domain, []).append((s, c))
                else:
                    alone += [
                        OptionGroup(group.domain, ((s, c),), out, is_even=True) for out in shut
                    ]
        return [OptionGroup(domain, tuple(own)) for domain, own in shared.items()] + alone

    def _excluded(self, gpu: str, profiles: set[str]) -> list[frozenset[int]] | None:
        """Return which kinds to keep out of a GPU with these profiles; None: any may be on it."""
        here: dict[str, set[int]] = {}
        if not (self.constraints.pairs or self.constraints.max_per_gpu):
            return None
        for number, kind in enumerate(self.kinds):
            if kind.gpu == gpu and kind.profile in profiles:
                here.setdefault(kind.work.service, set()).add(number)
        pairs = [pair for pair in self.constraints.pairs if here.keys() >= {*pair}]
        if not pairs and here.keys().isdisjoint(self.constraints.max_per_gpu):
            return None
        return [frozenset(n for name in out for n in here[name]) for out in _find_covers(pairs)]

    def write(self, model: PlacementModel) -> None:
        """Add the rows."""
        constraints, program = self.constraints, model.program
        for service, least in constraints.min_replicas.items():
            program.at_least(self._instances(model, service), least)
            if least:
                self._replicate(model, service)
        for service, word in constraints.spread.items():
            self._spread(model, service, word)
        for service, most in constraints.max_per_gpu.items():
            for q, y in enumerate(model.y):
                if terms := self._instances(model, service, [q]):
                    program.at_most(terms | dict.fromkeys(y.values(), -most), 0)
        if constraints.share is not None:
            for entry in self.wanted.services:
                self._survive(model, entry, constraints.share)

    def _replicate(self, model: PlacementModel, service: str) -> None:
        """Have so many instances as the plan's problem asks for each serve their share."""
        problem = None if self.wanted.plan is None else self.wanted.plan.serving.problem
        job = None if problem is None else problem.jobs[problem.job_index(service)]
        if not isinstance(job, Job) or job.replicas is None or not job.demand:
            return
        least = job.replicas.share * job.demand
        terms = {
            v: 1
            for x in model.x
            for i, v in x.items()
            for work in [self.kinds[model.demand.groups[i].kinds[0]].work]
            if work.service == service and work.supply_rps >= least
        }
        model.program.at_least(terms, job.replicas.count)

    def _instances(
        self, model: PlacementModel, service: str, pools: Iterable[int] | None = None
    ) -> dict[int, int]:
        """The variables of a service's instances, which are in groups of their own."""
        return {
            v: 1
            for q in (range(len(model.pools)) if pools is None else pools)
            for i, v in model.x[q].items()
            if self.kinds[model.demand.groups[i].kinds[0]].work.service == service
        }

    def _spread(self, model: PlacementModel, service: str, word: str) -> None:
        keys = {kind.gpu for kind in self.kinds if kind.work.service == service}
        of = find_domains(self.fleet, word)
        known = {of[card.node] for card in self.fleet.gpus() if card.gpu.key in keys}
        every = self._instances(model, service)
        for place in sorted(known):
            # a pool's domain is a node or, if no constraint names nodes, a zone
            pools = [q for q, p in enumerate(model.pools) if of.get(p.domain, p.domain) == place]
            here = self._instances(model, service, pools)
            # here <= (all + places - 1) / places, rounded down: the equal share, rounded up
            terms = {v: len(known) * (v in here) - 1 for v in every}
            model.program.at_most(terms, len(known) - 1)

    def _survive(self, model: PlacementModel, service: Service, share: Fraction) -> None:
        if not service.rate_rps:
            return
        groups = {
            i: kind.work.supply_rps
            for i, group in enumerate(model.demand.groups)
            for kind in [self.kinds[group.kinds[0]]]
            if kind.work.service == service.name
        }
        needed = share * service.rate_rps
        units, least, is_exact = scale_rates([*groups.values()], needed)
        of = dict(zip(groups, units, strict=True))
        is_equal = self.wanted.routing == "equal"
        model.is_exact &= is_exact or is_equal
        for node in self.fleet.nodes:
            left = {
                v: i
                for pool, x in zip(model.pools, model.x, strict=True)
                for i, v in x.items()
                if i in of and pool.domain != node.name
            }
            if is_equal:
                _share_equally(model.program, {v: groups[i] for v, i in left.items()}, needed)
            else:
                model.program.at_least({v: of[i] for v, i in left.items()}, least)


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


def scale_rates(supplies: Sequence[Fraction], demand: Fraction) -> tuple[list[int], int, bool]:
    """Return supplies and a demand in whole units, and whether nothing was rounded."""
    unit = Fraction(lcm(demand.denominator, *(each.denominator for each in supplies)))
    step = gcd(*(int(each * unit) for each in supplies)) or 1
    if demand * unit / step <= _MOST_UNITS:
        # no supply needs to count for more than all that is wanted
        least = ceil(demand * unit / step)
        return [min(least, int(each * unit) // step) for each in supplies], least, True
    unit = _ROUNDED_UNITS / demand
    whole = [min(_ROUNDED_UNITS, floor(each * unit)) for each in supplies]
    return whole, _ROUNDED_UNITS, False


def _find_covers(pairs: Sequence[tuple[str, str]]) -> list[frozenset[str]]:
    """Return the smallest sets of services to be kept out, so that no pair is on one GPU."""
    found: set[frozenset[str]] = {frozenset()}
    for pair in pairs:
        found = {
            more
            for out in found
            for more in ([out] if out & set(pair) else [out | {name} for name in pair])
        }
    return sorted((out for out in found if not any(other < out for other in found)), key=sorted)
