"""What runs where: numbered GPUs of named nodes, the instances on them, and how plans get there.

Imports the catalogue and the serving problem; never an algorithm, a simulation or a report.
"""

from __future__ import annotations

from .checking import check_deployment
from .compacting import Compacted, compact
from .difference import Difference, GpuDifference, difference
from .document import (
    deployment_from_json,
    deployment_to_json,
    read_deployment,
    write_deployment,
)
from .instance import WHOLE, Instance, Kind, Mode, Seen, State, Work
from .model import Deployment, FleetGpu, FleetNode, Observation
from .nearest import Nearest, nearest
from .nodes_table import read_nodes
from .placed import Placed
from .placing import place
from .unplaceable import Unplaceable, check_unplaceable
from .wanted import Wanted, wanted_of
from .wishes import Wishes, wishes_of

__all__ = [
    # what runs where
    "Deployment",
    "FleetNode",
    "FleetGpu",
    "Instance",
    "Work",
    "Kind",
    "Mode",
    "Seen",
    "State",
    "Observation",
    "WHOLE",
    # what is to run
    "Wanted",
    "wanted_of",
    "read_nodes",
    # placed
    "place",
    "Placed",
    "Unplaceable",
    "check_unplaceable",
    "Wishes",
    "wishes_of",
    # near what runs
    "nearest",
    "Nearest",
    # together
    "compact",
    "Compacted",
    # checked, and in files
    "check_deployment",
    "difference",
    "Difference",
    "GpuDifference",
    "read_deployment",
    "write_deployment",
    "deployment_to_json",
    "deployment_from_json",
]
