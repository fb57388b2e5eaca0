"""What an infeasible problem lacks, and how much all demands may grow on the machines there are."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from ..certificate.certificate import BlockPrices, Certificate
from ..checker.kinds import check
from ..errors import AlgorithmError, InvalidOption, InvalidSchedule
from ..plugin.algorithm import Algorithm
from ..problem.parts import DEFAULT_MACHINE, Block, MachineType
from ..problem.problem import Problem
from ..running.interrupt import CtrlC
from ..schedule.schedule import Schedule
from ..solving.driver import Arguments, CancelEvent
from ..solving.recheck import faults_of
from ..solving.solution import Proof, Solution, Status
from ..values.frozen import FrozenMap
from ..values.words import count, percent
from .search import Asking, fewest_machines, largest_share, most_growth
from .variants import PARTS, machines_used, with_types, without_unservable_jobs

#: Jobs that a printed shortage names before it says how many more there are.
JOBS_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What would make an infeasible problem feasible; immutable, picklable.

    Two remedies, each enough for the jobs that can be served at all: more machines than the limits
    allow, or less of every demand.

    Attributes
    ----------
    unservable : Mapping of str to tuple of str
        Jobs that no machine can serve, each with the blocks that would, if one could be cut so.
    more_machines : Mapping of str to int, or None
        So many machines of these types beyond the limits that count them, their own and those of
        groups, would do; None if not found in time.
    machines_schedule : Schedule
        It shows that; checked. Empty where there is no limit at all.
    machines_at_least : int
        Fewer machines beyond the limits are proved not to do, by a checked certificate.
    machines_proof : Proof
        Whose word it is that `more_machines` are the fewest: ``NONE`` if fewer may do.
    less_demand : Fraction
        This share of every demand, in whole thousandths, can be met; 0 if no larger one is known.
    demand_schedule : Schedule
        It shows that; checked.
    too_much_demand : Fraction or None
        The smallest share that is proved impossible, by a checked certificate; None if none is.
    demand_proof : Proof
        Whose word it is that `less_demand` is the largest: ``NONE`` if a larger one may do.
    """

    unservable: FrozenMap[str, tuple[Block, ...]]
    more_machines: FrozenMap[str, int] | None
    machines_schedule: Schedule
    machines_at_least: int
    machines_proof: Proof
    less_demand: Fraction
    demand_schedule: Schedule
    too_much_demand: Fraction | None
    demand_proof: Proof
    seconds: float
    problem_sha256: str

    def __str__(self) -> str:
        return "\n".join([*unservable_lines(self.unservable), self.remedy()])

    def remedy(self, machine: str = "machine", demand: str = "demand", raised: str = "") -> str:
        """Say in one sentence what would do for the jobs that can be served.

        `raised`: Limits of groups that have to be raised for more machines.
        """
        if self.more_machines is not None and not self.more_machines:
            return "everything else can be served" if self.unservable else "nothing is short"
        lead = "for everything else, " if self.unservable else ""
        return f"{lead}{_machines_words(self, machine, raised)}{_demand_words(self, demand)}"


def explain_infeasibility(
    problem: Problem,
    *,
    solution: Solution | None = None,
    method: str | Algorithm = "auto",
    time_limit: float | None = 60.0,
    seed: int = 0,
    threads: int | None = None,
    cancel: CancelEvent | None = None,
) -> Shortage:
    """Find out how many machines more, or how much less demand, would make a problem feasible.

    The fewest machines beyond the limits are the optimum of another problem; the largest share of
    the demands is found among thousandths, by bisection. Each answer has a schedule that was
    checked, and says whether a checked certificate shows that there is none better.

    Parameters
    ----------
    problem : Problem
        Of a feasible one the answer is that nothing is short.
    solution : Solution, optional
        The answer of :func:`cms.solve` that there is no schedule: its certificate is put to use.
    time_limit : float or None, default 60
        Seconds for all, of which at most half go to the machines.
    method, seed, threads, cancel
        As for :func:`cms.solve`, which does the work.

    Raises
    ------
    InvalidOption
        For a bad argument; or if `solution` is of another problem, or does not prove its word.
    AlgorithmError
        As :func:`cms.solve`, or if `solution` says by a solver's word what a schedule disproves.

    Examples
    --------
    >>> from cms import Configuration, Job, MachineType
    >>> problem = Problem(
    ...     configurations=Configuration({"3g": 2}, "a100"),
    ...     jobs=[Job("bert", 1200, {"3g": 310}), Job("vgg", 200, {"3g": 150})],
    ...     machine_types=[MachineType("a100", limit=2)],
    ... )
    >>> lacking = explain_infeasibility(problem)
    >>> print(lacking)
    1 more a100 machine would do (proved fewest), or 75 % of every demand (proved most)
    >>> dict(lacking.more_machines), lacking.less_demand
    ({'a100': 1}, Fraction(3, 4))
    """
    started = time.monotonic()
    if not isinstance(problem, Problem):
        raise InvalidOption(f"problem is {problem!r}; expected a cms.Problem")
    how = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel)
    known = _known(problem, solution)
    rest, lost = without_unservable_jobs(problem)
    with CtrlC() as interrupt:
        asking = Asking(method, seed, threads, started + how.seconds, interrupt, cancel)
        known = None if lost else known  # that a job is lost says nothing about the others
        machines = fewest_machines(rest, asking, known)
        demand = largest_share(rest, asking, machines, known)
    if known is not None and demand.share == 1:
        raise AlgorithmError(
            known.method,
            "claims by a solver's word that there is no schedule; there is a valid one",
        )
    return Shortage(
        unservable=lost,
        more_machines=machines.more,
        machines_schedule=machines.schedule,
        machines_at_least=machines.at_least,
        machines_proof=machines.proof,
        less_demand=demand.share,
        demand_schedule=demand.schedule,
        too_much_demand=demand.too_much,
        demand_proof=demand.proof,
        seconds=time.monotonic() - started,
        problem_sha256=problem.sha256,
    )


def unservable_lines(unservable: Mapping[str, Iterable[Block]]) -> list[str]:
    """Say of each job that no machine can serve what it would need."""
    lines = []
    for name, blocks in list(unservable.items())[:JOBS_NAMED]:
        needed = " or ".join(blocks)
        lines.append(
            f"job {name!r}: only {needed} would serve it, which no machine can be cut into"
            if needed
            else f"job {name!r}: no block supplies any of its demand"
        )
    if (more := len(unservable) - JOBS_NAMED) > 0:
        lines.append(f"... and {count(more, 'more job')}")
    return lines


def _known(problem: Problem, solution: Solution | None) -> Solution | None:
    if solution is None:
        return None
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution is {solution!r}; expected a cms.Solution")
    if solution.problem_sha256 != problem.sha256:
        raise InvalidOption("solution is of another problem; give the answer to this one")
    if solution.status is not Status.INFEASIBLE:
        raise InvalidOption(
            f"solution has the status {solution.status.value!r}; expected 'infeasible', or leave "
            "it out"
        )
    if solution.proof is Proof.CHECKED and not solution.certificate.proves_infeasible(problem):
        raise InvalidOption(
            "solution has a certificate that does not prove that there is no schedule; give the "
            "answer of cms.solve"
        )
    return solution


def _who(proof: Proof, what: str = "") -> str:
    if proof is Proof.NONE:
        return ""
    said = f"proved {what}" if proof is Proof.CHECKED else f"{what} on a solver's word"
    return f" ({said.strip()})"


def _machines_words(lacking: Shortage, machine: str, raised: str) -> str:
    more, least = lacking.more_machines, lacking.machines_at_least
    needed = f"{count(least, f'more {machine}', math.floor)} {'is' if least == 1 else 'are'} needed"
    if more is None:
        unknown = f"how many more {machine}s would do was not found in time"
        return f"at least {needed}" if least else unknown
    parts = (
        count(number, f"more {'' if name == DEFAULT_MACHINE else f'{name} '}{machine}", math.ceil)
        for name, number in more.items()
    )
    proved = _who(lacking.machines_proof, "fewest")
    if lacking.machines_proof is Proof.NONE and least:
        proved = f" (at least {needed})"
    beyond = f" than the limits allow would do with {raised}" if raised else " would do"
    return f"{' and '.join(parts)}{beyond}{proved}"


def _demand_words(lacking: Shortage, demand: str) -> str:
    share, too_much = lacking.less_demand, lacking.too_much_demand
    if not share and lacking.demand_proof is Proof.NONE:
        return f"; what share of every {demand} would do was not found in time"
    if not share:
        least = percent(Fraction(1, PARTS))
        return f"; not even {least} of every {demand} would do{_who(lacking.demand_proof)}"
    proved = _who(lacking.demand_proof, "most")
    if lacking.demand_proof is Proof.NONE and too_much is not None and too_much < 1:
        proved = f" ({percent(too_much)} is proved too much)"
    if lacking.more_machines is None:
        return f"; {percent(share)} of every {demand} would do{proved}"
    return f", or {percent(share)} of every {demand}{proved}"


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
        by, proved = percent(self.share - 1), _who(self.proof, "most")
        return f"all {demand}s may grow by {by} together on these {machine}s{proved}"

    def __str__(self) -> str:
        return self.sentence() or "there is no demand to grow"


def find_growth(
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
    >>> print(find_growth(problem, solution.schedule, certificate=solution.certificate))
    all demands may grow by 3.3 % together on these machines (proved most)
    """
    started = time.monotonic()
    if not isinstance(problem, Problem):
        raise InvalidOption(f"problem is {problem!r}; expected a cms.Problem")
    if faults := check(problem, schedule):
        raise InvalidSchedule(f"the schedule to grow on is not valid: {faults[0]}")
    how = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel)
    used = machines_used(problem, schedule)
    there = with_types(problem, lambda it: MachineType(it.name, it.cost, used[it.name]))
    with CtrlC() as interrupt:
        asking = Asking(method, seed, threads, started + how.seconds, interrupt, cancel)
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
    """Return a solution with another schedule of the same cost, if all it says holds of that."""
    other = replace(solution, schedule=schedule)
    return solution if any(faults_of(problem, other)) else other
