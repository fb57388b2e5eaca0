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
from .parts import (
    AnyConfiguration,
    Block,
    Configuration,
    GroupLimit,
    MachineType,
    SizeBoundedConfigurations,
)
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
    group_limits : tuple of GroupLimit
    job_names : sequence of str
    """

    _MACHINES = "blocks", "configurations", "machine_types", "group_limits", "job_names"
    __slots__ = ("__dict__", *_MACHINES)
    blocks: tuple[Block, ...]
    configurations: tuple[AnyConfiguration, ...]
    machine_types: tuple[MachineType, ...]
    group_limits: tuple[GroupLimit, ...]
    job_names: Sequence[str]

    def _fill_machines(self, *parts: Any) -> None:
        """Take all that is said of machines, and the names of jobs, all checked."""
        for name, part in zip(self._MACHINES, parts, strict=True):
            object.__setattr__(self, name, part)

    @property
    def machine_parts(self) -> tuple[Any, ...]:
        """All that is said of machines, in the order in which a problem is put together."""
        return tuple(getattr(self, name) for name in self._MACHINES[:-1])

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

    @cached_property
    def limits(self) -> tuple[GroupLimit, ...]:
        """All limits: those of machine types, each the limit of a group of one, then of groups."""
        types = (machine for machine in self.machine_types if machine.limit is not None)
        own = (GroupLimit(each.name, {each.name: 1}, each.limit or 0) for each in types)
        return (*own, *self.group_limits)

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, Fraction]]:
        """What a machine of each type counts in each of the limits that count it, by name."""
        found: dict[str, dict[str, Fraction]] = {each.name: {} for each in self.machine_types}
        for limit in self.limits:
            for machine, weight in limit.weights.items():
                found[machine][limit.name] = weight
        return found

    def room_for(self, machine: str | None, there: Mapping[str, int]) -> int | None:
        """Return how many more machines of a type limits allow beside others; None: any number."""
        name, room = self.machine_type(machine).name, []
        for limit in self.limits:
            if name in limit.weights:
                used = sum(n * there.get(other, 0) for other, n in limit.weights.items())
                room.append((limit.at_most - used) // limit.weights[name])
        return max(0, min(room)) if room else None

    def limit_label(self, limit: GroupLimit) -> str:
        """Say what has a limit: a machine type, or a group."""
        what = "machine type" if limit.name in self.machine_index else "group"
        return f"{what} {limit.name!r}"

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
        large = {m for it in self.limits for m, n in it.weights.items() if n > it.at_most}
        return usable_types(
            [machine for machine in self.machine_types if machine.name not in large],
            self.weights,
            self.configurations,
            [block for block, does in served if does],
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
