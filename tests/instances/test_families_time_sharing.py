"""The made-up tables of services that share GPUs, and the mixes drawn from them."""

from __future__ import annotations

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
    random_mix,
    scenario_3,
)
from tests.samples import so_many

TABLE = Path(__file__).resolve().parents[2] / "instances" / "data" / "made_up_shares.csv"


def test_the_file_is_what_the_family_says_and_within_the_noise_of_the_formula() -> None:
    rows, steps = ["model,device,profile,processes,batch,throughput_rps,latency_ms"], 0
    for curve in CURVES:
        for share in SHARES:
            for batch in BATCHES:
                scaled = batch**curve.gamma * (100 / share) ** curve.delta
                plain = (curve.c0 + curve.c1 * scaled) / 1000
                seconds = curve.length(batch, share)
                assert abs(float(seconds) / plain - 1) <= 0.1201
                rate, latency = round(batch / seconds * 1000) / 1000, float(seconds * 1000)
                head = f"{curve.name},a100-80gb,mps:{share},1,{batch}"
                rows.append(f"{head},{rate:.3f},{latency:.4f}")
            lengths = [curve.length(batch, share) for batch in BATCHES]
            steps += sum(high < low for low, high in pairwise(lengths))
    assert TABLE.read_text("utf-8").splitlines() == rows
    assert steps == 4  # to a batch twice as large that takes less time, as the document says


@pytest.mark.parametrize("rule", FrameRule)
def test_every_mix_can_be_served_within_its_ranges(rule: FrameRule) -> None:
    for seed in range(so_many(1, 6)):
        for problem in (random_mix(seed, rule=rule), larger_mix(12, seed, rule=rule)):
            assert problem.rule is rule
            assert 3 <= problem.n_jobs <= 12
            assert all(RATES[0] <= job.demand <= RATES[1] for job in problem.jobs)
            assert all(LIMITS[0] <= job.limit * 1000 <= LIMITS[1] for job in problem.jobs)
            assert set(problem.usable_points("mps:100")) == set(problem.job_names)


# The digests rest on every length, limit and rate.
@pytest.mark.parametrize(
    ("problem", "digest"),
    [
        (scenario_3(600, rule="collect_then_run", max_jobs=3), "5f77cffcd9e656af"),
        (random_mix(1), "58c72f7370e9680c"),
        (larger_mix(20, seed=1), "06f592110cd648bb"),
    ],
)
def test_a_seed_names_a_mix_for_ever(problem: object, digest: str) -> None:
    assert problem.sha256.startswith(digest)  # type: ignore[attr-defined]
