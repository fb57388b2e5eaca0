"""What runs where: numbered GPUs of named nodes, the instances on them, and what is to run.

Imports the catalogue and the serving problem; never an algorithm, a simulation or a report.
"""

from __future__ import annotations

from .checking import check_deployment
from .difference import Difference, GpuDifference, difference
from .document import (
    deployment_from_json,
    deployment_to_json,
    read_deployment,
    write_deployment,
)
from .instance import WHOLE, Instance, Kind, Mode, StartSource, State, Work
from .model import Deployment, FleetGpu, FleetNode, Observation
from .nodes_table import read_nodes
from .wanted import DesiredState, desired_state

__all__ = [
    # what runs where
    "Deployment", "FleetNode", "FleetGpu", "Instance", "Work", "Kind", "Mode", "StartSource",
    "State", "Observation", "WHOLE",
    # what is to run
    "DesiredState", "desired_state", "read_nodes",
    # checked, and in files
    "check_deployment", "difference", "Difference", "GpuDifference", "read_deployment",
    "write_deployment", "deployment_to_json", "deployment_from_json",
]  # fmt: skip
