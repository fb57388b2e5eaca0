"""The aggregated program in rationals: every column at once says the same; and its integers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.aggregated import purchase
from algorithms.aggregated.program import Aggregated
from algorithms.aggregated.proposal import Hint, Proposals
from algorithms.aggregated.purchase import Blocks
from algorithms.integer_problem import Tables, maximal_contents
from algorithms.integer_problem import listed as listed_shapes
from algorithms.solvers.simplex import Basic, cheapest
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations
from instances.families import generate
from tests.samples import so_many

KINDS = ["small", "costs", "demands", "hair", "blocks"]


def drawn(kind: str, seed: int) -> Tables:
    """A problem whose numbers of one kind lie far apart."""
    rng = random.Random(f"{kind} {seed}")
    blocks = [f"b{i}" for i in range(rng.randint(1, 4))]
    d = 10 ** rng.randint(5, 12)

    def one_of(far: str, numbers: Sequence[int], otherwise: Sequence[int]) -> int:
        return rng.choice(numbers if kind == far else otherwise)

    jobs = []
    for j in range(rng.randint(1, 5)):
        demand = one_of("demands", [1, 2, 10**9 + 7, 10**15], [1, 3, 7, 12])
        supply = {b: rng.choice([0, 1, 2, 3]) for b in blocks}
        if kind == "hair":
            demand = d * rng.randint(1, 3) + rng.choice([-1, 0, 1])
            supply = {b: rng.choice([0, d, 2 * d, d - 1, d + 1]) for b in blocks}
        supply[rng.choice(blocks)] = d if kind == "hair" else 1
        jobs.append(Job(f"j{j}", demand, {b: min(demand, f) for b, f in supply.items()}))
    shapes: list[dict[str, int]] = [{b: 1} for b in blocks]
    for _ in range(rng.randint(0, 4)):
        counts = {b: one_of("blocks", [0, 1, 10**7, 10**9], [0, 1, 2, 3]) for b in blocks}
        shapes.append({b: count for b, count in counts.items() if count} or {blocks[0]: 2})
    types = [
        MachineType(
            f"m{at}", rng.randint(1, 9) * Fraction(10) ** one_of("costs", range(-6, 7), [0])
        )
        for at in range(len(shapes))
    ]
    return Tables.of(
        Problem(
            configurations=[Configuration(counts, f"m{at}") for at, counts in enumerate(shapes)],
            jobs=jobs,
            machine_types=types,
        )
    )


def in_full(tables: Tables, there: Sequence[int] = (), absent: Sequence[int] = ()) -> Basic:
    """The aggregated program with every column; a machine more of those there is a row."""
    shapes = [at for at in range(tables.c) if at not in absent]
    pairs = [(i, j) for j, row in enumerate(tables.supply.tolist()) for i, f in enumerate(row) if f]
    rows = [
        [tables.counts[at][i] for at in shapes] + [-int(i == type_) for type_, _ in pairs]
        for i in range(tables.k)
    ]
    rows += [
        [0] * len(shapes) + [int(tables.supply[j, i]) if j == job else 0 for i, job in pairs]
        for j in range(tables.n)
    ]
    rows += [[int(at == one) for at in shapes] + [0] * len(pairs) for one in there]
    least = [0] * tables.k + tables.demands.tolist() + [1] * len(there)
    costs = [tables.costs[at] for at in shapes] + [Fraction(0)] * len(pairs)
    found = cheapest(costs, rows, least)
    assert found is not None
    return found


def is_a_vertex_of_that_value(tables: Tables, value: Fraction, machines: list[Fraction]) -> None:
    assert sum((x * cost for x, cost in zip(machines, tables.costs, strict=True)), Fraction(0)) == (
        value
    )
    assert sum(map(bool, machines)) <= tables.p


def listed(tables: Tables, blocks: Blocks) -> Iterator[tuple[int, int, Fraction]]:
    """Block type, job and amount."""
    for j, i in enumerate(blocks.main.tolist()):
        if i >= 0:
            yield i, j, Fraction(int(tables.demands[j]), int(tables.supply[j, i]))
    for j, shares in blocks.shares.items():
        yield from ((i, j, amount) for i, amount in shares.items())


def do(tables: Tables, machines: Sequence[Fraction | int], blocks: Blocks) -> None:
    """Blocks in parts that the machines have, and that serve everybody."""
    held, got = [Fraction(0)] * tables.k, [Fraction(0)] * tables.n
    for x, row in zip(machines, tables.counts, strict=True):
        held = [a + x * b for a, b in zip(held, row, strict=True)]
    for i, j, amount in listed(tables, blocks):
        assert amount >= 0
        held[i] -= amount
        got[j] += amount * int(tables.supply[j, i])
    assert min(held) >= 0
    assert all(amount >= d for amount, d in zip(got, tables.demands, strict=True))


def pay(tables: Tables, prices: Sequence[Fraction]) -> Fraction:
    """What all jobs pay for blocks in parts."""
    pairs = zip(tables.demands.tolist(), tables.supply.tolist(), strict=True)
    least = (min(prices[i] * Fraction(d, f) for i, f in enumerate(r) if f) for d, r in pairs)
    return sum(least, Fraction(0))


def propose_nothing(self: Any, *rest: Any) -> Hint:
    return Hint(set(), self._cheapest(np.ones(self._k)), {})


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_floats_only_propose_and_wrong_ones_cost_nothing_but_time(
    kind: str, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if wrong:
        monkeypatch.setattr(Proposals, "propose", propose_nothing)
    for seed in range(20 if wrong else so_many(4, 40)):
        tables = drawn(kind, seed)
        vertex = Aggregated(tables).solve(None)
        assert vertex.value == in_full(tables).cost, seed
        is_a_vertex_of_that_value(tables, vertex.value, vertex.machines)
        for row, cost in zip(tables.counts, tables.costs, strict=True):
            assert sum(p * a for p, a in zip(vertex.prices, row, strict=True)) <= cost
        assert pay(tables, vertex.prices) == vertex.value
        do(tables, vertex.machines, vertex.blocks)
        # Configurations used once, or never.
        rng = random.Random(seed)
        names = list(range(tables.c))
        there = [at for at in names if rng.random() < 0.3]
        # The first configurations hold one block type each, so that no job is left without.
        absent = [at for at in names if at >= tables.k and at not in there and rng.random() < 0.5]
        vertex = Aggregated(tables).solve(None, there, absent)
        assert vertex.value == in_full(tables, there, absent).cost, seed
        assert all(vertex.machines[at] >= 1 for at in there)
        assert not any(vertex.machines[at] for at in absent)


@pytest.mark.parametrize("n", [12, 40])
def test_a_vertex_proposed_by_floats_is_proved_without_a_pivot(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables.of(generate("stock-cutgen", n=n, seed=2))
    with monkeypatch.context() as patch:
        patch.setattr(purchase, "Program", None)
        vertex = Aggregated(tables).solve(None)
    is_a_vertex_of_that_value(tables, vertex.value, vertex.machines)
    assert pay(tables, vertex.prices) == vertex.value
    do(tables, vertex.machines, vertex.blocks)
    monkeypatch.setattr(Proposals, "priced_types", lambda _: [])
    assert Aggregated(tables).solve(None).value == vertex.value


@pytest.mark.parametrize("kind", KINDS)
def test_machines_that_do_not_do_are_told_by_prices(kind: str) -> None:
    seen, refuted = {True: 0, False: 0}, 0
    number = so_many(4, 30)
    for seed in range(number):
        tables = drawn(kind, seed)
        vertex = Aggregated(tables).solve(None)
        program = Aggregated(tables)
        for shift in (0, -1):
            machines = [max(0, -(-x.numerator // x.denominator) + shift) for x in vertex.machines]
            found = program.beside(machines, None)
            held = tables.held(machines)
            seen[not found.value] += 1
            if not found.value:
                do(tables, machines, found.blocks)
                continue
            # Nobody can pay less, and the machines are worth less than that.
            there = sum(p * x for p, x in zip(found.prices, held, strict=True))
            assert pay(tables, found.prices) == there + found.value
        assert program.purchase.refuted(tables.held(vertex.machines), None) is None
        for part in (Fraction(1, 2), Fraction(99, 100)):
            too_few = tables.held([part * x for x in vertex.machines])
            if (quickly := program.purchase.refuted(too_few, None)) is not None:
                refuted += 1
                prices, worth = quickly
                there = sum(p * x for p, x in zip(prices, too_few, strict=True))
                assert there < worth <= pay(tables, prices)
    assert min(seen.values()) > number // 3
    assert refuted > number * 2 // 3


@given(st.data())
def test_the_maximal_contents_are_those_of_the_definition(data: st.DataObject) -> None:
    sizes = data.draw(
        st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1, max_size=4)
    )
    shape = SizeBoundedConfigurations(
        sizes, data.draw(st.integers(0, 20)), max_blocks=data.draw(st.none() | st.integers(1, 5))
    )
    counts = itertools.product(*(range(21 // size + 1) for size in sizes.values()))
    legal = [
        content
        for content in (dict(zip(sizes, many, strict=True)) for many in counts)
        if shape.allows({b: n for b, n in content.items() if n}) and any(content.values())
    ]
    maximal = {
        tuple(sorted((b, n) for b, n in content.items() if n))
        for content in legal
        if not any(shape.allows({**content, b: content[b] + 1}) for b in sizes)
    }
    found = maximal_contents(shape, most=10**6)
    assert found is not None
    assert {tuple(sorted(content.items())) for content in found} == maximal
    assert len(found) == len(maximal)


def test_a_set_of_too_many_contents_is_not_listed() -> None:
    shares = SizeBoundedConfigurations({"a": 2, "b": 3}, 60)
    problem = Problem(configurations=shares, jobs=[Job("x", 60, {"a": 1, "b": 1})])
    assert listed_shapes(problem, most=20) == ((), {problem.machine_types[0].name})
    found = listed_shapes(problem, most=21)
    assert not found.left_out
    assert len(found.shapes) == 21


def test_of_a_vast_set_the_contents_are_listed_that_somebody_has_a_use_for() -> None:
    vast = SizeBoundedConfigurations({"a": 2, "b": 3}, 10**4000)
    problem = Problem(configurations=vast, jobs=[Job("x", 7, {"a": 1, "b": 2}), Job("y", 0, {})])
    assert listed_shapes(problem, most=1).shapes == (Configuration({"a": 7, "b": 4}, "machine"),)
