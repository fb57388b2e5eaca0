"""The closed loop of sharing: what a day is like of GPUs that online and offline work share."""

from __future__ import annotations

from .day import share_day
from .fleet import LineWeights
from .loop import POLICIES
from .result import DayOfJobs, LimitVerdict, PlayedPolicy, SharedDay
from .terms import Diurnal, Noise, Terms, Traced

__all__ = [
    "share_day", "SharedDay", "PlayedPolicy", "DayOfJobs", "LimitVerdict", "POLICIES", "Terms",
    "Diurnal", "Traced", "Noise", "LineWeights",
]  # fmt: skip
