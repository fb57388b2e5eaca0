"""How a day of shared GPUs is played: its hours, how often it is matched, what jobs there are."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import InvalidOption
from ....values.fields import CheckedFields
from ....values.numbers import Number
from .fleet import MINUTE


@dataclass(frozen=True)
class Terms(CheckedFields):
    """How a day is played."""

    refusal = InvalidOption
    hours: int = 24
    interval: int = 15  #: Minutes from one matching to the next
    #: Shares leave room for this quantile of the activities of the last interval
    quantile: Number = "0.95"
    #: What it is worth that a job stays where it is, in millionths, as for ``muxflow``
    stay: int = 50_000
    #: A job that stays keeps its share, unless the one that is left now differs by this much
    dead_band: int = 5
    #: Minutes in which a job that was started gets nothing done; a new share is a new process.
    restart: int = 1
    #: How long a job takes alone, on average (exponential, at least a minute)
    job_hours: Number = 4
    arrivals_per_hour: Number = 0  #: Jobs that come beside those that are there at first
    #: Minutes: a job that has waited so long for its first start counts twice, and so on in
    #: quarters, up to ten scales (:func:`cms.fleet.sharing.waited_priority`). 0: waiting counts for
    #: nothing. The policy that foresees knows none.
    waiting_scale: int = 0
    tolerated: Number = "0.01"  #: Of the shared GPU-hours, how many may be over the limit
    sample: int = 4  #: GPUs whose requests are simulated one by one
    protection: bool = True  #: Whether the monitor watches every GPU

    def __post_init__(self) -> None:
        self._whole("hours", least=1, most=31 * 24)
        self._whole("interval", least=1, most=24 * MINUTE)
        self._number("quantile", above=0, most=1)
        self._whole("stay", least=0, most=10**12)
        self._whole("dead_band", least=0, most=100)
        self._whole("restart", least=0, most=24 * MINUTE)
        self._number("job_hours", above=0, most=10**4)
        self._number("arrivals_per_hour", most=10**6)
        self._whole("waiting_scale", least=0, most=10**6)
        self._number("tolerated", most=1)
        self._whole("sample", least=0, most=100)
        self._flag("protection")

    @property
    def ticks(self) -> int:
        """Minutes."""
        return MINUTE * self.hours
