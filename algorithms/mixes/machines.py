"""Machines opened one by one, with the rates their blocks carry, and the schedule they make."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from cms.problem.parts import Configuration

    from .hosting import Hosted


@dataclass(slots=True)
class Loaded:
    """A block of an opened machine; ``hosted`` is None while it is free."""

    block: str
    hosted: Hosted | None = None

    @property
    def rates(self) -> dict[str, Fraction]:
        """The rate of each job it serves."""
        return {} if self.hosted is None else self.hosted.rates

    def with_more(self, job: str, rate: Fraction) -> dict[str, Fraction]:
        """Return the rates with so much more of a job."""
        return {**self.rates, job: self.rates.get(job, 0) + rate}


@dataclass(slots=True)
class Machine:
    """So many machines of one configuration that carry the same."""

    configuration: Configuration
    count: int = 1
    blocks: list[Loaded] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = [
            Loaded(block)
            for block, number in self.configuration.blocks.items()
            for _ in range(number)
        ]


def schedule_of(machines: Iterable[Machine]) -> Schedule:
    """Return the schedule of machines; those that serve nobody are left out."""
    counts: Counter[tuple[Configuration, frozenset[tuple[tuple[str, Mix], int]]]] = Counter()
    for machine in machines:
        served = Counter(
            (loaded.block, Mix(loaded.hosted.amounts))
            for loaded in machine.blocks
            if loaded.hosted is not None
        )
        if served:
            counts[machine.configuration, frozenset(served.items())] += machine.count
    return Schedule(
        MachineGroup(configuration, dict(sorted(served)), count)
        for (configuration, served), count in counts.items()
    )
