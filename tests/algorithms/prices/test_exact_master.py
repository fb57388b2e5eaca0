"""Prices in exact rationals, where floats stop short of the best ones."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from algorithms.prices.master import Cut, ExactMaster, Master
from algorithms.prices.region import Region
from algorithms.prices.search import PriceSearch, fractional
from algorithms.prices.vertex import solve_dantzig_wolfe
from algorithms.solvers.simplex import Program
from cms import Configuration, Job, Problem, SizeBoundedConfigurations
from cms.reduction.reduction import reduce
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Unlimited, reduced
from tests.algorithms.prices.test_master import by_scipy, random_case
from tests.samples import few


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


@pytest.fixture
def pivots(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that programs took another basis by, so far."""
    rows: list[int] = []
    pivot = Program.pivot

    def counted(self: Program, r: int, e: int) -> None:
        rows.append(r)
        pivot(self, r, e)

    monkeypatch.setattr(Program, "pivot", counted)
    return rows


def test_machines_that_join_take_few_pivots(pivots: list[int]) -> None:
    """25 block types; from the start at every turn these would be some thousand and more."""
    problem = reduce(generate("size-bounded-mixed", n=50, seed=0)).problem
    assert solve_dantzig_wolfe(problem, Unlimited()) is not None
    assert len(problem.blocks) == 25
    assert 25 <= len(pivots) <= 250


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


@pytest.mark.parametrize("seed", few(1, [1, 2, 0]))
def test_a_linear_solver_that_goes_round_is_stopped(seed: int) -> None:
    """With demands of 31 digits and supplies of 15 GLOP would not return without its limit."""
    rng = random.Random(35 + seed)
    jobs = [
        Job(
            f"j{j}",
            rng.randint(10**30, 9 * 10**30),
            {b: rng.randint(10**14, 10**15) for b in "abc"},
        )
        for j in range(6)
    ]
    shapes = [
        Configuration({"a": 3, "c": 1}),
        Configuration({"a": 4, "b": 4, "c": 2}),
        Configuration({"a": 2, "b": 3}),
    ]
    search = PriceSearch(reduced(Problem(configurations=shapes, jobs=jobs)), Unlimited())
    for _ in search.run():
        pass
    assert search.best is not None
    assert search.upper is not None
    assert search.upper - search.best.bound < 1
