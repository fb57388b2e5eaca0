"""The step of many monitors at once; :func:`cms.fleet.monitor_step` is its definition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidProblem
from ...values.numbers import exact
from .muxflow_monitor import ACTIONS, SIGNALS, STATES, TABLE, Metric, MonitorTimes, Timer

Codes: TypeAlias = NDArray[np.int8]
_AFTER: tuple[Timer, ...] = get_args(Timer)


class MonitorStates(NamedTuple):
    """The states of n monitors, one an entry."""

    name: Codes  #: Places in ``cms.fleet.published.muxflow_monitor.STATES``.
    #: As in :class:`cms.fleet.MonitorState`.
    dwell: NDArray[np.int32]
    level: NDArray[np.int32]
    left: NDArray[np.int32]
    calm: NDArray[np.int32]

    @classmethod
    def fresh(cls, count: int) -> MonitorStates:
        """Return a number of monitors in ``init``."""
        name = np.full(count, STATES.index("init"), np.int8)
        return cls(name, *np.zeros((4, count), np.int32))

    @property
    def admits(self) -> NDArray[np.bool_]:
        """Where offline work may come, shape (n,)."""
        return np.equal(self.name, STATES.index("healthy"))


#: The fields of the table's cells, each by state and signal.
_TABLE: tuple[Codes, ...] = tuple(
    np.array(
        [
            (STATES.index(c.to), _AFTER.index(c.after), ACTIONS.index(c.action), c.rises, c.calms)
            for c in (TABLE[state, signal] for state in STATES for signal in SIGNALS)
        ],
        np.int8,
    ).T.reshape(-1, len(STATES), len(SIGNALS))
)


def monitor_steps(
    states: MonitorStates, signals: ArrayLike, times: MonitorTimes
) -> tuple[MonitorStates, Codes]:
    """Return the states of all monitors after a tick, and the actions of the platform.

    Signals, as from :func:`monitor_signals`, and actions are places in ``SIGNALS`` and ``ACTIONS``
    of ``cms.fleet.published.muxflow_monitor``, in arrays of shape (n,), one place a monitor. The
    `times`, in ticks, are of all monitors.

    Examples
    --------
    >>> times, states = MonitorTimes(dwell=1, base=3, cap=24, calm=100), MonitorStates.fresh(2)
    >>> states, actions = monitor_steps(states, [0, 1], times)
    >>> [ACTIONS[action] for action in actions]
    ['admit', 'none']
    """
    name, dwell, level, left, calm = states
    cells = name, np.asarray(signals, np.int8)
    to, after, action, rises, calms = (column[cells] for column in _TABLE)
    dwells = (after == _AFTER.index("dwell")) & (dwell + 1 < times.dwell)
    backs_off = (after == _AFTER.index("back_off")) & (left > 1)
    stays = dwells | backs_off
    new_level = np.minimum(level + rises, times.top)
    new_calm = np.where(calms.astype(np.bool_) & (new_level > 0), calm + 1, 0)
    done = new_calm == times.calm
    new_level = new_level - done
    back_offs = np.array([times.back_off(each) for each in range(times.top + 1)], np.int32)
    new_left = np.where(to == STATES.index("overlimit"), back_offs[new_level], 0)
    kept = dwell + dwells, level, left - backs_off, calm
    new = np.zeros_like(dwell), new_level, new_left, np.where(done, 0, new_calm)
    timers = (np.where(stays, *pair).astype(np.int32) for pair in zip(kept, new, strict=True))
    after_tick = MonitorStates(np.where(stays, name, to), *timers)
    return after_tick, np.where(stays, np.int8(0), action)


def monitor_signals(
    metrics: Sequence[Metric], observed: Mapping[str, ArrayLike], *, disabled: ArrayLike = False
) -> Codes:
    """Return the signals of many GPUs, as :func:`monitor_signal` that of one.

    `metrics`: at least one. `observed`: values for each metric, by name. A float counts as its
    shortest decimal. `disabled`: where the operator disables sharing.

    Examples
    --------
    >>> activity = Metric("sm_activity", soft=80, hard=90)
    >>> signals = monitor_signals([activity], {"sm_activity": [79.9, 80, 95]})
    >>> [SIGNALS[signal] for signal in signals]
    ['quiet', 'soft', 'hard']
    """
    worst = np.zeros((), np.int8)
    for metric in metrics:
        if metric.name not in observed:
            said = f"metric {metric.name!r} was not observed; observed: {', '.join(observed)}"
            raise InvalidProblem(said)
        values = np.asarray(observed[metric.name], np.float64)
        if not np.all(np.isfinite(values) & (values >= 0)):
            said = f"metric {metric.name!r} has a value that is no finite number >= 0"
            raise InvalidProblem(said)
        sign, passed = 1 if metric.worse == "high" else -1, np.zeros(values.shape, np.int8)
        for threshold in (metric.soft, metric.hard):
            limit = float(threshold)  # the float next to it on the bad side decides exactly
            if sign * exact(limit, "threshold") < sign * threshold:
                limit = math.nextafter(limit, sign * math.inf)
            passed += sign * values >= sign * limit
        worst = np.maximum(worst, passed)
    return np.where(disabled, np.int8(SIGNALS.index("disable")), worst)
