"""The closed loop of co-location: what a day is like of GPUs that online and offline work share."""

from __future__ import annotations

from .day import DayOfJobs, PlayedPolicy, SharedDay, colocation_day
from .loop import POLICIES
from .scene import Diurnal, LineWeights, Noise, Terms, Traced

__all__ = [
    "colocation_day", "SharedDay", "PlayedPolicy", "DayOfJobs", "POLICIES", "Terms", "Diurnal",
    "Traced", "Noise", "LineWeights",
]  # fmt: skip
