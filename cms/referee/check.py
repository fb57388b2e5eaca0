"""Does a schedule serve a problem? One question for all kinds of problems."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from ..errors import InvalidOption
from ..problem.problem import Problem
from ..schedule.faults import Violation
from .kinds import AnyProblem, AnySchedule, Referee
from .machines import JobReferee


@singledispatch
def referee_of(problem: Any) -> Referee:
    """Return the referee of a problem.

    Raises
    ------
    InvalidOption
        If no kind of problem is registered for its type.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, Schedule
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("x", 3, {"b": 1})])
    >>> [str(fault) for fault in referee_of(problem).faults(Schedule())]
    ["job 'x' has 0 of its demand served, needs 3"]
    """
    raise InvalidOption(f"problem is {problem!r}; expected a cms.Problem")


referee_of.register(Problem, JobReferee)


def check(problem: AnyProblem, schedule: AnySchedule) -> tuple[Violation, ...]:
    """List everything that is wrong with a schedule; an empty tuple means it is valid.

    A schedule is valid if every group has a count of at least 1 and a configuration the problem
    allows, gives blocks (at least 1 an entry) of known types to known jobs without using more than
    the configuration has, keeps every machine type's limit, and meets every job's demand.

    Parameters
    ----------
    problem : Problem
        Or one of another kind; a schedule of another kind is valid if its referee says so.
    schedule : Schedule

    Returns
    -------
    tuple of Violation

    Notes
    -----
    Linear in jobs and entries of the schedule, independent of the number of machines. Integers
    only; where products could leave 62 bits they are Python integers.

    Examples
    --------
    >>> from cms import Configuration, Job, MachineGroup, Problem, Schedule
    >>> whole = Configuration({"7g": 1})
    >>> problem = Problem(configurations=whole, jobs=[Job("bert", 1200, {"7g": 800})])
    >>> short = Schedule([MachineGroup(whole, {("7g", "bert"): 1}, 1)])
    >>> for violation in check(problem, short):
    ...     print(violation)
    job 'bert' has 800 of its demand served, needs 1200
    """
    return tuple(referee_of(problem).faults(schedule))
