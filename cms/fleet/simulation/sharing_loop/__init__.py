"""The closed loop of sharing: what a day is like of GPUs that online and offline work share."""

from __future__ import annotations

from .activity import Diurnal, Noise, Traced
from .day import share_day
from .loop import POLICIES
from .result import DayOfJobs, LimitVerdict, PlayedPolicy, SharedDay
from .terms import Terms
from .truth import LineWeights

__all__ = [
    "share_day", "SharedDay", "PlayedPolicy", "DayOfJobs", "LimitVerdict", "POLICIES", "Terms",
    "Diurnal", "Traced", "Noise", "LineWeights",
]  # fmt: skip
