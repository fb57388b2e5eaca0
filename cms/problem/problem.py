"""The problem: configurations of machines, jobs with demands, and what blocks give to jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from ..running.stopping import look, never
from ..values.arrays import number_array, roomy
from ..values.names import LazySequence, NumberedNames, checked_names
from .checking import (
    blocks_of,
    checked_configurations,
    each_of,
    evaluated,
    from_counts,
    refuse_unknown_blocks,
)
from .digest import digest, leaf_digests
from .machine_problem import MachineProblem
from .parts import AnyConfiguration, Block, DemandFunction, Job, MachineType
from .rows import Rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Rows looked at together: nearly always the first already tell that a block serves a job.
_ROWS_AT_ONCE = 2**16


class Problem(MachineProblem):
    """A problem of Configurable Machine Scheduling (CMS); immutable, hashable, picklable.

    Every machine takes one configuration, which cuts it into blocks; every block serves one job and
    satisfies an amount of its demand that depends on job and block; all demands are to be met at
    the least cost of machines. Of many jobs it is made by :meth:`from_arrays`.

    Parameters
    ----------
    configurations : Configuration, SizeBoundedConfigurations or a sequence of them
    jobs : sequence of Job
    machine_types : sequence of MachineType, optional
        Without it there is a single type of cost 1 and no limit, called ``"machine"``.

    References
    ----------
    Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines,
    APPROX/RANDOM 2024, LIPIcs 317, 22:1-22:20, doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22.

    Examples
    --------
    >>> from cms import Configuration
    >>> problem = Problem(
    ...     configurations=[Configuration({"7g": 1}), Configuration({"4g": 1, "3g": 1})],
    ...     jobs=[Job("bert", demand=1200, demand_function={"3g": "310.5", "4g": 420, "7g": 800})],
    ... )
    >>> problem.blocks
    ('7g', '3g', '4g')
    >>> problem.rows.row(0)
    Row(demand=2400, supply=(1600, 621, 840), denominator=2)
    """

    __slots__ = ("rows",)
    rows: Rows

    def __init__(
        self,
        *,
        configurations: AnyConfiguration | Iterable[AnyConfiguration],
        jobs: Iterable[Job] = (),
        machine_types: Iterable[MachineType] = (),
    ) -> None:
        types, shapes = checked_configurations(configurations, machine_types)
        blocks = blocks_of(shapes)
        jobs = each_of(jobs, Job, "jobs")
        names = checked_names((job.name for job in jobs), "job")
        rows = Rows.from_fractions(
            ((job.demand, evaluated(job, blocks)) for job in jobs), len(blocks), names
        )
        self._fill_machines(blocks, shapes, types, names)
        object.__setattr__(self, "rows", rows)

    @classmethod
    def from_arrays(
        cls,
        *,
        demands: ArrayLike,
        supply: ArrayLike,
        configurations: ArrayLike | AnyConfiguration | Iterable[AnyConfiguration],
        blocks: Sequence[Block] | None = None,
        job_names: Sequence[str] | None = None,
        configuration_machines: Sequence[str] | None = None,
        machine_types: Iterable[MachineType] | None = None,
    ) -> Problem:
        """Build a problem of up to millions of jobs from arrays, without an object a job.

        Parameters
        ----------
        demands : array_like, shape (n,)
            Ints, floats (meaning their shortest decimal) or exact numbers.
        supply : array_like, shape (n, k)
            What one block of type i gives job j.
        configurations : array_like of int, shape (c, k), or configurations as for ``Problem``
            Blocks of each type in each configuration.
        blocks : sequence of k names, optional
            ``b0, b1, ...`` by default.
        job_names : sequence of n names, optional
            ``j0, j1, ...`` by default, made lazily.
        configuration_machines : sequence of c names, optional
            The machine type of each row of an array of configurations.
        machine_types : sequence of MachineType, optional

        Examples
        --------
        >>> problem = Problem.from_arrays(
        ...     demands=[1.5, 2.0], supply=[[0.5, 1.0], [1.0, 0.0]], configurations=[[2, 0], [0, 1]]
        ... )
        >>> problem.jobs[0]
        Job(name='j0', demand=Fraction(3, 2), demand_function=DemandFunction({'b0': \
Fraction(1, 2), 'b1': Fraction(1, 1)}))
        """
        demands, supply = number_array(demands, "demands"), number_array(supply, "supply")
        if demands.ndim != 1 or supply.ndim != 2:
            raise InvalidProblem(
                f"demands and supply have shapes {demands.shape} and {supply.shape}; expected (n,) "
                "and (n, k)"
            )
        n, k = len(demands), supply.shape[1]
        blocks = checked_names(NumberedNames("b", k) if blocks is None else blocks, "block")
        if len(blocks) != k:
            raise InvalidProblem(f"{len(blocks)} blocks are named, supply has {k} columns")
        types, shapes = checked_configurations(
            from_counts(configurations, blocks, configuration_machines), machine_types or ()
        )
        refuse_unknown_blocks(shapes, blocks)
        names: Sequence[str] = NumberedNames("j", n)
        if job_names is not None:
            names = checked_names(job_names, "job")
            if len(names) != n:
                raise InvalidProblem(f"{len(names)} job names for {n} demands")
        rows = Rows.from_arrays(demands, supply, names, blocks)
        return cls._rebuild(blocks, shapes, types, names, rows)

    @classmethod
    def _rebuild(cls, *parts: Any) -> Problem:
        """Put parts together that are known to be valid: those of all machines, and rows."""
        *machines, rows = parts
        problem = cls.__new__(cls)
        problem._fill_machines(*machines)
        object.__setattr__(problem, "rows", rows)
        return problem

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.blocks, self.configurations, self.machine_types, self.job_names, self.rows)
        return Problem._rebuild, parts

    def replace(
        self,
        *,
        configurations: Iterable[AnyConfiguration] | None = None,
        machine_types: Iterable[MachineType] | None = None,
        rows: Rows | None = None,
        job_names: Sequence[str] | None = None,
    ) -> Problem:
        """Return a problem with some parts exchanged; blocks keep their order."""
        types, shapes = checked_configurations(
            self.configurations if configurations is None else configurations,
            self.machine_types if machine_types is None else machine_types,
        )
        refuse_unknown_blocks(shapes, self.blocks)
        new_rows = self.rows if rows is None else rows
        if not isinstance(new_rows, Rows):
            raise InvalidProblem(f"rows is {rows!r}; expected Rows")
        names = self.job_names if job_names is None else checked_names(job_names, "job")
        if len(names) != len(new_rows) or new_rows.n_blocks != len(self.blocks):
            raise InvalidProblem(
                f"{len(new_rows)} rows of {new_rows.n_blocks} blocks do not fit {len(names)} job "
                f"names and {len(self.blocks)} blocks"
            )
        return Problem._rebuild(self.blocks, shapes, types, names, new_rows)

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs; each object is made when asked for."""
        return _Jobs(self)

    def serving_blocks(self, stopped: Callable[[], bool] = never) -> NDArray[np.bool_]:
        """Return which blocks serve some job that has a demand, one entry a block."""
        found = np.zeros(len(self.blocks), dtype=np.bool_)
        for demands, supplies in self.rows.tables(_ROWS_AT_ONCE):
            if found.all():
                break
            look(stopped)
            found |= ((supplies > 0) & (demands > 0)[:, None]).any(axis=0)
        return found

    @property
    def wants_anything(self) -> bool:
        """Whether some job has a demand."""
        return bool(self.rows.wants.any())

    def all_servable(self, blocks: Sequence[int]) -> bool:
        """Whether every job wants nothing, or gets something from one of these blocks."""
        return bool(self.rows.servable(blocks).all())

    def useful_blocks(self) -> tuple[int, ...]:
        """Return how many blocks of each type all jobs could need: more of it never help."""
        return self._useful_blocks

    @cached_property
    def _useful_blocks(self) -> tuple[int, ...]:
        totals = [0] * len(self.blocks)
        for demands, supplies in self.rows.tables(_ROWS_AT_ONCE):
            needed = np.where(supplies > 0, -(-demands[:, None] // np.maximum(supplies, 1)), 0)
            sums = roomy(needed, len(needed)).sum(axis=0)
            totals = [total + int(more) for total, more in zip(totals, sums, strict=True)]
        return tuple(totals)

    def one_job_a_block(self) -> Problem:
        """Return this problem: every block serves one job."""
        return self

    def compute_sha256(self) -> str:
        """Compute ``sha256`` from the data as they are now."""
        return digest(self, leaf_digests(self.job_names, self.rows, self.blocks))


class _Jobs(LazySequence[Job]):
    what = "jobs"

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __len__(self) -> int:
        return self._problem.n_jobs

    def _at(self, j: int) -> Job:
        problem = self._problem
        row = problem.rows.row(j)
        pairs = zip(problem.blocks, row.supply, strict=True)
        table = {block: Fraction(f, row.denominator) for block, f in pairs if f}
        name = problem.job_names[j]
        return Job(name, Fraction(row.demand, row.denominator), DemandFunction(table, name))
