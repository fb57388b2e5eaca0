"""Published measurements of workloads in pairs, and of usage, in the forms they come in.

Each reads one form, so that its tables need not be copied to be used.
"""

from __future__ import annotations

from .alibaba import read_alibaba_usage
from .gavel import read_gavel_pairs
from .gpulet import gpulet_measured_pairs
from .lucid import read_lucid_pairs
from .writing import write_measured_pairs

__all__ = [
    "read_gavel_pairs", "read_lucid_pairs", "gpulet_measured_pairs", "read_alibaba_usage",
    "write_measured_pairs",
]  # fmt: skip
