"""The rounding lemma (theory 1.5), and exact fractional assignments on a pseudoforest.

A vertex of the assignment system has a support of which every connected part has at most as many
edges (block type, job) as nodes. On such a support the blocks can be worked out exactly, leaf by
leaf, whatever floating-point numbers proposed it, and rounded so that no block is given away twice
and no job loses more than a part of one block.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, TypeAlias

from .sums import total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: (block type, job).
Edge: TypeAlias = tuple[int, int]
# Nodes of the graphs: ("type", i) and ("job", j).
_Node: TypeAlias = tuple[str, int]


def _graph(edges: Iterable[Edge]) -> Any:
    import networkx as nx

    graph: Any = nx.Graph()
    graph.add_edges_from((("type", i), ("job", j)) for i, j in edges)
    return graph


def _edge(one: _Node, other: _Node) -> Edge:
    return (one[1], other[1]) if one[0] == "type" else (other[1], one[1])


def _peeled(graph: Any) -> Iterator[tuple[_Node, _Node | None]]:
    """Take leaves off, each with its neighbour; of the last two of a tree the block type first.

    What is left of a pseudoforest are cycles.
    """
    waiting = [node for node in graph if graph.degree(node) <= 1]
    waiting.sort(key=lambda node: node[0] == "type")  # taken from the end: types first
    while waiting:
        node = waiting.pop()
        if node not in graph:
            continue
        neighbours = list(graph[node])
        yield node, (neighbours[0] if neighbours else None)
        graph.remove_node(node)
        waiting += [other for other in neighbours if graph.degree(other) <= 1]


def _cycles(graph: Any) -> Iterator[list[_Node]]:
    """List the cycles that are left, each from one of its block types on; ValueError if more."""
    import networkx as nx

    for part in list(nx.connected_components(graph)):
        start = min(node for node in part if node[0] == "type")
        if any(graph.degree(node) != 2 for node in part):
            raise ValueError("the support is no pseudoforest: some part has more edges than nodes")
        cycle, before = [start], start
        node = min(graph[start])
        while node != start:
            cycle.append(node)
            node, before = next(other for other in graph[node] if other != before), node
        yield cycle


def round_pseudoforest(blocks: Mapping[Edge, Fraction]) -> dict[Edge, int]:
    """Round blocks given to jobs to whole ones, by the lemma of theory 1.5.

    Parameters
    ----------
    blocks : Mapping[(block type, job), Fraction]
        >= 0; the fractional ones form a pseudoforest.

    Returns
    -------
    dict
        Of every type at most the next whole number of what it gave in all. Every job has at most
        one entry that is rounded down, and so loses less than one block of one type.

    Raises
    ------
    ValueError
        If the fractional entries form no pseudoforest.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> round_pseudoforest({(0, 0): 1 + half, (0, 1): half, (1, 1): half})
    {(0, 0): 1, (0, 1): 1, (1, 1): 0}
    """
    rounded = {edge: floor(amount) for edge, amount in blocks.items()}
    single, others = _by_number(edge for edge, amount in blocks.items() if amount.denominator > 1)
    graph = _graph(reversed(others))
    # Every node owns at most one edge: it is rounded up if its block type owns it.
    owners = set()
    for node, neighbour in _peeled(graph):
        if neighbour is not None and node[0] == "type":
            rounded[_edge(node, neighbour)] += 1
            owners.add(node[1])
    for cycle in _cycles(graph):
        for node, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            if node[0] == "type":
                rounded[_edge(node, following)] += 1
                owners.add(node[1])
    # A type that owns none yet owns that of a job that has no other type.
    for i, j in reversed(single):
        if i not in owners:
            owners.add(i)
            rounded[i, j] += 1
    return rounded


def _by_number(edges: Iterable[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Divide edges into those of jobs with one edge, which are most, and the others."""
    edges = list(edges)
    number = Counter(j for _, j in edges)
    return [e for e in edges if number[e[1]] == 1], [e for e in edges if number[e[1]] > 1]


def exact_assignment(
    edges: Iterable[Edge],
    supply: Sequence[Sequence[int]],
    held: Sequence[int],
    wanted: Mapping[int, Fraction],
) -> dict[Edge, Fraction] | None:
    """Find blocks for the jobs along the edges of a pseudoforest, in rationals.

    Parameters
    ----------
    edges : iterable of (block type, job)
    supply : sequence of n sequences of k ints
        What one block gives; > 0 along the edges.
    held : sequence of k ints
        Blocks of each type there are.
    wanted : Mapping[int, Fraction]
        What each job is to get.

    Returns
    -------
    dict or None
        None if these blocks are not enough along these edges.

    Raises
    ------
    ValueError
        If the edges form no pseudoforest.

    Examples
    --------
    >>> exact_assignment([(0, 0), (0, 1)], [[2], [3]], [2], {0: Fraction(2), 1: Fraction(3)})
    {(0, 0): Fraction(1, 1), (0, 1): Fraction(1, 1)}
    """
    single, others = _by_number(edges)
    left, need = list(map(Fraction, held)), dict(wanted)
    given = {(i, j): need.pop(j) / supply[j][i] for i, j in single}
    taken: dict[int, list[Fraction]] = {}
    for (i, _), amount in given.items():
        taken.setdefault(i, []).append(amount)
    for i, amounts in taken.items():
        left[i] -= total(amounts)
        if left[i] < 0:
            return None
    part = _assigned(_graph(others), supply, left, need)
    if part is None:
        return None
    return {edge: amount for edge, amount in (given | part).items() if amount}


def _assigned(
    graph: Any,
    supply: Sequence[Sequence[int]],
    left: list[Fraction],
    need: dict[int, Fraction],
) -> dict[Edge, Fraction] | None:
    given: dict[Edge, Fraction] = {}
    if any(amount > 0 and ("job", j) not in graph for j, amount in need.items()):
        return None
    for node, neighbour in _peeled(graph):
        if neighbour is None:
            if node[0] == "job" and need[node[1]] > 0:
                return None
            continue
        i, j = _edge(node, neighbour)
        amount = need[j] / supply[j][i]
        if node[0] == "type":
            # A type without another job gives all it can.
            amount = min(amount, left[i])
        given[i, j] = amount
        left[i] -= amount
        need[j] -= amount * supply[j][i]
        if left[i] < 0:
            return None
    for cycle in list(_cycles(graph)):
        part = _around(cycle, supply, left, need)
        if part is None:
            part = _opened(cycle, supply, left, need)
        if part is None:
            return None
        given.update(part)
    return {edge: amount for edge, amount in given.items() if amount}


def _around(
    cycle: Sequence[_Node],
    supply: Sequence[Sequence[int]],
    left: Sequence[Fraction],
    need: Mapping[int, Fraction],
) -> dict[Edge, Fraction] | None:
    """Solve a cycle on which every job gets just what it needs, and all types but one give all.

    Everything is linear in the first edge's amount t: an interval of t is feasible, or none.
    """
    first = cycle[0][1]
    amounts: dict[Edge, tuple[Fraction, Fraction]] = {}  # constant, and factor of t
    constant, factor = Fraction(0), Fraction(1)
    for at, (node, following) in enumerate(zip(cycle, [*cycle[1:], cycle[0]], strict=True)):
        i, j = _edge(node, following)
        if at and node[0] == "type":
            constant, factor = left[i] - constant, -factor
        elif at:
            before = cycle[at - 1][1]
            gives = supply[j][before]
            constant = (need[j] - constant * gives) / supply[j][i]
            factor = -factor * gives / supply[j][i]
        amounts[i, j] = constant, factor
    # The first type gives t and what the last job takes.
    conditions = [(c, f) for c, f in amounts.values()]
    conditions.append((left[first] - constant, -1 - factor))
    low, high = Fraction(0), None
    for c, f in conditions:  # c + f t >= 0
        if f > 0:
            low = max(low, -c / f)
        elif f < 0:
            high = c / -f if high is None else min(high, c / -f)
        elif c < 0:
            return None
    if high is not None and low > high:
        return None
    return {edge: c + f * low for edge, (c, f) in amounts.items()}


def _opened(
    cycle: Sequence[_Node],
    supply: Sequence[Sequence[int]],
    left: Sequence[Fraction],
    need: Mapping[int, Fraction],
) -> dict[Edge, Fraction] | None:
    """Solve a cycle of which one edge carries nothing."""
    pairs = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    jobs = {node[1]: need[node[1]] for node in cycle if node[0] == "job"}
    for closed in pairs:
        graph = _graph(_edge(*pair) for pair in pairs if pair is not closed)
        found = _assigned(graph, supply, list(left), dict(jobs))
        if found is not None:
            return found
    return None
