"""What every problem about configurable machines has, whatever their blocks give to whom.

Block prices, the machine half of a check and schedules in columns need no more than this, so they
serve every kind of problem whose machines are cut into blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import InvalidCertificate
from ..running.stopping import never
from ..values.frozen import FrozenMap, Immutable
from ..values.names import NumberedNames
from ..values.numbers import common_step
from ..values.views import Viewed
from .parts import AnyConfiguration, Block, Configuration, MachineType, SizeBoundedConfigurations
from .usable import usable_types

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class MachineProblem(Immutable, Viewed, ABC):
    """Machines with their configurations, and the names of jobs; immutable, hashable, picklable.

    A kind of problem derives from it and says what the jobs need: :class:`cms.Problem` is the one
    in which every block serves one job.

    Attributes
    ----------
    blocks : tuple of str
    configurations : tuple of Configuration and SizeBoundedConfigurations
    machine_types : tuple of MachineType
    job_names : sequence of str
    """

    __slots__ = ("__dict__", "blocks", "configurations", "job_names", "machine_types")
    blocks: tuple[Block, ...]
    configurations: tuple[AnyConfiguration, ...]
    machine_types: tuple[MachineType, ...]
    job_names: Sequence[str]

    def _fill_machines(self, *parts: Any) -> None:
        """Take blocks, configurations, machine types and the names of jobs, all checked."""
        names = ("blocks", "configurations", "machine_types", "job_names")
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(self, name, part)

    @abstractmethod
    def serving_blocks(self, stopped: Callable[[], bool] = never) -> NDArray[np.bool_]:
        """Return which blocks serve some job that has a demand, one entry a block."""

    @abstractmethod
    def useful_blocks(self) -> tuple[int, ...]:
        """Return how many blocks of each type all jobs could need: more of it never help."""

    @abstractmethod
    def compute_sha256(self) -> str:
        """Compute ``sha256`` from the data as they are now; see ``docs/reference/files.md``."""

    def one_job_a_block(self) -> Any:
        """Return the :class:`cms.Problem` whose bounds by block prices are this one's, too.

        It has the same machines, blocks and jobs. Where there is none, block prices alone prove
        nothing, and InvalidCertificate is raised.
        """
        raise InvalidCertificate(
            f"block prices alone prove nothing about a {type(self).__name__}, whose blocks may "
            "serve several jobs"
        )

    @property
    def n_jobs(self) -> int:
        """Number of jobs."""
        return len(self.job_names)

    @cached_property
    def block_index(self) -> Mapping[Block, int]:
        """The place of each block in ``blocks``."""
        return FrozenMap({block: i for i, block in enumerate(self.blocks)})

    @cached_property
    def _job_places(self) -> dict[str, int]:
        return {job: j for j, job in enumerate(self.job_names)}

    def job_index(self, name: str) -> int:
        """Return the place of a job; KeyError if there is none of this name."""
        if not isinstance(self.job_names, NumberedNames):
            return self._job_places[name]
        try:
            return self.job_names.index(name)
        except ValueError:
            raise KeyError(name) from None

    @cached_property
    def machine_index(self) -> Mapping[str | None, int]:
        """The position of each machine type; None means the only one."""
        only: dict[str | None, int] = {None: 0} if len(self.machine_types) == 1 else {}
        return only | {machine.name: at for at, machine in enumerate(self.machine_types)}

    def machine_type(self, name: str | None) -> MachineType:
        """Return a machine type by name, None for the only one; KeyError if there is none such."""
        return self.machine_types[self.machine_index[name]]

    def own(self, configuration: Configuration) -> Configuration:
        """Return a configuration as the problem has it: if it names no type, on the only one."""
        if configuration.machine is not None or len(self.machine_types) > 1:
            return configuration
        return Configuration(configuration.blocks, self.machine_types[0].name)

    @cached_property
    def listed_configurations(self) -> tuple[Configuration, ...]:
        """The configurations given one by one."""
        return tuple(c for c in self.configurations if isinstance(c, Configuration))

    @cached_property
    def size_bounded_configurations(self) -> tuple[SizeBoundedConfigurations, ...]:
        """The sets of configurations given by a capacity."""
        kind = SizeBoundedConfigurations
        return tuple(c for c in self.configurations if isinstance(c, kind))

    def sets_with(self, configuration: Configuration) -> Iterator[SizeBoundedConfigurations]:
        """Iterate over the size-bounded sets that a configuration belongs to."""
        own = self.own(configuration)
        for bounded in self.size_bounded_configurations:
            if bounded.machine == own.machine and bounded.allows(own.blocks):
                yield bounded

    @cached_property
    def cost_step(self) -> Fraction:
        """The largest number of which every usable machine type's cost is a whole multiple.

        Every optimum is a multiple of it. It is 0 if nothing costs anything; where no type is
        usable, all of them count.
        """
        return common_step(m.cost for m in self.usable_types() or self.machine_types)

    def usable_types(self) -> tuple[MachineType, ...]:
        """Return the machine types that a cheapest schedule can have machines of (theory 6.9)."""
        served = zip(self.blocks, self.serving_blocks(), strict=True)
        return usable_types(
            self.machine_types, self.configurations, [block for block, does in served if does]
        )

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of names and canonical reduced rationals; the same for every equal problem."""
        return self.compute_sha256()

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MachineProblem):
            return NotImplemented
        return self is other or self.sha256 == other.sha256

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_jobs} jobs, {len(self.blocks)} blocks, "
            f"{len(self.configurations)} configurations, {len(self.machine_types)} machine types)"
        )
