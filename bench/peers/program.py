"""An integer program of a problem, as arrays that every general solver can read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from algorithms.prices.limits import limits_of
from cms.errors import UnsupportedProblem
from cms.presolver.presolve import PresolvedProblem, presolve
from cms.schedule.schedule import Schedule
from cms.values.numbers import common_step

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

#: Entries of a matrix: rows, columns, values.
Entries: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Program(ABC):
    """Minimise ``costs x``, with ``rows_low <= matrix [x, y] <= rows_high``, all integers >= 0.

    The c variables x say what machines there are, in the way of the program; the e variables y give
    a block to a job each (``blocks``, ``jobs``). Rows are those of blocks, of jobs, of machine
    types with a limit, and of x alone. Costs are whole steps; ``highs`` no variable needs to
    exceed, which only CP-SAT is told.

    Every solver is given its best: superfluous jobs, blocks and configurations are left out, supply
    is cut at the demand, and equal scales are taken out of the jobs' rows. All coefficients are
    integers, so that a solver's tolerance of less than 1 cannot mistake a job that is not served
    for one that is.
    """

    costs: NDArray[np.int64]
    matrix: Any
    rows_low: NDArray[np.float64]
    rows_high: NDArray[np.float64]
    highs: NDArray[np.float64]
    jobs: NDArray[np.int64]
    blocks: NDArray[np.int64]
    step: Fraction
    reduction: PresolvedProblem

    @classmethod
    @abstractmethod
    def of(cls, problem: Problem) -> Self:
        """Build the program of a problem; UnsupportedProblem if it is none for this program."""

    @abstractmethod
    def machines(self, whole: NDArray[np.int64]) -> dict[Configuration, int]:
        """Return the machines that whole numbers for x stand for."""

    def schedule(self, values: NDArray[Any]) -> Schedule:
        """Build the schedule of the original problem that a solver's values, rounded, stand for."""
        whole = np.rint(values).astype(np.int64)
        c = len(whole) - len(self.jobs)
        given = np.flatnonzero(whole[c:])
        triple = self.jobs[given], self.blocks[given], whole[c:][given]
        machines = self.machines(whole[:c])
        schedule = Schedule.from_counts(self.reduction.problem, machines, triple)
        return self.reduction.restore(schedule)


class Jobs(NamedTuple):
    """What jobs can use of the blocks that machines have: the rows of a program that are theirs.

    Each pair of a job and a block that gives it something; ``enough`` blocks meet the demand alone.
    """

    reduction: PresolvedProblem
    demands: NDArray[np.int64]
    jobs: NDArray[np.int64]
    blocks: NDArray[np.int64]
    supply: NDArray[np.int64]
    enough: NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem) -> Jobs:
        """Reduce a problem and take equal scales out of its rows."""
        reduction = presolve(problem)
        small = reduction.problem
        if small.rows.wide:
            name = small.job_names[min(small.rows.wide)]
            raise UnsupportedProblem(
                f"the numbers of job {name!r} need more than 63 bits, or it has replicas or equal "
                "routing; this program cannot take it"
            )
        if not small.n_jobs or not small.configurations:
            raise UnsupportedProblem("there are no jobs, or no machine for them: nothing to decide")
        demands, supplies = small.rows.demands, small.rows.supplies
        scale = np.maximum(np.gcd(np.gcd.reduce(supplies, axis=1, initial=0), demands), 1)
        demands, supplies = demands // scale, supplies // scale[:, None]
        jobs, blocks = np.nonzero(supplies)
        supply = supplies[jobs, blocks]
        return cls(reduction, demands, jobs, blocks, supply, -(-demands[jobs] // supply))

    @property
    def useful(self) -> NDArray[np.float64]:
        """How many blocks of each type all jobs together can use: shape (k,)."""
        k = len(self.reduction.problem.blocks)
        return np.bincount(self.blocks, weights=self.enough, minlength=k).astype(np.float64)

    def program(
        self,
        machines: list[str | None],
        has: Entries,
        highs: NDArray[np.float64],
        own: Entries | None = None,
        own_rows: int = 0,
    ) -> dict[str, Any]:
        """Put a program together, but for what says which machines x stands for.

        ``machines`` has the machine type of each variable x, None if it is no machine; ``has`` the
        blocks of each; ``own`` further rows of x alone that are at least 0.
        """
        from scipy import sparse

        small = self.reduction.problem
        n, k, c, e = small.n_jobs, len(small.blocks), len(machines), len(self.jobs)
        y = c + np.arange(e)
        limits, place = limits_of(small), small.machine_index
        numbers = [place.get(m or "", -1) for m in machines]
        table = [[limit.weights.get(m, 0) for m in numbers] for limit in limits]
        counted = np.array(table, dtype=np.float64).reshape(len(limits), c)
        limit_of, limited = np.nonzero(counted)
        entries = [
            has,
            (self.blocks, y, np.full(e, -1)),
            (k + self.jobs, y, self.supply),
            (k + n + limit_of, limited, counted[limit_of, limited]),
        ]
        if own is not None:
            entries.append((k + n + len(limits) + own[0], own[1], own[2]))
        rows, columns, values = (np.concatenate([part[at] for part in entries]) for at in range(3))
        cost_of = {machine.name: machine.cost for machine in small.machine_types}
        different = {name: cost_of[name] for name in machines if name is not None}
        step = common_step([*different.values()]) or Fraction(1)
        steps: dict[str | None, int] = {name: int(cost / step) for name, cost in different.items()}
        costs = [steps.get(name, 0) for name in machines]
        total = k + n + len(limits) + own_rows
        infinite, nothing = np.full(k + n, np.inf), np.zeros(own_rows)
        return {
            "costs": np.concatenate([np.array(costs, dtype=np.int64), np.zeros(e, np.int64)]),
            "matrix": sparse.csr_array(
                (values.astype(np.float64), (rows, columns)), shape=(total, c + e)
            ),
            "rows_low": np.concatenate(
                [
                    np.zeros(k),
                    self.demands.astype(np.float64),
                    np.full(len(limits), -np.inf),
                    nothing,
                ]
            ),
            "rows_high": np.concatenate(
                [
                    infinite,
                    np.array([limit.at_most for limit in limits], np.float64),
                    nothing + np.inf,
                ]
            ),
            "highs": np.concatenate([highs, self.enough.astype(np.float64)]),
            "jobs": self.jobs,
            "blocks": self.blocks,
            "step": step,
            "reduction": self.reduction,
        }
