"""The aggregated linear program LP_agg, over machines and blocks given (theory 1.4).

Both it and the program over blocks alone, for given machines, are solved in rationals, so that what
is rounded, what is told of its cost and whether machines do is right to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cms.plugin.algorithm import Named
from cms.plugin.guarantee import Guarantee

from ..prices.region import Region
from ..solvers.recognise import recognised
from .pseudoforest import round_pseudoforest
from .purchase import Purchase
from .serving import Column

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration
    from cms.reduction.reduction import Reduction

    from ..tables.integers import Tables
    from .pseudoforest import Edge

#: Prices are rounded down to multiples of 1 / _GRID, and of the smallest price over _DIGITS.
_GRID, _DIGITS = 2**40, 2**32


@dataclass(frozen=True)
class Vertex:
    """An optimal vertex of LP_agg, or of LP_agg with some configurations left out or wanted.

    All numbers are exact.

    Attributes
    ----------
    machines : list of c Fractions
    blocks : dict
        ``{(block type, job): blocks}``, along a pseudoforest.
    value : Fraction
        The cost.
    prices : list of k Fractions
        The rows' dual values: prices of blocks.
    """

    machines: list[Fraction]
    blocks: dict[Edge, Fraction]
    value: Fraction
    prices: list[Fraction]


class Aggregated:
    """The aggregated linear program of a problem without limits on machines, solved exactly.

    Parameters
    ----------
    tables : Tables

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, reduce
    >>> from algorithms.tables.integers import Tables
    >>> shapes = [Configuration({"3g": 2}), Configuration({"1g": 7})]
    >>> problem = Problem(configurations=shapes, jobs=[Job("bert", 10, {"3g": 4, "1g": 1})])
    >>> Aggregated(Tables.of(reduce(problem).problem)).solve(None).value
    Fraction(5, 4)
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._purchase = _all_machines(tables)

    def join(self, shapes: Iterable[Configuration]) -> bool:
        """Let further configurations take part; whether there is a new one."""
        before = self.tables.c
        self.tables = tables = self.tables.joined(shapes)
        for at in range(before, tables.c):
            self._purchase.add(Column(tables.costs[at], tables.counts[at]))
        return tables.c > before

    def rough_prices(self, budget: Budget | None) -> list[Fraction] | None:
        """Return about the best prices of blocks, up to a factor; None if floats find none."""
        found = self._purchase.rough_prices([0] * self.tables.k, budget)
        return None if found is None else [Fraction(int(number)) for number in found]

    def solve(
        self,
        budget: Budget | None,
        there: Collection[int] = (),
        absent: Collection[int] = (),
    ) -> Vertex | None:
        """Solve; None if the budget has ended, or if some job is left without a block.

        Parameters
        ----------
        budget : Budget or None
        there, absent : collections of int
            Configurations used at least once, and not at all.
        """
        tables = self.tables
        kept = [i for at, row in enumerate(tables.counts) if at not in absent for i in types(row)]
        left = set(kept)
        if not all(any(i in left for i in types(row)) for row in tables.supply):
            return None
        once = [int(at in there) for at in range(tables.c)]
        bought = self._purchase.solve(tables.held(once), absent, budget)
        if bought is None:
            return None
        machines = [x + one for x, one in zip(bought.amounts, once, strict=True)]
        return Vertex(machines, bought.blocks, bought.value + tables.cost(once), bought.prices)


def _all_machines(tables: Tables) -> Purchase:
    """Buy machines of every configuration."""
    pairs = zip(tables.costs, tables.counts, strict=True)
    return Purchase(tables, [Column(cost, row) for cost, row in pairs])


class Fixed(NamedTuple):
    """Whether given machines do if blocks can be cut, and what follows if they do not.

    Attributes
    ----------
    lacking : Fraction
        What machines that have to be added cost, in parts; 0 if the given ones do.
    free : list of c Fractions
        How many machines of each configuration that costs nothing are used.
    blocks : dict
        ``{(block type, job): blocks}`` of the given machines if they do, along a pseudoforest.
    prices : list of k Fractions
        No machine is worth more than it costs. At these prices the jobs pay ``worth`` for blocks in
        parts, so that any machines that do are worth no less; the given ones are worth ``lacking``
        less.
    worth : Fraction
    """

    lacking: Fraction
    free: list[Fraction]
    blocks: dict[Edge, Fraction]
    prices: list[Fraction]
    worth: Fraction


class FixedMachines:
    """The program over blocks alone: the machines are given, and others are added if need be.

    Parameters
    ----------
    tables : Tables

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}), jobs=[Job("bert", 3, {"half": 1})]
    ... )
    >>> program = FixedMachines(Tables.of(problem))
    >>> program.solve([1], None).lacking, program.solve([2], None).lacking
    (Fraction(1, 2), Fraction(0, 1))
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._purchase = _all_machines(tables)
        self._free = [at for at, cost in enumerate(tables.costs) if not cost]
        self._wanted = {tuple(types(row)) for row in tables.supply}

    def solve(self, machines: Sequence[int], budget: Budget | None) -> Fixed | None:
        """Solve for given machines; None if the budget has ended."""
        tables = self._tables
        held = tables.held(machines)
        found = {i for i, number in enumerate(held) if number}
        found.update(i for at in self._free for i in types(tables.counts[at]))
        if all(any(i in found for i in mine) for mine in self._wanted):
            # What part of the machines would do: where they do no prices are 0, nor do many tie.
            columns = [Column(Fraction(1), held)]
            columns += [Column(Fraction(0), tables.counts[at]) for at in self._free]
            part = Purchase(tables, columns).solve([0] * tables.k, (), budget)
            if part is None:
                return None
            if part.value <= 1:
                free = [Fraction(0)] * tables.c
                for at, amount in zip(self._free, part.amounts[1:], strict=True):
                    free[at] = amount
                nothing = [Fraction(0)] * tables.k
                return Fixed(Fraction(0), free, part.blocks, nothing, Fraction(0))
        bought = self._purchase.solve(held, (), budget)
        if bought is None:
            return None
        pairs = zip(bought.amounts, tables.costs, strict=True)
        free = [Fraction(0) if cost else amount for amount, cost in pairs]
        there = sum((p * x for p, x in zip(bought.prices, held, strict=True)), Fraction(0))
        worth = bought.value + there
        return Fixed(bought.value, free, bought.blocks, bought.prices, worth)

    def refuted(
        self, machines: Sequence[Fraction], budget: Budget | None
    ) -> tuple[list[Fraction], Fraction] | None:
        """Say quickly why machines, whole or in parts, do not do; None if floats do not see it.

        Returns
        -------
        prices, worth
            Like those of :class:`Fixed`, up to a factor, but perhaps not the best ones.
        """
        pairs = [(x, row) for x, row in zip(machines, self._tables.counts, strict=True) if x]
        held = [sum((x * row[i] for x, row in pairs), Fraction(0)) for i in range(self._tables.k)]
        return self._purchase.refuted(held, budget)


def types(row: Sequence[int]) -> list[int]:
    """List the block types of which a row has something.

    Examples
    --------
    >>> types([2, 0, 1])
    [0, 2]
    """
    return [i for i, number in enumerate(row) if number]


def certificate(
    reduction: Reduction, prices: Sequence[Fraction], part: str = "dual prices"
) -> Named | None:
    """Turn a program's dual values into block prices that prove a bound.

    The duals w_j of LP_agg give the prices max_j w_j f'_ij, at which the jobs' cheapest options are
    worth at least what the program is (theory 6.1).

    Parameters
    ----------
    reduction : Reduction
    prices : sequence of k Fractions
        Of the reduced problem's blocks.
    part : str
        Where they come from, for the history.

    Returns
    -------
    Named or None
        A claim about the original problem; None if the prices are all 0.
    """
    problem = reduction.problem
    region = Region(problem)
    if not any(prices):
        return None
    counted = [price / region.unit for price in prices]
    found = recognised(counted)
    # A block of little price may be the only one that a job can have, and be had by the million.
    smallest = min(price for price in counted if price)
    grid = max(_GRID, ceil(_DIGITS / smallest))
    numbers, denominator = found or ([int(price * grid) for price in counted], grid)
    _, vector = region.fitted([region.unit * number / denominator for number in numbers], [])
    leaf = region.leaf(vector)
    worth = leaf.bound(problem) if reduction.lost else Fraction(0)
    return Named(reduction.restore_prices(leaf, worth), part)


# -- rounding ----------------------------------------------------------------------------------

#: Machines of each configuration, and blocks of each type given to each job.
Counts = tuple[list[int], dict["Edge", int]]


def doubled(vertex: Vertex, tables: Tables) -> Counts:
    """Round a vertex by T-2: ``(1 + phi) LP_agg + p`` machines (theory 1.6).

    Every job is given one block's worth more than it needs, which rounding may take away again.
    """
    return rounded(tables, [(1 + tables.phi) * x for x in vertex.machines], vertex.blocks)


def one_block_each(vertex: Vertex, tables: Tables) -> Counts:
    """Round a vertex by T-add: ``LP_agg + p + n`` machines (theory 1.6).

    The blocks that rounding takes away are bought again.
    """
    opened = list(map(ceil, vertex.machines))
    return repaired(tables, opened, round_pseudoforest(vertex.blocks))


def guarantee_of_doubled(tables: Tables) -> Guarantee:
    """State T-2: ``(1 + phi) LP_agg``, and one machine for each of p configurations."""
    return Guarantee(1 + tables.phi, tables.dearest(tables.p), "LP_AGG", "T-2, theory 1.6")


def guarantee_of_one_block_each(tables: Tables) -> Guarantee:
    """State T-add: ``LP_agg``, p machines, and one for each job.

    A job's machine is the dearest that can be needed for a block: the cheapest one with a block of
    its type.
    """
    each = max(
        (
            tables.costs[tables.cheapest_with(i)]
            for i in range(tables.k)
            if any(row[i] for row in tables.counts)
        ),
        default=Fraction(0),
    )
    term = tables.dearest(tables.p) + tables.n * each
    return Guarantee(1, term, "LP_AGG", "T-add, theory 1.6")


def rounded(
    tables: Tables, machines: Sequence[Fraction], blocks: Mapping[Edge, Fraction]
) -> Counts:
    """Open machines, rounded up, and hand out one block a job more than is needed, rounded.

    Parameters
    ----------
    tables : Tables
    machines : sequence of c Fractions
        At least ``1 + phi`` times those whose blocks are handed out.
    blocks : Mapping[(block type, job), Fraction]
        Which serve all jobs, in parts, along a pseudoforest.
    """
    # By the lemma no type is given away twice, and every job keeps what it needs.
    return list(map(ceil, machines)), round_pseudoforest(one_block_more(tables, blocks))


def one_block_more(tables: Tables, blocks: Mapping[Edge, Fraction]) -> dict[Edge, Fraction]:
    """Scale each job's blocks up so that they exceed its demand by its largest block's supply."""
    largest = [0] * tables.n
    for i, j in blocks:
        largest[j] = max(largest[j], tables.supply[j][i])
    factors = [1 + Fraction(f, d) for f, d in zip(largest, tables.demands, strict=True)]
    return {(i, j): amount * factors[j] for (i, j), amount in blocks.items()}


def repaired(tables: Tables, machines: Sequence[int], given: Mapping[Edge, int]) -> Counts:
    """Give every job what it still lacks, from idle blocks first, then from new machines.

    Parameters
    ----------
    tables : Tables
    machines : sequence of c ints
    given : Mapping[(block type, job), int]

    Returns
    -------
    machines, given
        A feasible schedule's counts.
    """
    machines, blocks = list(machines), dict(given)
    idle = tables.held(machines)
    lack = list(tables.demands)
    for (i, j), number in blocks.items():
        idle[i] -= number
        lack[j] -= number * tables.supply[j][i]
    for j, row in enumerate(tables.supply):
        if lack[j] <= 0:
            continue
        # Large blocks first: they finish the job soonest.
        for i in sorted(range(tables.k), key=lambda i: -row[i]):
            if lack[j] <= 0 or not row[i]:
                break
            number = min(max(0, idle[i]), -(-lack[j] // row[i]))
            if number:
                blocks[i, j] = blocks.get((i, j), 0) + number
                idle[i] -= number
                lack[j] -= number * row[i]
    missing = [max(0, -left) for left in idle]
    for j, row in enumerate(tables.supply):
        if lack[j] > 0:
            i = max(range(tables.k), key=row.__getitem__)
            number = -(-lack[j] // row[i])
            blocks[i, j] = blocks.get((i, j), 0) + number
            missing[i] += number
    for i, number in enumerate(missing):
        if number:
            at = tables.cheapest_with(i)
            machines[at] += -(-number // tables.counts[at][i])
    return machines, blocks
