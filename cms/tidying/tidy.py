"""The tidier of the schedules that cost the same: a second stage after the proof."""

from __future__ import annotations

from dataclasses import replace

from ..errors import InvalidOption
from ..problem.machine_problem import MachineProblem
from ..problem.problem import Problem
from ..referee.check import check
from ..shards.problem import ShardedProblem
from ..solving.solution import Solution
from .evening import evened
from .layouts import fewer_layouts


def tidy(problem: MachineProblem, solution: Solution) -> Solution:
    """Prefer few different machines, then even head-room, among schedules of the same cost.

    Both stages are heuristics that end after a fixed effort, counted in steps, not seconds: some
    tenths of a second at most. Schedules of many thousand entries, or in shards, are returned as
    they are. :func:`cms.growth` says with a proof how much all demands can grow together.

    Parameters
    ----------
    problem : Problem, TimeSharedProblem or ShardedProblem
    solution : Solution
        Of the problem.

    Returns
    -------
    Solution
        The same but for its schedule: as many machines of each configuration in no more groups; the
        least share of a demand that is met no lower.

    Raises
    ------
    InvalidOption
        If the solution is of another problem.

    References
    ----------
    Fewest layouts are fewest patterns in cutting stock: McDiarmid, "Pattern minimisation in cutting
    stock problems", Discrete Applied Mathematics 98, 1999, shows how hard that is; to repeat a
    pattern as often as possible is the heuristic of Haessler, "Controlling cutting pattern changes
    in one-dimensional trim problems", Operations Research 23, 1975.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}),
    ...     jobs=[Job("x", 5, {"half": 1}), Job("y", 5, {"half": 1})],
    ... )
    >>> solution = solve(problem)
    >>> tidier = tidy(problem, solution)
    >>> len(solution.schedule.groups), len(tidier.schedule.groups), tidier.proof.value
    (3, 1, 'checked')
    """
    if solution.problem_sha256 != problem.sha256:
        raise InvalidOption("solution is of another problem; give the answer to this one")
    if solution.cost is None or isinstance(problem, ShardedProblem):
        return solution
    schedule = fewer_layouts(solution.schedule)
    if isinstance(problem, Problem):
        schedule = evened(problem, schedule)
    if schedule is solution.schedule:
        return solution
    if faults := check(problem, schedule):
        raise AssertionError(f"a checked schedule does not hold when it is tidied: {faults[0]}")
    if schedule.cost(problem) != solution.cost:
        raise AssertionError("a schedule costs something else when it is tidied")
    return replace(solution, schedule=schedule)
