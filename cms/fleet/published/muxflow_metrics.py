"""From metrics of a GPU to the monitor's signal; thresholds and times as a file has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from ...errors import InvalidOption, InvalidProblem
from ...files import fields as f
from ...files import model as m
from ...files.documents import parse_document
from ...files.source import StrPath
from ...values.names import checked_name, nearest
from ...values.numbers import Number, exact, shown
from .muxflow_monitor import SIGNALS, MonitorTimes, Signal

MONITOR = "cms-monitor"
_PRESETS = Path(__file__).parent / "presets"
_TIMES = ("dwell", "base", "cap", "calm")


@dataclass(frozen=True, slots=True, init=False)
class Metric:
    """A metric of a GPU, and from where on it speaks against sharing.

    Parameters
    ----------
    name : str
    soft, hard : number
        Thresholds, >= 0. A value at a threshold has passed it; the hard one is the worse.
    worse : {"high", "low"}, default "high"
        Which side is the bad one: utilisation is worse when high, a clock when low.
    unit : str, default ""
        Of the values and thresholds; for people.

    Examples
    --------
    >>> clock = Metric("sm_clock", soft=85, hard=70, worse="low", unit="%")
    >>> [clock.signal(value) for value in (99, 85, "70.5", 70)]
    ['quiet', 'soft', 'soft', 'hard']
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
        first, second = (
            exact(value, f"{what} threshold of metric {name!r}")
            for value, what in ((soft, "soft"), (hard, "hard"))
        )
        if second < first if worse == "high" else second > first:
            order = "at least" if worse == "high" else "at most"
            raise InvalidProblem(
                f"hard threshold of metric {name!r} is {shown(second)}; expected {order} the soft "
                f"one, {shown(first)}, since {worse} values are the worse ones"
            )
        put = object.__setattr__
        put(self, "name", name)
        put(self, "soft", first)
        put(self, "hard", second)
        put(self, "worse", worse)
        put(self, "unit", unit)

    def signal(self, value: Number) -> Signal:
        """Return which threshold a value >= 0, in the metric's unit, has passed."""
        seen = exact(value, f"metric {self.name!r}")
        sign = 1 if self.worse == "high" else -1
        if sign * seen >= sign * self.hard:
            return "hard"
        return "soft" if sign * seen >= sign * self.soft else "quiet"


def monitor_signal(
    metrics: Sequence[Metric], observed: Mapping[str, Number], *, disabled: bool = False
) -> Signal:
    """Return the signal of a tick: the worst of the metrics, or that the operator says no.

    A metric that was not observed is refused: a monitor that sees nothing must not call it quiet.

    Parameters
    ----------
    metrics : sequence of Metric
    observed : mapping of str to number
        A value for each metric, by name; others are left aside.
    disabled : bool, default False
        Whether the operator wants no sharing.

    Examples
    --------
    >>> metrics = monitor_preset("muxflow-assumed").metrics
    >>> quiet = {"gpu_utilisation": 70, "sm_activity": 40, "sm_clock": 100, "memory_used": 60}
    >>> monitor_signal(metrics, quiet), monitor_signal(metrics, {**quiet, "memory_used": "95.5"})
    ('quiet', 'hard')
    """
    if disabled:
        return "disable"
    worst = 0
    for metric in metrics:
        if metric.name not in observed:
            near = nearest(metric.name, observed)
            raise InvalidProblem(
                f"metric {metric.name!r} was not observed{near}; observe it, leave it out of the "
                "metrics, or treat a monitor that sees nothing as the signal 'hard'"
            )
        worst = max(worst, SIGNALS.index(metric.signal(observed[metric.name])))
    return SIGNALS[worst]


@dataclass(frozen=True, slots=True)
class MonitorPreset:
    """Metrics and times of a monitor under one name."""

    name: str
    source: str  #: Where the figures come from
    metrics: tuple[Metric, ...]
    seconds: MonitorTimes  #: With a tick of one second
    #: The kind of predictor beside it, one of :data:`cms.fleet.sharing.predictor.MODELS`, where the
    #: file names one.
    predictor: str | None = None
    interval_minutes: int | None = None  #: From one matching to the next, where the file says so

    def times(self, tick_seconds: int = 1) -> MonitorTimes:
        """Return the times in ticks of so many seconds, rounded up: never less patient.

        Examples
        --------
        >>> monitor_preset("muxflow-assumed").times(60)
        MonitorTimes(dwell=1, base=1, cap=120, calm=240)
        """
        if tick_seconds < 1:
            raise InvalidOption(f"tick_seconds is {tick_seconds}; expected a whole number >= 1")
        return MonitorTimes(*(-(-getattr(self.seconds, each) // tick_seconds) for each in _TIMES))


def monitor_preset(name: str) -> MonitorPreset:
    """Return a monitor that comes with the package: ``muxflow-assumed``, figures from memory.

    Examples
    --------
    >>> monitor_preset("muxflow-assumed").seconds
    MonitorTimes(dwell=60, base=60, cap=7200, calm=14400)
    """
    known = sorted(path.stem for path in _PRESETS.glob("*.json"))
    if name not in known:
        raise InvalidOption(
            f"unknown monitor {name!r}; known: {', '.join(known)}. read_monitor reads a file of "
            "your own"
        )
    return read_monitor(_PRESETS / f"{name}.json")


class _MetricPart(m.Part):
    name: Annotated[str, f.name("metric")]
    soft: f.Exact
    hard: f.Exact
    worse: Literal["high", "low"] = "high"
    unit: f.Text = ""

    def build(self) -> Metric:
        told = dict(self)
        return Metric(told.pop("name"), **told)


class _TimesPart(m.Part):
    MAKES: ClassVar[Any] = MonitorTimes
    dwell: f.AtLeastOne
    base: f.AtLeastOne
    cap: f.AtLeastOne
    calm: f.AtLeastOne


class MonitorDocument(m.Document):
    """Metrics and times of a monitor, and what a system goes by beside it."""

    KIND: ClassVar[str] = MONITOR
    MAKES: ClassVar[Any] = MonitorPreset
    name: Annotated[str, f.name("monitor")]
    source: f.Text
    metrics: tuple[Annotated[Metric, m.Built(_MetricPart)], ...]
    seconds: Annotated[MonitorTimes, m.Built(_TimesPart)]
    predictor: Annotated[str, f.name("predictor")] = f.left_out()
    interval_minutes: f.AtLeastOne = f.left_out()

    def build(self) -> MonitorPreset:
        """Build the monitor; its metrics have different names."""
        f.refuse_twice((each.name for each in self.metrics), "metric", "metrics")
        return MonitorPreset(**dict(self))


def read_monitor(path: StrPath) -> MonitorPreset:
    """Read metrics and times of a monitor from a JSON file; ``presets/`` has an example.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "monitor.json"
    >>> _ = path.write_text(
    ...     '{"format": "cms-monitor", "schema": 1, "name": "mine", "source": "a week in May",'
    ...     ' "seconds": {"dwell": 30, "base": 60, "cap": 600, "calm": 3600},'
    ...     ' "metrics": [{"name": "sm_activity", "unit": "%", "soft": 80, "hard": 90}]}'
    ... )
    >>> read_monitor(path).times(30)
    MonitorTimes(dwell=1, base=2, cap=20, calm=120)
    """
    found: MonitorPreset = m.build(MonitorDocument, parse_document(path))
    return found
