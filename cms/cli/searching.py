"""What ``plan`` and ``solve`` share: the driver's options, its progress, and Ctrl-C."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cms.errors import CmsError

from .options import pairs, usage_error
from .options import time_limit as read_time_limit
from .session import Session

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.problem import Problem
    from cms.schedule import Schedule
    from cms.solution import Solution


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
    from cms.solve import solve

    from .progress import Progress

    with session.interrupts.abortable():
        start = None if how.start is None else _read_start(how.start)
    arguments: dict[str, Any] = {
        "method": how.method, "options": _values(how), "time_limit": how.time_limit,
        "gap": how.gap, "seed": how.seed, "threads": how.threads, "start": start,
        "cancel": session.interrupts.cancel,
    }  # fmt: skip
    if session.quiet:
        return solve(problem, **arguments)
    with Progress(sys.stderr, counted, prepare=lambda: import_module(report)) as progress:
        return solve(problem, **arguments, on_improvement=progress)


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
    from cms.files import read_solution

    return read_solution(path).schedule
