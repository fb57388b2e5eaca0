"""Rates that change: when to plan again, for which window, and what that saves on a trace."""

from __future__ import annotations

from .forecast import FORECASTS, Daily, Forecast, Known, Latest, RateForecast, forecast_of
from .policies import (
    CONTENDERS,
    SHARING_CONTENDERS,
    Always,
    Compared,
    DayNight,
    Forecasting,
    Never,
    Played,
    Policy,
    Threshold,
    clairvoyant,
    compare,
    contender,
    contenders,
    empty_fleet,
    play,
    roomy_fleet,
)
from .rates import Rates
from .rates_input import read_rates
from .reasons import headline, reasons, replan_decision_to_json
from .replan import (
    Change,
    Decision,
    NoPath,
    Path,
    ReplanDecision,
    Start,
    change_to,
    decide,
    fewest,
    replan,
    same_services,
    shortest,
)
from .windows import Planner, Scene, Terms, Windows

__all__ = [
    "Rates", "read_rates", "RateForecast", "Forecast", "FORECASTS", "forecast_of", "Daily",
    "Latest", "Known", "Planner", "Windows", "Terms", "Start", "Path", "NoPath", "shortest",
    "fewest", "Change", "change_to", "Decision", "decide", "ReplanDecision", "replan", "reasons",
    "headline", "replan_decision_to_json", "same_services", "Scene", "Policy", "Never",
    "Always", "Forecasting", "Threshold", "DayNight", "clairvoyant", "Played", "empty_fleet",
    "play", "CONTENDERS", "SHARING_CONTENDERS", "Compared", "compare", "contender", "contenders",
    "roomy_fleet",
]  # fmt: skip
