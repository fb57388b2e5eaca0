"""How much all demands may grow together on the machines of a schedule."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from ..certificate.certificate import BlockPrices, Certificate
from ..errors import InvalidOption, InvalidSchedule
from ..plugin.algorithm import Algorithm, Budget, Claim, Support
from ..plugin.guarantee import Guarantee
from ..problem.parts import MachineType
from ..problem.problem import Problem
from ..referee.check import check
from ..running.interrupt import CtrlC
from ..schedule.schedule import Schedule
from ..solving.arguments import Arguments
from ..solving.driver import CancelEvent
from ..solving.solution import Proof, Solution
from ..solving.solve import solve
from ..values.frozen import FrozenMap
from .search import Asking, most_growth
from .variants import machines_used, with_types


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How much of every demand the machines of a schedule can meet; immutable, picklable.

    Attributes
    ----------
    share : Fraction or None
        This share of every demand, 1 or more in whole thousandths, can be met; None: any share.
    schedule : Schedule
        It shows that, and is valid for the demands themselves; checked.
    too_much : Fraction or None
        The least share of which a checked certificate proves that it cannot be met.
    proof : Proof
        Whose word it is that `share` is the largest: ``NONE`` if a larger one may do.
    machines : Mapping of str to int
        The machines of each type.
    """

    share: Fraction | None
    schedule: Schedule
    too_much: Fraction | None
    proof: Proof
    machines: FrozenMap[str, int]
    seconds: float
    problem_sha256: str

    def sentence(self, machine: str = "machine", demand: str = "demand") -> str:
        """Say how much more would do; nothing where that is unlimited."""
        if self.share is None:
            return ""
        if self.share == 1 and self.proof is Proof.NONE:
            return f"by how much all {demand}s may grow on these {machine}s was not found in time"
        more = 100 * (self.share - 1)
        by = f"{float(more):.1f}".removesuffix(".0")
        proved = {"checked": " (proved most)", "solver": " (most on a solver's word)"}
        return (
            f"all {demand}s may grow by {by} % together on these {machine}s"
            f"{proved.get(self.proof.value, '')}"
        )

    def __str__(self) -> str:
        return self.sentence() or "there is no demand to grow"


def growth(
    problem: Problem,
    schedule: Schedule,
    *,
    certificate: Certificate | None = None,
    method: str | Algorithm = "auto",
    time_limit: float | None = 60.0,
    seed: int = 0,
    threads: int | None = None,
    cancel: CancelEvent | None = None,
) -> Growth:
    """Find the largest share by which all demands may grow together on a schedule's machines.

    The fewest machines usually leave slack, and nothing says where. Its schedule puts it where all
    demands have the same share of it.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        A valid one; its machines of each type are what there is.
    certificate : Certificate, optional
        Of the problem, as :func:`cms.solve` found it: a good one saves most of the search.
    method, time_limit, seed, threads, cancel
        As for :func:`cms.solve`, which does the work.

    Raises
    ------
    InvalidSchedule
        If the schedule is not valid.
    InvalidOption
        For a bad argument.

    Examples
    --------
    >>> from cms import Configuration, Job, solve
    >>> problem = Problem(
    ...     configurations=Configuration({"3g": 2}),
    ...     jobs=[Job("bert", 900, {"3g": 310}), Job("vgg", 140, {"3g": 150})],
    ... )
    >>> solution = solve(problem)
    >>> print(growth(problem, solution.schedule, certificate=solution.certificate))
    all demands may grow by 3.3 % together on these machines (proved most)
    """
    started = time.monotonic()
    if not isinstance(problem, Problem):
        raise InvalidOption(f"problem is {problem!r}; expected a cms.Problem")
    if faults := check(problem, schedule):
        raise InvalidSchedule(f"the schedule to grow on is not valid: {faults[0]}")
    limits = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel).limits
    used = machines_used(problem, schedule)
    there = with_types(problem, lambda it: MachineType(it.name, it.cost, used[it.name]))
    with CtrlC() as interrupt:
        asking = Asking(method, seed, threads, started + limits.seconds, interrupt, limits.cancel)
        found = most_growth(
            there, asking, schedule, certificate or BlockPrices(), schedule.cost(problem)
        )
    return Growth(
        share=None if found is None else found.share,
        schedule=schedule if found is None else found.schedule,
        too_much=None if found is None else found.too_much,
        proof=Proof.NONE if found is None else found.proof,
        machines=FrozenMap(used),
        seconds=time.monotonic() - started,
        problem_sha256=problem.sha256,
    )


def with_schedule(problem: Problem, solution: Solution, schedule: Schedule) -> Solution:
    """Return a solution with another schedule, checked by the driver as any claim is.

    Its certificate is claimed anew, and checked anew.
    """
    found = rechecked(problem, schedule, solution.certificate)
    if found.cost != solution.cost or found.status is not solution.status:
        return solution
    return replace(
        found,
        method=solution.method,
        stop_reason=solution.stop_reason,
        seconds=solution.seconds,
        guarantee=solution.guarantee,
        history=solution.history,
    )


def rechecked(problem: Problem, schedule: Schedule, certificate: Certificate) -> Solution:
    """Return the solution that a schedule and a certificate make, both checked by the driver."""
    return solve(problem, _Known(certificate), time_limit=None, start=schedule, seed=0, threads=1)


@dataclass(frozen=True)
class _NoOptions:
    """There are none."""


class _Known:
    """Claims a certificate that was found before."""

    name = "known"
    options_type = _NoOptions

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate

    def support(self, problem: Problem, options: _NoOptions) -> Support:
        return Support(True)

    def guarantee(self, problem: Problem, options: _NoOptions) -> Guarantee | None:
        return None

    def run(self, problem: Problem, options: _NoOptions, budget: Budget) -> Iterator[Claim]:
        yield self._certificate
