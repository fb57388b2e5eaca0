"""What ``plan`` and ``solve`` share: the driver's options, its progress, and Ctrl-C."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cms.errors import CmsError

from .documents import open_document
from .interrupt import Interrupted, Interrupts
from .options import pairs, usage_error
from .options import time_limit as read_time_limit
from .session import Session

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.problem import Problem
    from cms.schedule import Schedule
    from cms.solution import Incumbent, Solution

_LOOK_UP_SECONDS = 0.05
# The driver gives a method half a second to end; what takes longer has not begun to search.
_PATIENCE_SECONDS = 0.75


@dataclass(frozen=True, slots=True)
class Search:
    """The driver's options as the command line gives them.

    Parameters
    ----------
    method : str
    options : dict of str to str
        The algorithm's own.
    time_limit : float or None
        Seconds.
    gap : Fraction
        Absolute, in cost.
    seed : int
    threads : int or None
    start : Path or None
        A solution or plan file.
    """

    method: str
    options: dict[str, str]
    time_limit: float | None
    gap: Fraction
    seed: int
    threads: int | None
    start: Path | None

    @classmethod
    def read(
        cls,
        method: str,
        option: list[str] | None,
        time_limit: str,
        gap: str,
        seed: int,
        threads: int | None,
        start: Path | None,
    ) -> Search:
        """Turn texts into values.

        Raises
        ------
        UsageError
            If one of them is wrong.
        """
        from cms.numbers import exact

        try:
            absolute = exact(gap, "the gap")
        except CmsError as fault:
            raise usage_error(str(fault), "--gap") from None
        options = pairs(option, "--option", "epsilon=1/4")
        return cls(method, options, read_time_limit(time_limit), absolute, seed, threads, start)


def search(
    session: Session, problem: Problem, how: Search, *, counted: str, report: str
) -> Solution:
    """Solve a problem, with a log of a long run on stderr.

    Parameters
    ----------
    session : Session
    problem : Problem
    how : Search
    counted : str
        What the costs are ("GPUs"), for the log's head.
    report : str
        The module that will print the answer.
    """
    from .progress import Progress

    with session.interrupts.abortable():
        start = None if how.start is None else _read_start(how.start)
    arguments: dict[str, Any] = {
        "method": how.method, "options": _values(how), "time_limit": how.time_limit,
        "gap": how.gap, "seed": how.seed, "threads": how.threads, "start": start,
        "cancel": session.interrupts.cancel,
    }  # fmt: skip
    if session.quiet:
        return _Solving(problem, arguments, None).wait(session.interrupts)
    with Progress(sys.stderr, counted, prepare=lambda: import_module(report)) as progress:
        return _Solving(problem, arguments, progress).wait(session.interrupts)


class _Solving(threading.Thread):
    """A call of ``solve`` in a thread of its own, so that this one always hears Ctrl-C.

    The driver looks up between claims only. A method may think for long before its first claim, or
    even about whether it can take a problem at all; whoever presses Ctrl-C then has his answer:
    there is no schedule.

    Parameters
    ----------
    problem : Problem
    arguments : dict of str
        Further ones of ``solve``.
    log : callable or None
        Called with every improvement.
    """

    def __init__(
        self, problem: Problem, arguments: dict[str, Any], log: Callable[[Incumbent], None] | None
    ) -> None:
        super().__init__(name="cms-solve", daemon=True)
        self._problem, self._arguments, self._log = problem, arguments, log
        self._has_schedule = False
        self._solution: Solution | None = None
        self._fault: BaseException | None = None

    def run(self) -> None:
        """Solve, in the new thread."""
        from cms.solve import solve

        try:
            self._solution = solve(self._problem, **self._arguments, on_improvement=self._hear)
        except BaseException as fault:  # noqa: BLE001 - raised again in the main thread
            self._fault = fault

    def _hear(self, incumbent: Incumbent) -> None:
        self._has_schedule |= incumbent.cost is not None
        if self._log is not None:
            self._log(incumbent)

    def wait(self, interrupts: Interrupts) -> Solution:
        """Start, and return the solution.

        Raises
        ------
        Interrupted
            If Ctrl-C was pressed, no schedule is known and the driver does not come back.
        """
        self.start()
        while self.is_alive():
            self.join(_LOOK_UP_SECONDS)
            if interrupts.seconds_since_press > _PATIENCE_SECONDS and not self._has_schedule:
                raise Interrupted
        if self._fault is not None:
            raise self._fault
        assert self._solution is not None
        return self._solution


def _values(how: Search) -> dict[str, object]:
    """Turn the texts of ``--option`` into values of the kind that the defaults have.

    What is no value of that kind stays text, and what is no option stays too: the driver refuses
    both, in words that name the option.
    """
    if not how.options:
        return {}
    from cms.options import option_fields
    from cms.registry import load_algorithm

    defaults = option_fields(load_algorithm(how.method)[0])
    return {name: _value(text, defaults.get(name)) for name, text in how.options.items()}


def _value(text: str, default: object) -> object:
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError:
            return text
    return text


def _read_start(path: Path) -> Schedule:
    """Read the schedule of a solution file, or of the solution in a plan file."""
    from cms.files import solution_from_json

    kind, document = open_document(path)
    if kind == "cms-plan":
        document = document.at("solution")
    return solution_from_json(document).schedule
