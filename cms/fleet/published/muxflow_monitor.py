"""The monitor of a GPU that is shared: may offline work come, may it stay, when does it go.

A pure step (state, signal) -> (state, action), once a tick; what it does is the table below. The
names of the states are from memory of MuxFlow (arXiv 2303.13803), whose text beyond the
introduction we do not have: table, timers and thresholds are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, get_args

from ...errors import InvalidProblem
from ...values.numbers import shown, whole

StateName: TypeAlias = Literal["init", "healthy", "unhealthy", "overlimit", "disabled"]
Signal: TypeAlias = Literal["quiet", "soft", "hard", "disable"]
Action: TypeAlias = Literal["none", "admit", "close", "evict"]
#: What a cell may wait for; nothing is the empty one.
Timer: TypeAlias = Literal["", "dwell", "back_off"]

STATES: tuple[StateName, ...] = get_args(StateName)
#: From the best to the worst.
SIGNALS: tuple[Signal, ...] = get_args(Signal)
ACTIONS: tuple[Action, ...] = get_args(Action)
#: Ticks that a timer may have at most: thirty years of seconds. So every timer fits into int32.
MOST_TICKS = 10**9


class Cell(NamedTuple):
    """What a state does on a signal."""

    to: StateName  #: The state after this tick
    #: The timer that has to run out first: this tick counts, and until it has, the state stays and
    #: nothing else happens.
    after: Timer = ""
    #: What the platform has to do on the way: nothing, open the GPU for offline work, let no more
    #: come, send away what is there.
    action: Action = "none"
    rises: bool = False  #: Whether the back-off becomes longer by a level
    calms: bool = False  #: Whether this tick counts towards taking a level off


#: All that the monitor does. Entering a state starts its timers anew, so that ``Cell("init")`` in
#: ``init`` says that the quiet ticks are counted from 0 again.
TABLE: Mapping[tuple[StateName, Signal], Cell] = MappingProxyType(
    {
        ("init", "quiet"): Cell("healthy", after="dwell", action="admit"),
        ("init", "soft"): Cell("init"),
        ("init", "hard"): Cell("overlimit", rises=True),
        ("init", "disable"): Cell("disabled"),
        ("healthy", "quiet"): Cell("healthy", calms=True),
        ("healthy", "soft"): Cell("unhealthy", action="close"),
        ("healthy", "hard"): Cell("overlimit", action="evict", rises=True),
        ("healthy", "disable"): Cell("disabled", action="evict"),
        ("unhealthy", "quiet"): Cell("healthy", after="dwell", action="admit"),
        ("unhealthy", "soft"): Cell("unhealthy"),
        ("unhealthy", "hard"): Cell("overlimit", action="evict", rises=True),
        ("unhealthy", "disable"): Cell("disabled", action="evict"),
        ("overlimit", "quiet"): Cell("init", after="back_off"),
        ("overlimit", "soft"): Cell("init", after="back_off"),
        ("overlimit", "hard"): Cell("overlimit"),
        ("overlimit", "disable"): Cell("disabled"),
        ("disabled", "quiet"): Cell("init"),
        ("disabled", "soft"): Cell("init"),
        ("disabled", "hard"): Cell("init"),
        ("disabled", "disable"): Cell("disabled"),
    }
)


def back_off(level: int, base: int, cap: int) -> int:
    """Return how long a back-off of a level is: base * 2^(level - 1), at most the cap; 0 at 0."""
    return min(cap, base << min(level - 1, cap.bit_length())) if level else 0


@dataclass(frozen=True, slots=True)
class MonitorTimes:
    """How patient a monitor is, in ticks.

    Examples
    --------
    >>> times = MonitorTimes(dwell=12, base=8, cap=100, calm=160)
    >>> [times.back_off(level) for level in range(7)], times.top
    ([0, 8, 16, 32, 64, 100, 100], 5)
    """

    dwell: int  #: So many quiet ticks in a row before offline work may come, >= 1
    base: int  #: The back-off of level 1, >= 1; each level doubles it.
    cap: int  #: No back-off is longer, >= base
    calm: int  #: So many quiet ticks in a row in ``healthy`` take a level off, >= 1

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            ticks = whole(getattr(self, name), f"{name} of a monitor", least=1)
            if ticks > MOST_TICKS:
                raise InvalidProblem(
                    f"{name} of a monitor is {shown(ticks)}; expected at most {MOST_TICKS} ticks"
                )
            object.__setattr__(self, name, ticks)
        if self.cap < self.base:
            raise InvalidProblem(
                f"cap of a monitor is {self.cap}; expected at least its base, {self.base}"
            )

    @property
    def top(self) -> int:
        """The highest level: the first whose back-off is the cap."""
        return 1 + (-(-self.cap // self.base) - 1).bit_length()

    def back_off(self, level: int) -> int:
        """Return the back-off of a level, in ticks; 0 at level 0, that of the top above it."""
        return back_off(level, self.base, self.cap)


class MonitorState(NamedTuple):
    """Where the monitor of one GPU stands: a state, and its timers. A fresh one is in ``init``."""

    name: StateName = "init"
    dwell: int = 0  #: Quiet ticks in a row, while offline work may not come; less than the dwell.
    level: int = 0  #: How long the next back-off is, 0 to the top
    left: int = 0  #: Ticks of the back-off that are left; 0 but in ``overlimit``.
    calm: int = 0  #: Quiet ticks in a row in ``healthy`` since the level last changed

    @property
    def admits(self) -> bool:
        """Whether offline work may come."""
        return self.name == "healthy"

    @property
    def occupied(self) -> bool:
        """Whether offline work may be there."""
        return self.name in ("healthy", "unhealthy")


def monitor_step(
    state: MonitorState,
    signal: Signal,
    times: MonitorTimes,
    table: Mapping[tuple[StateName, Signal], Cell] = TABLE,
) -> tuple[MonitorState, Action]:
    """Return the state after a tick, and what the platform has to do.

    ``proofs_checks/monitor.py`` checks over all states and timers that can be reached: offline work
    may come only after ``dwell`` quiet ticks in a row, it is evicted in the very tick of a hard
    signal, between two such evictions lies a whole back-off, and quiet metrics lead to ``healthy``
    within dwell + cap + 1 ticks.

    Parameters
    ----------
    state : MonitorState
    signal : {"quiet", "soft", "hard", "disable"}
        The worst of the metrics in this tick (:func:`cms.fleet.monitor_signal`), or that the
        operator wants no sharing.
    times : MonitorTimes
    table : mapping, default TABLE
        From state and signal to a cell: for those who check it, or want another.

    Examples
    --------
    >>> times, state = MonitorTimes(dwell=2, base=3, cap=24, calm=100), MonitorState()
    >>> for signal in ("quiet", "quiet", "soft", "hard", "quiet"):
    ...     state, action = monitor_step(state, signal, times)
    ...     print(signal, state.name, action, state.left)
    quiet init none 0
    quiet healthy admit 0
    soft unhealthy close 0
    hard overlimit evict 3
    quiet overlimit none 2
    """
    name, dwell, level, left, calm = state
    cell = table[name, signal]
    if cell.after == "dwell" and dwell + 1 < times.dwell:
        return MonitorState(name, dwell + 1, level, left, calm), "none"
    if cell.after == "back_off" and left > 1:
        return MonitorState(name, dwell, level, left - 1, calm), "none"
    if cell.rises:
        level = min(level + 1, times.top)
    calm = calm + 1 if cell.calms and level else 0
    if calm == times.calm:
        level, calm = level - 1, 0
    left = times.back_off(level) if cell.to == "overlimit" else 0
    return MonitorState(cell.to, 0, level, left, calm), cell.action
