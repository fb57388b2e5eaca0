"""Bounds on kept instances that prices prove, exactly.

Whatever the prices, as long as none is negative, the bounds hold (Lagrange): once the rows that tie
GPUs together are priced, one choice is left for each GPU, and those are listed. Prices come from a
linear program and are rounded first; nothing here is a float but them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm
from typing import Any, NamedTuple

from ...errors import InvalidCertificate
from ..deployment.instance import Kind
from .gpu_group import GpuGroup, as_pairs
from .placement_model import Demand, PlacementModel
from .program import Limits, Program

Block = tuple[str, str]
#: A row of the relaxation: "kind", "block" or "gpu", and of what.
Label = tuple[str, Any]


@dataclass(frozen=True)
class Prices:
    """What instances and GPUs count for; InvalidCertificate if a price is negative."""

    kinds: Mapping[int, Fraction]  # an instance kept, by the number of its kind
    blocks: Mapping[Block, Fraction]  # an instance of a profile of a GPU
    gpus: Mapping[str, Fraction]  # a GPU of a type

    def __post_init__(self) -> None:
        for (_, name), price in self.rows.items():
            if price < 0:
                raise InvalidCertificate(
                    f"the price of {name} is {price}; expected no negative price"
                )

    @property
    def rows(self) -> dict[Label, Fraction]:
        """The price of each row."""
        named = ("kind", self.kinds), ("block", self.blocks), ("gpu", self.gpus)
        return {(name, what): price for name, part in named for what, price in part.items()}


def _relax(
    groups: Iterable[GpuGroup],
    kinds: Iterable[Kind],
    highs: Mapping[Label, int],
    counted: Callable[[GpuGroup], Mapping[str, int]],
) -> tuple[Program, dict[Label, int]]:
    """Return the linear program of layouts alone, and where it has each row.

    Rows tie kept kinds, profiles and GPUs to layouts. `highs`: The most of a row, by default 0.
    `counted`: The rows of GPUs that a group is in.
    """
    program, rows = Program(), defaultdict[Label, dict[int, int]](dict)
    for group in groups:
        own = [program.variable(len(group.members)) for _ in group.options]
        program.choose(own, len(group.members))
        for y, option in zip(own, group.options, strict=True):
            for kind, n in option.keeps:
                rows["kind", kind][y] = -n
            for profile, n in option.counts:
                rows["block", (group.gpu.key, profile)][y] = -n
            for what, n in counted(group).items():
                rows["gpu", what][y] = n
    for number, each in enumerate(kinds):
        rows.setdefault(("kind", number), {})
        rows.setdefault(("block", (each.gpu, each.profile)), {})
    at = {}
    for label, row in rows.items():
        at[label] = len(program.rows)
        program.at_most(row, highs.get(label, 0))
    return program, at


def _extend(program: Program, more: Mapping[int, Mapping[int, int]]) -> None:
    """Add variables to rows."""
    for at, terms in more.items():
        row = program.rows[at]
        program.rows[at] = row._replace(terms={**row.terms, **terms})


def _relax_demand(
    groups: Iterable[GpuGroup], demand: Demand
) -> tuple[Program, dict[Label, int], dict[int, int]]:
    """Return the relaxation of a demand whose counts are final, and its kept instances."""
    highs: dict[Label, int] = {("gpu", key): n for key, n in demand.wanted.gpus.items()}
    for kind in demand.kinds:
        highs["block", (kind.gpu, kind.profile)] = -demand.on(kind.gpu, kind.profile)
    program, at = _relax(groups, demand.kinds, highs, lambda group: {group.gpu.key: 1})
    kept = [program.variable(count) for count in demand.counts]
    _extend(program, {at["kind", number]: {v: 1} for number, v in enumerate(kept)})
    return program, at, dict.fromkeys(kept, 1)


def most_kept(groups: Iterable[GpuGroup], demand: Demand, prices: Prices) -> int:
    """Return a number of instances that no deployment of the demand can keep more than.

    With α the prices of kinds, π of blocks and λ of GPUs, n the counts wanted and N the most GPUs
    that may be used (a type without a price has no limit): kept <= Σ n max(0, 1 - α) - Σ π n +
    Σ λ N + Σ over GPUs of max(0, max over options of (α keeps + π counts - λ)).
    """
    program, at, kept = _relax_demand(groups, demand)
    unit = lcm(*(price.denominator for price in prices.rows.values()))
    parts = [0] * len(program.rows)
    for label, price in prices.rows.items():
        if label in at:
            parts[at[label]] = int(price * unit)
    return program.bound(kept, parts, unit) // unit


def best_prices(
    groups: Sequence[GpuGroup], demand: Demand, limits: Limits
) -> tuple[Prices, int] | None:
    """Find prices for the best bound on kept instances, and that bound; None if time is up."""
    program, at, kept = _relax_demand(groups, demand)
    found = [
        (program.bound(kept, parts, unit) // unit, unit, parts)
        for unit, parts in program.round_prices(kept, limits)
    ]
    if not found:
        return None
    bound, unit, parts = min(found, key=lambda one: one[0])
    prices: dict[str, dict[Any, Fraction]] = {"kind": {}, "block": {}, "gpu": {}}
    for (name, what), row in at.items():
        prices[name][what] = Fraction(max(0, parts[row]), unit)
    return Prices(*prices.values()), bound


#: Rounds of prices, and nodes of one knapsack; beyond, its relaxation bounds it.
_ROUNDS, _NODES = 60, 20_000
#: What the rows of all GPUs and of their cost are called among those of types.
_ALL, _COST = "all GPUs", "cost"


#: What a service may have: counts, and kept instances, by kind.
_Choice = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


class PlanBound:
    """Bounds on what plans keep within a budget of GPUs: their cost, and how many they are."""

    def __init__(self, model: PlacementModel, budget: tuple[Fraction, int]) -> None:
        self.model, demand = model, model.demand
        steps = int(budget[0] // model.cost_step)
        caps = demand.wanted.max_gpus
        highs = {_ALL: budget[1], _COST: steps, **caps}

        def counted(group: GpuGroup) -> dict[str, int]:
            """Return how a GPU counts in the rows that limit GPUs; costs in whole steps."""
            key = group.gpu.key
            rows = {key: 1} if key in caps else {}
            if not group.is_held:
                rows[_COST] = int(demand.price_of(group) / model.cost_step)
                rows |= {} if model.has_one_price else {_ALL: 1}
            return rows

        rows = {("gpu", row): n for row, n in highs.items()}
        self.program, self.at = _relax(model.groups, demand.kinds, rows, counted)

    def bound(self, prices: Sequence[int], unit: int) -> tuple[int, dict[str, _Choice]]:
        """Return a number that no plan keeps more than at any prices, and what services choose.

        Prices are in parts of a unit; negative ones count as 0. With α the prices of kinds, π of
        blocks, λ of rows of GPUs with high sides N, and for each service n and k over all whole
        numbers that meet its rate, k <= n, k <= what runs: kept <= Σ over services of max(Σ (1 - α)
        k - π n) + Σ λ N + Σ over GPUs of max(0, max over options of (α keeps + π counts) - what the
        GPU counts at λ).
        """
        own = [max(0, price) for price in prices[: len(self.program.rows)]]
        total, chosen = self.program.bound({}, own, unit), {}
        for service in self.model.demand.rates:
            chosen[service], value = self._choose(service, own, unit)
            total += value
        return total // unit, chosen

    def find(self, values: Sequence[int], limits: Limits) -> int:
        """Return the best bound on what plans keep that prices prove, from a known solution.

        Column generation: a linear program over what services may have, of which more is listed as
        its prices ask for it. Every round's prices prove bounds, and the best one counts; one that
        the known solution meets is the end.
        """
        model = self.model
        goal = model.kept_in(values)
        counts, kept = (model.count_kinds(part, values) for part in (model.x, model.k))
        listed: dict[str, dict[_Choice, None]] = {}
        for service, numbers in model.demand.of_service.items():
            own = [{n: side[n] for n in numbers} for side in (counts, kept)]
            listed[service] = {(as_pairs(own[0]), as_pairs(own[1])): None}
        best, _ = self.bound([0] * len(self.program.rows), 1)
        for _ in range(_ROUNDS if best > goal else 0):
            program, terms = self._list_choices(listed)
            asked: dict[str, _Choice] = {}  # what the finest prices ask for
            for unit, prices in program.round_prices(terms, limits):
                bound, asked = self.bound(prices, unit)
                best = min(best, bound)
                if best <= goal:
                    break
            if best <= goal or all(choice in listed[name] for name, choice in asked.items()):
                break
            for name, choice in asked.items():
                listed[name][choice] = None
        return best

    def _list_choices(
        self, listed: Mapping[str, Mapping[_Choice, None]]
    ) -> tuple[Program, dict[int, int]]:
        """Return the linear program over what is listed, and what is kept in it."""
        program, kinds = self.program.copy(), self.model.demand.kinds
        terms: dict[int, int] = {}
        more: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for own in listed.values():
            mine = {program.variable(1): choice for choice in own}
            program.equal(dict.fromkeys(mine, 1), 1)
            for v, (counts, kept) in mine.items():
                terms[v] = sum(n for _, n in kept)
                for number, n in counts:
                    row = more[self.at["block", (kinds[number].gpu, kinds[number].profile)]]
                    row[v] = row.get(v, 0) + n
                for number, n in kept:
                    more[self.at["kind", number]][v] = n
        _extend(program, more)
        return program, terms

    def _choose(self, service: str, prices: Sequence[int], unit: int) -> tuple[_Choice, int]:
        """Choose what a service has at these prices; it is worth at most what is returned."""
        demand, numbers = self.model.demand, self.model.demand.of_service[service]
        rate, kinds = demand.rates[service], [demand.kinds[number] for number in numbers]
        parts = lcm(rate.denominator, *(kind.work.supply_rps.denominator for kind in kinds))
        need = left = int(rate * parts)
        counts, kept, value = Counter[int](), Counter[int](), 0
        items: list[_Item] = []
        for number, kind in zip(numbers, kinds, strict=True):
            here, supply = self.model.running[number], int(kind.work.supply_rps * parts)
            price = prices[self.at["block", (kind.gpu, kind.profile)]]
            gain = max(0, unit - prices[self.at["kind", number]])
            if here and gain >= price:
                counts[number], kept[number] = here, here if gain else 0
                value += here * (gain - price)
                left -= here * supply
            elif here and gain:
                items.append(_Item(number, price - gain, supply, here, True))
            items.append(_Item(number, price, supply, -(-need // supply), False))
        if left > 0:
            cost, taken = _cheapest(items, left)
            value -= cost
            for item, n in taken:
                counts[item.kind] += n
                kept[item.kind] += n * item.keeps
        return (as_pairs(counts), as_pairs(kept)), value


class _Item(NamedTuple):
    """Instances of a kind: what one costs and supplies, and how many there may be."""

    kind: int
    cost: int
    supply: int
    most: int
    keeps: bool


def _cheapest(items: Iterable[_Item], demand: int) -> tuple[int, list[tuple[_Item, int]]]:
    """Cover a demand at the least cost; after too many nodes, a bound on the least cost.

    Depth first over items by what a unit of supply costs; what is left is bounded by the best such
    rate, as if items could be cut.
    """
    order = sorted(items, key=lambda each: (Fraction(each.cost, each.supply), -each.supply))
    root, nodes = _relaxed(order, demand), 0
    best: tuple[int, tuple[int, ...]] | None = None  # the cost, and how many of each item
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, demand, ())]
    while stack:
        cost, left, taken = stack.pop()
        nodes += 1
        if left <= 0:
            best = (cost, taken) if best is None or cost < best[0] else best
            continue
        rest = order[len(taken) :]
        if not rest or (best is not None and cost + _relaxed(rest, left) >= best[0]):
            continue
        if nodes > _NODES and best is not None:
            best = min(best[0], root), best[1]
            break
        item = rest[0]
        for n in range(min(-(-left // item.supply), item.most) + 1):
            stack.append((cost + n * item.cost, left - n * item.supply, (*taken, n)))
    cost, taken = best or (root, ())
    return cost, [(each, n) for each, n in zip(order, taken, strict=False) if n]


def _relaxed(items: Iterable[_Item], left: int) -> int:
    """Return the least cost of covering what is left, rounded up, if items could be cut."""
    cost, need = Fraction(0), Fraction(left)
    for each in items:
        taken = min(need / each.supply, Fraction(each.most))
        cost += taken * each.cost
        need -= taken * each.supply
    return ceil(cost)
