"""The PTAS for few block types: LP_DW rounded where machines are many, exact where they are few."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import round_up
from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named, SolverBound, Support
from cms.plugin.guarantee import Guarantee
from cms.presolver.presolve import presolve
from cms.schedule.schedule import Schedule
from cms.values.fields import CheckedFields
from cms.values.numbers import common_step

from ..aggregated.tidy import without_waste
from ..integer_problem import Tables, without_limits
from ..prices.vertex import additive_cost, rounded, solve_dantzig_wolfe
from .few_machines import MAX_SHAPES, CompactProgram, DynamicProgram, Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget, Claim
    from cms.problem.problem import Problem

    from ..prices.vertex import BasicSolution

#: Ways to the optimum in the exact part, one after the other.
_WAYS: dict[str, tuple[type[DynamicProgram | CompactProgram], ...]] = {
    "auto": (DynamicProgram, CompactProgram),
    "dynamic": (DynamicProgram,),
    "program": (CompactProgram,),
}


@dataclass(frozen=True)
class PtasOptions(CheckedFields):
    """Options of :class:`Ptas`.

    Parameters
    ----------
    epsilon : number, default 1/2
        The schedule costs at most 1 + epsilon times the optimum; in (0, 1].
    exact : str, default "auto"
        How few machines are found exactly: ``"dynamic"`` by dynamic programming, ``"program"`` by
        an integer program, ``"auto"`` by the first where its tables are small enough and otherwise,
        unless the rounding is good enough already, by the second.
    plain : bool, default False
        Whether to run the bare algorithm: no certificate, no solver's word, and no schedule but the
        one that the guarantee is about.
    """

    epsilon: Fraction = Fraction(1, 2)
    exact: str = "auto"
    plain: bool = False

    def __post_init__(self) -> None:
        self._number("epsilon", above=0, most=1)
        self._one_of("exact", _WAYS)
        self._flag("plain")


class Ptas:
    """The polynomial-time approximation scheme for few block types of few blocks a machine.

    LP_DW, over options and proper contents of machines, is solved first; its prices prove a lower
    bound. A basic solution of it splits few jobs and rounds to a schedule that costs little more:
    with k block types and machines of cost 1 fewer than max(k, (k - 1)^2) more. Where that is at
    most a part epsilon of the bound, it is the answer. Otherwise there are few machines, and the
    optimum is found: by dynamic programming over numbers of blocks where the tables are small, else
    by the compact integer program.

    Notes
    -----
    **Guarantee.** cost <= (1 + epsilon) OPT. With one block type and machines of one cost the
    rounding is optimal; with two it needs at most one machine more. The rounding is the answer only
    if its cost is within the guarantee of the exact bound; no float has a part in that.

    **Running time.** LP_DW: a few dozen passes over the jobs, of a covering knapsack each. The
    exact part: with U machines at most, of at most s blocks each, tables of (s U + 1)^(k - 1)
    cells, one for each job and each number of machines; constant for constant k, s and epsilon, and
    large. The integer program is exponential in the worst case.

    References
    ----------
    Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines,
    APPROX/RANDOM 2024, LIPIcs 317, 22:1-22:20, doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22, has a PTAS
    for this case. Algorithm and proof here are this project's own; ``proofs_checks/theorem_b.py``
    checks the rounding, ``proofs_checks/ptas_switch.py`` the switch between the two parts.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 120_000, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solution = solve(problem, Ptas(), options={"epsilon": "1/10"})
    >>> print(solution.machine_count, solution.guarantee)
    165 cost <= 1.1 OPT (PTAS (theory 4): Theorem B, or exact): verified
    """

    name = "ptas"
    options_type = PtasOptions

    def support(self, problem: Problem, options: PtasOptions) -> Support:
        """Refuse limits, and what the exact part could not list."""
        return without_limits(problem, MAX_SHAPES)

    def guarantee(self, problem: Problem, options: PtasOptions) -> Guarantee | None:
        """Return the factor 1 + epsilon, or 1 where rounding is optimal."""
        costs = {machine.cost for machine in problem.machine_types}
        optimal = len(problem.blocks) <= 1 and len(costs) <= 1
        factor = Fraction(1) if optimal else 1 + options.epsilon
        return Guarantee(factor, 0, "OPT", "PTAS (theory 4): Theorem B, or exact")

    def run(self, problem: Problem, options: PtasOptions, budget: Budget) -> Iterator[Claim]:
        """Yield the prices, the rounding and, where machines are few, the optimum."""
        yield from _Run(problem, options, budget).claims()


class _Run:
    def __init__(self, problem: Problem, options: PtasOptions, budget: Budget) -> None:
        self._reduction = presolve(problem)
        self._small = self._reduction.problem
        self._options, self._budget = options, budget

    def claims(self) -> Iterator[Named]:
        small, options = self._small, self._options
        solution = solve_dantzig_wolfe(small, self._budget)
        if solution is None:
            return
        lowest = round_up(solution.bound, small.cost_step)
        if not options.plain:
            prices = self._reduction.restore_prices(solution.leaf, solution.bound)
            yield Named(prices, "block prices of LP_DW")
            lowest = max(lowest, self._budget.lower_bound)
        schedule = self._rounding(solution)
        cost = schedule.cost(self._reduction.original)
        within = cost <= (1 + options.epsilon) * lowest
        # By Theorem B the first implies the second; the second does not rest on floats.
        settled = additive_loss_in_steps(small) <= options.epsilon * lowest and within
        if settled or not options.plain:
            yield Named(schedule, "rounding of LP_DW")
        if not settled and not self._budget.stopped:
            yield from self._exactly(schedule, lowest, enough=within and not options.plain)

    def _rounding(self, solution: BasicSolution) -> Schedule:
        machines, given = rounded(solution)
        if self._options.plain:
            return self._reduction.restore(Schedule.from_counts(self._small, machines, given))
        tables = Tables.of(self._small, machines)
        jobs = {name: j for j, name in enumerate(self._small.job_names)}
        counts = np.zeros_like(tables.supply)
        for (block, job), number in given.items():
            counts[jobs[job], self._small.block_index[block]] = number
        fewer = without_waste(tables, list(machines.values()), counts)
        return tables.schedule(self._reduction, *fewer)

    def _exactly(self, schedule: Schedule, lowest: Fraction, *, enough: bool) -> Iterator[Named]:
        """Find the optimum; or leave it where that is hard and the rounding is good enough."""
        plain, budget = self._options.plain, self._budget
        rounding = Named(schedule, "rounding of LP_DW")
        highest = schedule.cost(self._reduction.original)
        if not plain and budget.best is not None:
            highest = min(highest, budget.best.cost(self._reduction.original))
        if highest <= lowest:  # the cheap certificate: nothing costs less than the bound
            if plain:
                yield rounding
            return
        fleet, refusals = Fleet(self._small), []
        for kind in _WAYS[self._options.exact][: 1 if enough else None]:
            try:
                way = kind(fleet, lowest, highest)
                break
            except UnsupportedProblem as fault:
                refusals.append(str(fault))
        else:
            if enough:
                return
            advice = "take a larger epsilon, or the method branch_and_price"
            raise UnsupportedProblem("; ".join([*refusals, advice]))
        best, cost = rounding, highest
        for found in way.run(budget):
            if found is not None:
                cost = found.cost(self._small)
                best = Named(self._reduction.restore(found), way.solver)
            if found is None and not plain:
                yield Named(SolverBound(cost, way.solver), "exact part")
            elif found is None or not plain:
                yield best


def additive_loss_in_steps(problem: Problem) -> Fraction:
    """Return what the rounding costs at most more than the bound rounded up to a cost's step.

    What is less than ``bound + loss`` is at most that, plus the loss, less a step.
    """
    step = common_step(problem.machine_type(shape.machine).cost for shape in problem.configurations)
    return max(Fraction(0), additive_cost(problem) - step)
