"""Rates that change: when to plan again, for which window, and what that saves on a trace."""

from __future__ import annotations

from .changing import Change, change_to
from .forecast import FORECASTS, Daily, Forecast, Known, Latest, RateForecast, forecast_of
from .playing import (
    CONTENDERS,
    SHARING_CONTENDERS,
    Compared,
    Played,
    compare,
    contender,
    contenders,
    empty_fleet,
    play,
    roomy_fleet,
)
from .policies import Always, DayNight, Forecasting, Never, Policy, Threshold, clairvoyant
from .rates import Gap, Rates
from .rates_input import read_rates
from .reasons import headline, reasons, replan_decision_to_json
from .replan import (
    Decision,
    NoPath,
    Path,
    ReplanDecision,
    Start,
    decide,
    fewest,
    replan,
    same_services,
    shortest,
)
from .windows import Planner, Scene, Terms, Windows

__all__ = ["Rates", "Gap", "read_rates", "RateForecast", "Forecast", "FORECASTS", "forecast_of"]
__all__ += ["Daily", "Latest", "Known", "Planner", "Windows", "Start", "Path"]
__all__ += ["NoPath", "shortest", "fewest", "Terms", "Decision", "decide", "Change", "change_to"]
__all__ += ["ReplanDecision", "replan", "same_services", "headline", "reasons", "Scene"]
__all__ += ["replan_decision_to_json"]
__all__ += ["Policy", "Never", "Always", "Forecasting", "Threshold", "DayNight"]
__all__ += ["clairvoyant", "Played", "empty_fleet", "play", "CONTENDERS", "SHARING_CONTENDERS"]
__all__ += ["Compared", "compare", "contender", "contenders", "roomy_fleet"]
