"""The structure theorem of the conic method (theory 5.1): 2^D points outside X are enough.

**Statement.** Let pieces (integral parallelepipeds inside P) cover the integer points of P in D
dimensions, and X be their vertices. If a is a sum of N integer points of P, then it is a sum of N
integer points of P of which those outside X have multiplicity at most 1 and number at most 2^D.
Cells of slack classes with gamma = 1 + 1/D have such pieces: the parallelepiped of a cell's largest
simplex holds the cell and lies in P. So integer columns for X and 2^D free slots are exact.

**Machine-checked.** On every {z >= 0 : s . z <= S} with D = 1 and s <= 4, S <= 14; D = 2 and
s <= 4, S <= 9; D = 3 and s <= 3, S <= 5, and on five larger ones whose cells hold more than a
point; for the cover by cells and a second one by boxes: pieces lie in P and cover it; |X| <= 2^D a
piece; every integer point x of a piece splits into 2x = v + w, v a vertex, w in the piece (the
*mirror step*, also on a grid of boxes with a nearer end); *every* sum of 2 points, and of 3 where
there are at most 100, has a representation as claimed, by comparing the two sets of sums; and
random sums of up to 12 points are brought into that form by mirror steps and midpoints alone. That
2^D is the number of parity classes. That slots are needed: s = (10, 7), S = 291, where cells leave
(14, 21) and other maximal points outside X, so that one machine's content takes two columns. Then
`conic` against enumeration, by both routes (by cells for k <= 2); on single machines' contents
there; on three machines that columns of *its* X alone cannot be; and on many full machines of the
same content, more than there are slots.

**On paper.** The argument for all sizes: a representation of the largest multiplicity on X allows
no such step. The support bound within X, and with it the polynomial running time. That more than
one slot is needed at once: no such instance is known here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from operator import add

from cms import Job, Problem, SizeBoundedConfigurations, solve
from cms import check as violations

from .brute_force import optimum, within
from .cells import Piece, Point, Polytope, at, by_boxes, by_cells, multiples, vertices
from .finding import Breach, Tally, require, theorem
from .promises import Solver, answered
from .tiny import Tiny

_COVERS = {"cells": by_cells, "boxes": by_boxes}
#: Where cells hold more than a point; in small polytopes there is a class for nearly every slack.
LARGE = (
    Polytope((1,), 15),
    Polytope((1,), 40),
    Polytope((1, 1), 20),
    Polytope((3, 5), 60),
    Polytope((1, 4, 4), 24),
)
#: There a maximal point, if it is no vertex of a piece, needs a slot: this one by the cells here.
NEEDS_SLOTS = Polytope((10, 7), 291)
OUTSIDE = (14, 21)
#: So many blocks are three machines, (7, 17), (3, 21) and (2, 22): with the cells of `conic` that
#: takes a slot.
BY_SLOTS = Polytope((11, 12), 286), (12, 60), 3
#: Contents that fill a machine to the last unit of size, and how many such machines.
FULL = (
    (Polytope((11, 6), 59), (1, 8), 7),
    (Polytope((10, 7), 139), (9, 7), 13),
    (Polytope((9, 8), 67), (3, 5), 9),
    (Polytope((4, 11), 87), (19, 1), 7),
)
#: Sums of three points are compared in polytopes of so many points, of two in all.
_MANY_POINTS = 100


def slots(D: int) -> int:
    """Return how many points outside X are allowed."""
    return 1 << D


def nearer_end(mu: Fraction, low: int, high: int) -> int:
    """Return the end of a range that is no farther than the other one."""
    return high if 2 * mu >= low + high else low


def mirrored(piece: Piece, mu: Sequence[Fraction], point: Point) -> tuple[Point, Point]:
    """Return a vertex v and w = 2x - v for a point x of a piece."""
    vertex = at(piece, [nearer_end(m, piece.low, piece.high) for m in mu])
    return vertex, tuple(2 * x - v for x, v in zip(point, vertex, strict=True))


class Cover:
    """A polytope, the pieces that cover its integer points, and X."""

    def __init__(self, polytope: Polytope, pieces: Sequence[Piece]) -> None:
        self.polytope, self.pieces = polytope, pieces
        self.points = polytope.points()
        self.corners = {corner for piece in pieces for corner in vertices(piece)}
        self._spans = [_span(piece) for piece in pieces]
        self.outside = [point for point in self.points if point not in self.corners]

    def piece_of(self, point: Point) -> tuple[Piece, list[Fraction]]:
        """A piece that holds the point, and its multiples there."""
        for piece, (least, most) in zip(self.pieces, self._spans, strict=True):
            if within(least, point) and within(point, most):
                mu = multiples(piece, point)
                if mu is not None:
                    return piece, mu
        raise Breach(f"{point} lies in no piece")

    def mirror(self, point: Point) -> tuple[Point, Point]:
        """Return a vertex and another point of the piece that add up to twice the point."""
        piece, mu = self.piece_of(point)
        return mirrored(piece, mu, point)

    def normal_form(self, points: Iterable[Point]) -> Counter[Point]:
        """Rewrite a sum by mirror steps at midpoints, until all points outside X differ in parity.

        Every step puts one more point onto a vertex, so there are at most as many as points.
        """
        form = Counter(points)
        for _ in range(1 + form.total()):
            pair = self._alike(form)
            if pair is None:
                return form
            form.subtract(pair)
            middle = tuple((a + b) // 2 for a, b in zip(*pair, strict=True))
            form.update(self.mirror(middle))
            form = +form
        raise Breach("a step does not put one more point onto a vertex")

    def _alike(self, form: Counter[Point]) -> tuple[Point, Point] | None:
        """Two points outside X, equal ones too, that agree in the parity of every coordinate."""
        seen: dict[Point, Point] = {}
        for point in sorted(form.elements()):
            if point in self.corners:
                continue
            parity = tuple(z % 2 for z in point)
            if parity in seen:
                return seen[parity], point
            seen[parity] = point
        return None


def _span(piece: Piece) -> tuple[Point, Point]:
    """The least and the largest value of each coordinate in a piece."""
    columns = list(zip(*vertices(piece), strict=True))
    return tuple(map(min, columns)), tuple(map(max, columns))


@theorem(
    "Structure theorem",
    "all small polytopes in 1, 2, 3 dimensions: covers, mirror step, all sums; conic",
    ratio="points outside X / 2^D",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 400, solver: Solver | None = solve) -> None:
    """Check the structure theorem; see the top of this file.

    ``cases`` limits the polytopes, taken in a random order.
    """
    for D in (1, 2, 3):
        tally.check(f"parities, D = {D}", _require_parities, D)
    tally.check("mirror step on a grid of boxes", _require_mirror_grid)
    tally.check("slots are needed", _require_slots)
    rng = random.Random(seed)
    every = list(polytopes())
    rng.shuffle(every)
    for polytope in (*LARGE, *every[:cases]):
        for name, cover in _COVERS.items():
            with tally.case(f"{polytope}, {name}"):
                pieces = cover(polytope)
                room = polytope not in LARGE or any(piece.edges for piece in pieces)
                require(room, "every piece is a single point")
                tally.seen(_claim(Cover(polytope, pieces), rng))
    if solver is not None:
        for number in range(100_000 * seed, 100_000 * seed + max(1, cases // 5)):
            tally.check(f"sizes {number}, by conic", _ours, solver, number)
        tops = [at(piece, [piece.high] * len(piece.edges)) for piece in by_boxes(NEEDS_SLOTS)]
        some = rng.sample(tops, min(len(tops), max(1, cases // 40)))
        tally.check("slots, by conic", _machines_of, solver, *BY_SLOTS)
        for wanted in (OUTSIDE, *some):
            with tally.case(f"one machine of {wanted}, by conic"):
                _machines_of(solver, NEEDS_SLOTS, wanted, 1)
        for polytope, content, number in (*FULL, *_full(seed, cases // 40)):
            with tally.case(f"{polytope}, {number} machines of {content}, by conic"):
                _machines_of(solver, polytope, [number * z for z in content], number)


def polytopes() -> Iterator[Polytope]:
    """The polytopes that are checked, sizes in ascending order."""
    for D, most, capacities in ((1, 4, 14), (2, 4, 9), (3, 3, 5)):
        for sizes in product(range(1, most + 1), repeat=D):
            if list(sizes) == sorted(sizes):
                for capacity in range(capacities + 1):
                    yield Polytope(sizes, capacity)


def _require_parities(D: int) -> None:
    classes = {tuple(z % 2 for z in point) for point in product(range(4), repeat=D)}
    require(len(classes) == slots(D), f"{len(classes)} parity classes, {slots(D)} slots")


def _require_mirror_grid() -> None:
    for low, high in combinations(range(-3, 4), 2):
        for sixths in range(6 * low, 6 * high + 1):
            mu = Fraction(sixths, 6)
            end = nearer_end(mu, low, high)
            require(low <= 2 * mu - end <= high, f"2 {mu} - {end} is not in [{low}, {high}]")


def _require_slots() -> None:
    polytope = NEEDS_SLOTS
    corners = {corner for piece in by_cells(polytope) for corner in vertices(piece)}
    tops = [at(piece, [piece.high] * len(piece.edges)) for piece in by_boxes(polytope)]
    outside = [top for top in tops if top not in corners]
    require(OUTSIDE in outside, f"{OUTSIDE} is in X, or not maximal; outside are {outside}")
    for wanted in outside:
        above = [point for point in polytope.points() if within(wanted, point)]
        require(above == [wanted], f"{above} hold {wanted} as well: it is not maximal")
        # So a slot holds it at once, and no column of X does; two of them do.
        require(not any(within(wanted, x) for x in corners), f"a column holds {wanted}")
        pairs = (tuple(a + b for a, b in zip(x, y, strict=True)) for x in corners for y in corners)
        require(any(within(wanted, pair) for pair in pairs), f"no two columns hold {wanted}")


def _full(seed: int, cases: int) -> Iterator[tuple[Polytope, Point, int]]:
    """Contents of two types that leave no room, and numbers of machines beyond the slots."""
    for number in range(100_000 * seed, 100_000 * seed + cases):
        rng = random.Random(f"full {number}")
        sizes, content = (
            (rng.randint(3, 12), rng.randint(3, 12)),
            (rng.randint(1, 9), rng.randint(1, 9)),
        )
        capacity = sum(s * z for s, z in zip(sizes, content, strict=True))
        yield Polytope(sizes, capacity), content, rng.randint(5, 20)


def _claim(cover: Cover, rng: random.Random) -> Fraction:
    polytope, D = cover.polytope, cover.polytope.dimension
    for piece in cover.pieces:
        for corner in vertices(piece):
            require(polytope.holds(corner), f"the corner {corner} of {piece} lies outside")
    most = 2**D * len(cover.pieces)
    require(len(cover.corners) <= most, f"X has {len(cover.corners)} points, not at most {most}")
    for point in cover.points:
        piece, mu = cover.piece_of(point)
        vertex, other = mirrored(piece, mu, point)
        require(vertex in cover.corners, f"the mirror step of {point} gives no vertex: {vertex}")
        inside = multiples(piece, other) is not None and polytope.holds(other)
        require(inside, f"the mirror step takes {point} to {other}, out of its piece")
    for N in (2, 3) if len(cover.points) <= _MANY_POINTS else (2,):
        _require_all_sums(cover, N)
    used = 0
    for _ in range(5):
        points = rng.choices(cover.points, k=rng.randint(2, 12))
        form = cover.normal_form(points)
        require(form.total() == len(points), f"{points} become {form.total()} points")
        require(_sum(form.elements(), D) == _sum(points, D), f"the sum of {points} changes")
        require(all(map(polytope.holds, form)), f"{dict(form)} holds a point outside of P")
        outside = [form[point] for point in form if point not in cover.corners]
        require(max(outside, default=1) == 1, f"{dict(form)} repeats a point outside X")
        require(len(outside) <= slots(D), f"{dict(form)}: {len(outside)} points outside X")
        used = max(used, len(outside))
    return Fraction(used, 2**D)


def _require_all_sums(cover: Cover, N: int) -> None:
    """Compare all sums of N points with those of the claimed form."""
    D = cover.polytope.dimension
    zero = {(0,) * D}
    claimed: set[Point] = set()
    for number in range(min(N, slots(D)) + 1):
        distinct = {_sum(chosen, D) for chosen in combinations(cover.outside, number)}
        for _ in range(N - number):
            distinct = _sums(distinct, cover.corners)
        claimed |= distinct
    every = zero
    for _ in range(N):
        every = _sums(every, cover.points)
    lost = every - claimed
    require(not lost, f"{sorted(lost)[:3]} are sums of {N} points, but not as claimed")


def _sums(some: Iterable[Point], others: Iterable[Point]) -> set[Point]:
    return {tuple(map(add, p, q)) for p, q in product(some, others)}


def _sum(points: Iterable[Point], D: int) -> Point:
    return tuple(map(sum, zip(*points, strict=True))) or (0,) * D


def _ours(solver: Solver, number: int) -> None:
    """Compare `conic` with enumeration over all maximal contents, listed one by one."""
    rng = random.Random(f"sizes {number}")
    k = rng.randint(1, 3)
    polytope = Polytope(tuple(rng.randint(2, 5) for _ in range(k)), rng.randint(5, 10))
    n = rng.randint(1, 3)
    table = [[rng.choice([0, 1, 2, 3, 5]) for _ in range(k)] for _ in range(n)]
    for row in table:
        row[rng.randrange(k)] += 1
    demands = [rng.randint(1, 4 * min(f for f in row if f)) for row in table]
    tops = [at(piece, [piece.high] * len(piece.edges)) for piece in by_boxes(polytope)]
    best = optimum(Tiny.of(demands, table, tops)).cost
    problem = _problem(polytope, demands, table)
    for route, plain in (("points", False), ("cells", True))[: 1 if k > 2 else 2]:
        solution = answered(solver, problem, "conic", route=route, plain=plain)
        require(not violations(problem, solution.schedule), f"conic {route}: not valid")
        require(solution.cost == best, f"conic {route}: cost {solution.cost}, optimum {best}")


def _machines_of(solver: Solver, polytope: Polytope, blocks: Sequence[int], number: int) -> None:
    """Ask for the blocks of so many machines, each type for a job of its own.

    Contents that leave too little room for all blocks on fewer machines need as many as that.
    """
    table = [[int(i == j) for i in range(len(blocks))] for j in range(len(blocks))]
    problem = _problem(polytope, blocks, table)
    solution = answered(solver, problem, "conic", route="cells", plain=True)
    require(not violations(problem, solution.schedule), "conic: not valid")
    require(solution.cost == number, f"conic: {solution.cost} machines, {number} suffice")


def _problem(polytope: Polytope, demands: Sequence[int], table: Sequence[Sequence[int]]) -> Problem:
    blocks = [f"b{i}" for i in range(polytope.dimension)]
    sizes = dict(zip(blocks, polytope.sizes, strict=True))
    return Problem(
        configurations=SizeBoundedConfigurations(sizes, polytope.capacity),
        jobs=[
            Job(f"j{j}", demand, dict(zip(blocks, row, strict=True)))
            for j, (demand, row) in enumerate(zip(demands, table, strict=True))
        ],
    )
