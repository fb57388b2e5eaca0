"""What a general solver says about a program: claims, to be checked before they count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from .compact import CompactProgram
from .program import Program

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, slots=True)
class PeerAnswer:
    """A solver's claims, in steps of cost: "optimal", "feasible", "infeasible" or "unknown"."""

    status: str
    values: NDArray[Any] | None = None
    objective: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Peer(ABC):
    """A general solver with the settings that suit these programs best, told by its summary."""

    name: str
    summary: str
    program: type[Program] = CompactProgram
    #: What has to be imported.
    module: ClassVar[str]
    #: Whether it solves the integer program, not the linear relaxation alone.
    integer: ClassVar[bool] = True

    def load(self) -> None:
        """Import what it needs, so that it is not measured; ImportError if it is missing."""
        import_module(self.module)

    @abstractmethod
    def prepare(self, program: Program) -> Any:
        """Turn the program into the solver's own model."""

    @abstractmethod
    def solve(self, model: Any, limit: float, seed: int) -> PeerAnswer:
        """Solve a model that ``prepare`` made, within a limit in seconds."""
