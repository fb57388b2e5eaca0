"""Plans are replayed: requests arrive, wait, are batched, and their latencies are counted."""

from __future__ import annotations

from .arrivals import Arrivals, Bursts, EachItsOwn, Gamma, Poisson, Replay, read_trace
from .duty_cycles import CYCLE_ARRIVALS, replay_duty_cycles
from .events import Event, Failure, RateChange, Weights, read_events
from .model import ModelledInstance, ModelledService, services_of
from .replay import ROUTINGS
from .result import (
    Recovery,
    ServiceResult,
    Simulation,
    Timeline,
    read_simulation,
    simulation_from_json,
    simulation_to_json,
    write_simulation,
)
from .run import simulate
from .statistics import Interval, Verdict

__all__ = [
    "simulate", "Simulation", "ServiceResult", "Recovery", "Timeline", "Interval", "Verdict",
    "Arrivals", "Poisson", "Gamma", "Bursts", "EachItsOwn", "Replay", "read_trace", "ROUTINGS",
    "Event", "RateChange", "Failure", "Weights", "read_events",
    # services without a plan, and services that share instances in time
    "ModelledService", "ModelledInstance", "services_of",
    "replay_duty_cycles", "CYCLE_ARRIVALS",
    "read_simulation", "write_simulation", "simulation_to_json", "simulation_from_json",
]  # fmt: skip
