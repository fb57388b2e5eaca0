"""What a caller says about a run, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidOption
from ..referee.kinds import AnySchedule
from ..values.frozen import FrozenMap
from ..values.numbers import Number, exact, shown_object, whole
from .driver import CancelEvent, Limits
from .solution import Incumbent

#: A time limit beyond this many seconds, some thirty years, is none: solvers count in small units.
LONGEST_TIME_LIMIT = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of :func:`cms.solve` that say how to run; ``cores`` are the threads.

    Examples
    --------
    >>> Arguments(seed=-1)
    Traceback (most recent call last):
        ...
    cms.errors.InvalidOption: seed is -1; expected a whole number >= 0
    """

    options: Mapping[str, object] = FrozenMap()
    time_limit: float | None = 60.0
    gap: Number = 0
    seed: int = 0
    threads: int | None = None
    start: AnySchedule | None = None
    cancel: CancelEvent | None = None
    on_improvement: Callable[[Incumbent], object] | None = None
    limits: Limits = field(init=False)
    cores: int = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        gap = exact(self.gap, "gap", error=InvalidOption)
        put(self, "limits", Limits(_seconds(self.time_limit), gap, self.cancel))
        put(self, "seed", whole(self.seed, "seed", least=0, error=InvalidOption))
        threads = available_cores() if self.threads is None else self.threads
        put(self, "cores", whole(threads, "threads", least=1, error=InvalidOption))
        report, cancel = self.on_improvement, self.cancel
        if report is not None and not callable(report):
            raise InvalidOption(f"on_improvement is {report!r}; expected a function")
        if cancel is not None and not callable(getattr(cancel, "is_set", None)):
            raise InvalidOption(f"cancel is {shown_object(cancel)}; expected a threading.Event")


def _seconds(time_limit: object) -> float:
    given: Any = math.inf if time_limit is None else time_limit
    try:
        # Compared before it becomes a float, which has no room for every number.
        far = not isinstance(given, bool | str) and bool(given > LONGEST_TIME_LIMIT)
        seconds = math.inf if far else math.nan if isinstance(given, bool | str) else float(given)
    except (TypeError, ValueError, ArithmeticError):  # a decimal's NaN refuses to be compared
        seconds = math.nan
    if not seconds >= 0:
        raise InvalidOption(
            f"time_limit is {shown_object(time_limit)}; expected seconds >= 0, or None for no limit"
        )
    return seconds


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
