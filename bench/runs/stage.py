"""How a run tells the process above it where it stands: each part has a limit of its own."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias


class Stage(StrEnum):
    """Instance and models are made; the clock runs; the answer is rechecked."""

    PREPARING = "preparing"
    RUNNING = "running"
    CHECKING = "checking"


#: Called with a stage as it begins and with facts for the row that are known by then.
Tell: TypeAlias = Callable[[Stage, dict[str, Any]], None]

#: Fields of a row.
Facts: TypeAlias = dict[str, Any]
