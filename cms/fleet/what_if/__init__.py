"""What-if: other rates and fleets, why a plan is as it is, and what would save a GPU."""

from __future__ import annotations

from .explaining import Alternative, BlockChoices, Explanation, explain
from .least import Relaxation
from .rightsizing import Rightsizing, rightsize
from .services import changed_services

__all__ = ["changed_services", "explain", "Explanation", "BlockChoices", "Alternative"]
__all__ += ["rightsize", "Rightsizing", "Relaxation"]
