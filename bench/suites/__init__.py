"""The suites by name: each a list of tasks, and the tables made of their rows."""

from __future__ import annotations

from . import fleets, growth, peers, proof, ratios, scale, size_bounded, small
from .suite import Settings, Suite

__all__ = ["SUITES", "Settings", "Suite"]

SUITES: dict[str, Suite] = {
    module.SUITE.name: module.SUITE
    for module in (proof, ratios, scale, peers, growth, fleets, size_bounded, small)
}
"""Every suite by its name."""
