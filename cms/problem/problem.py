"""The problem: configurations of machines, jobs with demands, and what blocks give to jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ..errors import InvalidProblem
from ..values.arrays import number_array
from ..values.frozen import FrozenMap
from ..values.names import NumberedNames, checked_names
from ..values.numbers import common_step
from .checking import (
    blocks_of,
    checked_configurations,
    each_of,
    evaluated,
    from_counts,
    refuse_unknown_blocks,
)
from .digest import digest
from .parts import (
    AnyConfiguration,
    Block,
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from .rows import Rows
from .usable import usable_types

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")


class Problem:
    """A problem of Configurable Machine Scheduling (CMS); immutable, hashable, picklable.

    Every machine takes one configuration, which cuts it into blocks; every block serves one job and
    satisfies an amount of its demand that depends on job and block; all demands are to be met at
    the least cost of machines.

    Parameters
    ----------
    configurations : Configuration, SizeBoundedConfigurations or a sequence of them
    jobs : sequence of Job
    machine_types : sequence of MachineType, optional
        Without it there is a single type of cost 1 and no limit, called ``"machine"``.

    Raises
    ------
    InvalidProblem
        Naming the job, block, configuration or machine type at fault.

    See Also
    --------
    Problem.from_arrays : for many jobs, from numpy arrays.

    References
    ----------
    Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines,
    APPROX/RANDOM 2024, LIPIcs 317, 22:1-22:20, doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22.

    Examples
    --------
    >>> problem = Problem(
    ...     configurations=[Configuration({"7g": 1}), Configuration({"4g": 1, "3g": 1})],
    ...     jobs=[Job("bert", demand=1200, demand_function={"3g": "310.5", "4g": 420, "7g": 800})],
    ... )
    >>> problem.blocks
    ('7g', '3g', '4g')
    >>> problem.rows.row(0)
    Row(demand=2400, supply=(1600, 621, 840), denominator=2)
    """

    __slots__ = ("_cache", "blocks", "configurations", "job_names", "machine_types", "rows")
    blocks: tuple[Block, ...]
    configurations: tuple[AnyConfiguration, ...]
    machine_types: tuple[MachineType, ...]
    job_names: Sequence[str]
    rows: Rows
    _cache: dict[str, Any]

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
        self._fill(blocks, shapes, types, names, rows)

    def _fill(
        self,
        blocks: tuple[Block, ...],
        configurations: tuple[AnyConfiguration, ...],
        machine_types: tuple[MachineType, ...],
        job_names: Sequence[str],
        rows: Rows,
    ) -> None:
        put = object.__setattr__
        put(self, "blocks", blocks)
        put(self, "configurations", configurations)
        put(self, "machine_types", machine_types)
        put(self, "job_names", job_names)
        put(self, "rows", rows)
        put(self, "_cache", {})

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

        Raises
        ------
        InvalidProblem
            Naming the job, block or configuration at fault, or the shapes that do not match.

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
        if demands.ndim != 1:
            raise InvalidProblem(f"demands has shape {demands.shape}; expected (n,)")
        if supply.ndim != 2:
            raise InvalidProblem(f"supply has shape {supply.shape}; expected (n, k)")
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
        problem = cls.__new__(cls)
        rows = Rows.from_arrays(demands, supply, names, blocks)
        problem._fill(blocks, shapes, types, names, rows)
        return problem

    @classmethod
    def _rebuild(
        cls,
        blocks: tuple[Block, ...],
        configurations: tuple[AnyConfiguration, ...],
        machine_types: tuple[MachineType, ...],
        job_names: Sequence[str],
        rows: Rows,
    ) -> Problem:
        """Put parts together that are known to be valid."""
        problem = cls.__new__(cls)
        problem._fill(blocks, configurations, machine_types, job_names, rows)
        return problem

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Problem is immutable: {name!r} cannot be set; use replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Problem is immutable: {name!r} cannot be deleted")

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
        """Return a problem with some parts exchanged; blocks keep their order.

        Examples
        --------
        >>> problem = Problem(configurations=Configuration({"a": 1}))
        >>> problem.replace(machine_types=[MachineType("machine", limit=3)]).machine_types[0].limit
        3
        """
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
    def n_jobs(self) -> int:
        """Number of jobs."""
        return len(self.rows)

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs; each object is made when asked for."""
        return _Jobs(self)

    @property
    def block_index(self) -> Mapping[Block, int]:
        """The column of each block in ``rows``."""
        return self._cached(
            "block_index", lambda: FrozenMap({b: i for i, b in enumerate(self.blocks)})
        )

    def job_index(self, name: str) -> int:
        """Return the row of a job; KeyError if there is none of this name."""
        if isinstance(self.job_names, NumberedNames):
            try:
                return self.job_names.index(name)
            except ValueError:
                raise KeyError(name) from None
        index: dict[str, int] = self._cached(
            "job_index", lambda: {job: j for j, job in enumerate(self.job_names)}
        )
        return index[name]

    @property
    def machine_index(self) -> Mapping[str | None, int]:
        """The position of each machine type; None, for who does not say, means the only one."""
        return self._cached("machine_index", self._machine_index)

    def _machine_index(self) -> dict[str | None, int]:
        names = [machine.name for machine in self.machine_types]
        return {None: 0, names[0]: 0} if len(names) == 1 else {n: m for m, n in enumerate(names)}

    def machine_type(self, name: str | None) -> MachineType:
        """Return a machine type by name, None for the only one; KeyError if there is none such.

        Examples
        --------
        >>> problem = Problem(configurations=Configuration({"a": 1}))
        >>> problem.machine_type(None) is problem.machine_type("machine")
        True
        """
        return self.machine_types[self.machine_index[name]]

    def own(self, configuration: Configuration) -> Configuration:
        """Return a configuration as the problem has it: on the only type if it does not say which.

        Examples
        --------
        >>> Problem(configurations=Configuration({"a": 1})).own(Configuration({"a": 1}))
        Configuration(a on machine)
        """
        if configuration.machine is not None or len(self.machine_types) > 1:
            return configuration
        return Configuration(configuration.blocks, self.machine_types[0].name)

    @property
    def listed_configurations(self) -> tuple[Configuration, ...]:
        """The configurations given one by one."""
        return self._cached(
            "listed", lambda: tuple(c for c in self.configurations if isinstance(c, Configuration))
        )

    @property
    def size_bounded_configurations(self) -> tuple[SizeBoundedConfigurations, ...]:
        """The sets of configurations given by a capacity."""
        return self._cached(
            "size_bounded",
            lambda: tuple(
                c for c in self.configurations if isinstance(c, SizeBoundedConfigurations)
            ),
        )

    def sets_with(self, configuration: Configuration) -> Iterator[SizeBoundedConfigurations]:
        """Iterate over the size-bounded sets that a configuration belongs to.

        Examples
        --------
        >>> problem = Problem(configurations=SizeBoundedConfigurations({"a": 2}, capacity=5))
        >>> [len(list(problem.sets_with(Configuration({"a": n})))) for n in (2, 3)]
        [1, 0]
        """
        own = self.own(configuration)
        for bounded in self.size_bounded_configurations:
            if bounded.machine == own.machine and bounded.allows(own.blocks):
                yield bounded

    @property
    def cost_step(self) -> Fraction:
        """The largest number of which every usable machine type's cost is a whole multiple.

        Every optimum is a multiple of it. It is 0 if nothing costs anything; where no type is
        usable (:func:`cms.problem.usable.usable_types`), all of them count.
        """
        return self._cached(
            "cost_step",
            lambda: common_step(m.cost for m in usable_types(self) or self.machine_types),
        )

    @property
    def sha256(self) -> str:
        """SHA-256 of names and canonical reduced rationals; the same for every equal problem."""
        return self._cached("sha256", self.compute_sha256)

    def compute_sha256(self) -> str:
        """Compute ``sha256`` from the data as they are now; ``docs/files.md`` defines the bytes."""
        return digest(self)

    def _cached(self, key: str, make: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = make()
        return cast("T", self._cache[key])

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return self is other or self.sha256 == other.sha256

    def __repr__(self) -> str:
        return (
            f"Problem({self.n_jobs} jobs, {len(self.blocks)} blocks, "
            f"{len(self.configurations)} configurations, {len(self.machine_types)} machine types)"
        )


class _Jobs(Sequence[Job]):
    """Jobs as objects, made on demand from the rows."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __len__(self) -> int:
        return self._problem.n_jobs

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | Sequence[Job]:
        if isinstance(index, slice):
            return [self[j] for j in range(*index.indices(len(self)))]
        j = range(len(self))[index]
        problem = self._problem
        row = problem.rows.row(j)
        table = {
            block: Fraction(f, row.denominator)
            for block, f in zip(problem.blocks, row.supply, strict=True)
            if f
        }
        name = problem.job_names[j]
        return Job(name, Fraction(row.demand, row.denominator), DemandFunction(table, name))

    def __repr__(self) -> str:
        return f"<{len(self)} jobs>"
