"""What people do instead of solving the problem: rules of thumb, and a published scheduler's rule.

They know MIG: all but the first two ask how many slices a profile takes, and the last is for
machines that are cut at will. None has a bound or a
guarantee; their schedules are checked as everybody's. Beside them stands what people compare with
instead of a proof: a bound that is easily said, and makes no schedule.
"""

from __future__ import annotations

from .best_fit import best_fit_decreasing
from .natural import first_fit, smallest, static_mix, whole_machines
from .partition_free import partition_free
from .parvagpu import parvagpu
from .rule import Bound, Rule

__all__ = ["BOUNDS", "RULES", "Bound", "Rule"]

_RULES = (
    Rule("whole_gpus", "whole GPUs, one model a GPU", whole_machines),
    Rule("smallest", "the configuration of most equal blocks alone (7 x 1g)", smallest),
    Rule("static_mix", "every GPU cut into 4g + 2g + 1g", static_mix),
    Rule(
        "first_fit",
        "the smallest instance that meets a demand, first fit by decreasing slices",
        first_fit,
    ),
    Rule("parvagpu", "ParvaGPU's segment configurator and allocator, written anew", parvagpu),
    Rule(
        "best_fit",
        "equal blocks that cost a job least, best fit by decreasing size",
        best_fit_decreasing,
    ),
)
RULES: dict[str, Rule] = {rule.name: rule for rule in _RULES}
"""Every rule by its name."""

_SLICES = "slices of the instances that cost a job fewest, layouts ignored"
BOUNDS: dict[str, Bound] = {"partition_free": Bound("partition_free", _SLICES, partition_free)}
"""Every bound by its name."""
