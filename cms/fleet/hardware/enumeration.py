"""Every layout of a GPU, by exhaustive search over its placement table.

A layout is a set of instances such that (1) every instance starts where its profile may start and
ends within the memory slices, (2) no two share a memory slice, (3) no profile occurs more often
than its maximum, (4) the compute slices suffice and (5) at most one instance holds media engines,
which exist once. Sets are counted by (1) and (2) before anything is listed; a table with more than
`MOST_SETS` of them is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption

#: How many instances of each shape, in the order of `Table.shapes`.
Counts: TypeAlias = tuple[int, ...]
#: Instances as (index of the shape, start), in the order of starts.
Places: TypeAlias = tuple[tuple[int, int], ...]

#: Sets of instances that do not overlap, at most: the shipped cards have 5,535 with all of their
#: profiles. Whatever is listed, sorted, compared or printed then takes about a second.
MOST_SETS = 20_000

# Few profile sets are asked for, and cards share them, but a fleet has many ways to be in use. What
# is kept of a table is little: its multisets and maximal layouts, not all of its layouts.
_CACHED_TABLES = 256


class Shape(NamedTuple):
    """What the rules of placement know of a profile."""

    compute: int
    memory: int
    starts: tuple[int, ...]
    max: int
    media: bool


class Table(NamedTuple):
    """What the enumeration depends on, without names: cards with one placement table share one.

    The largest shape is first: "largest first" is then the order of all results.
    """

    shapes: tuple[Shape, ...]
    compute_slices: int
    memory_slices: int


class LayoutCounts(NamedTuple):
    """How many layouts and multisets there are: the finger print of a placement table.

    Maximal ones alone do not tell the known 7-slice cards from a wrong table in circulation.
    """

    layouts: int
    maximal_layouts: int
    multisets: int
    maximal_layout_multisets: int  #: of the maximal layouts
    maximal_multisets: int  #: contained in no other

    def __str__(self) -> str:
        return (
            f"{self.layouts} layouts ({self.maximal_layouts} maximal) and {self.multisets} "
            f"multisets ({self.maximal_layout_multisets} of the maximal layouts, "
            f"{self.maximal_multisets} maximal)"
        )


class Node(NamedTuple):
    """One layout with its sums: a node of the search tree."""

    places: Places
    counts: Counts
    occupied: int  # bit s is set: memory slice s is taken
    compute: int
    media: int


@lru_cache(_CACHED_TABLES)
def placements(table: Table) -> Places:
    """Every place an instance can take on an empty GPU, by start, the largest shape first."""
    return tuple(
        (i, start)
        for start in range(table.memory_slices)
        for i, shape in enumerate(table.shapes)
        if start in shape.starts and start + shape.memory <= table.memory_slices
    )


def sets_without_overlap(table: Table) -> int:
    """How many non-empty sets of placed instances there are: rules (1) and (2) alone."""
    # beyond[s]: the sets, the empty one included, of instances that start at slice s or later
    beyond = [1] * (table.memory_slices + 1)
    for start in reversed(range(table.memory_slices)):
        beyond[start] = beyond[start + 1] + sum(
            beyond[start + table.shapes[i].memory] for i, at in placements(table) if at == start
        )
    return beyond[0] - 1


def nodes(table: Table) -> tuple[Node, ...]:
    """Every layout but the empty one, depth first over `placements`; InvalidOption if too many."""
    if (sets := sets_without_overlap(table)) > MOST_SETS:
        raise InvalidOption(
            f"these profiles allow {sets} sets of instances that do not overlap; at most "
            f"{MOST_SETS} are listed: plan with fewer profiles"
        )
    places, found = placements(table), list[Node]()

    def extend(node: Node) -> None:
        # Instances are added in the order of their starts, so each layout is reached once.
        for place in places:
            if node.occupied < 1 << place[1] and (child := _with(table, node, place)) is not None:
                found.append(child)
                extend(child)

    extend(Node((), (0,) * len(table.shapes), 0, 0, 0))
    return tuple(found)


def _with(table: Table, node: Node, place: tuple[int, int]) -> Node | None:
    """Add one instance, or return None if a rule of the layout forbids it."""
    i, start = place
    shape = table.shapes[i]
    mask = ((1 << shape.memory) - 1) << start
    if node.occupied & mask or node.counts[i] >= shape.max:
        return None
    compute, media = node.compute + shape.compute, node.media + shape.media
    if compute > table.compute_slices or media > 1:
        return None
    counts = (*node.counts[:i], node.counts[i] + 1, *node.counts[i + 1 :])
    return Node((*node.places, place), counts, node.occupied | mask, compute, media)


@lru_cache(_CACHED_TABLES)
def maximal_nodes(table: Table) -> tuple[Node, ...]:
    """The layouts into which no further instance fits."""
    places = [(1 << place[1], place) for place in placements(table)]
    return tuple(
        node
        for node in nodes(table)
        if all(node.occupied & bit or _with(table, node, place) is None for bit, place in places)
    )


@lru_cache(_CACHED_TABLES)
def first_layouts(table: Table) -> dict[Counts, Places]:
    """Each multiset that can be placed, the empty one too, with the first layout that does."""
    first: dict[Counts, Places] = {(0,) * len(table.shapes): ()}
    for node in nodes(table):
        first.setdefault(node.counts, node.places)
    return first


@lru_cache(_CACHED_TABLES)
def layouts_of(table: Table, counts: Counts) -> tuple[Places, ...]:
    """Every layout with exactly these instances, in the order of `nodes`."""
    shapes = zip(table.shapes, counts, strict=True)
    only = tuple(shape._replace(max=min(shape.max, count)) for shape, count in shapes)
    return tuple(
        node.places for node in nodes(table._replace(shapes=only)) if node.counts == counts
    )


def multisets(table: Table) -> tuple[Counts, ...]:
    """Every multiset that can be placed, the one with the largest instances first."""
    return tuple(sorted(first_layouts(table), reverse=True))[:-1]


def maximal_multisets(table: Table) -> tuple[Counts, ...]:
    """The multisets contained in no other that can be placed."""
    realisable = first_layouts(table)
    # Taking an instance away keeps a layout valid, so a multiset contained in a larger one is
    # contained in one that is larger by a single instance.
    return tuple(
        counts
        for counts in multisets(table)
        if not any(
            (*counts[:i], counts[i] + 1, *counts[i + 1 :]) in realisable for i in range(len(counts))
        )
    )


@lru_cache(_CACHED_TABLES)
def layout_counts(table: Table) -> LayoutCounts:
    """Count everything that is enumerated here."""
    return LayoutCounts(
        len(nodes(table)),
        len(maximal_nodes(table)),
        len(multisets(table)),
        len({node.counts for node in maximal_nodes(table)}),
        len(maximal_multisets(table)),
    )
