"""Blocks that may be shared in time by one job at most: plain problems in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cms.plugin.algorithm import Claim, Named
from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule

from .greedy_turn import WrappedBudget
from .run import claims

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from cms.mixes.problem import TimeSharedProblem
    from cms.plugin.algorithm import Budget


def claims_unshared(problem: TimeSharedProblem, budget: Budget) -> Iterator[Claim]:
    """Yield the claims of the plain problem, with a mix of one job in the place of each job.

    Certificates stay as they are: they are about blocks with one job.
    """
    best = _best_amounts(problem)
    for claim in claims(problem.unshared(), cast("Budget", _Plainly(budget))):
        if isinstance(claim, Schedule):
            yield shared(claim, best)
        elif isinstance(claim, Named) and isinstance(claim.claim, Schedule):
            yield Named(shared(claim.claim, best), claim.part)
        else:
            yield claim


def shared(schedule: Schedule, amounts: dict[tuple[str, str], Fraction]) -> Schedule:
    """Put mixes of one job in the place of jobs, with the amount of each on each block."""
    mixes = {key: Mix({key[1]: amount}) for key, amount in amounts.items()}
    return Schedule(
        MachineGroup(
            group.configuration,
            {(block, mixes[block, job]): count for (block, job), count in group.assignment.items()},
            group.count,
        )
        for group in schedule.groups
    )


def _best_amounts(problem: TimeSharedProblem) -> dict[tuple[str, str], Fraction]:
    """Return the amount with which each block gives a job most when it has it to itself."""
    found: dict[tuple[str, str], Fraction] = {}
    for block in problem.blocks:
        for job, points in problem.usable_points(block).items():
            found[block, job] = max(points, key=lambda p: (p.amount / p.length, -p.amount)).amount
    return found


class _Plainly(WrappedBudget):
    """A budget whose best schedule is one of the plain problem."""

    @property
    def best(self) -> Schedule | None:
        """The budget's, with the job itself in the place of its mix."""
        best = self._budget.best
        return None if best is None else plain(best)


def plain(schedule: Schedule) -> Schedule:
    """Put the job itself in the place of a mix of one."""
    groups = []
    for group in schedule.groups:
        counts: dict[tuple[str, str], int] = {}
        for (block, mix), count in group.assignment.items():
            (job,) = mix
            counts[block, job] = counts.get((block, job), 0) + count
        groups.append(MachineGroup(group.configuration, counts, group.count))
    return Schedule(groups)
