"""Families of tiny random problems, and the theory's own small examples.

A family and a number name a problem for ever: :func:`instance` builds it again. Families where
things go wrong are many: equal ratios, zeros, one job, one block, blocks that give a little less
than is needed, fractions. Every job can be served and every demand is positive.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations

from .tiny import Number, Tiny

#: The ways to cut an A100 into 1, 2, 3, 4 and 7 sevenths that leave no room.
_A100 = (
    {7: 1},
    {4: 1, 3: 1},
    {4: 1, 2: 1, 1: 1},
    {4: 1, 1: 3},
    {3: 2},
    {3: 1, 2: 1, 1: 1},
    {3: 1, 1: 3},
    {2: 3, 1: 1},
    {2: 2, 1: 3},
    {2: 1, 1: 5},
    {1: 7},
)


@dataclass(frozen=True)
class Instance:
    """A problem and the name it can be built again from."""

    family: str
    number: int
    tiny: Tiny

    def __str__(self) -> str:
        return f"{self.family} {self.number}"


def anything(rng: random.Random) -> Tiny:
    """Small integers, without a pattern."""
    k = rng.randint(1, 3)
    return _problem(rng, _shapes(rng, k), _table(rng, k, rng.randint(1, 4)))


def one_job(rng: random.Random) -> Tiny:
    """A single job, which may need several machines."""
    k = rng.randint(1, 4)
    return _problem(rng, _shapes(rng, k), _table(rng, k, 1), most=8)


def one_block(rng: random.Random) -> Tiny:
    """A single block type, so that only numbers of blocks matter."""
    return _problem(rng, _shapes(rng, 1), _table(rng, 1, rng.randint(1, 6)))


def equal_ratios(rng: random.Random) -> Tiny:
    """Every block is worth its size to every job, or off by one now and then."""
    sizes = [rng.randint(1, 4) for _ in range(rng.randint(2, 3))]
    capacity = max(sizes) + rng.randint(0, 3)
    shapes = [
        [capacity // size if at == i else 0 for at in range(len(sizes))]
        for i, size in enumerate(sizes)
    ]
    if rng.random() < 0.5:
        shapes.append([1] * len(sizes))
    table = [
        [size * unit + rng.choice([0, 0, 0, 1]) for size in sizes]
        for unit in rng.choices([1, 1, 2, 5], k=rng.randint(1, 4))
    ]
    return _problem(rng, shapes, table)


def zeros(rng: random.Random) -> Tiny:
    """Most blocks give most jobs nothing; some types serve nobody or occur nowhere."""
    k = rng.randint(2, 4)
    table = [[rng.choice([0, 0, 0, 1, 2, 5]) for _ in range(k)] for _ in range(rng.randint(1, 4))]
    return _problem(rng, _shapes(rng, k), table)


def identity(rng: random.Random) -> Tiny:
    """One job a block type, which no other type serves: multiset multicover."""
    k = rng.randint(1, 4)
    shapes = _shapes(rng, k)
    for i in range(k):
        if not any(shape[i] for shape in shapes):
            shapes[-1][i] = 1
    table = [[int(i == j) for i in range(k)] for j in range(k)]
    return Tiny.of([rng.randint(1, 3) for _ in range(k)], table, shapes)


def almost(rng: random.Random) -> Tiny:
    """Blocks that give a job a little less than it needs."""
    k = rng.randint(1, 2)
    demands = [rng.randint(4, 9) for _ in range(rng.randint(1, 4))]
    table = [[rng.choice([d - 1, d - 1, d, 1 + d // 2, d // 2]) for _ in range(k)] for d in demands]
    shapes = [[rng.randint(0, 2) for _ in range(k)] for _ in range(rng.randint(1, 3))]
    return Tiny.of(demands, _servable(table, shapes), shapes)


def thirds(rng: random.Random) -> Tiny:
    """Thirds, fifths and sevenths that add up, or miss by little."""
    k, parts = rng.randint(1, 3), ["1/3", "2/5", "2/7", "7/10", "1/2", "1"]
    table = [[rng.choice(parts) for _ in range(k)] for _ in range(rng.randint(1, 3))]
    demands = [rng.choice(["1", "9/10", "2/3", "6/5"]) for _ in table]
    return Tiny.of(demands, table, _shapes(rng, k))


def mig(rng: random.Random) -> Tiny:
    """Some ways to cut an A100, and jobs that gain less than in proportion from large blocks."""
    sizes = sorted(rng.sample([1, 2, 3, 4, 7], rng.randint(2, 4)))
    fitting = [shape for shape in _A100 if set(shape) <= set(sizes)] or [_A100[-1]]
    cuts = rng.sample(fitting, min(len(fitting), rng.randint(1, 4)))
    sizes = sorted({size for cut in cuts for size in cut})
    shapes = [[cut.get(size, 0) for size in sizes] for cut in cuts]
    table = []
    for _ in range(rng.randint(1, 4)):
        rate, least = rng.randint(2, 6), rng.choice([1, 1, 2, 3])
        supply = [rate * size - rng.randint(0, size) if size >= least else 0 for size in sizes]
        table.append(supply if any(supply) else [rate * size for size in sizes])
    return _problem(rng, shapes, table, most=6)


def one_shape(rng: random.Random) -> Tiny:
    """A single configuration of three or four types: there few machine counts split many jobs."""
    k = rng.randint(3, 4)
    return _problem(rng, [[rng.randint(1, 2) for _ in range(k)]], _table(rng, k, rng.randint(2, 4)))


def chain(rng: random.Random) -> Tiny:
    """Each job has two neighbouring types, in a row or a ring: long paths to round along."""
    k = rng.randint(2, 4)
    n = k - rng.randint(0, 1)
    table = [[0] * k for _ in range(n)]
    for j, row in enumerate(table):
        row[j] = rng.randint(2, 6)
        row[(j + 1) % k] = rng.randint(2, 6)
    shapes = [[rng.randint(1, 2) for _ in range(k)]]
    return _problem(rng, shapes, table, most=6)


def costs(rng: random.Random) -> Tiny:
    """As :func:`anything`, with a cost on every configuration."""
    k = rng.randint(1, 3)
    shapes = _shapes(rng, k)
    prices = [rng.choice(["1", "2", "3", "1/2", "3/2", "7/10"]) for _ in shapes]
    return _problem(rng, shapes, _table(rng, k, rng.randint(1, 3)), prices=prices)


def two_types(rng: random.Random) -> Tiny:
    """At most two block types and few jobs, so that large demands stay within reach."""
    k = rng.randint(1, 2)
    return _problem(rng, _shapes(rng, k, most=2), _table(rng, k, rng.randint(1, 3)), most=3)


def hub(rng: random.Random) -> Tiny:
    """Jobs that share a type, each with one of its own: many blocks, of which several may miss."""
    k = rng.randint(3, 4)
    table = [[0] * k for _ in range(k - 1)]
    for j, row in enumerate(table):
        row[0], row[j + 1] = rng.randint(2, 7), rng.randint(2, 7)
    demands = [rng.randint(80, 200) for _ in table]
    return Tiny.of(demands, table, [[rng.randint(2, 3) for _ in range(k)]])


Family = Callable[[random.Random], Tiny]
#: Where the cost of a schedule is its number of machines.
UNIT: tuple[Family, ...] = (
    mig, anything, one_shape, chain, one_job, equal_ratios, almost, zeros, one_block, identity,
    thirds,
)  # fmt: skip
#: Those of them with integers only.
WHOLE: tuple[Family, ...] = tuple(family for family in UNIT if family is not thirds)
ALL: tuple[Family, ...] = (*UNIT, costs)
_BY_NAME = {family.__name__: family for family in (*ALL, two_types, hub)}

#: Small examples of the theory (section 8), by name.
NAMED: dict[str, Tiny] = {
    "aggregated-lp-gap": Tiny.of(
        [1] * 4,
        [[int(i == j) for i in range(4)] for j in range(4)],
        [[10 * int(i == C) for i in range(4)] for C in range(4)],
    ),
    "no-truncation-gap": Tiny.of([1], [[10]], [[1]]),
    "ceil-gap": Tiny.of([1] * 5, [["9/10"]] * 5, [[1]]),
    "needless-doubling": Tiny.of([1] * 5, [[1]] * 5, [[5]]),
    "partition-yes": Tiny.of([5, 5], [[3, 1, 1, 2, 2, 1]] * 2, [[1] * 6]),
    "partition-no": Tiny.of([5, 5], [[3, 3, 3, 1]] * 2, [[1] * 4]),
    "ceil-gap-of-threes": Tiny.of([1] * 5, [["9/10"]] * 5, [[3]]),
    # Rounding is within its bound only if each job is given a block more than it wants.
    "one-block-more": Tiny.of([18, 11, 9], [[8, 5, 2], [3, 1, 5], [1, 0, 3]], [[1, 1, 1]]),
    "one-block-more-of-two": Tiny.of(
        [4, 20, 14, 26, 17, 5],
        [[2, 0], [8, 0], [5, 2], [0, 9], [9, 1], [0, 9]],
        [[1, 3], [2, 1], [0, 1]],
    ),
    "half-trap": Tiny.of([1, 1], [[1, "9/10"], ["9/10", 0]], [[1, 1]]),
    "two-halves": Tiny.of([1, 1], [[1], [1]], [[1]]),
    "one-for-all": Tiny.of([1, 1], [[1, 0], [0, 1]], [[1, 0], [1, 1]]),
    "decoys": Tiny.of(
        [1] * 4,
        [[int(i == j) for i in range(4)] for j in range(4)],
        [*([8 * int(i == C) for i in range(4)] for C in range(4)), [1] * 4],
    ),
}


def instance(family: str, number: int) -> Instance:
    """Build the problem of this number in a family, the same every time."""
    if family in NAMED:
        return Instance(family, number, NAMED[family])
    return Instance(family, number, _BY_NAME[family](random.Random(f"{family} {number}")))


def stream(seed: int, cases: int, families: Sequence[Family] = UNIT) -> Iterator[Instance]:
    """Return so many instances, the families in turn."""
    first = 100_000 * seed
    endless = (
        instance(family.__name__, first + number) for number in range(cases) for family in families
    )
    return islice(endless, cases)


def named() -> Iterator[Instance]:
    """Return the theory's small examples."""
    return (instance(name, 0) for name in NAMED)


def set_cover(size: int, sets: Sequence[Collection[int]]) -> Tiny:
    """Reduce set cover to CMS: a job and a block type an element, a configuration a set."""
    elements = range(size)
    return Tiny.of(
        [1] * size,
        [[int(i == j) for i in elements] for j in elements],
        [[int(element in chosen) for element in elements] for chosen in sets],
    )


def harmonic_trap(q: int) -> tuple[frozenset[int], ...]:
    """Sets of which greedy takes nearly H(q^2) times the least number, q columns.

    First those that greedy prefers: each holds ceil(R/q) of the R elements that the ones before it
    leave, spread evenly over the columns; so it is as good as any column, and listed before them.
    """
    columns = [list(range(at * q * q, (at + 1) * q * q)) for at in range(q)]
    left = [list(column) for column in columns]
    preferred = []
    while rest := sum(map(len, left)):
        taken = set[int]()
        for _ in range(-(-rest // q)):
            taken.add(max(left, key=len).pop(0))
        preferred.append(frozenset(taken))
    return (*preferred, *map(frozenset, columns))


def covers_of_three() -> Iterator[tuple[int, tuple[frozenset[int], ...]]]:
    """All families of subsets that cover three elements, up to the elements' names; numbered."""
    sets = [frozenset(s) for size in (1, 2, 3) for s in combinations(range(3), size)]
    seen = set[frozenset[frozenset[int]]]()
    for number in range(1, 2 ** len(sets)):
        chosen = tuple(s for at, s in enumerate(sets) if number >> at & 1)
        if frozenset().union(*chosen) != {0, 1, 2}:
            continue
        renamed = {
            frozenset(frozenset(names[element] for element in s) for s in chosen)
            for names in permutations(range(3))
        }
        if not seen & renamed:
            seen |= renamed
            yield number, chosen


def _shapes(rng: random.Random, k: int, *, most: int = 4) -> list[list[int]]:
    shapes = []
    for _ in range(rng.randint(1, most)):
        shape = [rng.choice([0, 0, 1, 1, 2]) for _ in range(k)]
        shape[rng.randrange(k)] += 1
        shapes.append(shape)
    return shapes


def _table(rng: random.Random, k: int, n: int) -> list[list[int]]:
    return [[rng.choice([0, 1, 2, 3, 4, 6]) for _ in range(k)] for _ in range(n)]


def _servable(table: list[list[int]], shapes: list[list[int]]) -> list[list[int]]:
    """Give every configuration a block, and every job something that some machine has."""
    for shape in shapes:
        if not any(shape):
            shape[0] = 1
    some = next(i for i in range(len(shapes[0])) if shapes[0][i])
    for row in table:
        if not any(f and any(shape[i] for shape in shapes) for i, f in enumerate(row)):
            row[some] = 1
    return table


def _problem(
    rng: random.Random,
    shapes: list[list[int]],
    table: list[list[int]],
    *,
    most: int = 4,
    prices: Sequence[Number] | None = None,
) -> Tiny:
    """Draw demands of at most so many blocks of the smallest kind."""
    table = _servable(table, shapes)
    demands = []
    for row in table:
        held = [f for i, f in enumerate(row) if f and any(shape[i] for shape in shapes)]
        demands.append(rng.randint(1, max(1, min(most * min(held), 2 * max(held)))))
    return Tiny.of(demands, table, shapes, prices)
