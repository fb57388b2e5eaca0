"""The problem in which the jobs on a block share it in time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem, InvalidSchedule
from ..problem.checking import (
    blocks_of,
    check_machines,
    each_of,
    refuse_unknown_blocks,
)
from ..problem.digest import hashed_machines
from ..problem.machine_problem import MachineProblem
from ..problem.parts import AnyConfiguration, Block, GroupLimit, MachineType
from ..problem.problem import Problem
from ..problem.rows import Rows
from ..running.stopping import never
from ..schedule.contents import Mix
from ..values.frozen import FrozenMap
from ..values.names import checked_names, nearest
from ..values.numbers import Number, shown, whole
from .duty_cycle import DutyCycle, DutyCycleRule, duty_cycle_of
from .functions import Offer, PriceFunction
from .listed import ListedMixes
from .model import BatchPoint, Choice, TimeSharedJob, undominated

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Mixes, on blocks of all types together, that are kept in a list.
_LISTED = 250_000


class TimeSharedProblem(MachineProblem):
    """Machines are cut into blocks, and a block serves a mix: a batch of each of several jobs.

    The batches of a mix run in turn, over and over; a job gets its amount once a cycle, which is as
    long as all batches of the mix together. A mix is admitted where the rule keeps the latency
    limit of each of its jobs. All demands are to be met at the least cost of machines; a demand
    may be split over any number of mixes. Immutable, hashable, picklable; meant for up to some
    hundred jobs.

    Parameters
    ----------
    configurations : Configuration, SizeBoundedConfigurations or a sequence of them
    jobs : sequence of TimeSharedJob
    machine_types : sequence of MachineType, optional
        Without it there is a single type of cost 1 and no limit, called ``"machine"``.
    group_limits : sequence of GroupLimit, optional
        Limits on machines of several types together.
    blocks : sequence of str, optional
        The names of all block types, in their order; by default those of the configurations.
    rule : DutyCycleRule or str, default "round_robin"
        Or ``"collect_then_run"``: when a mix keeps its jobs' latency limits.
    max_jobs : int, optional
        Of one mix. With 1 this is CMS: see :meth:`unshared`.

    Raises
    ------
    InvalidProblem
        Naming the job, block, configuration or machine type at fault.

    References
    ----------
    Choi, Lee, Kim, Park, Kwon, Huh: Serving Heterogeneous Machine Learning Models on Multi-GPU
    Servers with Spatio-Temporal Sharing, USENIX ATC 2022, 199-216.

    Examples
    --------
    >>> from cms import Configuration
    >>> problem = TimeSharedProblem(
    ...     configurations=[Configuration({"100": 1}), Configuration({"60": 1, "40": 1})],
    ...     jobs=[
    ...         TimeSharedJob("resnet50", 300, "0.108", {"60": [(8, "0.012"), (16, "0.02")]}),
    ...         TimeSharedJob("vgg16", 100, "0.142", {"60": [(4, "0.02")], "40": [(4, "0.03")]}),
    ...     ],
    ... )
    >>> cycle = problem.duty_cycle("60", Mix({"resnet50": 8, "vgg16": 4}))
    >>> cycle.length, dict(cycle.rates), cycle.admitted
    (Fraction(4, 125), {'resnet50': Fraction(250, 1), 'vgg16': Fraction(125, 1)}, True)
    """

    __slots__ = ("jobs", "max_jobs", "rule")
    jobs: tuple[TimeSharedJob, ...]
    max_jobs: int | None
    rule: DutyCycleRule

    def __init__(
        self,
        *,
        configurations: AnyConfiguration | Iterable[AnyConfiguration],
        jobs: Iterable[TimeSharedJob] = (),
        machine_types: Iterable[MachineType] = (),
        group_limits: Iterable[GroupLimit] = (),
        blocks: Iterable[Block] | None = None,
        rule: DutyCycleRule | str = DutyCycleRule.ROUND_ROBIN,
        max_jobs: int | None = None,
    ) -> None:
        machines = check_machines(configurations, machine_types, group_limits)
        names = blocks_of(machines[0]) if blocks is None else checked_names(blocks, "block")
        refuse_unknown_blocks(machines[0], names)
        jobs = each_of(jobs, TimeSharedJob, "jobs")
        for job in jobs:
            for block in job.points:
                if block not in names:
                    raise InvalidProblem(
                        f"job {job.name!r} has points on the block {block!r}, which is in no "
                        "configuration" + nearest(block, names)
                    )
        self._fill_machines(names, *machines, checked_names((j.name for j in jobs), "job"))
        put = object.__setattr__
        put(self, "jobs", jobs)
        put(self, "rule", _rule(rule))
        most = None if max_jobs is None else whole(max_jobs, "max_jobs of a mix", least=1)
        put(self, "max_jobs", most)
        self.unshared()  # rates of more digits than a problem may have are refused at once

    def _parts(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("jobs", "rule", "max_jobs")}
        return own | dict(zip(self._MACHINES, self.machine_parts, strict=False))

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(TimeSharedProblem, **self._parts()), ()

    def replace(
        self,
        *,
        configurations: Iterable[AnyConfiguration] | None = None,
        machine_types: Iterable[MachineType] | None = None,
        group_limits: Iterable[GroupLimit] | None = None,
        jobs: Iterable[TimeSharedJob] | None = None,
    ) -> TimeSharedProblem:
        """Return a problem with some parts exchanged; blocks keep their order."""
        machines = {"configurations": configurations, "machine_types": machine_types}
        new = machines | {"group_limits": group_limits, "jobs": jobs}
        given = {name: part for name, part in new.items() if part is not None}
        return TimeSharedProblem(**{**self._parts(), **given})

    def job(self, name: str) -> TimeSharedJob:
        """Return a job by name; KeyError if there is none such."""
        return self.jobs[self.job_index(name)]

    def duty_cycle(self, block: Block, mix: Mapping[str, Number]) -> DutyCycle:
        """Return the cycle of a mix on a block; whether it is admitted is for the cycle to say.

        Parameters
        ----------
        block : str
        mix : Mix
            Of any number of jobs; ``max_jobs`` is for :func:`cms.check`.

        Raises
        ------
        InvalidSchedule
            If the problem has no such block or job, or an amount was not measured there.
        """
        mix = mix if isinstance(mix, Mix) else Mix(mix)
        if block not in self.block_index:
            raise InvalidSchedule(
                f"the problem does not have the block {block!r}{nearest(block, self.blocks)}"
            )
        points: dict[str, BatchPoint] = {}
        for name, amount in mix.items():
            try:
                job = self.job(name)
            except KeyError:
                raise InvalidSchedule(
                    f"a mix has the job {name!r}, which the problem does not have"
                    + nearest(name, self.job_names)
                ) from None
            point = job.point(block, amount)
            if point is None:
                raise InvalidSchedule(
                    f"a mix takes {shown(amount)} of job {name!r} on block {block!r}; "
                    + measured(job, block)
                )
            points[name] = point
        return duty_cycle_of(self.rule, points, {name: self.job(name).limit for name in points})

    def usable_points(self, block: Block) -> FrozenMap[str, tuple[BatchPoint, ...]]:
        """Return the points that best mixes on a block are made of, by rising amount.

        Of each job those that are admitted alone (no other is in any admitted mix), and that no
        other point equals or beats in both amount and length. Jobs without one are left out.
        """
        tables: dict[Block, FrozenMap[str, tuple[BatchPoint, ...]]]
        tables = self.__dict__.setdefault("_points", {})
        if block not in tables:
            found = {
                job.name: undominated(
                    point
                    for point in job.points.get(block, ())
                    if self.rule.admits(point.length, point.length, job.limit)
                )
                for job in self.jobs
            }
            tables[block] = FrozenMap({name: points for name, points in found.items() if points})
        return tables[block]

    def greatest_rates(self, block: Block) -> dict[str, Fraction]:
        """Return the most that a block gives each job that it can serve, if it serves no other."""
        return {
            job: max(point.amount / point.length for point in points)
            for job, points in self.usable_points(block).items()
        }

    def unpaid_offers(self, block: Block) -> Mapping[str, Offer]:
        """Return the jobs that mixes on a block may have, with no price functions yet."""
        tables: dict[Block, dict[str, Offer]] = self.__dict__.setdefault("_offers", {})
        if block not in tables:
            tables[block] = {}
            for name, points in self.usable_points(block).items():
                job = self.job(name)
                choices = (Choice(*p, self.rule.longest(p.length, job.limit)) for p in points)
                tables[block][name] = Offer(name, job.demand, PriceFunction(), tuple(choices))
        return tables[block]

    def listed_mixes(self, block: Block) -> ListedMixes | None:
        """Return the mixes of a block that may be best; None if they are too many."""
        tables: dict[Block, ListedMixes | None] = self.__dict__.setdefault("_listed", {})
        if block not in tables:
            offers = tuple(self.unpaid_offers(block).values())
            most = _LISTED // len(self.blocks)
            tables[block] = ListedMixes.of(offers, self.max_jobs, most)
        return tables[block]

    def unshared(self) -> Problem:
        """Return the problem of CMS in which a block serves one job, as well as it can.

        Every schedule of it is one of this problem, with mixes of one job. Its lower bounds hold
        for this problem if ``max_jobs`` is 1.
        """
        return self._unshared

    @cached_property
    def _unshared(self) -> Problem:
        rates, nothing = [self.greatest_rates(block) for block in self.blocks], Fraction(0)
        rows = Rows.from_fractions(
            ((job.demand, [own.get(job.name, nothing) for own in rates]) for job in self.jobs),
            len(self.blocks),
            self.job_names,
        )
        machines = Problem.from_arrays(
            demands=[],
            supply=np.zeros((0, len(self.blocks)), dtype=np.int64),
            configurations=self.configurations,
            blocks=self.blocks,
            machine_types=self.machine_types,
            group_limits=self.group_limits,
        )
        return machines.replace(rows=rows, job_names=self.job_names)

    def one_job_a_block(self) -> Problem:
        """Return :meth:`unshared` if ``max_jobs`` is 1; else raise InvalidCertificate."""
        return self.unshared() if self.max_jobs == 1 else super().one_job_a_block()

    def serving_blocks(self, stopped: Callable[[], bool] = never) -> NDArray[np.bool_]:
        """Return which blocks serve some job that has a demand."""
        return self.unshared().serving_blocks(stopped)

    def useful_blocks(self) -> tuple[int, ...]:
        """Return how many blocks of each type all jobs could need, without sharing."""
        return self.unshared().useful_blocks()

    def compute_sha256(self) -> str:
        """Compute ``sha256`` from the data as they are now; see ``docs/reference/files.md``."""
        found = hashlib.sha256()
        title = "cms-time-shared-problem-1"
        more = {"rule": self.rule.value, "max_jobs": self.max_jobs}
        for line in hashed_machines(title, self, **more):
            found.update(line)
        for job in self.jobs:
            points = {
                block: [[str(point.amount), str(point.length)] for point in listed]
                for block, listed in job.points.items()
            }
            numbers = {"demand": str(job.demand), "limit": str(job.limit), "points": points}
            text = json.dumps(numbers, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
            found.update(f"{text}\n".encode())
        return found.hexdigest()


def measured(job: TimeSharedJob, block: Block) -> str:
    """Word which amounts of a job were measured on a block, for an error."""
    amounts = [shown(point.amount) for point in job.points.get(block, ())]
    return f"measured there: {', '.join(amounts) or 'none'}"


def _rule(rule: DutyCycleRule | str) -> DutyCycleRule:
    try:
        return DutyCycleRule(rule)
    except ValueError:
        known = " or ".join(repr(known.value) for known in DutyCycleRule)
        raise InvalidProblem(f"rule is {rule!r}; expected {known}") from None
