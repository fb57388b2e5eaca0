"""The monitor of a shared GPU: it admits and evicts offline work.

A pure step (state, signal) -> (state, action), once a tick, by the table below. The names of the
states are from memory of MuxFlow (arXiv 2303.13803), of whose text only the introduction is known:
table, timers and thresholds are assumed. A file has the latter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from ...errors import InvalidOption, InvalidProblem
from ...files import fields as f
from ...files import model as m
from ...files.documents import parse_document
from ...files.source import StrPath
from ...values.fields import CheckedFields
from ...values.names import checked_name, nearest
from ...values.numbers import Number, exact, shown
from ..colocation.files import part_of
from ..colocation.problem import set_fields

StateName: TypeAlias = Literal["init", "healthy", "unhealthy", "overlimit", "disabled"]
Signal: TypeAlias = Literal["quiet", "soft", "hard", "disable"]
Action: TypeAlias = Literal["none", "admit", "close", "evict"]
Timer: TypeAlias = Literal["", "dwell", "back_off"]

STATES: tuple[StateName, ...] = get_args(StateName)
#: From the best to the worst.
SIGNALS: tuple[Signal, ...] = get_args(Signal)
ACTIONS: tuple[Action, ...] = get_args(Action)
#: Thirty years of seconds: every timer fits into int32.
MOST_TICKS = 10**9


class Cell(NamedTuple):
    """The effect of a signal in a state."""

    to: StateName  #: The state after this tick
    #: The timer that has to run out first; this tick counts. Until then nothing else happens.
    after: Timer = ""
    action: Action = "none"  #: Of the platform: admit offline work, admit no more, evict it
    rises: bool = False  #: Whether the back-off becomes longer by a level
    calms: bool = False  #: Whether this tick counts towards taking a level off


#: The whole monitor. Entering a state restarts its timers: ``Cell("init")`` in ``init`` counts the
#: quiet ticks from 0 again.
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


@dataclass(frozen=True)
class MonitorTimes(CheckedFields):
    """Times of a monitor, in ticks."""

    refusal = InvalidProblem
    dwell: int  #: Quiet ticks in a row before offline work may come, >= 1
    base: int  #: The back-off of level 1, >= 1; each level doubles it.
    cap: int  #: No back-off is longer, >= base
    calm: int  #: Quiet ticks in a row in ``healthy`` that take a level off, >= 1

    def __post_init__(self) -> None:
        for field in fields(self):
            self._whole(field.name, least=1, most=MOST_TICKS)
        if self.cap < self.base:
            raise self._refuse("cap", f"at least its base, {self.base}")

    def _what(self, field: str) -> str:
        return f"{field} of a monitor"

    @property
    def top(self) -> int:
        """The highest level: the first whose back-off is the cap."""
        return 1 + (-(-self.cap // self.base) - 1).bit_length()

    def back_off(self, level: int) -> int:
        """Return the back-off of a level, in ticks; 0 at level 0, that of the top above it."""
        return back_off(level, self.base, self.cap)


class MonitorState(NamedTuple):
    """The state of the monitor of one GPU, and its timers. A fresh one is in ``init``."""

    name: StateName = "init"
    dwell: int = 0  #: Quiet ticks in a row, while offline work may not come; less than the dwell.
    level: int = 0  #: How long the next back-off is, 0 to the top
    left: int = 0  #: Ticks of the back-off that are left; 0 but in ``overlimit``.
    calm: int = 0  #: Quiet ticks in a row in ``healthy`` since the level last changed

    @property
    def admits(self) -> bool:
        """Whether offline work may come."""
        return self.name == "healthy"


def monitor_step(
    state: MonitorState,
    signal: Signal,
    times: MonitorTimes,
    table: Mapping[tuple[StateName, Signal], Cell] = TABLE,
) -> tuple[MonitorState, Action]:
    """Return the state after a tick, and the action of the platform.

    ``proofs_checks/monitor.py`` checks over all states and timers that can be reached: offline work
    may come only after ``dwell`` quiet ticks in a row, it is evicted in the very tick of a hard
    signal, between two such evictions lies a whole back-off, and quiet metrics lead to ``healthy``
    within dwell + cap + 1 ticks.

    `signal`: the worst of the metrics in this tick (:func:`cms.fleet.monitor_signal`), or that the
    operator disables sharing. `table`: for checks of it, or for another monitor.

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


_PRESETS = Path(__file__).parent / "presets"


@dataclass(frozen=True, slots=True, init=False)
class Metric:
    """A metric of a GPU, and its thresholds against sharing.

    `soft` and `hard`: thresholds, >= 0. A value at a threshold has passed it; the hard one is the
    worse. `worse`: the bad side: utilisation is worse when high, a clock when low. `unit`: of the
    values and thresholds; for people.
    """

    name: str
    soft: Fraction
    hard: Fraction
    worse: Literal["high", "low"]
    unit: str

    def __init__(
        self,
        name: str,
        *,
        soft: Number,
        hard: Number,
        worse: Literal["high", "low"] = "high",
        unit: str = "",
    ) -> None:
        name = checked_name(name, "metric")
        if worse not in ("high", "low"):
            raise InvalidProblem(f"worse of metric {name!r} is {worse!r}; expected 'high' or 'low'")
        first = exact(soft, f"soft threshold of metric {name!r}")
        second = exact(hard, f"hard threshold of metric {name!r}")
        if second < first if worse == "high" else second > first:
            order = "at least" if worse == "high" else "at most"
            said = f"hard threshold of metric {name!r} is {shown(second)}; expected {order} the"
            raise InvalidProblem(f"{said} soft one, {shown(first)}: {worse} values are worse")
        set_fields(self, (name, first, second, worse, unit))

    def signal(self, value: Number) -> Signal:
        """Return which threshold a value >= 0, in the metric's unit, has passed."""
        sign = 1 if self.worse == "high" else -1
        seen = sign * exact(value, f"metric {self.name!r}")
        return SIGNALS[(seen >= sign * self.soft) + (seen >= sign * self.hard)]


def monitor_signal(
    metrics: Sequence[Metric], observed: Mapping[str, Number], *, disabled: bool = False
) -> Signal:
    """Return the signal of a tick: the worst of the metrics, or that the operator disables sharing.

    A metric that was not observed is refused: a monitor that sees nothing must not call it quiet.
    Values are by name; those of other metrics are ignored.

    Examples
    --------
    >>> metrics = monitor_preset("muxflow-assumed").metrics
    >>> quiet = {"gpu_utilisation": 70, "sm_activity": 40, "sm_clock": 100, "memory_used": 60}
    >>> monitor_signal(metrics, quiet), monitor_signal(metrics, {**quiet, "memory_used": "95.5"})
    ('quiet', 'hard')
    """
    if disabled:
        return "disable"
    for metric in metrics:
        if metric.name not in observed:
            near = nearest(metric.name, observed)
            fix = "observe it, leave it out, or treat a monitor that sees nothing as 'hard'"
            raise InvalidProblem(f"metric {metric.name!r} was not observed{near}; {fix}")
    signals = (metric.signal(observed[metric.name]) for metric in metrics)
    return max(signals, key=SIGNALS.index, default=SIGNALS[0])


@dataclass(frozen=True, slots=True)
class MonitorPreset:
    """Metrics and times of a monitor under one name."""

    name: str
    source: str  #: Where the figures come from
    metrics: tuple[Metric, ...]
    seconds: MonitorTimes  #: With a tick of one second

    def times(self, tick_seconds: int = 1) -> MonitorTimes:
        """Return the times in ticks of this length, rounded up."""
        if tick_seconds < 1:
            raise InvalidOption(f"tick_seconds is {tick_seconds}; expected a whole number >= 1")
        return MonitorTimes(*(-(-each // tick_seconds) for each in astuple(self.seconds)))


def monitor_preset(name: str) -> MonitorPreset:
    """Return a monitor that comes with the package: ``muxflow-assumed``, figures from memory.

    After MuxFlow (arXiv 2303.13803). InvalidOption if there is none of this name.

    Examples
    --------
    >>> monitor_preset("muxflow-assumed").seconds
    MonitorTimes(dwell=60, base=60, cap=7200, calm=14400)
    """
    known = sorted(path.stem for path in _PRESETS.glob("*.json"))
    if name not in known:
        said = f"unknown monitor {name!r}; known: {', '.join(known)}"
        raise InvalidOption(f"{said}. read_monitor reads a file of your own")
    return read_monitor(_PRESETS / f"{name}.json")


_MetricPart = part_of(
    Metric, name=Annotated[str, f.name("metric")], worse=(Literal["high", "low"], "high"),
    unit=(f.Text, ""),
)  # fmt: skip
_TimesPart = part_of(MonitorTimes, **dict.fromkeys(MonitorTimes.__annotations__, f.AtLeastOne))


class MonitorDocument(m.Document):
    """Metrics and times of a monitor."""

    KIND: ClassVar[str] = "cms-monitor"
    name: Annotated[str, f.name("monitor")]
    source: f.Text
    metrics: tuple[Annotated[Metric, m.Built(_MetricPart)], ...]
    seconds: Annotated[MonitorTimes, m.Built(_TimesPart)]

    def build(self) -> MonitorPreset:
        """Build the monitor; its metrics have different names."""
        f.refuse_twice((each.name for each in self.metrics), "metric", "metrics")
        return MonitorPreset(**dict(self))


def read_monitor(path: StrPath) -> MonitorPreset:
    """Read metrics and times of a monitor from a JSON file; ``presets/`` has an example.

    Times are whole seconds. A FileError has line and column.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("cms.fleet.published") / "presets/muxflow-assumed.json"
    >>> read_monitor(path).times(tick_seconds=30)
    MonitorTimes(dwell=2, base=2, cap=240, calm=480)
    """
    found: MonitorPreset = m.build(MonitorDocument, parse_document(path))
    return found
