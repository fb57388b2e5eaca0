"""The referees of problems of machines: a machine half for all of them, and that of ``Problem``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, TypeVar

from ..certificate.certificate import BlockPrices, Branch, first_certificate, round_up
from ..problem.machine_problem import MachineProblem
from ..problem.problem import Problem
from ..schedule.faults import Violation, job_faults, machine_faults
from ..schedule.schedule import Schedule
from .kinds import First

if TYPE_CHECKING:
    from ..schedule.columns import Columns

P = TypeVar("P", bound=MachineProblem)


class MachineReferee(ABC, Generic[P]):
    """Judges what is claimed about machines; a kind adds what their blocks give to whom."""

    schedules = Schedule
    certificates: tuple[type, ...] = (BlockPrices, Branch)

    def __init__(self, problem: P) -> None:
        self.problem = problem

    @property
    def step(self) -> Fraction:
        """The common step of the costs."""
        return self.problem.cost_step

    @property
    def limited(self) -> bool:
        """Whether some machine type has a limit.

        Without one only a job nothing can serve is beyond reach, and the first certificate shows
        that.
        """
        return any(machine.limit is not None for machine in self.problem.machine_types)

    def cost(self, schedule: Schedule) -> Fraction:
        """Return what all machines cost."""
        return schedule.cost(self.problem)

    def faults(self, schedule: Schedule) -> Iterator[Violation]:
        """Iterate over what is wrong with the machines, then with what their blocks give."""
        yield from machine_faults(self.problem, schedule.columns)
        yield from self.content_faults(schedule.columns)

    @abstractmethod
    def content_faults(self, columns: Columns) -> Iterator[Violation]:
        """Iterate over what is wrong with what the blocks give."""

    @abstractmethod
    def first(self) -> First:
        """Return what is certain before any work."""


class JobReferee(MachineReferee[Problem]):
    """Judges what is claimed about a :class:`cms.Problem`: every block serves one job."""

    def content_faults(self, columns: Columns) -> Iterator[Violation]:
        """Iterate over unknown jobs, and those whose demand is not met."""
        return job_faults(self.problem, columns)

    def first(self) -> First:
        """Return prices of 0, or of blocks no machine can have where they show a job is lost."""
        problem = self.problem
        certificate = first_certificate(problem)
        usable = [i for i, block in enumerate(problem.blocks) if block not in certificate.prices]
        # Seen at a glance, this spares every other problem a pass of pricing.
        if not problem.all_servable(usable) and certificate.proves_infeasible(problem):
            bound = round_up(certificate.bound(problem), self.step)
            return First(certificate, bound, infeasible=True)
        nothing = None if problem.wants_anything else self.schedules()
        return First(certificate, Fraction(0), schedule=nothing)
