"""``share``: one call from a problem of sharing to a checked plan and a checked upper bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...errors import InvalidOption
from ...plugin.registry import algorithm_of
from ...solving.driver import Arguments
from ...solving.solve import run_checked
from ...values.frozen import FrozenMap
from .problem import SharingProblem
from .solution import SharingIncumbent, SharingSolution, incumbent_of, solution_of

if TYPE_CHECKING:
    from ...plugin.algorithm import Algorithm
    from ...solving.driver import CancelEvent
    from ...solving.solution import Incumbent
    from .plan import SharingPlan

_NO_OPTIONS: Mapping[str, object] = FrozenMap()


def share(
    problem: SharingProblem,
    method: str | Algorithm = "muxflow",
    *,
    options: Mapping[str, object] = _NO_OPTIONS,
    time_limit: float | None = 60.0,
    gap: int = 0,
    seed: int = 0,
    threads: int | None = None,
    start: SharingPlan | None = None,
    cancel: CancelEvent | None = None,
    on_improvement: Callable[[SharingIncumbent], object] | None = None,
) -> SharingSolution:
    """Find who shares a GPU with whom, for the most value, and prove how much more is possible.

    The run is that of :func:`cms.solve`: whatever the method claims is checked exactly before it
    counts, and ``OPTIMAL`` is never its word.

    Parameters
    ----------
    problem : SharingProblem
    method : str or Algorithm, default "muxflow"
    options, time_limit, seed, threads, cancel
        As for :func:`cms.solve`.
    gap : int, default 0
        Stop when upper bound less value is at most this, in millionths.
    start : SharingPlan, optional
        A valid plan to improve on.
    on_improvement : callable, optional
        Called with each new :class:`SharingIncumbent` of the history.

    Examples
    --------
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> print("\\n".join(str(share(posed([6], [5, 9], [[800_000, 600_000]]))).splitlines()[:4]))
    status       optimal (checked proof)
    workloads    6
    value        4.6
    upper bound  4.6
    """
    if not isinstance(problem, SharingProblem):
        raise InvalidOption(f"problem is {problem!r}; expected a SharingProblem")
    algorithm, trusted = algorithm_of(method)
    report = None
    if on_improvement is not None:
        hear = on_improvement

        def report(line: Incumbent) -> object:
            return hear(incumbent_of(problem, line))

    arguments = Arguments(
        options=options, time_limit=time_limit, gap=gap, seed=seed, threads=threads, start=start,
        cancel=cancel, on_improvement=report,
    )  # fmt: skip
    return solution_of(problem, run_checked(algorithm, trusted, problem, arguments))
