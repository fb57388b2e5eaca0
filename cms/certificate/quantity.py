"""The integers a certificate may branch on; each is a whole number in every schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InvalidCertificate, InvalidProblem
from ..problem.parts import Block, Configuration
from ..values.names import checked_name, nearest

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem


@dataclass(frozen=True, slots=True)
class MachinesOfType:
    """How many machines of one type there are."""

    machine: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "machine", _name(self.machine, "machine type"))

    def refuse_unknown(self, problem: MachineProblem) -> None:
        """Raise InvalidCertificate if the problem has no such machine type."""
        _known(self.machine, [m.name for m in problem.machine_types], "machine type")

    def to_json(self) -> dict[str, Any]:
        """Return ``{"machines_of_type": name}``."""
        return {"machines_of_type": self.machine}


@dataclass(frozen=True, slots=True)
class MachinesOf:
    """How many machines take one listed configuration."""

    configuration: Configuration

    def __post_init__(self) -> None:
        if type(self.configuration) is not Configuration:
            raise InvalidCertificate(
                f"a branch on machines of {self.configuration!r}; expected a Configuration"
            )

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


@dataclass(frozen=True, slots=True)
class BlocksOfJob:
    """How many blocks of one type one job gets."""

    block: Block
    job: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", _name(self.block, "block"))
        object.__setattr__(self, "job", _name(self.job, "job"))

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


Quantity: TypeAlias = MachinesOfType | MachinesOf | BlocksOf | BlocksOfJob


def _name(name: str, what: str) -> str:
    # A plain text: a certificate must mean the same whenever it is asked.
    try:
        return checked_name(name, what)
    except InvalidProblem as fault:
        raise InvalidCertificate(f"a branch on a bad name: {fault}") from None


def _known(name: str, names: Any, what: str) -> None:
    if name not in names:
        raise InvalidCertificate(
            f"a branch on the {what} {name!r}, which the problem does not have"
            + nearest(name, names)
        )
