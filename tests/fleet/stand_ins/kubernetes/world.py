"""What all controllers share: the store, the machines behind it, and how long things take."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fleet.stand_ins.kubernetes.nodes import Machine
from tests.fleet.stand_ins.kubernetes.store import Store

OPERATOR = "gpu-operator"


@dataclass
class Timing:
    """Ticks of the stepped clock."""

    start: int = 1  # from bound to ready
    stop: int = 1  # from asked to stop to gone
    notice: int = 2  # until mig-manager sees a new label: so long the old answer stands
    apply: int = 3  # from pending to the new answer


@dataclass
class World:
    """The cluster as it is, of which the API server shows a part."""

    store: Store
    machines: dict[str, Machine]
    dra: bool = False
    mig_config_map: str = "default-mig-parted-config"
    nodes_reversed: bool = False  # the order in which the scheduler looks at nodes
    devices_reversed: bool = False  # the order in which a kubelet hands out equal devices
    timing: Timing = field(default_factory=Timing)
    mig_fails: set[str] = field(default_factory=set)  # nodes that mig-manager fails on
