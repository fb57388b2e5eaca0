"""The rounding lemma (theory 1.5).

A vertex of the assignment system has a support of which every connected part has at most as many
edges (block type, job) as nodes. On such a support blocks can be rounded so that none is given away
twice and no job loses more than a part of one block.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: (block type, job).
Edge: TypeAlias = tuple[int, int]
# Nodes of the graphs: ("type", i) and ("job", j).
_Node: TypeAlias = tuple[str, int]


def bipartite_graph(edges: Iterable[Edge]) -> Any:
    """Return the networkx graph of edges between nodes ("type", i) and ("job", j)."""
    import networkx as nx

    graph: Any = nx.Graph()
    graph.add_edges_from((("type", i), ("job", j)) for i, j in edges)
    return graph


def _edge(one: _Node, other: _Node) -> Edge:
    return (one[1], other[1]) if one[0] == "type" else (other[1], one[1])


def _peeled(graph: Any) -> Iterator[tuple[_Node, _Node | None]]:
    """Take leaves off until cycles are left, each with its neighbour; of two the type first."""
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
    """Round blocks given to jobs to whole ones, where the fractional ones form a pseudoforest.

    Of every type at most the next whole number of what it gave in all. Every job has at most one
    entry that is rounded down, and so loses less than one block of one type.
    """
    rounded = {edge: floor(amount) for edge, amount in blocks.items()}
    split = [edge for edge, amount in blocks.items() if amount.denominator > 1]
    number = Counter(j for _, j in split)
    graph = bipartite_graph(reversed([edge for edge in split if number[edge[1]] > 1]))
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
    for i, j in reversed(split):
        if number[j] == 1 and i not in owners:
            owners.add(i)
            rounded[i, j] += 1
    return rounded
