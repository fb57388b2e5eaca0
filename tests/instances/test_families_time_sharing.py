"""The made-up tables of services that share GPUs, and the mixes drawn from them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from cms import FrameRule
from instances.families.time_sharing import (
    BATCHES,
    CURVES,
    LIMITS,
    RATES,
    SHARES,
    larger_mix,
    operating_points,
    random_mix,
    scenario_3,
)
from tests.samples import so_many

TABLE = Path(__file__).resolve().parents[2] / "instances" / "data" / "made_up_shares.csv"


def test_the_file_is_what_the_family_says() -> None:
    assert TABLE.read_text("utf-8") == operating_points()
    assert len(TABLE.read_text("utf-8").splitlines()) == 1 + 10 * len(SHARES) * len(BATCHES)


def test_lengths_are_within_the_noise_of_the_formula() -> None:
    for curve in CURVES:
        for share in SHARES:
            for batch in BATCHES:
                scaled = batch**curve.gamma * (100 / share) ** curve.delta
                plain = (curve.c0 + curve.c1 * scaled) / 1000
                assert abs(float(curve.length(batch, share)) / plain - 1) <= 0.1201


def test_what_a_share_gives_grows_more_slowly_and_faster_than_the_share() -> None:
    ratios = {
        curve.name: curve.length(64, 20) / curve.length(64, 100) / Fraction(5) for curve in CURVES
    }
    assert min(ratios.values()) < Fraction(4, 5)
    assert max(ratios.values()) > Fraction(6, 5)


def test_some_larger_batches_and_some_smaller_shares_are_faster() -> None:
    lengths = {
        (curve.name, share, batch): curve.length(batch, share)
        for curve in CURVES
        for share in SHARES
        for batch in BATCHES
    }
    assert any(
        lengths[c.name, p, low] > lengths[c.name, p, high]
        for c in CURVES
        for p in SHARES
        for low, high in pairwise(BATCHES)
    )
    assert any(
        lengths[c.name, low, b] < lengths[c.name, high, b]
        for c in CURVES
        for b in BATCHES
        for low, high in pairwise(SHARES)
    )


@pytest.mark.parametrize("rule", FrameRule)
def test_every_mix_has_a_schedule_and_is_the_same_for_a_seed(rule: FrameRule) -> None:
    for seed in range(so_many(1, 6)):
        drawn = [random_mix(seed, rule=rule), larger_mix(12, seed, rule=rule)]
        again = [random_mix(seed, rule=rule), larger_mix(12, seed, rule=rule)]
        assert drawn == again
        for problem in drawn:
            assert problem.rule is rule
            assert 3 <= problem.n_jobs <= 12
            assert all(RATES[0] <= job.demand <= RATES[1] for job in problem.jobs)
            assert all(LIMITS[0] <= job.limit * 1000 <= LIMITS[1] for job in problem.jobs)
            assert set(problem.usable_points("mps:100")) == set(problem.job_names)


def test_the_third_scenario_has_the_published_limits() -> None:
    problem = scenario_3(600, rule="collect_then_run", max_jobs=3)
    assert [str(job.limit * 1000) for job in problem.jobs] == ["108", "142", "64"]
    assert {job.demand for job in problem.jobs} == {600}
    assert [str(shape) for shape in problem.listed_configurations] == [
        "mps:100",
        "mps:20 + mps:80",
        "mps:40 + mps:60",
        "2 x mps:50",
    ]
