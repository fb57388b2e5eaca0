"""Nodes with GPUs as they really are, behind what the API server shows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.fleet.stand_ins.kubernetes.kinds import Json
from tests.fleet.stand_ins.machines import StandInNode

CLIENTS = ("device-plugin", "gpu-feature-discovery", "dcgm", "dcgm-exporter", "nvsm")


class Device(NamedTuple):
    """What a pod can have: a whole GPU (no profile), or one instance of a GPU."""

    gpu: int
    profile: str | None = None
    start: int = 0

    @property
    def resource(self) -> str:
        if self.profile is None:
            return "nvidia.com/gpu"
        return "nvidia.com/mig-" + self.profile.replace("+", ".")


def devices_of(node: StandInNode) -> Iterator[Device]:
    for index, layout in enumerate(node.layouts()):
        if node.cards[index].mode == "Disabled":
            yield Device(index)
        yield from (Device(index, *place) for place in layout)


@dataclass
class Machine:
    """A node, who uses which of its devices, and what mig-manager last saw."""

    name: str
    node: StandInNode
    users: dict[Device, tuple[str, int]] = field(default_factory=dict)  # pod's uid, and process
    seen: str | None = None
    noticed: int | None = None  # when a new label will be noticed
    config: str | None = None  # the configuration at work
    due: int = 0

    def devices(self) -> list[Device]:
        return [*devices_of(self.node)]

    def resources(self) -> dict[str, int]:
        """What the device plug-in advertises under the strategy `mixed`."""
        return Counter(device.resource for device in self.devices())

    def give(self, device: Device, uid: str) -> None:
        start = None if device.profile is None else device.start
        self.users[device] = uid, self.node.client(device.gpu, start)

    def free(self, uid: str) -> None:
        for device, (user, pid) in [*self.users.items()]:
            if user == uid:
                del self.users[device]
                self.node.leave(pid)

    def discovered(self) -> dict[str, str]:
        """Labels of GPU Feature Discovery under the strategy `mixed`."""
        return {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": self.node.cards[0].model.product.replace(" ", "-"),
            "nvidia.com/gpu.count": str(len(self.node.cards)),
            "nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "mixed",
            **{f"{name}.count": str(n) for name, n in self.resources().items()
               if name != "nvidia.com/gpu"},
        }  # fmt: skip

    def object(self) -> Json:
        """The Node object of the first moment, before any controller has run."""
        self.seen = "as-found" if any(self.node.layouts()) else "all-disabled"
        labels = {
            "kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux",
            **{f"nvidia.com/gpu.deploy.{client}": "true" for client in CLIENTS},
            **self.discovered(),
            "nvidia.com/mig.config": self.seen, "nvidia.com/mig.config.state": "success",
        }  # fmt: skip
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        return {
            "apiVersion": "v1", "kind": "Node", "spec": {},
            "metadata": {"name": self.name, "labels": labels},
            "status": {
                "capacity": amounts, "allocatable": {**amounts}, "conditions": conditions,
            },
        }  # fmt: skip
