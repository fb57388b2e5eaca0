"""Mechanisms of published systems, as models, each module called after its paper."""

from __future__ import annotations

from .muxflow_errors import GracefulExit, RestartTimes, Supervisor, error_handling
from .muxflow_monitor import (
    Metric,
    MonitorPreset,
    MonitorState,
    MonitorTimes,
    monitor_preset,
    monitor_signal,
    monitor_step,
    read_monitor,
)
from .muxflow_monitor_arrays import MonitorStates, monitor_signals, monitor_steps
from .muxflow_protection import LaunchGate, MemoryQuota, Served, SharedDevice, slowdown_bound

__all__ = [
    "MonitorTimes", "MonitorState", "monitor_step",
    "MonitorStates", "monitor_steps", "monitor_signals",
    "Metric", "monitor_signal", "MonitorPreset", "monitor_preset", "read_monitor",
    "MemoryQuota", "LaunchGate", "SharedDevice", "Served", "slowdown_bound",
    "error_handling", "GracefulExit", "Supervisor", "RestartTimes",
]  # fmt: skip
