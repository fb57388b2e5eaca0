"""Deployments as the files of the tools that bring them about, and what these files cannot say.

Each target is a function that fills in the files of ``templates/``; `targets` lists them.
"""

from __future__ import annotations

from .export import Export, ExportOptions
from .targets import TARGETS, export
from .workloads import Offer, advertise

__all__ = ["TARGETS", "Export", "ExportOptions", "Offer", "advertise", "export"]
