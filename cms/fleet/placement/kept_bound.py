"""Bounds on kept instances that prices prove, exactly.

Whatever the prices, as long as none is negative, the bounds hold (Lagrange): once the rows that tie
GPUs together are priced, one choice is left for each GPU, and those are listed. Prices come from a
linear program and are rounded first; nothing here is a float but them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple, cast

from ...errors import InvalidCertificate
from .gpu_group import GpuGroup
from .placement_model import Demand, PlacementModel
from .plan_space import PlanSpace
from .program import DENOMINATORS, Limits, Program

Block = tuple[str, str]
#: A row of the relaxation: "kind", "block" or "gpu", and of what.
Label = tuple[str, object]


@dataclass(frozen=True)
class Prices:
    """What instances and GPUs count for; InvalidCertificate if a price is negative."""

    kinds: Mapping[int, Fraction]  # an instance kept, by the number of its kind
    blocks: Mapping[Block, Fraction]  # an instance of a profile of a GPU
    gpus: Mapping[str, Fraction]  # a GPU of a type

    def __post_init__(self) -> None:
        for prices in (self.kinds, self.blocks, self.gpus):
            for name, price in prices.items():
                if price < 0:
                    raise InvalidCertificate(
                        f"the price of {name} is {price}; expected no negative price"
                    )


class Relaxation:
    """The linear program of layouts alone: rows tie kept kinds, profiles and GPUs to them.

    `counted`: The rows of GPUs that a group is in, with factors; by default that of its type.
    """

    def __init__(
        self,
        groups: Iterable[GpuGroup],
        counted: Callable[[GpuGroup], Mapping[str, int]] = lambda group: {group.gpu.key: 1},
    ) -> None:
        self.program = Program()
        self.rows: dict[Label, dict[int, int]] = {}  # each at most 0, or what `find` is told
        for group in groups:
            key, own = group.gpu.key, []
            for option in group.options:
                y = self.program.variable(len(group.members))
                own.append(y)
                for kind, n in option.keeps:
                    self.add("kind", kind, y, -n)
                for profile, n in option.counts:
                    self.add("block", (key, profile), y, -n)
                for what, n in counted(group).items():
                    self.add("gpu", what, y, n)
            self.program.choose(own, len(group.members))

    def add(self, name: str, what: object, variable: int, factor: int) -> None:
        """Add a variable to a row."""
        row = self.rows.setdefault((name, what), {})
        row[variable] = row.get(variable, 0) + factor

    def find(
        self, terms: Mapping[int, int], highs: Mapping[Label, int], limits: Limits
    ) -> dict[Label, float] | None:
        """Return the prices of rows at the most of some terms; None if time is up."""
        at = {}
        for label, row in self.rows.items():
            at[label] = len(self.program.rows)
            self.program.at_most(row, highs.get(label, 0))
        duals = self.program.find_prices(terms, limits)
        return None if duals is None else {label: max(0.0, duals[r]) for label, r in at.items()}


def round_prices(duals: Mapping[Label, float], unit: int) -> Prices:
    """Return prices in parts of a unit."""
    parts: dict[str, dict[object, Fraction]] = {"kind": {}, "block": {}, "gpu": {}}
    for (name, what), price in duals.items():
        parts[name][what] = Fraction(round(price * unit), unit)
    return Prices(parts["kind"], parts["block"], parts["gpu"])  # type: ignore[arg-type]


def most_kept(groups: Iterable[GpuGroup], demand: Demand, prices: Prices) -> int:
    """Return a number of instances that no deployment of the demand can keep more than.

    With α the prices of kinds, π of blocks and λ of GPUs, n the counts wanted and N the most GPUs
    that may be used (a type without a price has no limit): kept <= Σ n max(0, 1 - α) - Σ π n +
    Σ λ N + Σ over GPUs of max(0, max over options of (α keeps + π counts - λ)).
    """
    total = Fraction(0)
    for number, (kind, count) in enumerate(zip(demand.kinds, demand.counts, strict=True)):
        total += count * max(Fraction(0), 1 - prices.kinds.get(number, Fraction(0)))
        total -= count * prices.blocks.get((kind.gpu, kind.profile), Fraction(0))
    total += sum((price * demand.gpus[key] for key, price in prices.gpus.items()), Fraction(0))
    for group in groups:
        own = prices.gpus.get(group.gpu.key, Fraction(0))
        total += len(group.members) * find_worth(group, prices, own)
    return floor(total)


def find_worth(group: GpuGroup, prices: Prices, gpu: Fraction) -> Fraction:
    """Return what the best option of one GPU is worth, less what the GPU costs."""
    key, best = group.gpu.key, gpu
    for option in group.options:
        value = Fraction(0)
        for kind, n in option.keeps:
            value += prices.kinds.get(kind, 0) * n
        for profile, n in option.counts:
            value += prices.blocks.get((key, profile), 0) * n
        best = max(best, value)
    return best - gpu


def best_prices(
    groups: Sequence[GpuGroup], demand: Demand, limits: Limits
) -> tuple[Prices, int] | None:
    """Find prices for the best bound on kept instances, and that bound; None if time is up."""
    relaxation = Relaxation(groups)
    highs: dict[Label, int] = {}
    for block in {(kind.gpu, kind.profile): None for kind in demand.kinds}:
        relaxation.rows.setdefault(("block", block), {})
        highs["block", block] = -demand.on(*block)
    highs |= {("gpu", group.gpu.key): demand.gpus[group.gpu.key] for group in groups}
    kinds = [cast("int", what) for name, what in relaxation.rows if name == "kind"]
    kept = {kind: relaxation.program.variable(demand.counts[kind]) for kind in kinds}
    for kind, k in kept.items():
        relaxation.add("kind", kind, k, 1)
    duals = relaxation.find(dict.fromkeys(kept.values(), 1), highs, limits)
    if duals is None:
        return None
    # of what does not run nothing can be kept, and keeping it costs no GPU anything
    absent = {at: Fraction(1) for at in range(len(demand.kinds)) if at not in kept}
    found = [
        Prices(absent | dict(prices.kinds), prices.blocks, prices.gpus)
        for prices in (round_prices(duals, unit) for unit in DENOMINATORS)
    ]
    return min(((each, most_kept(groups, demand, each)) for each in found), key=lambda one: one[1])


_DENOMINATORS = (1, 2, 4, 60, 1000)
_FINE = 10**6
#: Rounds of prices, and nodes of one knapsack; beyond, its relaxation bounds it.
_ROUNDS, _NODES = 60, 20_000
#: What the rows of all GPUs and of their cost are called among those of types.
_ALL, _COST = "all GPUs", "cost"


class _Choice(NamedTuple):
    """What a service may have: counts and kept instances by kind, and at least what it is worth."""

    counts: tuple[tuple[int, int], ...]
    kept: tuple[tuple[int, int], ...]
    value: Fraction


@dataclass(frozen=True)
class PlanBound:
    """Bounds on what plans keep within a budget of GPUs: their cost, and how many they are."""

    model: PlacementModel
    plans: PlanSpace
    budget: tuple[Fraction, int]

    def _counted(self, group: GpuGroup) -> dict[str, int]:
        """Return how a GPU counts in the rows that limit GPUs; costs in whole steps."""
        demand, key = self.model.demand, group.gpu.key
        steps = int(demand.price_of(group) / self.model.cost_step)
        rows = {} if group.is_held else {_COST: steps}
        if not (group.is_held or self.model.has_one_price):
            rows[_ALL] = 1
        return rows | ({key: 1} if key in demand.caps else {})

    @property
    def _highs(self) -> dict[str, int]:
        steps = int(self.budget[0] // self.model.cost_step)
        return {_ALL: self.budget[1], _COST: steps, **self.model.demand.caps}

    def most_kept(self, prices: Prices) -> int:
        """Return a number of instances that no plan keeps more than.

        With α the prices of kinds, π of blocks, λ of rows of GPUs with high sides N, and for each
        service n and k over all whole numbers that meet its rate, k <= n, k <= what runs: kept <=
        Σ over services of max(Σ (1 - α) k - π n) + Σ λ N + Σ over GPUs of max(0, max over options
        of (α keeps + π counts) - what the GPU counts at λ).
        """
        return self._bound(prices)[0]

    def _bound(self, prices: Prices) -> tuple[int, dict[str, _Choice]]:
        chosen = {
            service: _best_choice(self.plans, service, numbers, prices)
            for service, numbers in self.plans.of_service.items()
        }
        total = sum((each.value for each in chosen.values()), Fraction(0))
        total += sum(price * self._highs[row] for row, price in prices.gpus.items())
        for group in self.model.groups:
            counted = self._counted(group).items()
            gpu = sum((n * prices.gpus.get(row, Fraction(0)) for row, n in counted), Fraction(0))
            total += len(group.members) * find_worth(group, prices, gpu)
        return floor(total), chosen

    def find(
        self, start: tuple[Mapping[int, int], Mapping[int, int]], kept: int, limits: Limits
    ) -> int:
        """Return the best bound on what plans keep that prices prove.

        Column generation: a linear program over what services may have, of which more is listed as
        its prices ask for it. Every round's prices prove a bound, and the best one counts. `start`
        is a plan that is known, by counts and kept instances of each kind; a bound of `kept` is the
        end.
        """
        counts, held = start
        choices: dict[str, dict[_Choice, None]] = {}
        for service, numbers in self.plans.of_service.items():
            own = [_pairs({n: side.get(n, 0) for n in numbers}) for side in (counts, held)]
            choices[service] = {_Choice(own[0], own[1], Fraction(0)): None}
        best = self.most_kept(Prices({}, {}, {}))
        for _ in range(_ROUNDS):
            duals = None if best <= kept else self._find_duals(choices, limits)
            if duals is None:
                break
            bound, asked = self._bound(round_prices(duals, _FINE))
            best = min(best, bound)
            for unit in _DENOMINATORS:
                if best > kept:
                    best = min(best, self.most_kept(round_prices(duals, unit)))
            is_new = False
            for service, choice in asked.items():
                plain = choice._replace(value=Fraction(0))
                is_new |= plain not in choices[service]
                choices[service][plain] = None
            if not is_new:
                break
        return best

    def _find_duals(
        self, choices: Mapping[str, Mapping[_Choice, None]], limits: Limits
    ) -> dict[Label, float] | None:
        """Return the prices of the linear program over what is listed."""
        relaxation = Relaxation(self.model.groups, self._counted)
        terms: dict[int, int] = {}
        for own in choices.values():
            mine = []
            for choice in own:
                v = relaxation.program.variable(1)
                mine.append(v)
                terms[v] = sum(n for _, n in choice.kept)
                for number, n in choice.counts:
                    kind = self.plans.kinds[number]
                    relaxation.add("block", (kind.gpu, kind.profile), v, n)
                for number, n in choice.kept:
                    relaxation.add("kind", number, v, n)
            relaxation.program.equal(dict.fromkeys(mine, 1), 1)
        return relaxation.find(terms, {("gpu", row): n for row, n in self._highs.items()}, limits)


class _Item(NamedTuple):
    """Instances of a kind: what one costs, supplies, and how many there may be (-1: any number)."""

    kind: int
    cost: int
    supply: int
    most: int
    keeps: bool


def _best_choice(plans: PlanSpace, service: str, numbers: Sequence[int], prices: Prices) -> _Choice:
    """Choose what a service has, at these prices."""
    counts: dict[int, int] = {}
    kept: dict[int, int] = {}
    value = Fraction(0)
    demand = plans.demands[service]
    free: list[tuple[int, Fraction, int, bool]] = []
    for number in numbers:
        kind = plans.kinds[number]
        price = prices.blocks.get((kind.gpu, kind.profile), Fraction(0))
        gain = max(Fraction(0), 1 - prices.kinds.get(number, Fraction(0)))
        here = plans.running.get(number, 0)
        if here and gain >= price:
            counts[number] = here
            if gain:  # else the price of keeping it is too high
                kept[number] = here
            value += here * (gain - price)
            demand -= here * kind.work.supply_rps
        elif here and gain:
            free.append((number, price - gain, here, True))
        free.append((number, price, -1, False))
    if demand > 0:
        supplies = {n: plans.kinds[n].work.supply_rps for n in numbers}
        unit = lcm(demand.denominator, *(each.denominator for each in supplies.values()))
        scale = lcm(*(cost.denominator for _, cost, _, _ in free)) if free else 1
        items = [
            _Item(number, int(cost * scale), int(supplies[number] * unit), most, keeps)
            for number, cost, most, keeps in free
        ]
        bound, taken = _cheapest(items, int(demand * unit))
        value -= Fraction(bound, scale)
        for item, n in taken:
            counts[item.kind] = counts.get(item.kind, 0) + n
            if item.keeps:
                kept[item.kind] = kept.get(item.kind, 0) + n
    return _Choice(_pairs(counts), _pairs(kept), value)


def _pairs(counts: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((kind, n) for kind, n in counts.items() if n))


def _cheapest(items: list[_Item], demand: int) -> tuple[int, list[tuple[_Item, int]]]:
    """Cover a demand at the least cost; after too many nodes, a bound on the least cost.

    Depth first over items by what a unit of supply costs; what is left is bounded by the best such
    rate, as if items could be cut.
    """
    order = sorted(items, key=lambda each: (Fraction(each.cost, each.supply), -each.supply))
    best: list[int] | None = None
    best_cost, nodes = 0, 0
    stack: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, demand, ())]
    relaxed = _relaxed(order, 0, demand)
    while stack:
        at, cost, left, taken = stack.pop()
        nodes += 1
        if left <= 0:
            if best is None or cost < best_cost:
                best, best_cost = list(taken), cost
            continue
        if at == len(order):
            continue
        if best is not None and cost + _relaxed(order, at, left) >= best_cost:
            continue
        if nodes > _NODES and best is not None:
            return min(best_cost, relaxed), _taken(order, best)
        each = order[at]
        needed = -(-left // each.supply)
        most = needed if each.most < 0 else min(needed, each.most)
        for n in range(most + 1):
            stack.append((at + 1, cost + n * each.cost, left - n * each.supply, (*taken, n)))
    if best is None:  # only items of which there are few: no instance can serve it
        return relaxed, []
    return best_cost, _taken(order, best)


def _taken(order: Sequence[_Item], counts: Sequence[int]) -> list[tuple[_Item, int]]:
    return [(each, n) for each, n in zip(order, counts, strict=False) if n]


def _relaxed(order: Sequence[_Item], at: int, left: int) -> int:
    """The least cost of covering what is left, rounded up, if items could be cut."""
    cost = Fraction(0)
    for each in order[at:]:
        if left <= 0:
            break
        if each.most < 0 or each.most * each.supply >= left:
            return ceil(cost + Fraction(each.cost * left, each.supply))
        cost += each.most * each.cost
        left -= each.most * each.supply
    return ceil(cost)
