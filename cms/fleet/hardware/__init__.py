"""The GPU catalogue: device files, and the placement rules that turn them into configurations."""

from __future__ import annotations

from .catalogue import get_gpu, list_gpus, read_gpu
from .device import MPS_CLIENTS, Evidence, Gpu, Layout, Placement, Profile, mps_shares
from .enumeration import LayoutCounts

__all__ = ["get_gpu", "list_gpus", "read_gpu", "mps_shares", "Gpu", "Profile", "Placement"]
__all__ += ["Layout", "LayoutCounts", "Evidence", "MPS_CLIENTS"]
