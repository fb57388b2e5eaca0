"""The master program, in floats and in rationals, and the price region, against definitions."""

from __future__ import annotations

import random
from fractions import Fraction
from operator import mul

import numpy as np
import pytest

from algorithms.prices.jobs import Jobs, ranges
from algorithms.prices.master import Cut, ExactMaster, Master
from algorithms.prices.passes import Passes
from algorithms.prices.region import Region, Vector
from cms import Configuration, Job, MachineType, Problem
from cms.certificate.conditions import Condition
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.families import FAMILIES, instance
from tests.property.certificates import random_quantity
from tests.property.definition import INFEASIBLE, INVALID, Side, evaluate_leaf
from tests.references.programs import minimum
from tests.samples import few, spread

LARGEST = 1000.0


def nothing(region: Region) -> Vector:
    return Vector((Fraction(0),) * len(region.blocks), (Fraction(0),) * len(region.limits))


def master_of(region: Region, cuts: list[tuple[int, Cut]], groups: int) -> Master:
    sizes = [max(sum(cut) for g, cut in cuts if g == group) for group in range(groups)]
    master = Master(region, sizes, LARGEST, nothing(region))
    for group, cut in cuts:
        master.add(group, cut)
    return master


def random_case(rng: random.Random) -> tuple[Region, list[tuple[int, Cut]], int]:
    k, blocks = rng.randint(1, 4), "abcd"
    types = [MachineType("m", rng.randint(1, 5), rng.choice([None, 2])), MachineType("n", 3)]
    shapes = [
        Configuration(
            {b: rng.randint(1, 4) for b in blocks[:k] if rng.random() < 0.7} | {"a": 1}, m
        )
        for m in ("m", "n", "n")
    ] + [Configuration(dict.fromkeys(blocks[:k], 1), "n")]
    jobs = [Job(f"j{j}", 9, dict.fromkeys(blocks[:k], 1)) for j in range(3)]
    problem = Problem(configurations=shapes, jobs=jobs, machine_types=types)
    groups = rng.randint(1, 3)
    loads = [
        (group, tuple(rng.randint(0, 50) for _ in range(k)))
        for group in range(groups)
        for _ in range(rng.randint(1, 4))
    ]
    return Region(problem), [(g, c) for g, c in loads if any(c)], groups


def by_scipy(region: Region, cuts: list[tuple[int, Cut]], groups: int) -> float:
    """Maximise the groups' values over prices and limit prices."""
    k, m = len(region.blocks), len(region.limits)
    upper, right = [], []
    for row in region.rows:
        limit = [-float(one.weights.get(row.machine, 0)) for one in region.limits]
        upper.append([0.0] * groups + [float(n) for n in row.counts] + limit)
        right.append(float(region.costs[row.machine]))
    for group, cut in cuts:
        mine = [float(at == group) for at in range(groups)]
        upper.append(mine + [-float(n) for n in cut] + [0.0] * m)
        right.append(0.0)
    worth = [-1.0] * groups + [0.0] * k + [float(one.at_most) for one in region.limits]
    limits = [(0.0, LARGEST)] * m
    bounds = [(None, None)] * groups + [(0, None)] * k + limits
    return -float(minimum(worth, upper, right, bounds=bounds).fun)


@pytest.mark.parametrize("number", few(10, range(60)))
def test_the_master_finds_the_optimum_and_its_dual(number: int) -> None:
    region, cuts, groups = random_case(random.Random(number))
    if len({group for group, _ in cuts}) < groups:
        groups = 1
        cuts = [(0, cut) for _, cut in cuts] or [(0, (1,) * len(region.blocks))]
    master = master_of(region, cuts, groups)
    proposal = master.solve()
    assert proposal is not None
    expected = by_scipy(region, cuts, groups)
    assert float(proposal.value) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    # The dual: a share of 1 for each group, and machines that hold what the shares buy.
    shares = [0.0] * groups
    load = np.zeros(len(region.blocks))
    for (group, cut), weight in zip(cuts, master.weights, strict=True):
        shares[group] += weight
        load += weight * np.array(cut)
    assert shares == pytest.approx([1.0] * groups)
    held = sum(
        float(x) * np.array(row.counts) for row, x in zip(region.rows, master.machines, strict=True)
    )
    assert (held >= load - 1e-6).all()
    paid = sum(
        region.costs[row.machine] * x for row, x in zip(region.rows, master.machines, strict=True)
    )
    assert float(paid) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    # A closer look finds the same.
    centre = nothing(region)._replace(prices=tuple(proposal.prices))
    closer = master.zoomed(centre, 2**10, LARGEST).solve()
    assert closer is not None
    assert float(closer.value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def exactly(region: Region, cuts: list[tuple[int, Cut]], groups: int) -> ExactMaster:
    master = ExactMaster(region, groups, lambda: False)
    for group, cut in cuts:
        master.add(group, cut)
    return master


def test_the_exact_master_finds_the_same_and_passes_that_join_late_change_nothing() -> None:
    """A restart where limits forbid what there is so far, and groups that are split late."""
    for seed in range(60):
        region, cuts, groups = random_case(random.Random(seed))
        if {group for group, _ in cuts} != {*range(groups)}:
            continue
        master = exactly(region, cuts, groups)
        proposal = master.solve()
        late = exactly(region, list(dict(reversed(cuts)).items()), groups)
        for group, cut in cuts:
            late.solve()
            late.add(group, cut)
        found = late.solve()
        assert (found and found.value) == (proposal and proposal.value), seed
        if proposal is None:
            continue  # these loads do not fit the limits
        assert float(proposal.value) == pytest.approx(by_scipy(region, cuts, groups)), seed
        assert proposal.prices == master.vertex()
        for group in range(groups):
            pairs = zip(cuts, master.weights, strict=True)
            assert sum(weight for (g, _), weight in pairs if g == group) >= 1
        for i in range(len(region.blocks)):
            rows = zip(master.machines, region.rows, strict=True)
            taken = sum(w * cut[i] for (_, cut), w in zip(cuts, master.weights, strict=True))
            assert sum(x * row.counts[i] for x, row in rows) >= taken


PRICED = [family for family in FAMILIES if family != "long_numbers"]
FEW = 9


def random_path(rng: random.Random, problem: Problem) -> tuple[Condition, ...]:
    quantities = [random_quantity(rng, problem) for _ in range(rng.randint(0, 3))]
    return tuple(
        Condition(quantity, rng.choice([-1, 1]), rng.choice([0, 0, 1, 1, 2, 3]))
        for quantity in quantities
        if quantity is not None
    )


def priced(family: str, number: int) -> bool:
    """Evaluate random prices below random branches; False if there is nothing to price."""
    rng = random.Random(f"{family} {number}")
    problem = instance(family, number)
    rows = [problem.rows.row(j) for j in range(problem.n_jobs)]
    if not problem.blocks or not all(any(row.supply) or not row.demand for row in rows):
        return False
    path = random_path(rng, problem)
    free = rng.random() < 0.3
    region, jobs = Region(problem, path, free_machines=free), Jobs(problem)
    search = Passes(jobs, Unlimited(), ranges(len(jobs)), region)
    denominator = rng.choice([1, 2, 3, 10, 97])
    numbers = [rng.choice([0, rng.randint(0, 40)]) for _ in range(len(problem.blocks) + len(path))]
    for at in region.free():
        numbers[at] = 0
    found = search.evaluate(numbers, denominator)
    assert found is not None
    point, loads = found
    assert min((*point.vector.prices, *point.vector.multipliers, *point.vector.limit_prices)) >= 0
    leaf = region.leaf(point.vector)
    sides = tuple(Side(c.quantity, c.sign, c.value) for c in path)
    verdict = evaluate_leaf(problem, leaf, sides)
    assert verdict != INVALID, (leaf, path)
    if free:
        # Machines that cost nothing: a positive value is a proof, and 0 is 0 at any cost.
        assert (verdict == INFEASIBLE) == (point.bound > 0)
    else:
        assert verdict in (point.bound, INFEASIBLE)
        # Linear in the prices: what the cuts say at the point is the point's own value.
        vector = point.vector
        worth = Fraction(0)
        for load in loads:
            worth += sum(map(mul, vector.prices, load), Fraction(0))
        for job, option in zip(region.own_priced, search.own_options[-1], strict=True):
            own = region.prices_of_job(job, vector.prices, vector.multipliers)
            assert min(own) >= 0
            worth += sum(map(mul, own, option), Fraction(0))
        assert worth + region.constant(vector) == point.bound
    return True


@pytest.mark.parametrize("family", spread(6, PRICED))
def test_prices_are_scaled_into_the_region_and_their_bound_is_exact(family: str) -> None:
    done = sum(priced(family, number) for number in range(FEW))
    assert done >= (0 if family == "infeasible_by_block" else FEW // 3)
