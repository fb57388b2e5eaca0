"""Scenarios under a queueing rule: what the plans of the suite ``promises`` are made for."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.fleet.serving import Scenario, Service, ServingProblem, build_problem
from cms.fleet.serving.capacity import CapacityRule
from cms.fleet.serving.queueing import queueing_rule
from instances import published
from instances.families.measured import measured_rows

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: The family of drawn scenarios.
DRAWN = "drawn"
#: A service's rate in GPUs' worth of its model: 10 to these powers.
_LEAST, _MOST = -1.0, 0.3


def scenario_of(family: str, *, n: int, seed: int = 0) -> Scenario:
    """Return a published scenario, or draw one of n services from the same measurements.

    Models may come more than once, with limits of their own.
    """
    if family != DRAWN:
        return published.scenario(family)
    rows, chance = measured_rows(), np.random.default_rng(seed)
    services = []
    for number in range(1, n + 1):
        row = int(np.searchsorted(rows.reach, chance.random(), side="right"))
        low, high = map(float, rows.limits[row])
        limit = Fraction(round(10 * low * (high / low) ** chance.random()) + 1, 10)
        gpu = int(rows.supply[row, -1]) / 1000
        rate = Fraction(round(10 * gpu * 10 ** chance.uniform(_LEAST, _MOST)) + 1, 10)
        name = f"{rows.models[row]}-{number}"
        services.append(Service(name, rows.models[row], rate, limit))
    known = published.scenario("S1")
    return Scenario(
        name=f"{DRAWN}-{seed}", title=f"{n} drawn services", source=known.source,
        services=tuple(services), operating_points=known.operating_points,
        load_curves=known.load_curves,
    )  # fmt: skip


def serving_of(
    family: str,
    *,
    n: int,
    rule: str,
    processes: int,
    curves: bool = True,
    margin: str = "0",
    seed: int = 0,
) -> ServingProblem:
    """Build the problem of a scenario under a rule of :data:`cms.fleet.serving.RULES`.

    ``curves``: whether load curves go before the table, for a rule that asks for them.
    """
    scenario = scenario_of(family, n=n, seed=seed)
    how = queueing_rule(rule)
    asked = curves and isinstance(how, CapacityRule) and not how.certified
    return build_problem(
        scenario.services, scenario.operating_points, scenario.gpus, rule=how,
        load_curves=scenario.curves_for(how) if asked else None, rate_margin=margin,
        max_processes=processes,
    )  # fmt: skip


def generate(family: str, **arguments: object) -> Problem:
    """Make the problem of :func:`serving_of`."""
    return serving_of(family, **arguments).problem  # type: ignore[arg-type]
