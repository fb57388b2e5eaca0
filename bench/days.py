"""Days of changing rates as a problem: what policies of the suite ``day`` are played on."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cms.fleet import build_problem
from cms.fleet.replanner import Planner, Rates, Scene, Terms
from instances.load_changes import Days, draw

if TYPE_CHECKING:
    from cms.problem.machine_problem import MachineProblem

_GPU, _MARGIN, _DAY = "a100-80gb", "0.05", 24
#: The days of services that share GPUs in time.
SHARED = "shared-waves"
#: What a change of these may take, in seconds: processes are prepared beside what serves.
_SHARED_LEAD = Fraction(120)


def _drawn(family: str, n: int, seed: int, days: int) -> Days:
    return draw(services=n, days=days, seed=seed, sharing=family == SHARED)


def scene_of(
    family: str, *, n: int, seed: int, days: int, hours: int, time_limit: float | None
) -> Scene:
    """Return the last hours of some days, for plans with a margin of 5 %; all before is history.

    The family is ``"waves"``, of services with MIG instances of their own, or ``"shared-waves"``,
    of services that share GPUs in time and change plans within 2 minutes.
    """
    drawn = _drawn(family, n, seed, days)
    rates = Rates(Fraction(0), Fraction(drawn.step_s), drawn.rates_rps)
    sharing: dict[str, Any] = {"sharing": "time"} if family == SHARED else {}
    planner = Planner(
        drawn.services, drawn.operating_points, [_GPU], margin=_MARGIN, time_limit=time_limit,
        **sharing,
    )  # fmt: skip
    terms = Terms(lead_s=_SHARED_LEAD) if sharing else Terms()
    return Scene(rates, days * _DAY - hours, planner, terms)


def generate(family: str, *, n: int, seed: int, days: int, hours: int) -> MachineProblem:
    """Make the problem of the highest rates of all days.

    Parameters are those of :func:`scene_of`.
    """
    drawn = _drawn(family, n, seed, days)
    parts = drawn.services, drawn.operating_points, [_GPU]
    if family == SHARED:
        return build_problem(*parts, rate_margin=_MARGIN, sharing="time").problem
    return build_problem(*parts, rate_margin=_MARGIN).problem
