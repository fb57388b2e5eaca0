"""Machines that hold blocks exactly, out of all contents that matter, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.branch_and_price.covers import cover
from algorithms.prices.region import Region
from cms import Job, MachineType, Problem, SizeBoundedConfigurations
from cms.knapsack.packing import Packing
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.oracle import optimum

SCALE = 27720
pieces = st.lists(st.tuples(st.integers(2, 9), st.integers(1, 2)), min_size=1, max_size=3)


@given(pieces, st.integers(9, 14), st.integers(1, 3), st.booleans())
@example([(6, 1), (5, 2), (4, 2)], 12, 2, True)
def test_machines_are_found_within_a_cost_exactly_if_there_are_any(
    given: list[tuple[int, int]], capacity: int, most: int, limited: bool
) -> None:
    """Prices that sizes make lose what a machine is filled to less than its capacity."""
    sizes, wanted = zip(*sorted(dict(given).items()), strict=True)
    blocks = [f"b{i}" for i in range(len(sizes))]
    problem = Problem(
        configurations=SizeBoundedConfigurations(dict(zip(blocks, sizes, strict=True)), capacity),
        jobs=[Job(b, n, {b: 1}) for b, n in zip(blocks, wanted, strict=True)],
        machine_types=[MachineType("machine", limit=99)],
    )
    prices = [size * SCALE // capacity for size in sizes]
    slack = most * SCALE - sum(p * n for p, n in zip(prices, wanted, strict=True))
    room = [most if limited else None]
    found, none = cover(Region(problem), wanted, prices, [SCALE], slack, room, Unlimited())
    best = optimum(problem)
    assert best is not None
    assert (bool(found), none) == (best <= most, best > most)
    if found:
        assert len(found) <= most
        assert [*map(sum, zip(*(row.counts for row in found), strict=True))] == [*wanted]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(1, 14),
    st.none() | st.integers(1, 4),
    st.integers(0, 20),
)
def test_contents_worth_enough_are_listed_once_each(
    types: list[tuple[int, int]], capacity: int, max_blocks: int | None, least: int
) -> None:
    worth, sizes = zip(*types, strict=True)
    packing = Packing([Fraction(size) for size in sizes], Fraction(capacity), max_blocks)
    found, complete = packing.list_contents(worth, [3] * len(types), least, 10**6, 10**6)
    fitting = [
        counts
        for counts in product(range(4), repeat=len(types))
        if any(counts)
        and sum(map(int.__mul__, counts, sizes)) <= capacity
        and (max_blocks is None or sum(counts) <= max_blocks)
        and sum(map(int.__mul__, counts, worth)) >= least
    ]
    assert complete
    assert sorted(found) == sorted(fitting)
