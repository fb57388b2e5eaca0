"""An app around the plan: rates, limits and GPUs are moved, the plan and its proof follow.

The page is drawn as by ``cms show``. The app itself is a marimo notebook beside this file, which
``cms show --live`` starts.
"""

from .scenario import LIMITS, RATES, measured_gpus, plan_scenario, read_scenario, turn

__all__ = ["LIMITS", "RATES", "measured_gpus", "plan_scenario", "read_scenario", "turn"]
