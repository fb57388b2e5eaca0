"""Plans are replayed: requests arrive, wait, are batched, and what their latencies were is counted.

Imports ``deployment`` and what stands before it, no algorithm; compiled code is loaded where there
is much to do.
"""

from __future__ import annotations

from .arrivals import Arrivals, Bursts, Gamma, Poisson
from .events import Change, Event, Failure, RateChange, Weights
from .fluid import Surge, surge
from .model import ModelledInstance, ModelledService
from .plan_model import services_of
from .result import Recovery, ServiceResult, Simulation, Timeline
from .routing import ROUTINGS
from .run import simulate
from .statistics import Interval, Verdict

__all__ = [
    "simulate",
    "Simulation",
    "ServiceResult",
    "Recovery",
    "Timeline",
    "Interval",
    "Verdict",
    # how requests come and go
    "Arrivals",
    "Poisson",
    "Gamma",
    "Bursts",
    "ROUTINGS",
    # what happens meanwhile
    "Event",
    "RateChange",
    "Failure",
    "Weights",
    "Change",
    # services without a plan
    "ModelledService",
    "ModelledInstance",
    "services_of",
    # closed forms
    "Surge",
    "surge",
]
