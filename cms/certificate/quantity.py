"""The integers a certificate may branch on; each is a whole number in every schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..errors import InvalidCertificate
from ..problem.parts import Block, Configuration
from ..values.frozen import FrozenMap
from ..values.names import checked_name, checked_table, nearest
from ..values.numbers import whole

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem


def refuse_unknown(
    names: Iterable[str], known: Collection[str], what: str, lead: str = "a branch on"
) -> None:
    """Raise InvalidCertificate if one of the names is not among those the problem has."""
    for name in names:
        if name not in known:
            raise InvalidCertificate(
                f"{lead} the {what} {name!r}, which the problem does not have"
                + nearest(name, known)
            )


@dataclass(frozen=True, slots=True)
class _Counted:
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        # Plain texts and no subclasses: a certificate must mean the same whenever it is asked.
        for part in fields(self):
            value = getattr(self, part.name)
            if part.type != "Configuration":
                name = checked_name(value, part.name, InvalidCertificate)
                object.__setattr__(self, part.name, name)
            elif type(value) is not Configuration:
                raise InvalidCertificate(
                    f"a branch on machines of {value!r}; expected a Configuration"
                )

    def to_json(self) -> dict[str, Any]:
        """Return what the branch is on as plain JSON values."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        if len(parts) > 1:
            return {self.kind: parts}
        (value,) = parts.values()
        if isinstance(value, Configuration):
            return {self.kind: {"machine": value.machine, "blocks": dict(value.blocks)}}
        return {self.kind: value}


@dataclass(frozen=True, slots=True, init=False)
class MachinesOfType:
    """How many machines of one type there are, or of several types, each with its weight.

    Parameters
    ----------
    machine : str or Mapping[str, int]
        A type's name; or how many times a machine of each type counts, at least once. Types left
        out do not count.

    Attributes
    ----------
    weights : FrozenMap
        How many times a machine of each type counts.

    Examples
    --------
    >>> MachinesOfType("a100") == MachinesOfType({"a100": 1})
    True
    >>> MachinesOfType({"h100": 3, "a100": 2}).to_json()
    {'machines_of_type': {'a100': 2, 'h100': 3}}
    """

    weights: FrozenMap[str, int]

    def __init__(self, machine: str | Mapping[str, int]) -> None:
        given = machine if isinstance(machine, Mapping) else {machine: 1}
        table = checked_table(given, "a branch", "machine type", InvalidCertificate)
        weights = {
            name: whole(n, f"weight of machine type {name!r}", least=1, error=InvalidCertificate)
            for name, n in table.items()
        }
        if not weights:
            raise InvalidCertificate("a branch on machines of no type; expected one at least")
        object.__setattr__(self, "weights", FrozenMap(weights))

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such machine type."""
        refuse_unknown(self.weights, [m.name for m in problem.machine_types], "machine type")

    def to_json(self) -> dict[str, Any]:
        """Return ``{"machines_of_type": name}``, or a table of how often each type counts."""
        if [*self.weights.values()] == [1]:
            return {"machines_of_type": next(iter(self.weights))}
        return {"machines_of_type": dict(self.weights)}


@dataclass(frozen=True, slots=True)
class MachinesOfConfiguration(_Counted):
    """How many machines take one listed configuration."""

    kind = "machines_of"
    configuration: Configuration

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if it is not listed, or lies in a size-bounded set as well."""
        shape = problem.own(self.configuration)
        if shape not in problem.listed_configurations:
            raise InvalidCertificate(
                f"a branch on {shape!r}, which is not a listed configuration of the problem"
            )
        if any(problem.sets_with(shape)):
            raise InvalidCertificate(
                f"a branch on {shape!r}, which also belongs to a size-bounded set: branch on "
                "its machine type or on blocks instead"
            )


@dataclass(frozen=True, slots=True)
class MachinesWithBlocks(_Counted):
    """How many machines of a type have at least a given number of blocks of each of some types.

    Parameters
    ----------
    content : Configuration
        The machine type, and the blocks; others may be there as well.

    Examples
    --------
    >>> MachinesWithBlocks(Configuration({"1g": 2}, "a100")).to_json()
    {'machines_with': {'machine': 'a100', 'blocks': {'1g': 2}}}
    """

    kind = "machines_with"
    content: Configuration

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such machine type or block."""
        content = problem.own(self.content)
        if content.machine is None:
            raise InvalidCertificate(
                f"a branch on machines with {content!r}, of no machine type; expected one of the "
                "problem's"
            )
        types = [m.name for m in problem.machine_types]
        refuse_unknown([content.machine], types, "machine type")
        refuse_unknown(content.blocks, problem.blocks, "block")


@dataclass(frozen=True, slots=True)
class BlocksOfType(_Counted):
    """How many blocks of one type all machines have, in use or idle."""

    kind = "blocks_of"
    block: Block

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such block."""
        refuse_unknown([self.block], problem.blocks, "block")


@dataclass(frozen=True, slots=True)
class BlocksOfJob(_Counted):
    """How many blocks of one type one job gets, by itself or in a mix.

    Examples
    --------
    >>> BlocksOfJob("half", "bert").to_json()
    {'blocks_of_job': {'block': 'half', 'job': 'bert'}}
    """

    kind = "blocks_of_job"
    block: Block
    job: str

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such block or job."""
        refuse_unknown([self.block], problem.blocks, "block")
        try:
            problem.job_index(self.job)
        except KeyError:
            raise InvalidCertificate(
                f"a branch on the job {self.job!r}, which the problem does not have"
            ) from None


Quantity: TypeAlias = (
    MachinesOfType | MachinesOfConfiguration | MachinesWithBlocks | BlocksOfType | BlocksOfJob
)
