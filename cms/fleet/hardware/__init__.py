"""The GPU catalogue: device files, and the placement rules that turn them into configurations."""

from __future__ import annotations

from .catalogue import get_gpu, list_gpus, read_gpu
from .device import Gpu
from .enumeration import LayoutCounts
from .profile import MPS_CLIENTS, Evidence, Layout, Placement, Profile, mps_shares

__all__ = ["get_gpu", "list_gpus", "read_gpu", "mps_shares", "Gpu", "Profile", "Placement"]
__all__ += ["Layout", "LayoutCounts", "Evidence", "MPS_CLIENTS"]
