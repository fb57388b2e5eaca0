"""A transition as a folder: what is done, in which order, and scripts that do it step by step.

Imports the transition and the scripts of the exporters; each actuator is one file, listed in
`writing`.
"""

from __future__ import annotations

from .states import on_the_way, open_starts, state_after, states
from .steps import Part, Step, steps_of
from .summary import Summary, summary
from .writing import ACTUATORS, Folder, FolderOptions, actuator_of, folder_of

__all__ = [
    "ACTUATORS",
    "Folder",
    "FolderOptions",
    "Part",
    "Step",
    "Summary",
    "actuator_of",
    "folder_of",
    "on_the_way",
    "open_starts",
    "state_after",
    "states",
    "steps_of",
    "summary",
]
