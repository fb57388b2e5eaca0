"""Days of changing rates as a problem: what policies of the suite ``day`` are played on."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cms.fleet import as_problem
from cms.fleet.reconciling import Planner, Rates, Scene, Terms
from instances.days import Days, draw

if TYPE_CHECKING:
    from cms.problem.problem import Problem

__all__ = ["generate", "scene_of"]

_GPU, _MARGIN, _DAY = "a100-80gb", "0.05", 24


def _drawn(n: int, seed: int, days: int) -> Days:
    return draw(services=n, days=days, seed=seed)


def scene_of(*, n: int, seed: int, days: int, hours: int, time_limit: float | None) -> Scene:
    """Return the last hours of some days, for plans with a margin of 5 %; all before is history.

    Parameters
    ----------
    n : int
        Services.
    seed : int
    days : int
        That are drawn.
    hours : int
        That are played.
    time_limit : float or None
        Seconds of each plan.

    Examples
    --------
    >>> scene_of(n=2, seed=0, days=2, hours=24, time_limit=None).count
    24
    """
    drawn = _drawn(n, seed, days)
    rates = Rates(Fraction(0), Fraction(drawn.step_s), drawn.rates_rps)
    planner = Planner(
        drawn.services, drawn.operating_points, [_GPU], margin=_MARGIN, time_limit=time_limit
    )
    return Scene(rates, days * _DAY - hours, planner, Terms())


def generate(family: str, *, n: int, seed: int, days: int, hours: int) -> Problem:
    """Make the problem of the highest rates of all days.

    Parameters
    ----------
    family : str
        What it is called.
    n, seed, days, hours
        As for :func:`scene_of`.

    Examples
    --------
    >>> generate("waves", n=3, seed=0, days=2, hours=24).n_jobs
    3
    """
    drawn = _drawn(n, seed, days)
    return as_problem(drawn.services, drawn.operating_points, [_GPU], rate_margin=_MARGIN).problem
