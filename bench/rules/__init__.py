"""What people do instead of solving the problem: rules of thumb, and a published scheduler's rule.

They know MIG: all but the first two ask how many slices a profile takes, and the last is for
machines that are cut at will. None has a bound or a
guarantee; their schedules are checked as everybody's. Beside them stands what people compare with
instead of a proof: a bound that is easily said, and makes no schedule.
"""

from __future__ import annotations

from .best_fit import BestFitDecreasing
from .natural import FirstFit, Smallest, StaticMix, WholeMachines
from .partition_free import PartitionFree
from .parvagpu import ParvaGpu
from .rule import Bound, Rule

__all__ = ["BOUNDS", "RULES", "Bound", "Rule"]

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        WholeMachines(),
        Smallest(),
        StaticMix(),
        FirstFit(),
        ParvaGpu(),
        BestFitDecreasing(),
    )
}
"""Every rule by its name."""

BOUNDS: dict[str, Bound] = {bound.name: bound for bound in (PartitionFree(),)}
"""Every bound by its name."""
