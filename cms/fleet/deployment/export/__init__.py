"""Deployments as the files of the tools that bring them about, and what these files cannot say.

Imports the model of a deployment and its check; one file a target, and `targets` lists them.
"""

from __future__ import annotations

from .advertised import Offer, advertise
from .export import Export, ExportOptions, Target
from .targets import TARGETS, export

__all__ = ["TARGETS", "Export", "ExportOptions", "Offer", "Target", "advertise", "export"]
