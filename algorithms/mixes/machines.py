"""Machines opened one by one, the schedule they make, and what they give one job at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.problem.parts import Configuration

    from .hosting import Hosted, Hosting


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


class Saturated(NamedTuple):
    """Jobs with a demand, and what each configuration gives them when it serves nobody else.

    Nothing serves an ``unservable`` job.
    """

    demands: dict[str, Fraction]
    gives: dict[str, list[Fraction]]
    unservable: bool

    @classmethod
    def of(cls, hosting: Hosting, shapes: Sequence[Configuration]) -> Saturated:
        """Add up what the blocks of configurations give, each serving the job alone."""
        demands = {job.name: job.demand for job in hosting.problem.jobs if job.demand}
        gives = {
            job: [_total(shape, hosting.saturated[job]) for shape in shapes] for job in demands
        }
        return cls(demands, gives, any(not any(row) for row in gives.values()))


def _total(shape: Configuration, of_block: Mapping[str, Fraction]) -> Fraction:
    nothing = Fraction(0)
    worths = (count * of_block.get(block, nothing) for block, count in shape.blocks.items())
    return sum(worths, nothing)


def least_cost(hosting: Hosting, shapes: Sequence[Configuration], saturated: Saturated) -> Fraction:
    """Return a cost below which there is no schedule; every job can be served.

    A unit of a job's rate is priced at what it costs on the configuration that gives the job most
    for its cost. A block is worth no more than to one job alone, since a mix gives an average of
    what its jobs would get alone, each for its part of the frame. So all demands cost no less than
    they are worth, at the rate of the configuration that is worth most for its cost.
    """
    costs = [hosting.problem.machine_type(shape.machine).cost for shape in shapes]
    prices = {
        job: min(cost / give for cost, give in zip(costs, row, strict=True) if give)
        for job, row in saturated.gives.items()
    }
    dearest: dict[str, Fraction] = {}
    for job, price in prices.items():
        for block, rate in hosting.saturated[job].items():
            dearest[block] = max(dearest.get(block, Fraction(0)), price * rate)
    worths = [_total(shape, dearest) for shape in shapes]
    rates = (cost / worth for cost, worth in zip(costs, worths, strict=True) if worth)
    paid = (demand * prices[job] for job, demand in saturated.demands.items())
    return min(rates, default=Fraction(0)) * sum(paid, Fraction(0))
