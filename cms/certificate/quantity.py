"""The integers a certificate may branch on; each is a whole number in every schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InvalidCertificate
from ..problem.parts import Block, Configuration
from ..values.frozen import FrozenMap
from ..values.names import checked_name, checked_table, nearest
from ..values.numbers import whole

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem


@dataclass(frozen=True, slots=True, init=False)
class MachinesOfType:
    """How many machines of one type there are, or of several types, each counted so many times.

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
        for name in self.weights:
            _known(name, [m.name for m in problem.machine_types], "machine type")

    def to_json(self) -> dict[str, Any]:
        """Return ``{"machines_of_type": name}``, or a table of how often each type counts."""
        if [*self.weights.values()] == [1]:
            return {"machines_of_type": next(iter(self.weights))}
        return {"machines_of_type": dict(self.weights)}


@dataclass(frozen=True, slots=True)
class MachinesOf:
    """How many machines take one listed configuration."""

    configuration: Configuration

    def __post_init__(self) -> None:
        _refuse_other(self.configuration)

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

    def to_json(self) -> dict[str, Any]:
        """Return ``{"machines_of": {"machine": name, "blocks": {block: count}}}``."""
        shape = self.configuration
        return {"machines_of": {"machine": shape.machine, "blocks": dict(shape.blocks)}}


@dataclass(frozen=True, slots=True)
class MachinesWith:
    """How many machines of a type have at least so many blocks of each of some types.

    Parameters
    ----------
    content : Configuration
        The machine type, and the blocks; others may be there as well.

    Examples
    --------
    >>> MachinesWith(Configuration({"1g": 2}, "a100")).to_json()
    {'machines_with': {'machine': 'a100', 'blocks': {'1g': 2}}}
    """

    content: Configuration

    def __post_init__(self) -> None:
        _refuse_other(self.content)

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such machine type or block."""
        content = problem.own(self.content)
        if content.machine is None:
            raise InvalidCertificate(
                f"a branch on machines with {content!r}, of no machine type; expected one of the "
                "problem's"
            )
        _known(content.machine, [m.name for m in problem.machine_types], "machine type")
        for block in content.blocks:
            _known(block, problem.blocks, "block")

    def to_json(self) -> dict[str, Any]:
        """Return ``{"machines_with": {"machine": name, "blocks": {block: count}}}``."""
        content = self.content
        return {"machines_with": {"machine": content.machine, "blocks": dict(content.blocks)}}


@dataclass(frozen=True, slots=True)
class BlocksOf:
    """How many blocks of one type all machines have, in use or idle."""

    block: Block

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", _name(self.block, "block"))

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such block."""
        _known(self.block, problem.blocks, "block")

    def to_json(self) -> dict[str, Any]:
        """Return ``{"blocks_of": name}``."""
        return {"blocks_of": self.block}


@dataclass(frozen=True, slots=True, init=False)
class BlocksOfJob:
    """How many blocks of one type one job gets, by itself or in a mix.

    Parameters
    ----------
    block, job : str

    Examples
    --------
    >>> BlocksOfJob("half", "bert").to_json()
    {'blocks_of_job': {'block': 'half', 'job': 'bert'}}
    """

    block: Block
    job: str

    def __init__(self, block: Block, job: str) -> None:
        object.__setattr__(self, "block", _name(block, "block"))
        object.__setattr__(self, "job", _name(job, "job"))

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such block or job."""
        _known(self.block, problem.blocks, "block")
        try:
            problem.job_index(self.job)
        except KeyError:
            raise InvalidCertificate(
                f"a branch on the job {self.job!r}, which the problem does not have"
            ) from None

    def to_json(self) -> dict[str, Any]:
        """Return ``{"blocks_of_job": {"block": name, "job": name}}``."""
        return {"blocks_of_job": {"block": self.block, "job": self.job}}


Quantity: TypeAlias = MachinesOfType | MachinesOf | MachinesWith | BlocksOf | BlocksOfJob


def _refuse_other(content: object) -> None:
    if type(content) is not Configuration:
        raise InvalidCertificate(f"a branch on machines of {content!r}; expected a Configuration")


def _name(name: str, what: str) -> str:
    # A plain text: a certificate must mean the same whenever it is asked.
    return checked_name(name, what, InvalidCertificate)


def _known(name: str, names: Any, what: str) -> None:
    if name not in names:
        raise InvalidCertificate(
            f"a branch on the {what} {name!r}, which the problem does not have"
            + nearest(name, names)
        )
