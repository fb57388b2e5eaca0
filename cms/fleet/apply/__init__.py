"""Transitions carried out: one loop, four tools, and a state file to go on from or back.

Imports deployments, their transitions, observations and exports; nothing here plans.
"""

from __future__ import annotations

from .apply import TOOLS, Apply, begin_undo, find_tool
from .journal import Head, Journal, hold_lock
from .tool import Job, Shell
from .units import list_units, on_the_way, open_starts

__all__ = [
    "TOOLS", "Apply", "find_tool", "begin_undo", "Head", "Journal", "hold_lock", "Job", "Shell",
    "list_units", "on_the_way", "open_starts",
]  # fmt: skip
