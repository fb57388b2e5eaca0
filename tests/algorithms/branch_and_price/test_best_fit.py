"""Best fit decreasing for many equal blocks at once, against block by block."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.branch_and_price.best_fit import Content, best_fit
from algorithms.branch_and_price.first import first_schedule
from cms import Job, Problem, SizeBoundedConfigurations, check


def never() -> bool:
    return False


def one_by_one(
    sizes: Mapping[int, int], capacity: int, slots: int | None, load: Mapping[int, int]
) -> dict[Content, int]:
    """The rule as its name says: the next largest block, on the fullest machine with room."""
    machines: list[dict[int, int]] = []

    def room(machine: dict[int, int]) -> tuple[int, int]:
        free = (slots or 0) - sum(machine.values())
        return capacity - sum(sizes[i] * n for i, n in machine.items()), free

    for i in sorted(load, key=lambda i: (-sizes[i], i)):
        for _ in range(load[i]):
            able = [
                machine
                for machine in machines
                if room(machine)[0] >= sizes[i] and (slots is None or room(machine)[1])
            ]
            # Of machines as full those with most blocks, the first contents in order.
            fullest = min(
                able,
                key=lambda machine: (
                    room(machine)[0],
                    -sum(machine.values()),
                    tuple(machine.items()),
                ),
                default=None,
            )
            if fullest is None:
                fullest = {}
                machines.append(fullest)
            fullest[i] = fullest.get(i, 0) + 1
    return dict(Counter(tuple(machine.items()) for machine in machines))


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    numbers=st.lists(st.integers(0, 9), min_size=5, max_size=5),
    capacity=st.integers(12, 30),
    slots=st.one_of(st.none(), st.integers(1, 5)),
)
def test_equal_blocks_at_once_are_packed_as_one_by_one(
    sizes: list[int], numbers: list[int], capacity: int, slots: int | None
) -> None:
    of = dict(enumerate(sizes))
    load = dict(zip(of, numbers, strict=False))
    assert best_fit(of, capacity, slots, load) == one_by_one(of, capacity, slots, load)


@pytest.mark.parametrize("slots", [None, 3])
def test_a_trillion_blocks_make_no_more_kinds_of_machines_than_dozens(slots: int | None) -> None:
    """What it does depends on the types: contents repeat, whatever the numbers are."""
    rng = random.Random(4)
    sizes = {i: rng.randint(20, 300) for i in range(25)}
    contents = []
    for exponent in (2, 12, 400):
        load = {i: 10**exponent + i for i in sizes}
        found = best_fit(sizes, 1000, slots, load)
        held: Counter[int] = Counter()
        for content, number in found.items():
            assert number > 0
            assert sum(sizes[i] * n for i, n in content) <= 1000
            assert slots is None or sum(n for _, n in content) <= slots
            for i, n in content:
                held[i] += n * number
        assert held == load
        contents.append(len(found))
    assert max(contents) <= 2 * len(sizes)


def test_a_first_schedule_of_cutting_stock_is_as_good_as_best_fit() -> None:
    """Blocks beyond half a machine, each with one that fits to the last bit, at any number."""
    rng = random.Random(1)
    large = rng.sample(range(501, 700), 30)
    sizes = {f"b{size}": size for part in large for size in (part, 1000 - part)}
    for number in (1, 10**12):
        problem = Problem(
            configurations=SizeBoundedConfigurations(sizes, 1000),
            jobs=[Job(block, number, {block: 1}) for block in sizes],
        )
        schedule = first_schedule(problem, never)
        assert schedule is not None
        assert check(problem, schedule) == ()
        assert schedule.machine_count == 30 * number
