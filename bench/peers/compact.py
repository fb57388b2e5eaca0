"""The compact integer program (theory 1.2), as arrays that every general solver can read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from algorithms.tables.machines import listed
from cms.errors import UnsupportedProblem
from cms.reduction.reduction import Reduction, reduce
from cms.schedule.schedule import Schedule
from cms.values.numbers import common_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

#: Contents of machines of a size-bounded set beyond which the program is not built.
MOST_SHAPES = 100_000


@dataclass(frozen=True, eq=False, slots=True)
class CompactProgram:
    """Minimise ``costs x``, with ``rows_low <= matrix [x, y] <= rows_high``, all integers >= 0.

    Build with :meth:`of`.

    Attributes
    ----------
    costs : ndarray of int64, shape (c + e,)
        The machines' costs in whole steps; 0 for the blocks.
    matrix : scipy.sparse.csr_array of float64, shape (k + n + l, c + e)
        k rows of blocks, n rows of jobs, l rows of machine types with a limit.
    rows_low, rows_high : ndarray of float64, shape (k + n + l,)
        Infinite where a row has no such side.
    highs : ndarray of float64, shape (c + e,)
        Numbers that no variable needs to exceed; only CP-SAT is given them.
    jobs, blocks : ndarray of int64, shape (e,)
        The job and the block that each of the variables y is about.
    shapes : tuple of c Configurations
    step : Fraction
        The cost of one step.
    reduction : Reduction
        From the problem to the one the program is about.

    Notes
    -----
    Every solver is given its best: superfluous jobs, blocks and configurations are left out, supply
    is cut at the demand, equal scales are taken out of the jobs' rows, and of a size-bounded set
    only maximal contents are listed. All coefficients are integers, so that a solver's tolerance of
    less than 1 cannot mistake a job that is not served for one that is.
    """

    costs: NDArray[np.int64]
    matrix: Any
    rows_low: NDArray[np.float64]
    rows_high: NDArray[np.float64]
    highs: NDArray[np.float64]
    jobs: NDArray[np.int64]
    blocks: NDArray[np.int64]
    shapes: tuple[Configuration, ...]
    step: Fraction
    reduction: Reduction

    @classmethod
    def of(cls, problem: Problem) -> CompactProgram:
        """Build the program of a problem, in about a second for 10^5 jobs.

        Raises
        ------
        UnsupportedProblem
            If a job's numbers need more than 63 bits, a size-bounded set has more than 100,000
            maximal contents, or there is nothing to decide: no jobs, or no machine for them.

        Examples
        --------
        >>> from cms import Configuration, Job, Problem
        >>> problem = Problem(
        ...     configurations=[Configuration({"7g": 1}), Configuration({"1g": 7})],
        ...     jobs=[Job("bert", 1200, {"1g": 90, "7g": 800}), Job("vgg", 100, {"7g": 500})],
        ... )
        >>> program = CompactProgram.of(problem)
        >>> program.matrix.toarray().astype(int)
        array([[  1,   0,  -1,   0,  -1],
               [  0,   7,   0,  -1,   0],
               [  0,   0,  80,   9,   0],
               [  0,   0,   0,   0,   1]])
        >>> program.rows_low.astype(int), program.costs
        (array([  0,   0, 120,   1]), array([1, 1, 0, 0, 0]))
        """
        from scipy import sparse

        reduction = reduce(problem)
        small = reduction.problem
        if small.rows.wide:
            name = small.job_names[min(small.rows.wide)]
            raise UnsupportedProblem(
                f"the numbers of job {name!r} need more than 63 bits; a floating-point solver "
                "cannot take them"
            )
        shapes, left_out = listed(small, MOST_SHAPES)
        if left_out:
            raise UnsupportedProblem(
                f"a size-bounded set has more than {MOST_SHAPES} maximal contents; the compact "
                "program would have a variable for each"
            )
        if not small.n_jobs or not shapes:
            raise UnsupportedProblem("there are no jobs, or no machine for them: nothing to decide")
        demands, supplies = small.rows.demands, small.rows.supplies
        scale = np.maximum(np.gcd(np.gcd.reduce(supplies, axis=1, initial=0), demands), 1)
        demands, supplies = demands // scale, supplies // scale[:, None]
        n, k, c = small.n_jobs, len(small.blocks), len(shapes)
        counts = np.array(
            [[shape.blocks.get(block, 0) for block in small.blocks] for shape in shapes],
            dtype=np.int64,
        ).reshape(c, k)
        jobs, blocks = np.nonzero(supplies * (counts > 0).any(axis=0))
        e = len(jobs)
        supply = supplies[jobs, blocks]
        enough = -(-demands[jobs] // supply)
        totals = np.bincount(blocks, weights=enough, minlength=k)
        y = c + np.arange(e)
        limits = [machine for machine in small.machine_types if machine.limit is not None]
        of_type = np.array(
            [[shape.machine == machine.name for shape in shapes] for machine in limits], dtype=bool
        ).reshape(len(limits), c)
        machine_of, block_of = np.nonzero(counts)
        limit_of, limited = np.nonzero(of_type)
        entries = (
            (block_of, machine_of, counts[machine_of, block_of]),
            (blocks, y, np.full(e, -1)),
            (k + jobs, y, supply),
            (k + n + limit_of, limited, np.ones(len(limited))),
        )
        rows, columns, values = (np.concatenate([part[at] for part in entries]) for at in range(3))
        total = k + n + len(limits)
        costs = [small.machine_type(shape.machine).cost for shape in shapes]
        step = common_step(costs) or Fraction(1)
        steps = [int(cost / step) for cost in costs]
        infinite = np.full(k + n, np.inf)
        return cls(
            costs=np.concatenate([np.array(steps, dtype=np.int64), np.zeros(e, np.int64)]),
            matrix=sparse.csr_array(
                (values.astype(np.float64), (rows, columns)), shape=(total, c + e)
            ),
            rows_low=np.concatenate(
                [np.zeros(k), demands.astype(np.float64), np.full(len(limits), -np.inf)]
            ),
            rows_high=np.concatenate([infinite, np.array([m.limit for m in limits], np.float64)]),
            highs=np.concatenate([_most_machines(counts, totals), enough.astype(np.float64)]),
            jobs=jobs,
            blocks=blocks,
            shapes=shapes,
            step=step,
            reduction=reduction,
        )

    def schedule(self, values: NDArray[Any]) -> Schedule:
        """Build the schedule of the original problem that a solver's values stand for.

        Parameters
        ----------
        values : ndarray, shape (c + e,)
            Rounded to the nearest whole numbers.

        Raises
        ------
        InvalidSchedule
            If more blocks are given to jobs than the machines have.
        """
        whole = np.rint(values).astype(np.int64)
        c = len(self.shapes)
        machines = {
            shape: int(count) for shape, count in zip(self.shapes, whole[:c], strict=True) if count
        }
        given = np.flatnonzero(whole[c:])
        triple = self.jobs[given], self.blocks[given], whole[c:][given]
        schedule = Schedule.from_counts(self.reduction.problem, machines, triple)
        return self.reduction.restore(schedule)


def _most_machines(counts: NDArray[Any], totals: NDArray[Any]) -> NDArray[np.float64]:
    """Bound the machines of each configuration: one more would leave all its blocks idle."""
    held = np.where(counts > 0, counts, 1)
    needed = np.where(counts > 0, np.ceil(totals / held), 0.0)
    most: NDArray[np.float64] = needed.max(axis=1, initial=0.0)
    return most
