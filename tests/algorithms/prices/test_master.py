"""The master program against scipy's, and its exact vertices."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from algorithms.prices.master import Cut, Master
from algorithms.prices.region import Region, Vector
from cms import Configuration, Job, MachineType, Problem
from cms.certificate.conditions import Condition
from cms.certificate.quantity import BlocksOf, BlocksOfJob, MachinesOfType
from tests.references.programs import minimum
from tests.samples import few

LARGEST = 1000.0


def nothing(region: Region) -> Vector:
    parts = (region.blocks, region.path, region.limits)
    prices, multipliers, limits = [(Fraction(0),) * len(part) for part in parts]
    return Vector(prices, limits, multipliers)


def master_of(region: Region, cuts: list[tuple[int, Cut]], groups: int) -> Master:
    sizes = [max(sum(cut.load) for g, cut in cuts if g == group) for group in range(groups)]
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
        (group, Cut(tuple(rng.randint(0, 50) for _ in range(k))))
        for group in range(groups)
        for _ in range(rng.randint(1, 4))
    ]
    return Region(problem), [(g, c) for g, c in loads if any(c.load)], groups


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
        upper.append(mine + [-float(n) for n in cut.load] + [0.0] * m)
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
        cuts = [(0, cut) for _, cut in cuts] or [(0, Cut((1,) * len(region.blocks)))]
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
        load += weight * np.array(cut.load)
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


def two_types(scale: int = 1, **machine: object) -> Region:
    """One configuration of two a and a b; the jobs do not matter here."""
    return Region(
        Problem(
            configurations=Configuration({"a": 2, "b": 1}),
            jobs=[Job("x", 3 * scale, {"a": 1, "b": 1}), Job("y", 5, {"a": 1, "b": 2})],
            machine_types=[MachineType("machine", **machine)] if machine else [],  # type: ignore[arg-type]
        )
    )


@pytest.mark.parametrize("factor", [1, 10**6, 10**12, 10**17])
def test_a_vertex_is_exact_at_any_size(factor: int) -> None:
    region = two_types()
    cuts = [(0, Cut((300 * factor, 0))), (0, Cut((0, 200 * factor + 1)))]
    master = master_of(region, cuts, 1)
    assert master.solve() is not None
    a, b = master.vertex() or (0, 0)
    assert 2 * a + b == 1
    assert 300 * factor * a == (200 * factor + 1) * b


@pytest.mark.parametrize("small", [581, 17, 1])
def test_groups_of_very_different_sizes_are_solved(small: int) -> None:
    """Demands of 10^3 blocks beside 10^12, as in generate("huge-demands", n=10, seed=11)."""
    large = 5_930_957_270
    cuts = [
        (0, Cut((large, 0))),
        (0, Cut((large // 3, large // 5))),
        (0, Cut((0, large // 2))),
        (1, Cut((small, 0))),
        (1, Cut((small // 3 + 1, small // 4 + 1))),
        (1, Cut((0, small // 2 + 1))),
    ]
    region = two_types()
    master = master_of(region, cuts, 2)
    proposal = master.solve()
    assert proposal is not None
    assert float(proposal.value) == pytest.approx(by_scipy(region, cuts, 2), rel=1e-9)


def test_rows_that_the_region_finds_later_join_the_program() -> None:
    region = two_types()
    master = master_of(region, [(0, Cut((1, 0)))], 1)
    first = master.solve()
    assert first is not None
    assert first.value == pytest.approx(0.5)
    region.rows.append(region.rows[0]._replace(counts=(4, 0)))
    second = master.solve()
    assert second is not None
    assert second.value == pytest.approx(0.25)
    assert len(master.machines) == 2


def test_branches_add_their_values_and_a_job_is_never_paid() -> None:
    problem = Problem(
        configurations=Configuration({"a": 2, "b": 1}),
        jobs=[Job("x", 3, {"a": 1, "b": 1})],
        machine_types=[MachineType("machine", 1)],
    )
    path = (
        Condition(BlocksOf("a"), 1, 7),
        Condition(MachinesOfType("machine"), -1, 9),
        Condition(BlocksOfJob("a", "x"), 1, 2),
    )
    region = Region(problem, path)
    # One group of all kinds, then the job of its own: 2 a in this pass.
    cuts = [(0, Cut((0, 0))), (1, Cut((2, 0), ((2, 2),)))]
    master = Master(region, [1, 2], LARGEST, nothing(region))
    for group, cut in cuts:
        master.add(group, cut)
    proposal = master.solve()
    assert proposal is not None
    pi, mu = proposal.prices, proposal.multipliers
    assert pi[0] - mu[2] >= -Fraction(1, 10**9)  # the job's own price of a
    worth = 2 * pi[0] + pi[1] + 2 * mu[0] - mu[1]
    assert worth <= 1 + Fraction(1, 10**9)
    value = 2 * (pi[0] - mu[2]) + 7 * mu[0] - 9 * mu[1] + 2 * mu[2]
    assert float(proposal.value) == pytest.approx(float(value))
    assert float(proposal.value) == pytest.approx(3.5)  # 7 blocks a need 3.5 machines
