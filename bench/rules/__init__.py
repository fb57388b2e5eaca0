"""What people do instead of solving the problem: rules of thumb, and a published scheduler's rule.

They know MIG: all but the first two ask how many slices a profile takes. None has a bound or a
guarantee; their schedules are checked as everybody's.
"""

from __future__ import annotations

from .natural import FirstFit, Smallest, StaticMix, WholeMachines
from .parvagpu import ParvaGpu
from .rule import Rule

__all__ = ["RULES", "Rule"]

RULES: dict[str, Rule] = {
    rule.name: rule for rule in (WholeMachines(), Smallest(), StaticMix(), FirstFit(), ParvaGpu())
}
"""Every rule by its name."""
