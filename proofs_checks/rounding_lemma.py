"""The rounding lemma (theory 1.5): a vertex rounds within its supply and loses a block a job.

**Statement.** Let ``sum_j y_ij <= B_i`` with integers ``B_i``, ``sum_i f'_ij y_ij >= D_j`` and
``y >= 0``, and let the support of y be a pseudoforest in the graph of types and jobs, as it is for
every vertex. Then some integer ``y^ >= 0`` keeps ``sum_j y^_ij <= B_i`` and gives every job more
than ``D_j`` less one block of a single type, and no less than ``D_j`` if no entry of the job is
rounded down.

**Machine-checked.** That the ownership exists for exactly the pseudoforests: every subgraph of
K(3,3) and K(2,4). The lemma itself, exactly in rationals, on every generated instance, for vertices
of LP_agg scaled by 1, 3/2, 2 and 1 + phi, and for vertices under random costs that GLOP
found, whose support is solved again in rationals. That a scaled vertex keeps its support is part of
it.

**On paper.** That the columns of a vertex's support are independent, hence a component has no more
edges than nodes; and the counting that makes one owner a node enough for all sizes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .bounds import lp_agg
from .families import ALL, Instance, named, stream
from .finding import Breach, Tally, require, theorem
from .lp import minimise
from .tiny import Tiny, dot

if TYPE_CHECKING:
    import networkx as nx

#: ("type", i) or ("job", j).
Node: TypeAlias = tuple[str, int]
#: (i, j): a block type and a job.
Edge: TypeAlias = tuple[int, int]
#: Amounts y[j][i].
Amounts: TypeAlias = Sequence[Sequence[Fraction]]

# A float of a vertex that is no more than this is the solver's way to write 0.
_ZERO = 1e-9


class Rounded(NamedTuple):
    """Whole blocks given[j][i], and for each job the types rounded down, lost[j]."""

    given: list[list[int]]
    lost: list[list[int]]


def owners(edges: Iterable[Edge]) -> dict[Edge, Node]:
    """Give every edge to one of its ends, at most one to each: peel leaves, go round cycles."""
    import networkx as nx

    graph: nx.Graph[Node] = nx.Graph()
    graph.add_edges_from((("job", j), ("type", i)) for i, j in edges)
    owned: dict[Edge, Node] = {}
    leaves = sorted(node for node in graph if graph.degree[node] == 1)
    while leaves:
        leaf = leaves.pop(0)
        if leaf not in graph or graph.degree[leaf] != 1:
            continue
        (neighbour,) = graph[leaf]
        owned[_edge(leaf, neighbour)] = leaf
        graph.remove_node(leaf)
        if graph.degree[neighbour] == 1:
            leaves.append(neighbour)
    graph.remove_nodes_from([node for node in graph if graph.degree[node] == 0])
    if any(graph.degree[node] != 2 for node in graph):
        raise Breach("the support is no pseudoforest")
    for cycle in list(nx.connected_components(graph)):
        for node, neighbour in nx.find_cycle(graph, min(cycle)):
            owned[_edge(node, neighbour)] = node
    return owned


def _edge(one: Node, two: Node) -> Edge:
    (_, j), (_, i) = sorted((one, two))
    return i, j


def rounds_up(owner: Node) -> bool:
    """Whether an edge of this owner is rounded up: a type affords one, a job bears one loss."""
    return owner[0] == "type"


def rounded(amounts: Amounts) -> Rounded:
    """Round a vertex."""
    fractional = [
        (i, j) for j, row in enumerate(amounts) for i, y in enumerate(row) if y.denominator > 1
    ]
    owner = owners(fractional)
    given = [[floor(y) for y in row] for row in amounts]
    lost: list[list[int]] = [[] for _ in amounts]
    for i, j in fractional:
        if rounds_up(owner[i, j]):
            given[j][i] += 1
        else:
            lost[j].append(i)
    return Rounded(given, lost)


def require_lemma(tiny: Tiny, supply: Sequence[int], amounts: Amounts) -> Fraction:
    """Check the lemma on one vertex; return the largest part of a block that a job lost."""
    found = rounded(amounts)
    for i, limit in enumerate(supply):
        used = sum(row[i] for row in found.given)
        require(used <= limit, f"{used} blocks of type {i} of {limit}")
    worst = Fraction(0)
    for j, (row, got, lost) in enumerate(zip(amounts, found.given, found.lost, strict=True)):
        require(all(y >= 0 for y in got), f"job {j} is given {got}")
        require(len(lost) <= 1, f"job {j} loses blocks of types {lost}")
        before, after = dot(tiny.cut[j], row), dot(tiny.cut[j], got)
        if not lost:
            require(after >= before, f"job {j} falls from {before} to {after} without a loss")
            continue
        block = tiny.cut[j][lost[0]]
        require(
            after > before - block or block == 0,
            f"job {j} falls from {before} to {after} by a block of {block}",
        )
        if block:
            worst = max(worst, (before - after) / block)
    return worst


@theorem(
    "Rounding lemma",
    "every subgraph of K(3,3) and K(2,4); vertices of LP_agg, scaled; vertices of GLOP",
    ratio="loss / one block",
    proved="< 1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 400) -> None:
    """Check the lemma; see the top of this file."""
    for types, jobs in ((3, 3), (2, 4)):
        tally.check(f"K({types},{jobs})", _require_ownership, types, jobs)
    for one in (*named(), *stream(seed, cases, ALL)):
        with tally.case(one):
            tally.seen(max(_scaled_vertices(one.tiny)))
            tally.seen(_floating_vertex(one))


def _require_ownership(types: int, jobs: int) -> None:
    """Check every set of edges: an ownership exists iff no component has an edge too many."""
    import networkx as nx

    every = list(product(range(types), range(jobs)))
    for number in range(len(every) + 1):
        for edges in combinations(every, number):
            graph: nx.Graph[Node] = nx.Graph()
            graph.add_edges_from((("type", i), ("job", j)) for i, j in edges)
            parts = [graph.subgraph(part) for part in nx.connected_components(graph)]
            possible = all(part.number_of_edges() <= len(part) for part in parts)
            try:
                owned = owners(edges)
            except Breach:
                require(not possible, f"the pseudoforest {edges} is refused")
                continue
            require(possible, f"{edges} is no pseudoforest")
            require(set(owned) == set(edges), f"{edges}: not every edge has an owner")
            require(len(set(owned.values())) == len(edges), f"{edges}: a node owns two edges")
            ends = all(node in (("type", i), ("job", j)) for (i, j), node in owned.items())
            require(ends, f"{edges}: an owner is no end")


def _scaled_vertices(tiny: Tiny) -> list[Fraction]:
    vertex, losses = lp_agg(tiny), []
    for factor in (Fraction(1), Fraction(3, 2), Fraction(2), 1 + tiny.phi):
        machines = [ceil(factor * x) for x in vertex.x]
        supply = [int(blocks) for blocks in tiny.held_by(machines)]
        amounts = [[factor * y for y in row] for row in vertex.y]
        losses.append(require_lemma(tiny, supply, amounts))
    return losses


def _floating_vertex(one: Instance) -> Fraction:
    """Have GLOP find a vertex of the blocks' system, and check the lemma on its exact twin."""
    from ortools.linear_solver import pywraplp

    tiny, rng = one.tiny, random.Random(f"costs of {one}")
    supply = [int(b) for b in tiny.held_by([ceil(x) for x in lp_agg(tiny).x])]
    places = [(j, i) for j in range(tiny.n) for i in range(tiny.k)]
    costs = [rng.randint(0, 5) for _ in places]
    rows: list[list[Fraction]] = [[-Fraction(i == p[1]) for p in places] for i in range(tiny.k)]
    rows += [
        [tiny.cut[j][p[1]] if p[0] == j else Fraction(0) for p in places] for j in range(tiny.n)
    ]
    rights = [*(Fraction(-limit) for limit in supply), *tiny.demands]
    solver = pywraplp.Solver.CreateSolver("GLOP")
    amount = [solver.NumVar(0, solver.infinity(), "") for _ in places]
    for row, right in zip(rows, rights, strict=True):
        terms = [float(a) * y for a, y in zip(row, amount, strict=True) if a]
        solver.Add(solver.Sum(terms) >= float(right))
    solver.Minimize(solver.Sum([cost * y for cost, y in zip(costs, amount, strict=True)]))
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        raise Breach("GLOP finds no vertex")
    support = [at for at, y in enumerate(amount) if y.solution_value() > _ZERO]
    owners((places[at][1], places[at][0]) for at in support)
    # A vertex in rationals on the same support, or on a part of it.
    exact = minimise(
        [costs[at] for at in support], [[row[at] for at in support] for row in rows], rights
    )
    if exact is None:
        raise Breach(f"GLOP: no exact point on the support {support}")
    amounts = [[Fraction(0)] * tiny.k for _ in range(tiny.n)]
    for at, y in zip(support, exact.point, strict=True):
        amounts[places[at][0]][places[at][1]] = y
    return require_lemma(tiny, supply, amounts)
