"""From one deployment to the next without a dip: what happens on which GPU, and after what.

Imports the deployment and how a plan is placed on it; order and check share nothing but the
model and the replay of a sequence.
"""

from __future__ import annotations

from .checking import check_transition, lowest_capacity
from .document import read_transition, transition_from_json, transition_to_json, write_transition
from .durations import Durations, Schedule, read_durations, schedule
from .exchange_and_compact import exchange_and_compact
from .floors import floors_of
from .model import Action, Floor, Frozen, Kept, Spare, Transition, What
from .planner import Impossible, reversal, transition
from .reorganisation import reorganise
from .whole_gpus import PartitioningTool, saved_by_parts

__all__ = [
    "transition",
    "PartitioningTool",
    "saved_by_parts",
    "Transition",
    "Impossible",
    "Action",
    "What",
    "Floor",
    "floors_of",
    "Kept",
    "Spare",
    "Frozen",
    "check_transition",
    "lowest_capacity",
    "Durations",
    "read_durations",
    "schedule",
    "Schedule",
    "reorganise",
    "reversal",
    "exchange_and_compact",
    "read_transition",
    "write_transition",
    "transition_to_json",
    "transition_from_json",
]
