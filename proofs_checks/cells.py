"""Parallelepipeds that cover the integer points of {z >= 0 : sizes . z <= capacity} (theory 5.1).

A piece is x_0 + sum_t mu_t e_t for mu in an integral box [low, high]; its vertices are integral,
and X is the set of all vertices of all pieces. Two covers: by *cells*, the points whose slacks fall
into the same classes, each inside the parallelepiped of its largest simplex; and by *boxes*,
everything below a maximal point. Plain and small: simplices are found by trying all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple, TypeAlias

Point: TypeAlias = tuple[int, ...]


class Piece(NamedTuple):
    """A parallelepiped: a corner or centre, its edges, and the box of their multiples."""

    origin: Point
    edges: tuple[Point, ...]
    low: int
    high: int


class Polytope(NamedTuple):
    """{z >= 0 : sizes . z <= capacity}."""

    sizes: Point
    capacity: int

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.sizes)

    def slacks(self, point: Sequence[int]) -> Point:
        """How far the point is from each face; one is negative if it lies outside."""
        room = self.capacity - sum(s * z for s, z in zip(self.sizes, point, strict=True))
        return (*point, room)

    def holds(self, point: Sequence[int]) -> bool:
        """Whether the point lies inside."""
        return min(self.slacks(point)) >= 0

    def points(self) -> list[Point]:
        """All integer points inside."""
        ranges = (range(self.capacity // size + 1) for size in self.sizes)
        return [point for point in product(*ranges) if self.holds(point)]


def slack_class(slack: int, dimension: int) -> int:
    """Return 0 for slack 0, else 1 + t with gamma^t <= slack < gamma^(t + 1), gamma = 1 + 1/D."""
    if not slack:
        return 0
    t = 0
    while (dimension + 1) ** (t + 1) <= slack * dimension ** (t + 1):
        t += 1
    return 1 + t


def cells(polytope: Polytope) -> list[list[Point]]:
    """Return the points that share the class of every slack."""
    found: dict[Point, list[Point]] = {}
    for point in polytope.points():
        key = tuple(slack_class(slack, polytope.dimension) for slack in polytope.slacks(point))
        found.setdefault(key, []).append(point)
    return list(found.values())


def box() -> tuple[int, int]:
    """Return the range of the multiples of a simplex's edges in its parallelepiped."""
    return -1, 1


def around(cell: Sequence[Point]) -> Piece:
    """Return the parallelepiped of a cell's largest simplex."""
    for q in range(len(cell[0]), 0, -1):
        best: tuple[int, Piece] | None = None
        for origin, *others in combinations(cell, q + 1):
            edges = tuple(_minus(other, origin) for other in others)
            volume = _determinant([[_dot(a, b) for b in edges] for a in edges])
            if volume and (best is None or volume > best[0]):
                best = volume, Piece(origin, edges, *box())
        if best is not None:
            return best[1]
    return Piece(cell[0], (), *box())


def by_cells(polytope: Polytope) -> list[Piece]:
    """Return the pieces around all cells."""
    return [around(cell) for cell in cells(polytope)]


def by_boxes(polytope: Polytope) -> list[Piece]:
    """Return the boxes below all maximal points."""
    D = polytope.dimension
    unit = [tuple(int(i == at) for i in range(D)) for at in range(D)]
    pieces = []
    for point in polytope.points():
        if not any(polytope.holds(_plus(point, step)) for step in unit):
            edges = (tuple(z * u for u in unit[at]) for at, z in enumerate(point) if z)
            pieces.append(Piece((0,) * D, tuple(edges), 0, 1))
    return pieces


def vertices(piece: Piece) -> Iterator[Point]:
    """Return the corners of a piece."""
    for mu in product((piece.low, piece.high), repeat=len(piece.edges)):
        yield at(piece, mu)


def at(piece: Piece, mu: Sequence[int]) -> Point:
    """Return the point with these multiples of the edges."""
    point = piece.origin
    for factor, edge in zip(mu, piece.edges, strict=True):
        point = tuple(p + factor * e for p, e in zip(point, edge, strict=True))
    return point


def multiples(piece: Piece, point: Point) -> list[Fraction] | None:
    """Return mu of a point; None if it does not lie on the edges' span, or outside of the box."""
    way, edges = _minus(point, piece.origin), piece.edges
    gram = [[_dot(a, b) for b in edges] for a in edges]
    whole = _determinant(gram)
    mu = []
    for t in range(len(edges)):  # Cramer's rule on the normal equations
        replaced = [
            [_dot(a, way) if column == t else entry for column, entry in enumerate(row)]
            for a, row in zip(edges, gram, strict=True)
        ]
        mu.append(Fraction(_determinant(replaced), whole))
    reached = [
        piece.origin[i] + sum((m * e[i] for m, e in zip(mu, edges, strict=True)), Fraction(0))
        for i in range(len(point))
    ]
    inside = all(piece.low <= m <= piece.high for m in mu)
    return mu if inside and reached == list(point) else None


def _plus(one: Sequence[int], two: Sequence[int]) -> Point:
    return tuple(a + b for a, b in zip(one, two, strict=True))


def _minus(one: Sequence[int], two: Sequence[int]) -> Point:
    return tuple(a - b for a, b in zip(one, two, strict=True))


def _dot(one: Sequence[int], two: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(one, two, strict=True))


def _determinant(matrix: Sequence[Sequence[int]]) -> int:
    """Expand along the first row: the matrices have at most three."""
    if not matrix:
        return 1
    return sum(
        (-1) ** column
        * entry
        * _determinant([[*row[:column], *row[column + 1 :]] for row in matrix[1:]])
        for column, entry in enumerate(matrix[0])
        if entry
    )
