"""Quantiles and loads that simulations give, against the exact chain of one process."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bench.loads import LATE_SHARES, RATIOS, late_share, simulated_loads
from cms.fleet.serving.loads import sustainable_load
from cms.fleet.simulation import compiled
from cms.fleet.simulation.load_curves import latencies, quantile_above, run_lengths

CENT = Fraction(1, 100)


def test_the_upper_end_of_a_quantile_is_above_it() -> None:
    rng = np.random.default_rng(1)
    found = rng.integers(0, 10**6, 40_000)
    assert 990_000 < quantile_above(found, CENT) < 994_000
    assert quantile_above(np.full(40, 7), CENT) == 7


def test_the_upper_end_is_above_the_chain_near_full_load_too() -> None:
    """30 runs of the fewest requests, at a load of 0.9: 99 % of the ends should be above it."""
    batch, load, requests = 8, Fraction(9, 10), run_lengths(2000)[-1]
    below = 0
    for seed in range(30):
        gaps = np.random.Generator(np.random.PCG64(seed)).exponential(size=requests)
        arrivals = np.cumsum(gaps) * (10**6 / float(load * batch))
        found = latencies([10**6] * batch, 1, arrivals, compiled.advance)
        end = Fraction(quantile_above(found, CENT), 10**6)
        below += late_share(float(load * batch), batch, end) > CENT
    assert below == 0


def test_the_simulated_table_says_no_more_than_the_chain_for_one_process() -> None:
    unit = np.cumsum(np.random.default_rng(2).exponential(size=1500))
    loads = simulated_loads(1, 8, unit, plain=True)
    assert (np.diff(loads, axis=1) >= 0).all()
    for share, ratio in ((2, 0), (2, 20)):
        wanted = RATIOS[ratio], LATE_SHARES[share]
        assert 0 < loads[share, ratio] <= 1000 * sustainable_load(1, 8, *wanted) + 80
