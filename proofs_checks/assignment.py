"""Assignment prices: what proves how much sharing GPUs can be worth, and that some always do.

**Statement.** G online classes of n_o GPUs and K offline classes of m_f workloads; a plan x >= 0,
whole, has sum_f x(o, f) <= n_o and sum_o x(o, f) <= m_f, and is 0 on forbidden pairs; it is worth
sum w x. Prices are whole u, v >= 0 with u_o + v_f >= w(o, f) on every allowed pair.

1. Every plan is worth at most sum n_o u_o + sum m_f v_f.
2. The linear program without "whole" has a whole optimal vertex, and so has its dual: the least
   bound by prices is exactly what the best plan is worth.
3. Paths. Nodes are the offline classes and ``none``. For a plan x let there be an arc k' -> k of
   length max(w(o, k) - w(o, k')) over the o with x(o, k') > 0; none -> k of length max(0, w(o, k))
   over the o with a GPU left; k' -> none of length -min w(o, k') over those o, or 0 if that is more
   and workloads of k' are left. If no circle has a positive length, the longest paths v from
   ``none`` and u_o = max(0, max_f w(o, f) - v_f) prove that x is optimal. If one has, exchanging
   one workload along it gives a better plan.
4. Any v >= 0 is part of prices, with u as in 3. So the median of the prices of parts of the
   classes bounds what joining the parts loses.
5. If no weight rises with activity, activities rounded up cost at most what the optima with
   activities rounded up and down differ by.

**Machine-checked.** On random tiny problems (up to 3 x 3 classes, counts up to 3, ties, forbidden
pairs), against all plans: 1 for random prices; 2 by an exact simplex method, value and vertex, and
that :class:`cms.fleet.AssignmentPrices` says the same, and refuses each price that is 1 lower where
it was needed; 3 for every plan: a circle if and only if it is not optimal, and then the exchange;
4 for random splits in two; 5 for random functions of activity. `muxflow`'s answer last.

**On paper.** 1: sum w x <= sum (u + v) x <= sum n u + sum m v. 2: the matrix is that of a bipartite
graph, hence totally unimodular (Hoffman and Kruskal 1956). 3: at the longest paths every pair in
use has w = u + v, what is left over has the price 0, and all pairs have w <= u + v; along a
positive circle the plan keeps to all counts and gains the circle's length. 4: by the choice of u.
5: a plan for activities rounded up is one for the true activities, and that is one for activities
rounded down; weights only grow along the way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import NamedTuple, TypeAlias

from cms import InvalidCertificate
from cms.fleet import AssignmentPrices, ColocationPlan, ColocationProblem, OfflineClass, OnlineClass
from cms.fleet import colocate as share_gpus

from .finding import Tally, require, theorem
from .lp import minimise

Plan: TypeAlias = tuple[tuple[int, ...], ...]
Circle: TypeAlias = list[int]


class Classes(NamedTuple):
    """Counts of both sides and the weights of their pairs; None where a pair is forbidden."""

    online: tuple[int, ...]
    offline: tuple[int, ...]
    weights: tuple[tuple[int | None, ...], ...]

    def problem(self) -> ColocationProblem:
        """Return it as the package poses it."""
        return ColocationProblem(
            online=[
                OnlineClass("gpu", count=n, sm_activity=0, name=f"o{i}")
                for i, n in enumerate(self.online)
            ],
            offline=[OfflineClass(f"f{j}", count=m) for j, m in enumerate(self.offline)],
            weights=lambda o, f: self.weights[int(o.name[1:])][int(f.name[1:])],
        )

    def allowed(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over the allowed pairs and their weights."""
        for o, row in enumerate(self.weights):
            for f, weight in enumerate(row):
                if weight is not None:
                    yield o, f, weight


def drawn(rng: random.Random) -> Classes:
    """Draw a tiny problem."""
    rows, columns = rng.randint(1, 3), rng.randint(1, 3)
    most = rng.choice([1, 3, 9])
    weights = tuple(
        tuple(None if rng.random() < 0.2 else rng.randint(0, most) for _ in range(columns))
        for _ in range(rows)
    )
    return Classes(
        tuple(rng.randint(0, 3 if rows * columns < 6 else 2) for _ in range(rows)),
        tuple(rng.randint(0, 3 if rows * columns < 6 else 2) for _ in range(columns)),
        weights,
    )


def is_plan(classes: Classes, plan: Plan) -> bool:
    """Say whether a table of counts keeps to the classes and the forbidden pairs."""
    return (
        all(sum(row) <= n for row, n in zip(plan, classes.online, strict=True))
        and all(sum(c) <= m for c, m in zip(zip(*plan, strict=True), classes.offline, strict=True))
        and all(
            x >= 0 and (x == 0 or w is not None)
            for row, weights in zip(plan, classes.weights, strict=True)
            for x, w in zip(row, weights, strict=True)
        )
    )


def plans(classes: Classes) -> Iterator[Plan]:
    """Iterate over all plans of a tiny problem, row by row."""
    rows = [
        [
            row
            for row in product(
                *(
                    range((min(n, m) if w is not None else 0) + 1)
                    for m, w in zip(classes.offline, weights, strict=True)
                )
            )
            if sum(row) <= n
        ]
        for n, weights in zip(classes.online, classes.weights, strict=True)
    ]
    return (plan for plan in product(*rows) if is_plan(classes, plan))


def worth(classes: Classes, plan: Plan) -> int:
    """Return what a plan is worth."""
    return sum(weight * plan[o][f] for o, f, weight in classes.allowed())


def bound(classes: Classes, u: tuple[int, ...], v: tuple[int, ...]) -> int:
    """Return what prices say that no plan exceeds."""
    gpus = sum(n * price for n, price in zip(classes.online, u, strict=True))
    return gpus + sum(m * price for m, price in zip(classes.offline, v, strict=True))


def completed(classes: Classes, v: tuple[int, ...]) -> tuple[int, ...]:
    """Return the least prices of the online side beside those of the offline side."""
    return tuple(
        max([0, *(w - p for w, p in zip(row, v, strict=True) if w is not None)])
        for row in classes.weights
    )


def proved(classes: Classes, u: tuple[int, ...], v: tuple[int, ...]) -> int | None:
    """Return what the package says that prices prove; None if it refuses them."""
    prices = AssignmentPrices(
        {f"o{i}": price for i, price in enumerate(u)}, {f"f{j}": p for j, p in enumerate(v)}
    )
    try:
        return prices.upper_bound(classes.problem())
    except InvalidCertificate:
        return None


# -- 1 and 2: duality, and that it is attained in whole numbers ------------------------------------


def linear(classes: Classes) -> tuple[Fraction, list[Fraction], list[Fraction]]:
    """Return the value of the linear program over prices, its vertex, and its dual: a plan."""
    pairs = list(classes.allowed())
    costs = [Fraction(n) for n in (*classes.online, *classes.offline)]
    rows = [
        [Fraction(o == i) for i in range(len(classes.online))]
        + [Fraction(f == j) for j in range(len(classes.offline))]
        for o, f, _ in pairs
    ]
    solved = minimise(costs, rows, [Fraction(w) for *_, w in pairs])
    assert solved is not None, "high prices always hold"
    return solved.value, list(solved.point), list(solved.duals)


def _attained(classes: Classes, best: int, rng: random.Random) -> None:
    v = tuple(rng.randint(0, 9) for _ in classes.offline)
    u = completed(classes, v)
    require(bound(classes, u, v) >= best, f"{u}, {v} prove {bound(classes, u, v)}, OPT {best}")
    said = proved(classes, u, v)
    require(said == bound(classes, u, v), f"the package says that {u}, {v} prove {said}")
    value, vertex, plan = linear(classes)
    require(value == best, f"the linear program's value is {value}, the best plan's {best}")
    whole = all(x.denominator == 1 for x in (*vertex, *plan))
    require(whole, f"a vertex is not whole: prices {vertex}, plan {plan}")
    prices = [int(x) for x in vertex]
    u, v = tuple(prices[: len(classes.online)]), tuple(prices[len(classes.online) :])
    require(proved(classes, u, v) == best, f"{u}, {v} do not prove {best}")
    for side, of in ((0, u), (1, v)):
        for at, price in enumerate(of):
            if price:
                lower = (*of[:at], price - 1, *of[at + 1 :])
                pair = (lower, v) if side == 0 else (u, lower)
                holds = all(pair[0][o] + pair[1][f] >= w for o, f, w in classes.allowed())
                found = proved(classes, *pair)
                require(holds == (found is not None), f"{pair}: holds {holds}, said {found}")


# -- 3: paths --------------------------------------------------------------------------------------


def arcs(classes: Classes, plan: Plan) -> dict[tuple[int, int], int]:
    """Return the lengths of the arcs of a plan; the last node is ``none``."""
    none = len(classes.offline)
    found: dict[tuple[int, int], int] = {(none, k): 0 for k in range(none)}

    def longer(a: int, b: int, length: int) -> None:
        if a != b:
            found[a, b] = max(length, found.get((a, b), length))

    for o, k, weight in classes.allowed():
        if sum(plan[o]) < classes.online[o]:
            longer(none, k, weight)
        for before in range(none):
            now = classes.weights[o][before]
            if plan[o][before] and now is not None:
                longer(before, k, weight - now)
                longer(before, none, -now)
    for k in range(none):
        if sum(row[k] for row in plan) < classes.offline[k]:
            longer(k, none, 0)
    return found


def longest(size: int, lengths: dict[tuple[int, int], int]) -> tuple[list[int], Circle | None]:
    """Return the longest paths from the last node, or a circle of positive length."""
    path: list[int | None] = [None] * (size - 1) + [0]
    before = [size - 1] * size
    last = None
    for _ in range(size + 1):
        last = None
        for (a, b), length in lengths.items():
            start, end = path[a], path[b]
            if start is not None and (end is None or start + length > end):
                path[b], before[b], last = start + length, a, b
        if last is None:
            return [x or 0 for x in path], None
    assert last is not None
    for _ in range(size):
        last = before[last]
    circle = [last]
    while before[circle[0]] != last:
        circle.insert(0, before[circle[0]])
    first = circle.index(min(circle))
    return [], circle[first:] + circle[:first]


def exchanged(classes: Classes, plan: Plan, circle: Circle) -> Plan:
    """Return the plan after one workload has moved along each arc of a circle."""
    none, rows = len(classes.offline), [list(row) for row in plan]
    lengths = arcs(classes, plan)
    for a, b in zip(circle, [*circle[1:], circle[0]], strict=True):
        for o, row in enumerate(classes.weights):
            new = 0 if b == none else row[b]
            old = 0 if a == none else row[a]
            free = sum(plan[o]) < classes.online[o] if a == none else plan[o][a] > 0
            if new is not None and old is not None and free and new - old == lengths[a, b]:
                if a != none:
                    rows[o][a] -= 1
                if b != none:
                    rows[o][b] += 1
                break
    return tuple(tuple(row) for row in rows)


def _paths(classes: Classes, every: list[Plan], best: int) -> None:
    size = len(classes.offline) + 1
    for plan in every:
        lengths = arcs(classes, plan)
        found, circle = longest(size, lengths)
        require((circle is None) == (worth(classes, plan) == best), f"{plan}: circle {circle}")
        if circle is None:
            v = tuple(found[:-1])
            u = completed(classes, v)
            require(bound(classes, u, v) == best, f"{plan}: {u}, {v} do not prove {best}")
            continue
        better = exchanged(classes, plan, circle)
        require(is_plan(classes, better), f"{plan}: {better} after {circle} is no plan")
        gained = worth(classes, better) - worth(classes, plan)
        require(gained > 0, f"{plan}: {circle} gains {gained}")


# -- 4 and 5: parts, and rounded activities --------------------------------------------------------


def best_prices(classes: Classes) -> tuple[int, ...]:
    """Return prices of the offline side that prove the best plan, by the linear program."""
    return tuple(int(x) for x in linear(classes)[1][len(classes.online) :])


def _parts(classes: Classes, best: int, rng: random.Random) -> Fraction:
    """Return how much of what is certified to be lost by a split in two is lost."""
    cut = [tuple(rng.randint(0, n) for n in side) for side in (classes.online, classes.offline)]
    halves = [
        Classes(cut[0], cut[1], classes.weights),
        Classes(
            tuple(n - c for n, c in zip(classes.online, cut[0], strict=True)),
            tuple(m - c for m, c in zip(classes.offline, cut[1], strict=True)),
            classes.weights,
        ),
    ]
    total = sum(max(worth(half, plan) for plan in plans(half)) for half in halves)
    pairs = zip(*(best_prices(half) for half in halves), strict=True)
    middle = tuple(sorted(pair)[0] for pair in pairs)
    certified = bound(classes, completed(classes, middle), middle)
    require(total <= best <= certified, f"parts {total}, OPT {best}, certified {certified}")
    return Fraction(best - total, certified - total) if certified > total else Fraction(0)


def _rounded(classes: Classes, rng: random.Random) -> None:
    activities = [Fraction(rng.randint(0, 80), 4) for _ in classes.online]
    slopes = [Fraction(rng.randint(0, 4), 4) for _ in classes.offline]

    def at(levels: list[Fraction]) -> Classes:
        return classes._replace(
            weights=tuple(
                tuple(
                    None if w is None else max(0, int(100 * w - slope * level))
                    for w, slope in zip(row, slopes, strict=True)
                )
                for row, level in zip(classes.weights, levels, strict=True)
            )
        )

    levels = [
        [Fraction(-(-a.numerator // a.denominator)) for a in activities],
        activities,
        [Fraction(a.numerator // a.denominator) for a in activities],
    ]
    up, true, down = (max(worth(posed, plan) for plan in plans(posed)) for posed in map(at, levels))
    require(up <= true <= down, f"rounded up {up}, true {true}, rounded down {down}")


def _answer(classes: Classes, best: int) -> None:
    problem = classes.problem()
    solution = share_gpus(problem)
    require(solution.status == "optimal", f"muxflow ends with the status {solution.status}")
    require(solution.value == best, f"muxflow's plan is worth {solution.value}, OPT is {best}")
    plan: ColocationPlan = solution.plan
    table = [[plan.counts.get((f"o{o}", f"f{f}"), 0) for f in range(len(classes.offline))]
             for o in range(len(classes.online))]  # fmt: skip
    require(is_plan(classes, tuple(map(tuple, table))), f"muxflow's plan {table} is none")


@theorem(
    "Assignment prices",
    "weak duality, whole vertices, prices as paths, parts, rounded activities",
    ratio="loss of two parts / certified loss",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 150) -> None:
    """Run the machine check."""
    for number in range(cases):
        rng = random.Random(f"assignment {seed} {number}")
        classes = drawn(rng)
        with tally.case(f"problem {number}: {classes}"):
            every = list(plans(classes))
            best = max(worth(classes, plan) for plan in every)
            _attained(classes, best, rng)
            _paths(classes, every[:: 1 + len(every) // 200], best)
            tally.seen(_parts(classes, best, rng))
            _rounded(classes, rng)
            _answer(classes, best)
