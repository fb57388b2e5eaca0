"""The master program, in floats and in rationals: against scipy, and as columns join late."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from algorithms.prices.master import Cut, ExactMaster, Master
from algorithms.prices.region import Region, Vector
from algorithms.prices.search import PriceSearch, fractional
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations
from tests.algorithms.branch_and_price.parts import Unlimited, reduced
from tests.references.programs import minimum
from tests.samples import few

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
        limit = [-float(at == row.machine) for at in range(m)]
        upper.append([0.0] * groups + [float(n) for n in row.counts] + limit)
        right.append(float(region.costs[row.machine]))
    for group, cut in cuts:
        mine = [float(at == group) for at in range(groups)]
        upper.append(mine + [-float(n) for n in cut] + [0.0] * m)
        right.append(0.0)
    worth = [-1.0] * groups + [0.0] * k + [float(limit or 0) for limit in region.limits]
    limits = [(0.0, 0.0 if limit is None else LARGEST) for limit in region.limits]
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


def test_it_finds_what_another_solver_finds() -> None:
    for seed in range(60):
        region, cuts, groups = random_case(random.Random(seed))
        if {group for group, _ in cuts} != {*range(groups)}:
            continue
        master = exactly(region, cuts, groups)
        proposal = master.solve()
        if proposal is None:
            continue  # these loads do not fit the limits
        assert float(proposal.value) == pytest.approx(by_scipy(region, cuts, groups)), seed
        assert proposal.prices == master.vertex()
        for group in range(groups):
            pairs = zip(cuts, master.weights, strict=True)
            assert sum(weight for (g, _), weight in pairs if g == group) >= 1
        for i in range(len(region.blocks)):
            held = sum(
                x * row.counts[i] for x, row in zip(master.machines, region.rows, strict=True)
            )
            taken = sum(w * cut[i] for (_, cut), w in zip(cuts, master.weights, strict=True))
            assert held >= taken


def test_passes_that_join_late_change_nothing() -> None:
    """A restart where limits forbid what there is so far, and groups that are split late."""
    for seed in range(60):
        region, cuts, groups = random_case(random.Random(seed))
        if {group for group, _ in cuts} != {*range(groups)}:
            continue
        first = dict(reversed(cuts))
        master = exactly(region, list(first.items()), groups)
        for group, cut in cuts:
            master.solve()
            master.add(group, cut)
        found, expected = master.solve(), exactly(region, cuts, groups).solve()
        assert (found and found.value) == (expected and expected.value), seed


def without_floats(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> PriceSearch:
    """A search whose floating-point solver fails at once."""
    with monkeypatch.context() as patch:
        patch.setattr(Master, "solve", lambda _: None)
        search = PriceSearch(reduced(problem), Unlimited())
        search.upper = Fraction(10**9)
        for _ in search.run():
            pass
    return search


@pytest.mark.parametrize("seed", range(12))
def test_without_floats_the_same_bound_is_proved(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    jobs = [
        Job(f"j{j}", rng.randint(5, 90), {b: rng.randint(1, 9) for b in "abc"}) for j in range(4)
    ]
    sets = SizeBoundedConfigurations({b: rng.randint(1, 5) for b in "abc"}, 11)
    listed = [Configuration({b: rng.randint(1, 3) for b in "abc"}), Configuration({"a": 5})]
    problem = Problem(configurations=sets if seed % 2 else listed, jobs=jobs)
    ordinary = PriceSearch(reduced(problem), Unlimited())
    for _ in (*ordinary.run(), *ordinary.refine()):
        pass
    search = without_floats(problem, monkeypatch)
    assert search.exact
    assert ordinary.best is not None
    assert search.best is not None
    assert search.best.bound >= ordinary.best.bound
    cost = sum((search.region.costs[row.machine] * x for row, x in search.machines), Fraction(0))
    assert cost == search.best.bound == search.upper
    assert fractional(search).machines == search.machines
