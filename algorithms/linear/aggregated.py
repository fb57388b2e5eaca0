"""The aggregated linear program LP_agg, over machines and blocks given (theory 1.4).

Its variables are scaled: the share of each job that each block type serves, and machines as parts
of about as many as will be needed. So floating-point numbers see no huge ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from cms.algorithm import Named

from ..shared.recognise import recognised
from ..shared.region import Region
from .program import LinearProgram
from .pseudoforest import exact_assignment, largest_pseudoforest, round_pseudoforest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.algorithm import Budget
    from cms.reduction import Reduction

    from .pseudoforest import Edge
    from .tables import Tables

#: Prices are rounded down to multiples of this.
_GRID = 2**40


@dataclass(frozen=True)
class Vertex:
    """An optimal vertex of LP_agg, or of LP_agg with some machines fixed or bounded.

    Attributes
    ----------
    machines : list of c Fractions
        What the solver said; a hint.
    edges : list of (block type, job)
        Who serves whom: a pseudoforest.
    value : Fraction
        The solver's word on the cost.
    prices : list of k Fractions
        The rows' dual values: prices of blocks, a hint as well.
    """

    machines: list[Fraction]
    edges: list[Edge]
    value: Fraction
    prices: list[Fraction]


class Aggregated:
    """The aggregated linear program of a problem without limits on machines.

    Parameters
    ----------
    tables : Tables
    whole : bool, default False
        Whether machines are whole: MILP_c.
    margin : float, default 0
        By what part more than its demand every job is to be served: a solver's tolerance may take
        a machine for enough that lacks a hair.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.linear.tables import Tables
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}),
    ...     jobs=[Job("bert", 3, {"half": 2}), Job("vgg", 1, {"half": 2})],
    ... )
    >>> from cms.reduction import reduce
    >>> Aggregated(Tables.of(reduce(problem).problem)).solve(None).value
    Fraction(5, 4)
    """

    def __init__(self, tables: Tables, *, whole: bool = False, margin: float = 0.0) -> None:
        self.tables = tables
        self._unit = max(tables.costs, default=Fraction(1)) or Fraction(1)
        scale = sum(
            (
                min(Fraction(d, f) for f in row if f)
                for d, row in zip(tables.demands, tables.supply, strict=True)
            ),
            Fraction(0),
        )
        # Whole machines cannot be counted in parts.
        self._scale = Fraction(1) if whole else Fraction(max(1, ceil(scale)))
        self._program = program = LinearProgram(whole=whole)
        self._machines = [
            program.variable(float(cost / self._unit), whole=whole) for cost in tables.costs
        ]
        self._shares: dict[Edge, int] = {}
        holds: list[list[tuple[int, float]]] = [[] for _ in range(tables.k)]
        for j, (d, row) in enumerate(zip(tables.demands, tables.supply, strict=True)):
            mine = [(i, f) for i, f in enumerate(row) if f]
            for i, f in mine:
                share = self._shares[i, j] = program.variable(0.0)
                holds[i].append((share, -float(Fraction(d, f) / self._scale)))
            program.at_least([(self._shares[i, j], 1.0) for i, _ in mine], 1.0 + margin)
        for i, terms in enumerate(holds):
            terms += [
                (x, float(row[i]))
                for x, row in zip(self._machines, tables.counts, strict=True)
                if row[i]
            ]
            program.at_least(terms, 0.0)

    def bound_machines(self, at: int, low: int, high: int | None) -> None:
        """Have at least and at most so many machines of a configuration."""
        most = None if high is None else float(high / self._scale)
        self._program.set_bounds(self._machines[at], float(low / self._scale), most)

    def solve(self, budget: Budget | None) -> Vertex | None:
        """Solve; None if there is no solution, or the budget has ended."""
        answer = self._program.solve(budget)
        if answer is None:
            return None
        tables = self.tables
        machines = [
            max(Fraction(0), Fraction(answer.values[x])) * self._scale for x in self._machines
        ]
        shares = {edge: answer.values[share] for edge, share in self._shares.items()}
        # Largest first: should noise have added an edge too many, it is one that carries nothing;
        # and edges of no share fill the pseudoforest up, since one may carry what floats left out.
        edges = sorted(shares, key=lambda edge: -shares[edge])
        size = self._scale * self._unit
        prices = [Fraction(0)] * tables.k
        if answer.duals:
            # The rows of the blocks come last.
            prices = [
                max(Fraction(0), Fraction(dual)) * self._unit for dual in answer.duals[tables.n :]
            ]
        return Vertex(machines, largest_pseudoforest(edges), _plain(answer.bound) * size, prices)


def _plain(value: float) -> Fraction:
    """Return the simplest rational a float stands for, as far as the solver's digits go."""
    return Fraction(value).limit_denominator(10**6) if abs(value) < 10**6 else Fraction(value)


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
    found = recognised([float(price) for price in counted])
    numbers, denominator = found or ([int(price * _GRID) for price in counted], _GRID)
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
    factor = 1 + tables.phi
    wanted = _one_block_more(vertex.edges, tables)
    return _rounded(tables, vertex, [factor * x for x in vertex.machines], wanted)


def one_block_each(vertex: Vertex, tables: Tables) -> Counts:
    """Round a vertex by T-add: ``LP_agg + p + n`` machines (theory 1.6).

    The blocks that rounding takes away are bought again.
    """
    wanted = dict(enumerate(map(Fraction, tables.demands)))
    return _rounded(tables, vertex, vertex.machines, wanted)


def suffice(machines: Sequence[int], vertex: Vertex, tables: Tables) -> bool:
    """Whether given machines do, along a vertex's edges, if blocks can be cut: in rationals."""
    wanted = dict(enumerate(map(Fraction, tables.demands)))
    held = tables.held(machines)
    return exact_assignment(vertex.edges, tables.supply, held, wanted) is not None


def with_machines(
    machines: Sequence[int], vertex: Vertex, tables: Tables
) -> dict[Edge, int] | None:
    """Hand out the blocks of given machines, along a vertex's edges; None if they do not suffice.

    The machines are those of Theorem A (theory 3): the double of ones that would do if blocks could
    be cut.
    """
    wanted = _one_block_more(vertex.edges, tables)
    fractional = exact_assignment(vertex.edges, tables.supply, tables.held(machines), wanted)
    return None if fractional is None else round_pseudoforest(fractional)


def _one_block_more(edges: Iterable[Edge], tables: Tables) -> dict[int, Fraction]:
    largest = [0] * tables.n
    for i, j in edges:
        largest[j] = max(largest[j], tables.supply[j][i])
    return {j: Fraction(d + largest[j]) for j, d in enumerate(tables.demands)}


def _rounded(
    tables: Tables,
    vertex: Vertex,
    machines: Sequence[Fraction],
    wanted: Mapping[int, Fraction],
) -> Counts:
    """Round machines up and blocks by the lemma, and buy what jobs still lack."""
    for noise in (Fraction(1, 10**7), Fraction(1, 10**9), Fraction(0), Fraction(-1, 10**9)):
        # A float a hair above a whole number means that number; exact arithmetic tells.
        opened = [max(0, ceil(x - noise * max(Fraction(1), x))) for x in machines]
        fractional = exact_assignment(vertex.edges, tables.supply, tables.held(opened), wanted)
        if fractional is not None:
            return repaired(tables, opened, round_pseudoforest(fractional))
    # Numbers of very different sizes: what the solver took for nothing is bought.
    opened = [ceil(x) for x in machines]
    return repaired(tables, opened, {})


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
