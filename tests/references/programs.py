"""The programs of the theory in floats, solved by scipy's HiGHS: values to compare ours with.

They are set up from a problem's public face, one by one, and share nothing with the algorithms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from bench.peers import CompactProgram
from cms import Configuration, Problem, SizeBoundedConfigurations, check
from tests.oracle import Vector, given, limit_rows, machines, options

Floats = NDArray[np.float64]


def minimum(
    costs: Sequence[Any] | Floats, rows: ArrayLike, right: Sequence[Any] | Floats, **more: Any
) -> Any:
    """What scipy finds for ``costs x`` with ``rows x <= right``, at a vertex; None: no solution."""
    found = linprog(
        [float(cost) for cost in costs],
        A_ub=np.asarray(rows, dtype=np.float64).reshape(len(right), len(costs)),
        b_ub=[float(value) for value in right],
        method="highs-ds",
        **more,
    )
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    return found


class Arrays:
    """A problem as arrays: blocks of each configuration, supply and demand of each job."""

    def __init__(self, problem: Problem) -> None:
        blocks = problem.blocks
        shapes = [(s.machine, [s.blocks.get(b, 0) for b in blocks]) for s in contents(problem)]
        self.machines = [machine for machine, _ in shapes]
        self.held = np.array([counts for _, counts in shapes], dtype=float).T  # (k, c)
        self.cost = np.array([float(problem.machine_type(m).cost) for m in self.machines])
        types = [machine.name for machine in problem.machine_types]
        #: What a machine of each content counts in each limit, and the most.
        self.limits = [
            (np.array([float(row.weights[types.index(str(m))]) for m in self.machines]), row.most)
            for row in limit_rows(problem).values()
        ]
        scale = problem.rows.denominators[:, None]
        self.supply = problem.rows.supplies / scale  # (n, k)
        self.demand = problem.rows.demands / scale[:, 0]
        self.truncated = np.minimum(self.supply, self.demand[:, None])
        self.k, self.c, self.n = len(problem.blocks), len(shapes), problem.n_jobs


def contents(problem: Problem) -> Iterator[Configuration]:
    """The configurations, and the multisets of size-bounded sets that take no more block."""
    found = set(machines(problem))
    sets = {s.machine for s in problem.configurations if isinstance(s, SizeBoundedConfigurations)}
    for machine, held in sorted(found):
        name = problem.machine_types[machine].name
        more = (tuple(n + (i == at) for i, n in enumerate(held)) for at in range(len(held)))
        if any(held) and not (name in sets and any((machine, one) in found for one in more)):
            yield Configuration(dict(zip(problem.blocks, held, strict=True)), name)


def compact(a: Arrays, supply: Floats, whole: tuple[bool, bool]) -> float | None:
    """The program over x (machines) and y (blocks given), each whole or not; None: no solution."""
    taken = np.kron(np.ones(a.n), np.eye(a.k))
    serves = np.zeros((a.n, a.n * a.k))
    most = np.zeros((a.n, a.k))
    for j in range(a.n):
        serves[j, j * a.k : (j + 1) * a.k] = supply[j]
        useful = supply[j] > 0
        most[j, useful] = np.ceil(a.demand[j] / supply[j, useful] * (1 + 1e-12))
    constraints = [
        LinearConstraint(np.hstack([a.held, -taken]), lb=0),
        LinearConstraint(np.hstack([np.zeros((a.n, a.c)), serves]), lb=a.demand),
    ]
    for used, most_used in a.limits:
        row = np.r_[used, np.zeros(a.n * a.k)][None, :]
        constraints.append(LinearConstraint(row, ub=float(most_used)))
    found: Any = milp(
        c=np.concatenate([a.cost, np.zeros(a.n * a.k)]),
        integrality=np.concatenate([np.full(a.c, whole[0]), np.full(a.n * a.k, whole[1])]),
        bounds=Bounds(0, np.concatenate([np.full(a.c, np.inf), most.ravel()])),
        constraints=constraints,
        options={"mip_rel_gap": 0},
    )
    assert found.status in (0, 2), found.message
    return None if found.x is None else float(found.fun)


def integer_program(problem: Problem) -> int | None:
    """The least cost of a schedule, where costs are whole; None if there is none."""
    arrays = Arrays(problem)
    found = compact(arrays, arrays.supply, (True, True))
    return None if found is None else round(found)


def within(problem: Problem, nodes: int) -> tuple[Fraction | None, bool]:
    """What a schedule costs that HiGHS finds in so many nodes, and whether it has ended there."""
    program = CompactProgram.of(problem)
    found: Any = milp(
        program.costs.astype(np.float64),
        integrality=np.ones(len(program.costs), dtype=np.int64),
        bounds=Bounds(0, program.highs),
        constraints=LinearConstraint(program.matrix, program.rows_low, program.rows_high),
        options={"mip_rel_gap": 0.0, "node_limit": nodes},
    )
    if found.x is None:
        return None, found.status == 2
    schedule = program.schedule(found.x)
    assert check(problem, schedule) == ()
    return schedule.cost(problem), found.status == 0


def lp_star(a: Arrays) -> float:
    """Truncation machine by machine: variables x (c) and y (n, k, c)."""
    width = a.c + a.n * a.k * a.c
    rows: list[Floats] = []
    right: list[float] = []

    def y(j: int, i: int, shape: int) -> int:
        return a.c + (j * a.k + i) * a.c + shape

    for i, shape in itertools.product(range(a.k), range(a.c)):
        row = np.zeros(width)
        row[shape] = -a.held[i, shape]
        row[[y(j, i, shape) for j in range(a.n)]] = 1
        rows.append(row)
        right.append(0)
    for j, shape in itertools.product(range(a.n), range(a.c)):
        row = np.zeros(width)
        row[shape] = -a.demand[j]
        row[[y(j, i, shape) for i in range(a.k)]] = a.truncated[j]
        rows.append(row)
        right.append(0)
    for j in range(a.n):
        row = np.zeros(width)
        for i, shape in itertools.product(range(a.k), range(a.c)):
            row[y(j, i, shape)] = -a.truncated[j, i]
        rows.append(row)
        right.append(-a.demand[j])
    cost = np.concatenate([a.cost, np.zeros(width - a.c)])
    return float(minimum(cost, np.array(rows), right).fun)


def lp_dw(problem: Problem, *, proper: bool = False) -> float | None:
    """LP_DW with limits, every machine and every option listed; None if it has no solution.

    If machines are to have proper contents, this is the bound that certificates come to.
    """
    k, types = len(problem.blocks), problem.machine_types
    contents = list(machines(problem, proper=proper))
    columns: list[Vector] = [tuple(-n for n in held) for _, held in contents]
    costs: list[Fraction | int] = [types[at].cost for at, _ in contents]
    type_of, job_of = [at for at, _ in contents], [-1] * len(contents)
    for j, job in enumerate(problem.jobs):
        for option in options([given(job, block) for block in problem.blocks], job.demand):
            columns.append(option)
            costs.append(0)
            type_of.append(-1)
            job_of.append(j)
    limits = limit_rows(problem).values()
    table = np.array(columns, dtype=np.float64).reshape(len(columns), k).T
    rows = np.array([[float((*row.weights, 0)[of]) for of in type_of] for row in limits])
    found = minimum(
        costs,
        np.vstack([table, rows.reshape(len(limits), len(columns))]),
        [0] * k + [float(row.reach) for row in limits],
        A_eq=np.array([[float(of == j) for of in job_of] for j in range(problem.n_jobs)]),
        b_eq=np.ones(problem.n_jobs),
    )
    return None if found is None else float(found.fun)
