"""Figures of rows: what they show is chosen here, matplotlib draws them."""

from __future__ import annotations

from .curves import gap_over_time, performance_profile, proof_rate
from .plot import Plot, draw
from .points import observed_and_proved, times_over_n
from .scenarios import gpus_by_scenario

__all__ = [
    "Plot",
    "draw",
    "gap_over_time",
    "gpus_by_scenario",
    "observed_and_proved",
    "performance_profile",
    "proof_rate",
    "times_over_n",
]
