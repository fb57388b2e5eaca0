"""Best fit decreasing for many equal blocks at once, against block by block; where it is taken."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.opening import depot as depots
from algorithms.opening.best_fit import Content, best_fit
from algorithms.opening.depot import Depot
from algorithms.opening.first import first_schedule
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, check
from tests.samples import few


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


@pytest.mark.parametrize("slots", [None, 4])
@pytest.mark.parametrize("seed", few(2, range(8)))
def test_many_types_are_packed_as_one_by_one(seed: int, slots: int | None) -> None:
    rng = random.Random(seed)
    sizes = {i: rng.randint(5, 70) for i in range(30)}
    load = {i: rng.choice([0, 1, 2, 9]) for i in sizes}
    assert best_fit(sizes, 100, slots, load) == one_by_one(sizes, 100, slots, load)


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


def cutting(sizes: Mapping[str, int], capacity: int, *more: Configuration) -> Problem:
    return Problem(
        configurations=[SizeBoundedConfigurations(sizes, capacity, "m"), *more],
        machine_types=[MachineType("m")],
        jobs=[Job(block, 10**15, {block: 1}) for block in sizes],
    )


def opened(depot: Depot, problem: Problem) -> Fraction:
    costs = {machine.name: machine.cost for machine in problem.machine_types}
    machines = depot.machines().items()
    return sum((costs[shape.machine or ""] * n for shape, n in machines), Fraction(0))


def idle(depot: Depot, problem: Problem) -> list[int]:
    """The blocks of the machines that are open: all of them idle, if none was taken."""
    return [
        sum(shape.blocks.get(block, 0) * n for shape, n in depot.machines().items())
        for block in problem.blocks
    ]


def test_a_packing_is_never_dearer_than_best_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depots, "_MOST_ROUNDS", 5)
    better = worse = 0
    for seed in range(90):
        rng = random.Random(seed)
        sizes = {f"b{i}": rng.randint(100, 600) for i in range(rng.randint(2, 30))}
        small = {block: size for block, size in sizes.items() if size <= 400}
        problem = Problem(
            configurations=[
                SizeBoundedConfigurations(sizes, 1000, "m"),
                *([SizeBoundedConfigurations(small, 700, "s")] if small and seed % 3 == 0 else []),
            ],
            machine_types=[MachineType("m"), MachineType("s", "3/4")],
            jobs=[Job(block, 10**15, {block: 1}) for block in sizes],
        )
        load = [rng.randint(0, 2) for _ in problem.blocks]
        depot, plain = Depot(problem, never), Depot(problem, never)
        assert depot.pack(load)
        assert depot.idle == idle(depot, problem)
        assert all(have >= need for have, need in zip(depot.idle, load, strict=True))
        assert plain._packed(load)
        fitted = plain._fitted(load)
        assert fitted is not None
        cost = plain._paid(fitted)
        if len(fitted) == 1:
            by_index = {i: sizes[block] for i, block in enumerate(problem.blocks)}
            assert cost == sum(best_fit(by_index, 1000, None, dict(enumerate(load))).values())
        assert opened(depot, problem) == min(cost, opened(plain, problem))
        better += cost < opened(plain, problem)
        worse += cost > opened(plain, problem)
    assert better > 5
    assert worse > 5


def test_blocks_go_to_the_machines_that_are_cheapest_when_full_of_them() -> None:
    """Large blocks are cheapest on large machines, small ones on small machines: one set each."""
    problem = Problem(
        configurations=[
            SizeBoundedConfigurations({"a": 6, "b": 4, "c": 1}, 12, "large"),
            SizeBoundedConfigurations({"b": 4, "c": 1}, 4, "small"),
        ],
        machine_types=[MachineType("large", "5/2"), MachineType("small", "3/4")],
        jobs=[Job(block, 99, {block: 1}) for block in "abc"],
    )
    for load in ([4, 7, 9], [1, 1, 1], [0, 5, 0], [0, 0, 0]):
        depot = Depot(problem, never)
        assert depot.pack(load)
        assert depot.idle == idle(depot, problem)
        assert all(have >= need for have, need in zip(depot.idle, load, strict=True))
        apart = Fraction(5, 2) * -(-load[0] // 2) + Fraction(3, 4) * (load[1] + -(-load[2] // 4))
        assert opened(depot, problem) <= apart


def test_machines_that_are_open_stay_open() -> None:
    """Their blocks are somebody's, even where none is idle any more."""
    problem = cutting({"a": 51, "b": 49, "c": 30}, 100)
    a, b, c = (problem.block_index[block] for block in "abc")
    depot = Depot(problem, never)
    assert depot.take(a, 1) == 1
    assert depot.idle == [0, 0, 0]
    load = [0, 0, 0]
    load[b] = load[c] = 3
    assert depot.pack(load)
    assert all(have >= need for have, need in zip(depot.idle, load, strict=True))
    held = idle(depot, problem)
    assert held[a] >= 1
    assert [n - (i == a) for i, n in enumerate(held)] == depot.idle
    assert (held[b], held[c]) >= (3, 3)


def test_what_no_machine_holds_and_what_is_limited_is_packed_as_before() -> None:
    giant = cutting({"a": 50, "giant": 101}, 100)
    depot = Depot(giant, never)
    assert depot.pack([4 if block == "a" else 1 for block in giant.blocks])
    assert sum(depot.machines().values()) == 2
    limited = giant.replace(machine_types=[MachineType("m", limit=3)])
    depot = Depot(limited, never)
    assert depot.pack([9 if block == "a" else 0 for block in giant.blocks])
    assert depot.idle[giant.block_index["a"]] == 6


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
