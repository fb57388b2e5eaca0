"""The fractional schedule behind the best prices, in exact rationals (theory 6.4).

The cutting planes' own weights mix the passes' options into a fractional schedule. Floating-point
weights are right to nine digits or so, which at a demand of 10**12 are a thousand blocks; solving
the few equations that define them once more, exactly, makes the mixture right to the block.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..solvers.simplex import solved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .region import Region, Row, Share

#: Relative difference up to which an inequality counts as an equation.
_TIGHT = Fraction(1, 10**6)


class Searched(Protocol):
    """What a fractional solution is read off: a price search at its end, see ``PriceSearch``."""

    region: Region
    n_groups: int

    @property
    def known(self) -> int: ...  # noqa: D102
    @property
    def exact(self) -> bool: ...  # noqa: D102
    @property
    def shares(self) -> list[Share]: ...  # noqa: D102
    @property
    def machines(self) -> list[tuple[Row, Fraction]]: ...  # noqa: D102
    @property
    def extra(self) -> Mapping[tuple[int, int], float]: ...  # noqa: D102


class Fractional(NamedTuple):
    """A fractional schedule: (pass, weight) for each group, adding up to 1, and machines."""

    shares: list[list[tuple[int, Fraction]]]
    machines: list[tuple[Row, Fraction]]


class Exact(NamedTuple):
    """Weights of the shares, machines and extra blocks of a fractional solution, all exact."""

    weights: list[Fraction]
    machines: list[tuple[Row, Fraction]]
    extra: list[Fraction]


def fractional(search: Searched) -> Fractional:
    """Read the fractional schedule off a search at its end."""
    shares, machines = search.shares, search.machines
    weights = _normal(shares)
    exact = None if search.exact else exactly(search)
    if exact is not None:
        weights, machines = exact.weights, exact.machines
    found: list[list[tuple[int, Fraction]]] = [[] for _ in range(search.n_groups)]
    for share, weight in zip(shares, weights, strict=True):
        found[share.group].append((share.number, weight))
    # If the program failed, or there was none: the last pass as it is.
    last = [(search.known - 1, Fraction(1))]
    return Fractional([mine or last for mine in found], machines)


def exactly(search: Searched) -> Exact | None:
    """Solve the equations behind a fractional solution once more, in rationals."""
    shares, machines, n = search.shares, search.machines, len(search.shares)
    guess = [*_normal(shares), *(amount for _, amount in machines)]
    guess += [Fraction(amount) for amount in search.extra.values()]
    groups: dict[int, dict[int, int]] = {}
    for at, share in enumerate(shares):
        groups.setdefault(share.group, {})[at] = 1
    # What a group takes of its only pass is no unknown.
    alone = {at for mine in groups.values() if len(mine) == 1 for at in mine}
    equations = [mine for mine in groups.values() if len(mine) > 1]
    values = [Fraction(1)] * len(equations)
    for terms, right in _constraints(search, shares, machines):
        more = sum((guess[at] * n for at, n in terms.items() if n > 0), Fraction(0))
        less = sum((guess[at] * -n for at, n in terms.items() if n < 0), right)
        # What an inequality leaves room for carries no equation.
        if abs(more - less) <= _TIGHT * max(Fraction(1), more):
            fixed = sum(factor for at, factor in terms.items() if at in alone)
            equations.append({at: factor for at, factor in terms.items() if at not in alone})
            values.append(right - fixed)
    solution = solved(equations, values, guess)
    if solution is None or any(value < 0 for value in solution):
        return None
    end = n + len(machines)
    rows = [(row, x) for (row, _), x in zip(machines, solution[n:end], strict=True)]
    return Exact(solution[:n], rows, solution[end:])


def _normal(shares: Sequence[Share]) -> list[Fraction]:
    """Return weights that add up to 1 in each group."""
    totals: dict[int, Fraction] = {}
    for share in shares:
        totals[share.group] = totals.get(share.group, Fraction(0)) + Fraction(share.weight)
    return [Fraction(share.weight) / totals[share.group] for share in shares]


def _constraints(
    search: Searched, shares: Sequence[Share], machines: Sequence[tuple[Row, Fraction]]
) -> Iterator[tuple[dict[int, int], Fraction]]:
    """Yield the inequalities of blocks, limits and branches.

    Their terms count shares, machines and the blocks beyond options, in this order.
    """
    region, n = search.region, len(shares)
    extra = {key: n + len(machines) + at for at, key in enumerate(search.extra)}
    for i in range(len(region.blocks)):
        terms = {at: -share.load[i] for at, share in enumerate(shares) if share.load[i]}
        terms |= {at: -1 for (block, _), at in extra.items() if block == i}
        terms |= {n + at: row.counts[i] for at, (row, _) in enumerate(machines) if row.counts[i]}
        yield terms, Fraction(0)
    for m, limit in enumerate(region.limits):
        if limit is not None:
            mine = {n + at: 1 for at, (row, _) in enumerate(machines) if row.machine == m}
            yield mine, Fraction(limit)
    groups = {job: search.n_groups + at for at, job in enumerate(region.own_priced)}
    for branch, condition in enumerate(region.path):
        terms = {}
        for at, (row, _) in enumerate(machines):
            amount = sum(c for b, c in region.row_terms(row) if b == branch) * condition.sign
            if amount:
                terms[n + at] = amount
        for b, i, job in region.job_terms:
            if b == branch:
                own = [at for at, share in enumerate(shares) if share.group == groups[job]]
                terms |= {at: shares[at].load[i] for at in own if shares[at].load[i]}
                terms[extra[i, job]] = 1
        yield terms, Fraction(condition.value)
