"""The monitors of all GPUs, and what they see in a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sharing.monitor import ACTIONS, MonitorTimes
from ...sharing.monitor_arrays import MonitorStates, monitor_signals, monitor_steps
from ...sharing.monitor_metrics import Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SEEN", "Watch"]

#: What a monitor sees here: the SMs that both sides want together, and by how much the online side
#: is slower than its limit. The loop simulates neither clocks nor memory, which a real one sees.
SEEN = (
    Metric("sm_demand", soft=95, hard="100.01", unit="%"),
    Metric("slowdown_beyond_limit", soft=1, hard=1, unit="millionths"),
)
_EVICT = ACTIONS.index("evict")


class Watch:
    """A monitor a GPU.

    Parameters
    ----------
    gpus : int
    times : MonitorTimes
        In minutes.

    Examples
    --------
    >>> import numpy as np
    >>> watch = Watch(2, MonitorTimes(dwell=1, base=1, cap=120, calm=240))
    >>> none = np.zeros(2, dtype=np.int64)
    >>> watch.look(np.array([9_000, 9_600]), none).tolist(), watch.admits.tolist()
    ([False, False], [True, False])
    >>> watch.look(np.array([10_500, 9_600]), none).tolist()
    [True, False]
    """

    def __init__(self, gpus: int, times: MonitorTimes) -> None:
        self._states, self._times = MonitorStates.fresh(gpus), times

    @property
    def admits(self) -> NDArray[np.bool_]:
        """Where offline work may come."""
        return self._states.admits

    def look(self, wanted: NDArray[np.int64], beyond: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Let a minute pass; return from which GPUs offline work has to go.

        Parameters
        ----------
        wanted : numpy.ndarray of int64, shape (G,)
            SMs, in hundredths of a per cent.
        beyond : numpy.ndarray of int64, shape (G,)
            Slowdown less limit, in millionths; 0 where that is kept.
        """
        observed = {"sm_demand": wanted / 100, "slowdown_beyond_limit": beyond}
        signals = monitor_signals(SEEN, observed)
        self._states, actions = monitor_steps(self._states, signals, self._times)
        evicted: NDArray[np.bool_] = actions == _EVICT
        return evicted
