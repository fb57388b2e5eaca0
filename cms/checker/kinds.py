"""What a kind of problem is made of: a problem, a schedule, a certificate and a checker.

A new kind brings these four classes, and ``checker_for.register(MyProblem, MyChecker)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ..certificate.certificate import BlockPrices, Branch, first_certificate, round_up
from ..errors import InvalidOption
from ..problem.machine_problem import MachineProblem
from ..problem.problem import Problem
from ..schedule.faults import Violation, job_faults, machine_faults
from ..schedule.schedule import Excerpt, Schedule

if TYPE_CHECKING:
    from ..schedule.columns import Columns

P = TypeVar("P", bound=MachineProblem)


class InitialBounds(NamedTuple):
    """What is certain of a problem before any work; it is believed, as the checker is.

    The bound is the certificate's, rounded up to the costs' step; a schedule is optimal.
    """

    certificate: Any
    bound: Fraction
    infeasible: bool = False
    schedule: Any = None


class AnyProblem(Protocol):
    """What problems of every kind have; they are immutable and can be pickled."""

    @property
    def sha256(self) -> str:
        """A digest of all its data; the same for every equal problem."""


class AnySchedule(Protocol):
    """What schedules of every kind have; they are immutable, and empty if made of nothing."""

    @property
    def machine_count(self) -> int | None:
        """Number of machines; None where there are no machines."""

    def excerpt(self, most: int) -> Excerpt:
        """Return at most `most` rows for a printed solution."""


class Checker(Protocol):
    """Judges everything that is claimed about one problem, exactly; costs are minimised."""

    @property
    def schedules(self) -> type[AnySchedule]:
        """A claim of exactly this type is a schedule."""

    @property
    def certificates(self) -> tuple[type, ...]:
        """Claims of exactly these types are certificates, and such are the parts of a Branch."""

    @property
    def step(self) -> Fraction:
        """Every optimum is a whole multiple of it; 0 if there is no such number."""

    @property
    def limited(self) -> bool:
        """Whether there may be no schedule though the first certificate does not show it."""

    def first(self) -> InitialBounds:
        """Return what is certain before any work."""

    def faults(self, schedule: Any) -> Iterable[Violation]:
        """Iterate over everything that is wrong with a schedule."""

    def cost(self, schedule: Any) -> Fraction:
        """Return a schedule's cost, valid or not; InvalidSchedule if it has none."""


@singledispatch
def checker_for(problem: Any) -> Checker:
    """Return the checker of a problem; InvalidOption if none is registered for its type.

    Examples
    --------
    >>> checker_for(Problem(configurations=[], jobs=[])).limited
    False
    """
    raise InvalidOption(f"problem is {problem!r}; expected a cms.Problem")


def check(problem: AnyProblem, schedule: AnySchedule) -> tuple[Violation, ...]:
    """List everything that is wrong with a schedule; an empty tuple means it is valid.

    A schedule is valid if every group has a count of at least 1 and a configuration the problem
    allows, gives blocks (at least 1 an entry) of known types to known jobs without using more than
    the configuration has, keeps the limits of all machine types and groups, and meets every job's
    demand.

    Examples
    --------
    >>> from cms import Configuration, Job, MachineGroup, Problem, Schedule
    >>> whole = Configuration({"7g": 1})
    >>> problem = Problem(configurations=whole, jobs=[Job("bert", 1200, {"7g": 800})])
    >>> short = Schedule([MachineGroup(whole, {("7g", "bert"): 1}, 1)])
    >>> for violation in check(problem, short):
    ...     print(violation)
    job 'bert' has 800 of its demand served, needs 1200
    """
    return tuple(checker_for(problem).faults(schedule))


class MachineChecker(ABC, Generic[P]):
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
        """Whether there is a limit on machines.

        Without one only a job nothing can serve is beyond reach: the first certificate shows that.
        """
        return bool(self.problem.limits)

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
    def first(self) -> InitialBounds:
        """Return what is certain before any work."""


class JobChecker(MachineChecker[Problem]):
    """Judges what is claimed about a :class:`cms.Problem`: every block serves one job."""

    def content_faults(self, columns: Columns) -> Iterator[Violation]:
        """Iterate over unknown jobs, and those whose demand is not met."""
        return job_faults(self.problem, columns)

    def first(self) -> InitialBounds:
        """Return prices of 0, or of blocks no machine can have where they show a job is lost."""
        problem = self.problem
        certificate = first_certificate(problem)
        usable = [i for i, block in enumerate(problem.blocks) if block not in certificate.prices]
        # Seen at a glance, this spares every other problem a pass of pricing.
        if not problem.all_servable(usable) and certificate.proves_infeasible(problem):
            bound = round_up(certificate.bound(problem), self.step)
            return InitialBounds(certificate, bound, infeasible=True)
        nothing = None if problem.wants_anything else self.schedules()
        return InitialBounds(certificate, Fraction(0), schedule=nothing)


checker_for.register(Problem, JobChecker)
