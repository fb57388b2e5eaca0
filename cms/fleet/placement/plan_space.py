"""All plans as one integer program, whose variables count instances of each kind.

It is the placement model with counts as variables. Every service's rate is a row of whole numbers,
and what runs today may go on at its own point wherever the new limits admit that.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..deployment.instance import Kind, Work
from ..deployment.model import Deployment
from ..deployment.wanted import DesiredState
from ..serving.plan import Plan
from .constraint_rows import build_model, find_growing_services, scale_rates
from .constraints import PlacementConstraints
from .gpu_group import kind_of
from .placement_model import Demand, KindGroup, PlacementModel
from .program import Limits, Program

#: GPUs that are free in a neighbourhood, and how many in a row may change nothing.
_FREE_GROUPS, _PATIENCE = 10, 10
#: Most variables of a program that is tried as a whole, and most nodes of that search.
_WHOLE, _NODES = 6000, 20_000
#: What a part may take, and the search for fewer instances.
_FEW_NODES = 200


@dataclass(frozen=True)
class PlanSpace:
    """The plans to choose from.

    `demands`: Of each service, in items per second. `running`: Instances of a kind that run now and
    can go on, by number.
    """

    kinds: tuple[Kind, ...]
    demands: Mapping[str, Fraction]
    running: Mapping[int, int]

    @property
    def of_service(self) -> dict[str, list[int]]:
        """The kinds of each service, by number."""
        found: dict[str, list[int]] = {name: [] for name in self.demands}
        for number, kind in enumerate(self.kinds):
            found[kind.work.service].append(number)
        return found


def works_of(plan: Plan) -> dict[tuple[str, str, str], Work]:
    """Return what instances may do: ``{(GPU, profile, service): work}``, at the plan's points."""
    found = {}
    for service, block in plan.serving.points:
        for served in plan.serving.served(service, block):
            if served.rate_rps:
                work = Work(service, served.point, served.rate_rps)
                found[(*plan.serving.instance_of(block), service)] = work
    return found


def find_plans(now: Deployment, plan: Plan) -> PlanSpace:
    """Return the plans that may be chosen: of the plan's points, and of today's that still do.

    The supplies of `now` are counted as the plan does.
    """
    works = works_of(plan)
    kinds = {Kind(key, profile, work) for (key, profile, _), work in works.items()}
    kinds |= {kind for kind in now.kinds() if _is_admitted(plan, kind, works)}
    ordered = tuple(sorted(kinds, key=lambda kind: (kind.order, str(kind.work.supply_rps))))
    numbers = {kind: number for number, kind in enumerate(ordered)}
    running = Counter(
        numbers[kind]
        for card, each in now.instances()
        if (kind := kind_of(card, each)) is not None and kind in numbers
    )
    demands = {job.name: job.demand for job in plan.serving.problem.jobs}
    return PlanSpace(ordered, demands, running)


def _is_admitted(plan: Plan, kind: Kind, works: Mapping[tuple[str, str, str], Work]) -> bool:
    """Whether an instance that runs today may count for what it does under the plan."""
    serving, work = plan.unshared("a deployment"), kind.work
    services = {service.name: service for service in serving.services}
    service = services.get(work.service)
    if service is None or service.model != work.point.model:
        return False
    if not work.supply_rps or not serving.rule.supply(service, work.point):
        return False
    if kind.gpu not in {gpu.key for gpu in serving.gpus}:
        return False
    if serving.max_processes is not None and work.point.processes > serving.max_processes:
        return False
    new = works.get((kind.gpu, kind.profile, work.service))
    # the same setting with other figures was measured anew since
    return new is None or new == work or kind.order != Kind(kind.gpu, kind.profile, new).order


class PlanModel:
    """The placement model with counts as variables, and a search through it."""

    def __init__(
        self,
        now: Deployment,
        wanted: DesiredState,
        plans: PlanSpace,
        constraints: PlacementConstraints,
        least: Fraction,
    ) -> None:
        self.wanted, self.plans = wanted, plans
        groups = tuple(
            KindGroup(kind.gpu, kind.profile, (number,), can_grow=True)
            for number, kind in enumerate(plans.kinds)
        )
        zero = (0,) * len(groups)
        demand = Demand(
            plans.kinds, zero, wanted.gpus, groups, wanted.prices, wanted.max_gpus,
            wanted.group_limits,
        )  # fmt: skip
        self.model = build_model(wanted, now, constraints, demand, least)
        for service in plans.demands:
            self._add_rate(service)
        self.growing = find_growing_services(wanted, constraints)
        self.instances = {v: -1 for x in self.model.x for v in x.values()}

    def _add_rate(self, service: str) -> None:
        """Have a service supplied with its rate."""
        kinds, demand = self.plans.of_service[service], self.plans.demands[service]
        if demand:
            supplies = [self.plans.kinds[number].work.supply_rps for number in kinds]
            units, least, is_exact = scale_rates(supplies, demand)
            self.model.is_exact &= is_exact
            of = dict(zip(kinds, units, strict=True))
            terms = {v: of[i] for x in self.model.x for i, v in x.items() if i in of}
            self.model.program.at_least(terms, least)

    def keep_plan(self, limits: Limits) -> tuple[PlacementModel, list[int] | None]:
        """Find what the plan as it was made keeps, with what constraints add to it."""
        model = self.model.branch()
        grown: dict[int, int] = {}
        for number, kind in enumerate(self.plans.kinds):
            terms = {x[number]: 1 for x in model.x if number in x}
            count = self.wanted.counts.get(kind, 0)
            if kind.work.service in self.growing:
                model.program.at_least(terms, count)
                grown |= dict.fromkeys(terms, -1)
            else:
                model.program.equal(terms, count)
        best = model.find_least(limits)
        if best is not None:
            best = model.pursue("grown", grown, limits, best)
            best = model.pursue("kept", model.kept, limits, best)
        return model, best

    def count_kinds(
        self, parts: Sequence[Mapping[int, int]], values: Sequence[int]
    ) -> dict[int, int]:
        """Return how many instances of each kind a solution has, or keeps, by number."""
        found: Counter[int] = Counter()
        for part in parts:
            for number, v in part.items():
                found[number] += values[v]
        return dict(sorted((+found).items()))

    def kept_in(self, values: Sequence[int]) -> int:
        """Return how many instances a solution keeps."""
        return sum(values[v] for v in self.model.kept)

    def search(self, best: list[int], limits: Limits, seed: int) -> tuple[list[int], bool]:
        """Improve a solution; returns also whether the solver says that none keeps more.

        The whole program first; where that does not come to its end, one part after the other.
        Then a short search for fewer GPUs and instances that keep the same number.
        """
        ended, kept = False, self.model.kept
        if len(self.model.program.highs) <= _WHOLE:
            values, ended = self.model.program.maximise(kept, limits, best, _NODES)
            best = values or best
        rng, tries = random.Random(seed), 0
        most = sum(self.plans.running.values())
        while not ended and tries < _PATIENCE and not limits.over and self.kept_in(best) < most:
            found = _around(self.model.program, best, self._neighbourhood(rng), kept, limits)
            tries = 0 if self.kept_in(found) > self.kept_in(best) else tries + 1
            best = found
        self.model.program.at_least(kept, self.kept_in(best))
        many = 1 + sum(best[v] for v in self.instances)
        cost = self.instances | dict.fromkeys(self.model.used, -many)
        return self.model.program.maximise(cost, limits, best, _FEW_NODES).values or best, ended

    def _neighbourhood(self, rng: random.Random) -> set[int]:
        """Choose GPUs that share services, and free them and what these services have anywhere."""
        groups = self.model.groups
        on = [{h.kind for h in group.instances if h.kind >= 0} for group in groups]
        service = [{self.plans.kinds[kind].work.service for kind in own} for own in on]
        first = rng.randrange(len(groups))
        order = sorted(
            range(len(groups)),
            key=lambda s: (s != first, -len(service[s] & service[first]), rng.random()),
        )
        chosen = set(order[: _FREE_GROUPS // 2]) | set(
            rng.sample(order, min(len(order), _FREE_GROUPS // 2))
        )
        services = set().union(*(service[s] for s in chosen))
        names = sorted(self.plans.demands)
        services |= set(rng.sample(names, min(len(names), 4)))
        free = {v for y in self.model.y for (s, _), v in y.items() if s in chosen}
        for part in (*self.model.x, *self.model.k):
            free |= {v for n, v in part.items() if self.plans.kinds[n].work.service in services}
        return free


def _around(
    program: Program,
    values: list[int],
    free: set[int],
    terms: Mapping[int, int],
    limits: Limits,
) -> list[int]:
    """Improve a solution by some of its variables, all others as they are."""
    part = Program()
    order = sorted(free)
    at = {v: part.variable(program.highs[v]) for v in order}
    for row in program.rows:
        own = {at[v]: n for v, n in row.terms.items() if v in at}
        if own:
            rest = sum(n * values[v] for v, n in row.terms.items() if v not in at)
            part.between(own, row.low - rest, row.high - rest)
    worth = {at[v]: n for v, n in terms.items() if v in at}
    found = part.maximise(worth, limits, [values[v] for v in order], _FEW_NODES).values
    if found is None:
        return values
    new = list(values)
    for v in order:
        new[v] = found[at[v]]
    return new
