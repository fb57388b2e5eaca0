"""What the family of MIG-serving's kind promises: rates, speeds, curves, and how much they need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cms import Status, solve
from instances.families import generate
from instances.families.a100 import EXPONENTS
from instances.families.mig_serving import LEAST_RATE, SPEED, SPREADS

MANY = 20_000


def drawn(**parameters: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The required rates, and what the blocks give."""
    rows = generate("mig-serving", n=MANY, seed=1, **parameters).rows
    return rows.demands.astype(float), rows.supplies.astype(float)


@pytest.mark.parametrize(("m", "spread"), [(4, 0.25), (0.5, 1)])
def test_lognormal_rates_have_their_median_and_spread(m: float, spread: float) -> None:
    logs = np.log(drawn(rates="lognormal", m=m, spread=spread)[0])
    assert np.median(logs) == pytest.approx(math.log(m * SPEED), abs=0.03)
    assert np.std(logs) == pytest.approx(spread, abs=0.02)


@pytest.mark.parametrize(("m", "spread"), [(4, 0.5), (0.5, 1)])
def test_normal_rates_have_their_mean_and_spread_but_for_those_that_would_be_none(
    m: float, spread: float
) -> None:
    relative = drawn(rates="normal", m=m, spread=spread)[0] / (m * SPEED)
    assert np.quantile(relative, 0.5) == pytest.approx(1, abs=0.03)
    assert np.quantile(relative, 0.8413) == pytest.approx(1 + spread, abs=0.03)
    assert relative.min() == pytest.approx(LEAST_RATE, abs=1e-3)


@pytest.mark.parametrize("rates", SPREADS)
def test_each_kind_of_rates_has_a_spread_of_its_own(rates: str) -> None:
    arguments: Any = {"n": 50, "seed": 3, "rates": rates}
    given = generate("mig-serving", **arguments, spread=SPREADS[rates])
    assert generate("mig-serving", **arguments) == given


def test_rates_do_not_look_at_the_models_speed() -> None:
    rates, supply = drawn(rates="lognormal")
    whole = np.log(supply[:, -1])
    assert abs(np.corrcoef(np.log(rates), whole)[0, 1]) < 0.03
    # so services need anything from a fraction of a slice to several GPUs
    gpus = np.quantile(rates / supply[:, -1], [0.05, 0.95])
    assert gpus[0] < 1 / 7
    assert gpus[1] > 2


def test_models_differ_in_speed_and_in_what_size_gives_them() -> None:
    supply = drawn()[1]
    assert (supply > 0).all()
    speeds, gains = np.log(supply[:, 0]), np.log(supply[:, -1] / supply[:, 0]) / math.log(7)
    assert np.median(speeds) == pytest.approx(math.log(SPEED), abs=0.03)
    assert np.std(speeds) == pytest.approx(1, abs=0.03)
    assert np.quantile(gains, [0.01, 0.99]) == pytest.approx(EXPONENTS, abs=0.03)
    assert (gains > 1.05).mean() == pytest.approx((gains < 0.95).mean(), abs=0.02)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rates", SPREADS)
def test_24_services_need_some_15_to_40_gpus(rates: str, seed: int) -> None:
    solution = solve(generate("mig-serving", n=24, seed=seed, rates=rates), time_limit=None)
    assert solution.status is Status.OPTIMAL
    assert solution.cost is not None
    assert 15 <= solution.cost <= 40
