"""The reference: CP-SAT to proved optimality on small and middling problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

import numpy as np

from cms.algorithm import SolverBound, Support
from cms.certificate import round_up
from cms.errors import UnsupportedProblem
from cms.knapsack import common_denominator, price_jobs
from cms.reduction import reduce
from cms.schedule import Schedule

from .machines import listed
from .models import Instance, Model, Rounding, compact_model, cover, options_model
from .prices import EARLY_FROM, PricePoint, PriceSearch
from .program import Outcome, Settings, TooLarge

if TYPE_CHECKING:
    from cms.algorithm import Budget, Claim
    from cms.guarantee import Guarantee
    from cms.problem import Problem

#: Maximal multisets of a size-bounded set that are listed one by one.
_MOST_SHAPES = 20_000
#: Costs go through floating-point programs; larger ones would be infinite there.
_LARGEST_COST = 10**300
#: Jobs beyond which only prices and a first schedule are computed.
_MOST_JOBS = 20_000


@dataclass(frozen=True)
class CpSatOptions:
    """Options of :class:`CpSat`.

    Parameters
    ----------
    workers : int, default 1
        CP-SAT's workers. Runs with one worker are reproducible.
    linearization_level : int, default 2
        How much of the linear relaxation CP-SAT uses, 0 to 2. With less than 2 some of these
        models do not move for minutes.
    """

    workers: int = 1
    linearization_level: int = 2

    def __post_init__(self) -> None:
        for name, least, most in (("workers", 1, 1024), ("linearization_level", 0, 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ValueError(f"{name} is {value!r}; expected an int from {least} to {most}")


class CpSat:
    """CP-SAT on options of the jobs, between certified bounds; small problems end proved.

    Block prices are computed first (a cutting-plane method over one price a block); they are the
    certificate of the lower bound, and leave only few options of each job that can matter. An
    integer program over these options and the numbers of machines then looks for a schedule that
    meets the bound; if there is none, another one closes the gap, and the proof rests on CP-SAT's
    word. Jobs with equal rows are one integer variable an option, so that they bring no symmetry.

    Notes
    -----
    **Guarantee.** None by a ratio; the status says what is proved. On small and middling problems
    a run ends ``OPTIMAL`` or ``INFEASIBLE``: on CP-SAT's word, or ``CHECKED`` where block prices
    reach the same value. It ends ``FEASIBLE``, with a checked bound, where the integer programs
    would be too large: beyond 20,000 jobs, or where numbers leave CP-SAT's 63 bits.

    **Running time.** Exponential in the worst case. The block prices cost about a dozen passes
    over the jobs.

    References
    ----------
    Perron, Furnon: OR-Tools, https://developers.google.com/optimization. Certificates:
    ``docs/files.md``; checked by ``proofs_checks/checker``.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solution = solve(problem, method="cp_sat")
    >>> solution.machine_count, solution.status.value, solution.proof.value
    (2, 'optimal', 'checked')
    """

    name = "cp_sat"
    options_type = CpSatOptions

    def support(self, problem: Problem, options: CpSatOptions) -> Support:
        """Refuse what CP-SAT or the listing of configurations cannot take."""
        for machine in problem.machine_types:
            if machine.cost > _LARGEST_COST:
                return Support(
                    False, f"machine type {machine.name!r} costs more than 10**300; choose a unit"
                )
        if listed(problem, _MOST_SHAPES) is None:
            return Support(
                False,
                f"a size-bounded set has more than {_MOST_SHAPES} maximal configurations, which "
                "the reference lists one by one",
            )
        return Support(True)

    def guarantee(self, problem: Problem, options: CpSatOptions) -> Guarantee | None:
        """Return None: what a run proves is in its status, not in a ratio."""
        return None

    def run(self, problem: Problem, options: CpSatOptions, budget: Budget) -> Iterator[Claim]:
        """Yield certificates, schedules and at last CP-SAT's bound."""
        reduction = reduce(problem)
        small = reduction.problem
        shapes = listed(small, _MOST_SHAPES)
        if shapes is None:
            raise UnsupportedProblem("the reduced problem has too many maximal configurations")
        instance = Instance(small, shapes)
        settings = Settings(options.workers, options.linearization_level)
        for claim in _claims(instance, settings, budget):
            yield reduction.restore(claim) if isinstance(claim, Schedule) else claim


def _claims(instance: Instance, settings: Settings, budget: Budget) -> Iterator[Claim]:
    problem = instance.problem
    if any(machine.limit is not None for machine in problem.machine_types):
        search = PriceSearch(problem, budget, free_machines=True)
        for point in search.run():
            if point.bound > 0:
                yield point.certificate
                # The driver ends the run here, unless rounding on a large problem's images left
                # nothing of the proof; then the exact model has the last word.
                break
    search = PriceSearch(problem, budget)
    for number, point in enumerate(search.run()):
        yield point.certificate
        if number == 0 and problem.n_jobs >= EARLY_FROM:
            # One pass is a whole choice of options: a first answer long before the best prices.
            first = _first_schedule(instance, point, settings, budget)
            if first is not None:
                yield first
    best = search.best
    if best is None or budget.stopped:
        return
    first = _first_schedule(instance, best, settings, budget)
    if first is not None:
        yield first
    if problem.n_jobs > _MOST_JOBS:
        return
    yield from _meet_the_bound(instance, best, settings, budget)
    yield from _close_the_gap(instance, best, settings, budget)


def _first_schedule(
    instance: Instance, point: PricePoint, settings: Settings, budget: Budget
) -> Schedule | None:
    """Give every job its cheapest option and cover the blocks with machines."""
    problem = instance.problem
    prices, _ = common_denominator(point.prices)
    pricing = price_jobs(
        problem.rows, prices, want_options=True, inner=True, stopped=lambda: budget.stopped
    )
    if pricing is None or pricing.options is None or pricing.unservable:
        return None
    # Machines that a fraction of the load fills are certain; the program decides the others.
    base = _floor_of_cover(instance, pricing.load)
    machines = cover(
        instance,
        pricing.load,
        base,
        lambda program: program.solve(budget, settings, effort=1.0).values,
    )
    if machines is None:
        return None
    jobs, blocks = np.nonzero(pricing.options)
    return instance.schedule(
        dict(enumerate(machines)), (jobs, blocks, pricing.options[jobs, blocks])
    )


def _floor_of_cover(instance: Instance, load: Sequence[int]) -> list[int]:
    """Round the fractional cover down, and a little further so that the rest can be rearranged."""
    from ortools.linear_solver import pywraplp

    scale = max(1, *load)
    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity = solver.infinity()
    x = [solver.NumVar(0, infinity, "") for _ in instance.shapes]
    for i, need in enumerate(load):
        row = solver.RowConstraint(need / scale, infinity, "")
        for variable, counts in zip(x, instance.counts, strict=True):
            row.SetCoefficient(variable, counts[i])
    for machine in instance.problem.machine_types:
        if machine.limit is not None:
            row = solver.RowConstraint(-infinity, machine.limit / scale, "")
            for variable, shape in zip(x, instance.shapes, strict=True):
                if shape.machine == machine.name:
                    row.SetCoefficient(variable, 1)
    objective = solver.Objective()
    for variable, cost in zip(x, instance.costs, strict=True):
        objective.SetCoefficient(variable, float(cost))
    objective.SetMinimization()
    if solver.Solve() != solver.OPTIMAL:
        return [0] * len(x)
    # The float's own error grows with the number: keep clear of it.
    amounts = [Fraction(variable.solution_value()) * scale for variable in x]
    return [max(0, floor(amount * (1 - Fraction(1, 10**9))) - 8) for amount in amounts]


def _meet_the_bound(
    instance: Instance, point: PricePoint, settings: Settings, budget: Budget
) -> Iterator[Claim]:
    """Look for a schedule that costs no more than the certified bound."""
    bound = max(round_up(point.bound, instance.problem.cost_step), budget.lower_bound)
    best = budget.best
    if budget.stopped or (best is not None and best.cost(instance.problem) <= bound):
        return
    model = _built(lambda: options_model(instance, point, bound, bound, budget))
    if model is not None:
        outcome = model.program.solve(budget, settings, effort=60.0)
        if outcome.values is not None:
            yield model.decode(outcome.values)
        elif outcome.status == "infeasible" and instance.problem.cost_step:
            yield SolverBound(bound + instance.problem.cost_step, "CP-SAT")
        return
    model = _built(lambda: compact_model(instance, bound, None, budget, around=point))
    if model is not None:
        outcome = model.program.solve(budget, settings, effort=30.0)
        if outcome.values is not None:
            yield model.decode(outcome.values)


def _close_the_gap(
    instance: Instance, point: PricePoint, settings: Settings, budget: Budget
) -> Iterator[Claim]:
    """Look for anything better than the best schedule, until there is provably nothing."""
    problem = instance.problem
    step, best = problem.cost_step, budget.best
    target: Fraction | None = None
    if best is not None:
        cost = best.cost(problem)
        if not step or budget.stopped or cost <= budget.lower_bound:
            return
        target = cost - step
    least = budget.lower_bound
    model = _built(lambda: options_model(instance, point, least, target, budget))
    if model is None:
        model = _built(lambda: compact_model(instance, least, target, budget))
    if model is not None:
        yield from _search(model, target, step, settings, budget)
    else:
        yield from _close_in_short_numbers(instance, target, settings, budget)


def _close_in_short_numbers(
    instance: Instance, target: Fraction | None, settings: Settings, budget: Budget
) -> Iterator[Claim]:
    """Do the same where numbers have too many digits: rounded one way, then the other.

    Rows rounded down give schedules; rows rounded up give what CP-SAT proves.
    """
    problem = instance.problem
    step = problem.cost_step

    def build(rounding: Rounding) -> Model | None:
        least = budget.lower_bound
        return _built(lambda: compact_model(instance, least, target, budget, rounding=rounding))

    model = build(Rounding.INNER)
    if model is not None:
        yield from _search(model, target, step, settings, budget)
    if budget.best is not None:
        target = budget.best.cost(problem) - step
    model = build(Rounding.OUTER)
    if model is not None:
        yield from _word(model.program.solve(budget, settings), target, step)


def _built(build: Callable[[], Model | None]) -> Model | None:
    """Build a model, or none if its numbers leave the solver's range."""
    try:
        return build()
    except TooLarge:
        return None


def _search(
    model: Model, target: Fraction | None, step: Fraction, settings: Settings, budget: Budget
) -> Iterator[Claim]:
    for item in model.program.improvements(budget, settings):
        if not isinstance(item, Outcome):
            yield model.decode(item)
        elif model.exact:
            yield from _word(item, target, step)


def _word(outcome: Outcome, target: Fraction | None, step: Fraction) -> Iterator[Claim]:
    """Say what an exact program, or a relaxation, proves about costs up to the target."""
    if outcome.status == "infeasible":
        yield SolverBound(None if target is None else target + step, "CP-SAT")
    elif outcome.bound is not None and step:
        yield SolverBound(max(0, outcome.bound) * step, "CP-SAT")
