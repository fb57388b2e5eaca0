"""What a general solver says about a program: claims, to be checked before they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bench.task import Method

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .program import Program


@dataclass(frozen=True, eq=False, slots=True)
class PeerAnswer:
    """A solver's claims, in steps of cost: "optimal", "feasible", "infeasible" or "unknown"."""

    status: str
    values: NDArray[Any] | None = None
    objective: float | None = None
    bound: float | None = None


class Peer(Method, Protocol):
    """A general solver with the settings that suit these programs best."""

    @property
    def integer(self) -> bool:
        """Whether it solves the integer program, not the linear relaxation alone."""
        ...

    @property
    def program(self) -> type[Program]:
        """What it is given of a problem."""
        ...

    def load(self) -> None:
        """Import what it needs, so that it is not measured; ImportError if it is missing."""
        ...

    def prepare(self, program: Program) -> Any:
        """Turn the program into the solver's own model."""
        ...

    def solve(self, model: Any, limit: float, seed: int) -> PeerAnswer:
        """Solve a model that ``prepare`` made, within a limit in seconds."""
        ...
