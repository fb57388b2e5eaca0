"""The suites by name: each a list of tasks, and the tables made of their rows."""

from __future__ import annotations

from .colocation import SUITE as SHARING
from .day import SUITE as DAY
from .fleets import FLEETS, SIZE_BOUNDED
from .gpulet import SUITE as GPULET
from .mig_serving import SUITE as MIG_SERVING
from .overview import SUITE as OVERVIEW
from .peers import SUITE as PEERS
from .promises import SUITE as PROMISES
from .proof import SUITE as PROOF
from .published import SUITE as PUBLISHED
from .ratios import SUITE as RATIOS
from .replay import SUITE as REPLAY
from .scale import GROWTH, SCALE
from .shards import SUITE as SHARDS
from .small import SUITE as SMALL
from .stock import SUITE as STOCK
from .suite import Settings, Suite
from .transitions import SUITE as TRANSITIONS

__all__ = ["SUITES", "Settings", "Suite"]

_SUITES = (
    OVERVIEW, RATIOS, PUBLISHED, PEERS, PROOF, SCALE, SHARDS, GROWTH, FLEETS, SIZE_BOUNDED, SMALL,
    MIG_SERVING, GPULET, STOCK, REPLAY, PROMISES, TRANSITIONS, DAY,
    SHARING,
)  # fmt: skip
SUITES: dict[str, Suite] = {suite.name: suite for suite in _SUITES}
"""Every suite by its name."""
