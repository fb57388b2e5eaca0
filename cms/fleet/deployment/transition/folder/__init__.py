"""A transition as a folder: what is done, in which order, and scripts that do it step by step.

Imports the transition and the scripts of the exporters; each tool is one file, listed in
`writing`.
"""

from __future__ import annotations

from .states import on_the_way, open_starts, state_after, states
from .steps import Part, Step, steps_of
from .summary import Summary, summary
from .writing import TOOLS, Folder, FolderOptions, folder_of, tool_writer

__all__ = [
    "TOOLS",
    "Folder",
    "FolderOptions",
    "Part",
    "Step",
    "Summary",
    "tool_writer",
    "folder_of",
    "on_the_way",
    "open_starts",
    "state_after",
    "states",
    "steps_of",
    "summary",
]
