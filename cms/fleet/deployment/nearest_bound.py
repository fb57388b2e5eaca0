"""A bound on what any plan keeps, which prices prove exactly.

As in :mod:`~cms.fleet.deployment.keeping_bound` the rows that tie GPUs and services together are
priced (Lagrange). What is left is one choice for each GPU, listed, and one for each service: the
instances that meet its rate in whole numbers at the best balance of what is kept and what is paid.
That choice is a small covering knapsack, some of whose items (those that run) there are few of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

from .keeping_bound import Prices, worth
from .nearest_program import Plans
from .programs import Limits, Program
from .spots import Spot

__all__ = ["find_plan_bound", "most_kept_by_plans"]

_DENOMINATORS = (1, 2, 4, 60, 1000)
_FINE = 10**6
#: Rounds of prices, and nodes of one knapsack; beyond, its relaxation bounds it.
_ROUNDS, _NODES = 60, 20_000


class _Choice(NamedTuple):
    """What a service may have: counts and kept instances by kind, and at least what it is worth."""

    counts: tuple[tuple[int, int], ...]
    kept: tuple[tuple[int, int], ...]
    value: Fraction


def most_kept_by_plans(spots: Sequence[Spot], plans: Plans, prices: Prices) -> int:
    """Return a number of instances that no plan keeps more than.

    With α the prices of kinds, π of blocks, λ of GPUs, N the GPUs allowed, and for each service
    n and k over all whole numbers that meet its rate, k <= n, k <= what runs: kept <=
    Σ over services of max(Σ (1 - α) k - π n) + Σ λ N + the dearest GPUs beyond + Σ over GPUs of
    max(0, max over columns of (α keeps + π counts - λ)).
    """
    return _bound(spots, plans, prices)[0]


def _bound(spots: Sequence[Spot], plans: Plans, prices: Prices) -> tuple[int, dict[str, _Choice]]:
    chosen = {
        service: _best_choice(plans, service, numbers, prices)
        for service, numbers in plans.of_service.items()
    }
    total = sum((each.value for each in chosen.values()), Fraction(0))
    left = plans.more
    by_price = sorted(prices.gpus.items(), key=lambda entry: (-entry[1], entry[0]))
    for key, price in by_price:
        taken = min(left, plans.most_more.get(key, left))
        left -= taken
        total += price * (plans.gpus.get(key, 0) + taken)
    for spot in spots:
        total += len(spot.cards) * worth(spot, prices)
    return floor(total), chosen


class _Item(NamedTuple):
    """Instances of a kind: what one costs, supplies, and how many there may be (-1: any number)."""

    kind: int
    cost: int
    supply: int
    most: int
    keeps: bool


def _best_choice(plans: Plans, service: str, numbers: Sequence[int], prices: Prices) -> _Choice:
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
            counts[number] = kept[number] = here
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


# --- prices ---------------------------------------------------------------------------------------


def find_plan_bound(
    spots: Sequence[Spot],
    plans: Plans,
    start: tuple[Mapping[int, int], Mapping[int, int]],
    kept: int,
    limits: Limits,
) -> int:
    """Return the best bound on what plans keep that prices prove.

    Column generation: a linear program over what services may have, of which more is listed as its
    prices ask for it. Every round's prices prove a bound, and the best one counts. `start` is a
    plan that is known, by counts and kept instances of each kind; a bound of `kept` is the end.
    """
    counts, held = start
    choices: dict[str, dict[_Choice, None]] = {
        service: {
            _Choice(
                _pairs({n: counts.get(n, 0) for n in numbers}),
                _pairs({n: held.get(n, 0) for n in numbers}),
                Fraction(0),
            ): None
        }
        for service, numbers in plans.of_service.items()
    }
    best = most_kept_by_plans(spots, plans, Prices({}, {}, {}))
    for _ in range(_ROUNDS):
        duals = None if best <= kept else _priced(spots, plans, choices, limits)
        if duals is None:
            break
        bound, asked = _bound(spots, plans, _rounded(duals, _FINE))
        simple = (most_kept_by_plans(spots, plans, _rounded(duals, to)) for to in _DENOMINATORS)
        best = min(best, bound, *simple)
        is_new = False
        for service, choice in asked.items():
            plain = choice._replace(value=Fraction(0))
            is_new |= plain not in choices[service]
            choices[service][plain] = None
        if not is_new:
            break
    return best


_Duals = Mapping[tuple[str, object], float]


def _priced(
    spots: Sequence[Spot],
    plans: Plans,
    choices: Mapping[str, Mapping[_Choice, None]],
    limits: Limits,
) -> _Duals | None:
    """Return the prices of the linear program over what is listed."""
    program = Program()
    terms: dict[int, int] = {}
    rows: dict[tuple[str, object], dict[int, int]] = {}
    for own in choices.values():
        mine = {}
        for choice in own:
            v = program.variable(1)
            mine[v] = 1
            terms[v] = sum(n for _, n in choice.kept)
            for number, n in choice.counts:
                kind = plans.kinds[number]
                row = rows.setdefault(("block", (kind.gpu, kind.profile)), {})
                row[v] = row.get(v, 0) + n
            for number, n in choice.kept:
                rows.setdefault(("kind", number), {})[v] = n
        program.equal(mine, 1)
    for spot in spots:
        mine = {}
        for column in spot.columns:
            v = program.variable(len(spot.cards))
            mine[v] = 1
            for number, n in column.keeps:
                rows.setdefault(("kind", number), {})[v] = -n
            for profile, n in column.counts:
                rows.setdefault(("block", (spot.gpu.key, profile)), {})[v] = -n
        program.at_most(mine, len(spot.cards))
        rows.setdefault(("gpu", spot.gpu.key), {}).update(mine)
    more = {}
    at = {}
    for (what, name), row in rows.items():
        high = 0
        if what == "gpu":
            key = str(name)
            more[program.variable(plans.most_more.get(key, plans.more))] = 1
            row[len(program.highs) - 1] = -1
            high = plans.gpus.get(key, 0)
        at[what, name] = len(program.rows)
        program.at_most(row, high)
    program.at_most(more, plans.more)
    duals = program.prices(terms, limits)
    return None if duals is None else {key: abs(duals[row]) for key, row in at.items()}


def _rounded(duals: _Duals, to: int) -> Prices:
    parts: dict[str, dict[object, Fraction]] = {"kind": {}, "block": {}, "gpu": {}}
    for (what, name), price in duals.items():
        parts[what][name] = Fraction(round(price * to), to)
    return Prices(parts["kind"], parts["block"], parts["gpu"])  # type: ignore[arg-type]
