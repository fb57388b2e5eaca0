"""The lower bounds of the theory as exact linear programs, written down from their definitions.

They are solved by :func:`proofs_checks.lp.minimise`, so every value is exact and every point is a
vertex. Nothing here is shared with the package's own bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import ceil, floor
from typing import NamedTuple, TypeAlias, TypeVar

from cms import Reference

from .brute_force import optimum, options
from .lp import Number, Vertex, minimise
from .tiny import Blocks, Tiny, dot

T = TypeVar("T")
#: One row of a program: coefficients by variable, and the right-hand side.
Row: TypeAlias = tuple[dict[int, Number], Number]


class Compact(NamedTuple):
    """A point of the compact program: machines x[C] and blocks given y[j][i]."""

    value: Fraction
    x: tuple[Fraction, ...]
    y: tuple[tuple[Fraction, ...], ...]


class Star(NamedTuple):
    """A point of LP*: machines x[C] and blocks given y[j][i][C] on the machines of each C."""

    value: Fraction
    x: tuple[Fraction, ...]
    y: tuple[tuple[tuple[Fraction, ...], ...], ...]


class OverOptions(NamedTuple):
    """A point of LP_DW: machines x[C], for each job its options with weights > 0 that sum to 1.

    ``prices`` are the duals of the rows of the blocks.
    """

    value: Fraction
    x: tuple[Fraction, ...]
    z: tuple[tuple[tuple[Blocks, Fraction], ...], ...]
    prices: tuple[Fraction, ...]


def compact(
    tiny: Tiny, supply: Sequence[Sequence[Fraction]], more: Sequence[Row] = ()
) -> Compact | None:
    """Solve the compact program over real numbers with this supply and further rows about x."""
    c, k = tiny.c, tiny.k
    found = _compact_vertex(tiny, supply, more)
    if found is None:
        return None
    y = tuple(found.point[c + j * k : c + (j + 1) * k] for j in range(tiny.n))
    return Compact(found.value, found.point[:c], y)


def _compact_vertex(
    tiny: Tiny, supply: Sequence[Sequence[Fraction]], more: Sequence[Row]
) -> Vertex | None:
    c, k = tiny.c, tiny.k
    rows: list[Row] = []
    for i in range(k):
        row: dict[int, Number] = {C: tiny.configurations[C][i] for C in range(c)}
        row |= {c + j * k + i: -1 for j in range(tiny.n)}
        rows.append((row, 0))
    for j, demand in enumerate(tiny.demands):
        rows.append(({c + j * k + i: supply[j][i] for i in range(k)}, demand))
    return _solved([*tiny.costs, *[0] * (tiny.n * k)], [*rows, *more])


@cache
def lp_agg(tiny: Tiny) -> Compact:
    """Solve LP_agg: the compact program over real numbers with truncated supply."""
    return _there(compact(tiny, tiny.cut))


def lp_agg_duals(tiny: Tiny) -> tuple[Fraction, tuple[Fraction, ...]]:
    """Return the value of LP_agg, and what a unit of each job's demand is worth in its dual."""
    vertex = _there(_compact_vertex(tiny, tiny.cut, ()))
    return vertex.value, vertex.duals[tiny.k :]


@cache
def milp_c(tiny: Tiny) -> Compact:
    """Solve MILP_c, LP_agg with whole machines, by branching on the machines."""
    best: Compact | None = None
    waiting: list[tuple[Row, ...]] = [()]
    while waiting:
        more = waiting.pop()
        found = compact(tiny, tiny.cut, more)
        if found is None or (best is not None and found.value >= best.value):
            continue
        split = next((C for C, x in enumerate(found.x) if x.denominator > 1), None)
        if split is None:
            best = found
            continue
        x = found.x[split]
        waiting.append((*more, ({split: -1}, -floor(x))))
        waiting.append((*more, ({split: 1}, ceil(x))))
    return _there(best)


@cache
def lp_star(tiny: Tiny) -> Star:
    """Solve LP*: truncation machine by machine."""
    places = [
        (j, i, C)
        for j in range(tiny.n)
        for i in range(tiny.k)
        for C in range(tiny.c)
        if tiny.cut[j][i] and tiny.configurations[C][i]
    ]
    at = {place: tiny.c + number for number, place in enumerate(places)}
    rows: list[Row] = []
    for C in range(tiny.c):
        for i in range(tiny.k):
            used: dict[int, Number] = {at[p]: -1 for p in places if p[1:] == (i, C)}
            rows.append((used | {C: tiny.configurations[C][i]}, 0))
        for j, demand in enumerate(tiny.demands):
            here: dict[int, Number] = {
                at[p]: -tiny.cut[j][p[1]] for p in places if (p[0], p[2]) == (j, C)
            }
            rows.append((here | {C: demand}, 0))
    for j, demand in enumerate(tiny.demands):
        rows.append(({at[p]: tiny.cut[j][p[1]] for p in places if p[0] == j}, demand))
    value, point, _ = _there(_solved([*tiny.costs, *[0] * len(places)], rows))
    y = tuple(
        tuple(
            tuple(point[at[j, i, C]] if (j, i, C) in at else Fraction(0) for C in range(tiny.c))
            for i in range(tiny.k)
        )
        for j in range(tiny.n)
    )
    return Star(value, point[: tiny.c], y)


@cache
def lp_dw(tiny: Tiny) -> OverOptions:
    """Solve LP_DW over all minimal options."""
    return _there(lp_dw_with(tiny, ()))[0]


def lp_dw_with(tiny: Tiny, more: Sequence[Row]) -> tuple[OverOptions, tuple[Fraction, ...]] | None:
    """Solve LP_DW with further rows about x; also these rows' duals. None if it is infeasible."""
    columns = [(j, option) for j in range(tiny.n) for option in options(tiny, j)]
    rows: list[Row] = []
    for i in range(tiny.k):
        row: dict[int, Number] = {C: tiny.configurations[C][i] for C in range(tiny.c)}
        row |= {tiny.c + at: -option[i] for at, (_, option) in enumerate(columns)}
        rows.append((row, 0))
    for job in range(tiny.n):
        rows.append(({tiny.c + at: 1 for at, (j, _) in enumerate(columns) if j == job}, 1))
    found = _solved([*tiny.costs, *[0] * len(columns)], [*rows, *more])
    if found is None:
        return None
    value, point, duals = found
    z = tuple(
        _of_weight_one(
            (option, point[tiny.c + at]) for at, (j, option) in enumerate(columns) if j == job
        )
        for job in range(tiny.n)
    )
    solution = OverOptions(value, point[: tiny.c], z, duals[: tiny.k])
    return solution, duals[tiny.k + tiny.n :]


def single_job(tiny: Tiny) -> int:
    """Return the machines that the neediest job needs by itself."""
    return max(ceil(tiny.demands[j] / best_machine(tiny, j)) for j in range(tiny.n))


def best_machine(tiny: Tiny, j: int) -> Fraction:
    """Return V_j: how much of a job's demand a single machine can meet."""
    return min(tiny.demands[j], max(dot(row, tiny.cut[j]) for row in tiny.configurations))


def reference(tiny: Tiny, against: Reference) -> Fraction:
    """Return the exact value that a guarantee is stated against."""
    match against:
        case Reference.OPT:
            return optimum(tiny).cost
        case Reference.LP_AGG:
            return lp_agg(tiny).value
        case Reference.LP_STAR:
            return lp_star(tiny).value
        case Reference.MILP_C:
            return milp_c(tiny).value
        case Reference.LP_DW:
            return lp_dw(tiny).value


def _solved(costs: Sequence[Number], rows: Sequence[Row]) -> Vertex | None:
    dense = [[row.get(variable, 0) for variable in range(len(costs))] for row, _ in rows]
    return minimise(costs, dense, [right for _, right in rows])


def _there(found: T | None) -> T:
    if found is None:
        raise ValueError("some job has no block that any machine holds")
    return found


def _of_weight_one(
    weighted: Iterator[tuple[Blocks, Fraction]],
) -> tuple[tuple[Blocks, Fraction], ...]:
    """Give up what exceeds a total weight of 1; no new weight becomes positive."""
    kept, left = [], Fraction(1)
    for option, weight in weighted:
        weight = min(weight, left)
        left -= weight
        if weight:
            kept.append((option, weight))
    return tuple(kept)
