"""All plans on a number of GPUs as one program, whose variables count instances of each kind.

It is the keeping program with counts as variables. Every service's rate is a row of whole numbers,
and what runs today may go on at its own point wherever the new limits admit that.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from ...problem.parts import GroupLimit
from ...values.numbers import common_step
from ..serving.plan import Plan
from .checking import has_our_work
from .instance import Kind, Work
from .keeping import Crowd, Demand
from .model import Deployment, FleetGpu
from .programs import Limits, Program
from .spots import Column, Spot, kind_of
from .wanted import DesiredState
from .wishes import PlacementConstraints, keeping_program

__all__ = ["NearestProgram", "Plans", "count_by_kind", "plans_near", "works_of"]

#: Most units of a rate in a row; beyond, supplies are rounded down and rates up to the second
#: number of units, few enough for a solver's tolerance to be less than one.
_MOST_UNITS, _ROUNDED_UNITS = 10**7, 10**5
#: GPUs that are free in a neighbourhood, and how many in a row may change nothing.
_FREE_SPOTS, _PATIENCE = 10, 10
#: Most variables of a program that is tried as a whole, and most nodes of that search.
_WHOLE, _NODES = 6000, 20_000
#: What a part may take, and the search for fewer instances.
_FEW_NODES = 200


@dataclass(frozen=True)
class Plans:
    """The plans to choose from."""

    kinds: tuple[Kind, ...]
    demands: Mapping[str, Fraction]  # of each service, in items per second
    running: Mapping[int, int]  # instances of a kind that run now and can go on
    gpus: Mapping[str, int]  # of each type that may be used
    most_more: Mapping[str, int]  # of each type beyond
    more: int  # beyond in all
    groups: Sequence[GroupLimit] = ()

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


def plans_near(now: Deployment, plan: Plan, gpus: Mapping[str, int], more: int) -> Plans:
    """Return the plans that may be chosen: of the plan's points, and of today's that still do.

    The supplies of `now` are counted as the plan does; `more` GPUs beyond `gpus` may be used.
    """
    serving = plan.serving
    works = works_of(plan)
    kinds = {Kind(key, profile, work) for (key, profile, _), work in works.items()}
    there = now.kinds()
    kinds |= {kind for kind in there if _is_admitted(plan, kind, works)}
    ordered = tuple(sorted(kinds, key=lambda kind: (kind.order, str(kind.work.supply_rps))))
    numbers = {kind: number for number, kind in enumerate(ordered)}
    running = Counter(
        numbers[kind]
        for card, each in now.instances()
        if (kind := kind_of(card, each)) is not None and kind in numbers
    )
    problem = serving.problem
    rooms = {gpu.key: problem.room_for(gpu.key, gpus) for gpu in serving.gpus}
    most_more = {key: more if room is None else room for key, room in rooms.items()}
    demands = {job.name: job.demand for job in problem.jobs}
    groups = problem.group_limits
    return Plans(ordered, demands, running, dict(gpus), most_more, more, groups)


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


def count_by_kind(parts: Sequence[Mapping[int, int]], values: Sequence[int]) -> dict[int, int]:
    """Return how many instances of each kind a solution has, or keeps, by number."""
    found: Counter[int] = Counter()
    for part in parts:
        for number, v in part.items():
            found[number] += values[v]
    return dict(sorted((+found).items()))


def _units(supplies: Sequence[Fraction], demand: Fraction) -> tuple[list[int], int, bool]:
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


class NearestProgram:
    """The program, and a search through it."""

    def __init__(
        self, now: Deployment, wanted: DesiredState, plans: Plans, wishes: PlacementConstraints
    ) -> None:
        self.now, self.plans = now, plans
        crowds = tuple(
            Crowd(kind.gpu, kind.profile, (number,), can_grow=True)
            for number, kind in enumerate(plans.kinds)
        )
        demand = Demand(plans.kinds, (0,) * len(crowds), plans.gpus, crowds)
        self.numbers = demand.numbers
        self.keeping = keeping_program(wanted, now, wishes, demand)
        self.spots, self.program = self.keeping.spots, self.keeping.program
        self.is_exact = True  # no service's rate was rounded
        for service in plans.demands:
            self._add_rate(service)
        self.kept = {v: 1 for k in self.keeping.k for v in k.values()}
        for key, v in self.keeping.more.items():
            self.program.at_most({v: 1}, plans.most_more.get(key, plans.more))
        for group in plans.groups:
            step = common_step(group.weights.values())
            used = sum(n * plans.gpus.get(key, 0) for key, n in group.weights.items())
            weights = {v: group.weights.get(key, 0) for key, v in self.keeping.more.items()}
            counted = {v: int(n / step) for v, n in weights.items() if n}
            self.program.at_most(counted, max(0, int((group.at_most - used) // step)))
        if self.keeping.more:
            self.program.at_most(dict.fromkeys(self.keeping.more.values(), 1), plans.more)
        self.instances = {v: -1 for x in self.keeping.x for v in x.values()}

    def _add_rate(self, service: str) -> None:
        """Have a service supplied with its rate."""
        kinds, demand = self.plans.of_service[service], self.plans.demands[service]
        if demand:
            supplies = [self.plans.kinds[number].work.supply_rps for number in kinds]
            units, least, is_exact = _units(supplies, demand)
            self.is_exact &= is_exact
            of = dict(zip(kinds, units, strict=True))
            terms = {v: of[i] for x in self.keeping.x for i, v in x.items() if i in of}
            self.program.at_least(terms, least)

    def kept_in(self, values: Sequence[int]) -> int:
        """Return how many instances a solution keeps."""
        return sum(values[v] for v in self.kept)

    def gpus(self, values: Sequence[int]) -> dict[str, int]:
        """Return how many GPUs of each type a solution may use."""
        return {
            key: n + (values[self.keeping.more[key]] if key in self.keeping.more else 0)
            for key, n in self.plans.gpus.items()
        }

    # --- the search -------------------------------------------------------------------------------

    def search(
        self, start: list[int] | None, limits: Limits, seed: int
    ) -> tuple[list[int] | None, bool]:
        """Improve a solution; returns also whether the solver says that none keeps more.

        The whole program first; where that does not come to its end, one part after the other.
        Then a short search for fewer GPUs and instances that keep the same number.
        """
        best, ended = start, False
        if best is None or len(self.program.highs) <= _WHOLE:
            nodes = None if best is None else _NODES
            best, ended = self.program.maximise(self.kept, limits, best, nodes)
        if best is None:
            return None, ended
        if not ended:
            best = self._by_neighbourhoods(best, limits, random.Random(seed))
        self.program.at_least(self.kept, self.kept_in(best))
        many = 1 + sum(best[v] for v in self.instances)
        cost = self.instances | dict.fromkeys(self.keeping.more.values(), -many)
        return self.program.maximise(cost, limits, best, _FEW_NODES).values or best, ended

    def _by_neighbourhoods(self, best: list[int], limits: Limits, rng: random.Random) -> list[int]:
        most = sum(self.plans.running.values())
        tries = 0
        while tries < _PATIENCE and not limits.over and self.kept_in(best) < most:
            free = self._neighbourhood(rng)
            found = _around(self.program, best, free, self.kept, limits)
            tries = 0 if self.kept_in(found) > self.kept_in(best) else tries + 1
            best = found
        return best

    def _neighbourhood(self, rng: random.Random) -> set[int]:
        """Choose GPUs that share services, and free them and what these services have anywhere."""
        on = [{h.kind for h in spot.here if h.kind >= 0} for spot in self.spots]
        service = [{self.plans.kinds[kind].work.service for kind in own} for own in on]
        first = rng.randrange(len(self.spots))
        order = sorted(
            range(len(self.spots)),
            key=lambda s: (s != first, -len(service[s] & service[first]), rng.random()),
        )
        spots = set(order[: _FREE_SPOTS // 2]) | set(
            rng.sample(order, min(len(order), _FREE_SPOTS // 2))
        )
        services = set().union(*(service[s] for s in spots))
        names = sorted(self.plans.demands)
        services |= set(rng.sample(names, min(len(names), 4)))
        free = set(self.keeping.more.values())
        for y in self.keeping.y:
            free |= {v for (s, _), v in y.items() if s in spots}
        for part in (self.keeping.x, self.keeping.k):
            for each in part:
                free |= {v for n, v in each.items() if self.plans.kinds[n].work.service in services}
        return free

    # --- where it starts --------------------------------------------------------------------------

    def values_of(self, after: Deployment) -> list[int] | None:
        """Return a deployment as a solution; None if wishes divide the fleet, or it is none."""
        if len(self.keeping.pools) != 1:
            return None
        values = [0] * len(self.program.highs)
        (y,), (x,), (k,) = self.keeping.y, self.keeping.x, self.keeping.k
        cards = {(card.node, card.index): card for card in after.gpus()}
        used: Counter[str] = Counter()
        for s, spot in enumerate(self.spots):
            for before in spot.cards:
                card = cards[before.node, before.index]
                if not has_our_work(card):
                    continue
                used[card.gpu.key] += 1
                kept = _stayed(before, card, self.numbers)
                column = _column_of(spot, card, kept)
                if column is None:
                    return None
                values[y[s, column]] += 1
                for number, n in kept.items():
                    values[k[number]] += n
        for kind, n in after.kinds().items():
            if self.numbers.get(kind) not in x:
                return None
            values[x[self.numbers[kind]]] += n
        for key, v in self.keeping.more.items():
            values[v] = max(0, used[key] - self.plans.gpus.get(key, 0))
        return values


def _stayed(before: FleetGpu, after: FleetGpu, numbers: Mapping[Kind, int]) -> dict[int, int]:
    """Count what goes on at its place, by kind."""

    def places(card: FleetGpu) -> Counter[tuple[int | None, int]]:
        return Counter(
            (each.start, numbers[kind])
            for each in card.instances
            if (kind := kind_of(card, each)) is not None and kind in numbers
        )

    found: Counter[int] = Counter()
    for (_, number), n in (places(before) & places(after)).items():
        found[number] += n
    return found


def _column_of(spot: Spot, card: FleetGpu, kept: Mapping[int, int]) -> int | None:
    """Return the column that has all that a GPU is to hold."""
    works = [each for each in card.instances if each.is_managed and each.work is not None]
    counts = Counter(each.profile for each in works)

    def fits(column: Column) -> bool:
        room, keeps = dict(column.counts), dict(column.keeps)
        if column.stays and sum(keeps.values()) != sum(kept.values()):
            return False
        return (
            column.mode is card.mode
            and all(room.get(name, 0) >= n for name, n in counts.items())
            and all(keeps.get(number, 0) >= n for number, n in kept.items())
        )

    return next((c for c, column in enumerate(spot.columns) if fits(column)), None)


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
