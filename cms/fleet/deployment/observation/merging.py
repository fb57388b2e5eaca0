"""What the user said beside the sources, and errors that point into one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ....errors import FileError
from ...hardware import Gpu
from ..instance import Work
from ..labels import label_value, point_label
from ..model import Deployment, FleetNode

__all__ = ["Merging", "fault_at"]


@dataclass
class Merging:
    """What the user said beside the sources, and what is said to the user."""

    known: Deployment
    devices: Mapping[str, Gpu]
    device: Gpu | None
    places: Deployment | None = None
    of_pods: dict[Work, bool] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    fixed: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def meant(self) -> tuple[FleetNode, ...]:
        """Return the nodes of all that was meant to run, or to be where."""
        return (*self.known.nodes, *(self.places.nodes if self.places else ()))

    def work(
        self, service: str, point: str | None, profiles: Collection[str], gpus: Collection[str]
    ) -> Work | None:
        """Find the work that a pod's labels name; without a point, the only one there can be.

        Points of other types of GPU than the node's have the same label, and are others. A label
        that two services have names neither.
        """
        found = {
            instance.work: None
            for card, instance in self.known.instances()
            if instance.work is not None
            and card.gpu.key in gpus
            and service in (instance.work.service, label_value(instance.work.service))
            and (point is None or point_label(instance.work) == point)
            and (point is not None or instance.profile in profiles)
        }
        if len({each.service for each in found}) > 1:
            return None
        return next(iter(found)) if (point is not None and found) or len(found) == 1 else None


def fault_at(where: str, what: str, expected: str | None = None) -> FileError:
    """Build an error at ``lgi.txt:14``."""
    name, _, line = where.rpartition(":")
    if name and line.isdigit():
        return FileError(name, what, line=int(line), expected=expected)
    return FileError(where, what, expected=expected)
