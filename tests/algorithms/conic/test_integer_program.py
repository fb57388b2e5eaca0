"""The integer program on X and slots: its value, and what prices leave out of it."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil

import pytest

from algorithms.conic.cells import cover
from algorithms.conic.demands import Priced, Window, priced, windows
from algorithms.conic.integer_program import ContentProgram, ContentsFound, ContentTask, columns_of
from algorithms.conic.polytope import Point, Polytope
from algorithms.conic.prepared import Prepared, prepared
from algorithms.conic.run import _is_open, _near
from algorithms.solvers.integer import Settings
from algorithms.tables.demands import Demand
from cms.knapsack.packing import fullest_machine
from cms.knapsack.pricing import common_denominator
from instances import hard
from tests.algorithms.conic.parts import inside, random_problem
from tests.algorithms.price_and_branch.parts import Unlimited
from tests.oracle import optimum
from tests.samples import few


def best(
    given: Prepared,
    contents: list[Point],
    slots: int,
    *,
    target: int | None = None,
    known: Priced | None = None,
) -> ContentsFound | None:
    """The program's best schedule of at most ``target`` machines."""
    target = given.simple if target is None else target
    task = ContentTask(
        given.polytope,
        given.demands,
        windows(given.demands, given.polytope.highest, target, known),
        columns_of(contents, target, known),
        slots,
        1 if known is None else ceil(known.bound),
        target,
        _near(known, target),
    )
    if not _is_open(task):
        return None
    model = ContentProgram(task)
    outcome = model.program.solve(Unlimited(), Settings())
    assert outcome.status in ("optimal", "infeasible")
    found = None if outcome.values is None else model.read(outcome.values)
    if found is not None:
        for content in found.machines:
            assert inside(given.polytope, content), "a slot or a column does not fit"
    return found


def corners(given: Prepared) -> list[Point]:
    return sorted({vertex for body in cover(given.polytope) for vertex in body.vertices()})


def ready(problem: object) -> Prepared:
    answer = prepared(problem, "cells")  # type: ignore[arg-type]
    assert isinstance(answer, Prepared)
    return answer


def count(found: ContentsFound | None) -> int:
    assert found is not None
    return found.machine_count


def test_a_slot_opened_for_nothing_is_no_machine() -> None:
    demand, window = Demand("x", 2, (1, 0)), Window((2, 0), (2, 0))
    task = ContentTask(
        Polytope(((1, 1),), (3,)), (demand,), (window,), (), slots=2, least=0, target=2
    )
    model = ContentProgram(task)
    # used, held, held of each slot; then what the job takes beyond its window's least
    assert len(model.program) == 8
    found = model.read((1, 2, 0, 1, 0, 0, 0, 0))
    assert (found.machines, found.machine_count) == ({(2, 0): 1}, 1)


def test_slots_are_needed_where_x_lacks_the_right_content() -> None:
    given = ready(hard.SLOTS_NEEDED.make())
    wanted = tuple(demand.demand for demand in given.demands)
    order = [demand.supply.index(1) for demand in given.demands]
    missing = tuple(wanted[order.index(i)] for i in range(2))
    assert sorted(missing) == [14, 21]
    x = [content for content in corners(given) if content != missing]
    assert count(best(given, x, 0)) == 2
    assert count(best(given, x, 1)) == 1


@pytest.mark.parametrize("seed", few(4, range(25)))
def test_the_value_falls_with_slots_and_contents_to_the_optimum(seed: int) -> None:
    rng = random.Random(f"value {seed}")
    problem = random_problem(rng.randrange(10**6))
    given = prepared(problem, "cells")
    if not isinstance(given, Prepared) or optimum(problem) is None:
        problem = hard.packing((5, 3), 22, (rng.randint(1, 9), rng.randint(1, 9)))
        given = ready(problem)
    least = optimum(problem)
    assert least is not None
    least /= problem.machine_types[0].cost
    k, x = given.polytope.dimension, corners(given)
    # Alone, a type at a time, every job is served: the program is feasible from the start.
    alone = [
        tuple(most if i == at else 0 for i in range(k))
        for at, most in enumerate(given.polytope.highest)
    ]
    values = [count(best(given, x, slots)) for slots in range(2**k + 1)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == least
    growing = sorted(x, key=lambda _: rng.random())
    steps = [count(best(given, [*alone, *growing[:size]], 1)) for size in range(0, len(x) + 1, 3)]
    assert steps == sorted(steps, reverse=True)
    assert min(steps) >= least


@pytest.mark.parametrize("seed", few(12, range(120)))
def test_what_prices_leave_out_is_in_no_schedule_that_is_good_enough(seed: int) -> None:
    """At any prices, the program for the optimum as target finds it; one less, it finds nothing."""
    rng = random.Random(f"prices {seed}")
    problem = random_problem(seed)
    given, value = prepared(problem, rng.choice(["points", "cells"])), optimum(problem)
    if value is None or not isinstance(given, Prepared):
        assert value is None or value == 0
        return
    least = int(value / problem.machine_types[0].cost)
    shape, k = given.shape, given.polytope.dimension
    blocks = given.reduction.problem.blocks
    sizes = [shape.sizes[block] for block in blocks]
    raw = [size * Fraction(rng.choice([10, 10, rng.randint(5, 15)]), 10) for size in sizes]
    worth = fullest_machine(raw, sizes, shape.capacity, shape.max_blocks)
    assert worth.exact
    known = priced(given.demands, [price / worth.value for price in raw])
    assert known.bound <= least
    for target in (least, least - 1):
        if target < known.bound:
            continue
        if given.points is None:
            near = _near(known, target)
            x = {v for body in cover(given.polytope, near) for v in body.vertices()}
            contents = sorted({given.polytope.filled(vertex) for vertex in x})
            found = best(given, contents, 2**k, target=target, known=known)
        else:
            found = best(given, list(given.points), 0, target=target, known=known)
        assert (found is not None) == (target == least)
        if found is not None:
            assert found.machine_count == least


def test_the_contents_near_prices_are_those_of_small_reduced_cost() -> None:
    known = Priced((Fraction(1, 3), Fraction(2, 5)), (), Fraction(7, 2))
    (half,) = _near(known, 4)
    numbers, denominator = common_denominator([*known.prices, Fraction(1, 2)])
    for x in range(5):
        for y in range(5):
            worth = numbers[0] * x + numbers[1] * y
            assert (half.slack((x, y)) >= 0) == (worth >= numbers[2]), denominator
    assert _near(known, 5) == _near(None, 4) == ()


@pytest.mark.parametrize("seed", few(15, range(60)))
def test_columns_are_used_as_often_as_their_reduced_cost_allows(seed: int) -> None:
    rng = random.Random(f"columns {seed}")
    known = Priced(
        (Fraction(rng.randint(1, 9), 20), Fraction(rng.randint(1, 9), 20)), (), Fraction(9, 2)
    )
    contents = [(x, y) for x in range(3) for y in range(3)]
    most = {column.content: column.most for column in columns_of(contents, 6, known)}
    for content in contents:
        cost = 1 - sum(p * n for p, n in zip(known.prices, content, strict=True))
        used = most.get(content, 0)
        if not any(content):
            assert used == 0
        else:
            assert used * max(cost, Fraction(0)) <= Fraction(3, 2)
            assert used == 6 or (used + 1) * cost > Fraction(3, 2)
