"""Nodes with GPUs as they really are, behind what the API server shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.fleet.stand_ins.mig_parted_file import Entry
from tests.fleet.stand_ins.placement import MODELS, Layout, Model

Json = dict[str, Any]

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


@dataclass
class Gpu:
    """One physical GPU; a layout is there only where MIG is on."""

    model: str
    mig: bool = False
    layout: Layout = ()

    @property
    def card(self) -> Model:
        return MODELS[self.model]

    def is_cut(self, entry: Entry) -> bool:
        """Whether it is as an entry of mig-parted has it; a count of zero never is."""
        names = [name for name, _ in self.layout]
        counts = {name: names.count(name) for name in names}
        return (self.mig, counts) == (entry.enabled, entry.wanted or {})


@dataclass
class Machine:
    """A node: its GPUs, who uses which device, and what mig-manager last saw."""

    name: str
    gpus: list[Gpu]
    labels: dict[str, str] = field(default_factory=dict)
    users: dict[Device, str] = field(default_factory=dict)  # device → uid of the pod
    seen: str | None = None
    noticed: int | None = None  # when a new label will be noticed
    config: str | None = None  # the configuration at work
    due: int = 0

    def devices(self) -> Iterator[Device]:
        for index, gpu in enumerate(self.gpus):
            if not gpu.mig:
                yield Device(index)
            for profile, start in sorted(gpu.layout, key=lambda item: item[1]):
                yield Device(index, profile, start)

    def resources(self) -> dict[str, int]:
        """What the device plug-in advertises under the strategy `mixed`."""
        counts: dict[str, int] = {}
        for device in self.devices():
            counts[device.resource] = counts.get(device.resource, 0) + 1
        return counts

    def uuid(self, device: Device) -> str:
        kind = "GPU" if device.profile is None else "MIG"
        profile = (device.profile or "whole").replace(".", "")
        return f"{kind}-{self.name}-{device.gpu}-{profile}-{device.start}"

    def discovered(self) -> dict[str, str]:
        """Labels of GPU Feature Discovery under the strategy `mixed`."""
        first = self.gpus[0].card
        labels = {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": first.product.replace(" ", "-"),
            "nvidia.com/gpu.count": str(len(self.gpus)),
            "nvidia.com/mig.capable": "true",
            "nvidia.com/mig.strategy": "mixed",
        }
        for resource, count in self.resources().items():
            if resource != "nvidia.com/gpu":
                labels[f"{resource}.count"] = str(count)
        return labels

    def node(self) -> Json:
        """The Node object of the first moment, before any controller has run."""
        labels = {
            "kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux",
            **{f"nvidia.com/gpu.deploy.{client}": "true" for client in CLIENTS},
            **self.discovered(), **self.labels,
        }  # fmt: skip
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        return {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {},
            "status": {
                "capacity": dict(amounts), "allocatable": dict(amounts),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }  # fmt: skip


def machines(described: Mapping[str, Sequence[str | Gpu]]) -> dict[str, Machine]:
    """Nodes by name from models (`["a100-80gb"] * 2`) or from GPUs that are cut already."""
    made = {}
    for name, gpus in sorted(described.items()):
        made[name] = Machine(name, [Gpu(g) if isinstance(g, str) else g for g in gpus])
    return made
