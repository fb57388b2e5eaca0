"""What an algorithm is: a generator of claims, which the driver checks one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from ..certificate.certificate import Certificate
from ..errors import AlgorithmError
from ..problem.problem import Problem
from ..schedule.schedule import Schedule
from ..values.numbers import Number, exact, shown_object
from .guarantee import Guarantee

if TYPE_CHECKING:
    from ..shards.schedule import ShardedSchedule


@dataclass(frozen=True, slots=True)
class SolverBound:
    """A solver's word: no schedule costs less than this, or, for None, there is no schedule.

    Accepted from the algorithms of this distribution only; a third party proves its bounds with a
    :class:`cms.Certificate`.
    """

    value: Fraction | None
    solver: str

    def __init__(self, value: Number | None, solver: str) -> None:
        if value is not None:
            what = f"bound of the solver {solver!r}"
            value = exact(value, what, computed=True, error=ValueError)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "solver", solver)


@dataclass(frozen=True, slots=True)
class Named:
    """A claim and the part of the algorithm it comes from, for the history: at most 100 letters."""

    claim: Schedule | ShardedSchedule | Certificate | SolverBound
    part: str

    def __post_init__(self) -> None:
        part = self.part
        if type(part) is not str or not 0 < len(part) <= 100 or not part.isprintable():
            raise ValueError(f"part is {part!r}; expected 1 to 100 printable letters on one line")


#: What an algorithm yields.
Claim: TypeAlias = "Schedule | ShardedSchedule | Certificate | SolverBound | Named"


@dataclass(frozen=True, slots=True)
class Support:
    """Whether an algorithm can take a problem; a refusal without a reason is a ValueError."""

    ok: bool
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.ok and not self.reason:
            raise ValueError("Support(False) without a reason; say what stands in the way")

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class NoOptions:
    """The options of a method that has none; ``solve`` has the seed, the threads and the limits."""


class Budget(Protocol):
    """What a run may use, and what is known so far; the driver's side of the conversation.

    It may be read from any thread. Between two claims only ``stopped`` and the time change.
    """

    @property
    def seed(self) -> int:
        """The only source of randomness."""

    @property
    def threads(self) -> int:
        """How many threads the run may use."""

    @property
    def lower_bound(self) -> Fraction:
        """The checked lower bound, rounded up to the costs' common step."""

    @property
    def best(self) -> Schedule | None:
        """The cheapest checked schedule: the algorithm's own, or the one it was to start from."""

    @property
    def stopped(self) -> bool:
        """Whether to end now; a claim yielded within 0.4 seconds still counts."""

    def remaining(self) -> float:
        """Return the seconds left: infinity without a limit, 0 once stopped."""

    def on_stop(self, cancel: Callable[[], object]) -> AbstractContextManager[None]:
        """Have ``cancel`` called when the run is stopped while the block is being executed.

        It is called from another thread, again and again until the block is left, and must return
        at once. It stops native code, which sees no ``stopped``:

        * CP-SAT: ``solver.stop_search``, with ``catch_sigint_signal = False`` set, without which
          Ctrl-C aborts the process; look at ``stopped`` within the block before it is started;
        * MathOpt's GSCIP: a ``SolveInterrupter``'s ``interrupt``;
        * HiGHS cannot be stopped: run it in slices shorter than 0.4 seconds, the grace;
        * compiled loops: in chunks of at most 0.2 s.
        """


@runtime_checkable
class Algorithm(Protocol):
    """An algorithm for CMS problems, registered in the entry-point group ``cms.algorithms``.

    It takes a :class:`cms.Problem`, unless it has an attribute ``takes``: a tuple of the classes of
    problems it takes instead, or of their full names, as ``"package.module.Class"``.

    It must not change the problem, the schedule it starts from or its options; must draw randomness
    from ``budget.seed`` only; and must end soon after ``budget.stopped``: it runs in the caller's
    thread. A claim of it that does not hold is an :class:`cms.AlgorithmError`.
    """

    @property
    def name(self) -> str:
        """The name it is registered under."""

    @property
    def options_type(self) -> type[Any]:
        """A frozen dataclass with a default and a word of documentation for every option.

        Its ``__post_init__`` converts values; a ValueError says what is expected of bad ones.
        """

    def support(self, problem: Any, options: Any) -> Support:
        """Say, quickly, whether the algorithm can take this problem, and why not."""

    def guarantee(self, problem: Any, options: Any) -> Guarantee | None:
        """Return what is proved about every finished run on this problem; None if nothing is.

        Where no machine type has a limit, it promises a schedule as well.
        """

    def run(self, problem: Any, options: Any, budget: Budget) -> Iterator[Claim]:
        """Yield schedules, certificates and solver bounds, better and better ones.

        The driver ends the run when a checked bound meets a checked schedule.
        """


def kinds_taken(algorithm: Algorithm) -> tuple[type, ...]:
    """Return the classes of problems an algorithm takes: ``takes``, or else ``Problem`` alone."""
    kinds = _kinds(algorithm)
    try:
        return tuple(kind if isinstance(kind, type) else resolve_name(kind) for kind in kinds)
    except (ImportError, AttributeError, ValueError) as fault:
        raise AlgorithmError(algorithm.name, f"takes a class that is not there: {fault}") from fault


def is_taken(algorithm: Algorithm, problem: object) -> bool:
    """Whether a problem is of a class that an algorithm takes; imports none."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(problem).__mro__}
    return any(
        isinstance(problem, kind) if isinstance(kind, type) else kind in names
        for kind in _kinds(algorithm)
    )


def _kinds(algorithm: Algorithm) -> tuple[type | str, ...]:
    kinds = getattr(algorithm, "takes", (Problem,))
    if not (isinstance(kinds, tuple) and kinds and all(isinstance(k, type | str) for k in kinds)):
        raise AlgorithmError(
            algorithm.name,
            f"has takes = {shown_object(kinds)}; expected a tuple of classes of problems",
        )
    return kinds
