"""Two deployments in whole numbers: supplies and floors scaled so that nothing is rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from ..instance import Instance, State, Work
from ..model import Deployment
from .model import Floor

__all__ = ["Sides", "goes_on"]


@dataclass
class Sides:
    """What does not change on the way, whatever cuts the GPUs."""

    start: Deployment  # with supplies counted alike
    target: Deployment
    floors: Mapping[str, Floor]
    #: Whether any wanted instance of a profile may take any place of it; otherwise each place has
    #: its own work.
    is_late: bool

    def __post_init__(self) -> None:
        self.cards, self.ends = list(self.start.gpus()), list(self.target.gpus())
        both = (*self.start.services, *self.target.services)
        self.services = list(dict.fromkeys(service.name for service in both))
        self._number = {name: number for number, name in enumerate(self.services)}
        #: By service, what its supplies and its floor are multiplied by.
        self._scale = [1] * len(self.services)
        for side in (self.start, self.target):
            for _, each in side.instances():
                if each.work is not None:
                    self._scale_by(each.work.service, each.work.supply_rps.denominator)
        for name, floor in self.floors.items():
            self._scale_by(name, floor.rps.denominator)
        self.floor = [
            int(self.floors[name].rps * scale) if name in self.floors else 0
            for name, scale in zip(self.services, self._scale, strict=True)
        ]
        #: What one unit is of a floor; services without one wait for nothing.
        self.weight = [1 / floor if floor else 0.0 for floor in self.floor]

    def _scale_by(self, service: str, denominator: int) -> None:
        number = self._number[service]
        self._scale[number] = lcm(self._scale[number], denominator)

    def counted(self, work: Work | None) -> tuple[int, int]:
        """Return the number of the service that work is for, and the scaled supply."""
        if work is None:
            return -1, 0
        number = self._number[work.service]
        return number, int(work.supply_rps * self._scale[number])

    def urgency(self, service: int, old: Sequence[int], slack: Sequence[int]) -> float:
        """Return how much of a floor still has to come before all that goes can go."""
        if service < 0:
            return -2.0
        weight = self.weight[service]
        return (old[service] - slack[service]) * weight if weight else -1.5


def goes_on(now: Instance, then: Instance) -> bool:
    """Whether nothing has to happen to an instance."""
    if (now.profile, now.start, now.work, now.owner) != (
        then.profile, then.start, then.work, then.owner,
    ):  # fmt: skip
        return False
    return now.state is then.state or {now.state, then.state} == {State.STARTING, State.RUNNING}
