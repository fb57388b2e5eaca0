"""The referee of problems whose blocks are shared in time."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from ..certificate.certificate import BlockPrices, Branch, first_certificate, round_up
from ..referee.kinds import First
from ..referee.machines import JobReferee, MachineReferee
from ..schedule.faults import Violation
from .check import mix_faults
from .functions import PriceFunction
from .prices import MixPrices
from .problem import TimeSharedProblem

if TYPE_CHECKING:
    from ..schedule.columns import Columns


class MixReferee(MachineReferee[TimeSharedProblem]):
    """Judges what is claimed about a :class:`cms.TimeSharedProblem`: every block serves a mix."""

    certificates: tuple[type, ...] = (MixPrices, Branch)

    def __init__(self, problem: TimeSharedProblem) -> None:
        super().__init__(problem)
        if problem.max_jobs == 1:  # then prices of blocks alone prove bounds as well
            self.certificates = (MixPrices, BlockPrices, Branch)

    def content_faults(self, columns: Columns) -> Iterator[Violation]:
        """Iterate over mixes that break a rule, and over jobs whose demand is not met."""
        return mix_faults(self.problem, columns)

    def first(self) -> First:
        """Return prices of 0, or what shows that a job is lost: no machine has a block for it.

        Then its demand is worth 1, as those blocks are. What is admitted in some mix is alone.
        """
        first = JobReferee(self.problem.unshared()).first()
        if not first.infeasible:
            return First(MixPrices(), Fraction(0), schedule=first.schedule)
        unheld = first_certificate(self.problem).prices
        served = {
            job
            for block in self.problem.blocks
            if block not in unheld
            for job in self.problem.usable_points(block)
        }
        lost = next(j.name for j in self.problem.jobs if j.demand and j.name not in served)
        certificate = MixPrices(unheld, functions={lost: PriceFunction(1)})
        bound = round_up(certificate.bound(self.problem), self.step)
        return First(certificate, bound, infeasible=certificate.proves_infeasible(self.problem))
