"""The small integer program that turns a rounded solution into a schedule (theory 6.6, 6.7).

Most jobs keep their options; the program chooses options for the *free* ones, blocks for those in
boxes, and the machines, so that the blocks suffice. If it has every option and machine that a
schedule within its target can use, it is exact: finding nothing is a proof, on the solver's word.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cms.plugin.algorithm import SolverBound

from ..prices.region import Region
from ..prices.taken_options import AnyChoices, choices_of
from ..solvers.integer import LARGEST, Outcome, Program, TooLarge, terms_of
from .mixture_rounding import Box, rounded
from .open_machines import filled
from .options import NearOptions

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget
    from cms.problem.row import Row
    from cms.schedule.schedule import Schedule

    from ..prices.fraction import Fractional
    from ..prices.jobs import Jobs
    from ..prices.region import PricePoint
    from ..prices.search import PriceSearch
    from .shapes import Shapes

#: Most options listed, for all kinds of jobs together and for a single kind.
_MOST_OPTIONS, _MOST_OPTIONS_A_KIND = 60_000, 5_000
#: Most options listed for each variable of the compact program; with more options the compact
#: program is decided sooner (measured on instances.families with 10 to 120 jobs).
_OPTIONS_A_BLOCK = 10
Option = tuple[int, ...]
#: How far the numbers of machines may move from the fractional ones.
REACH = 20
#: With more configurations than this a schedule is found sooner, two- to fourfold, if SCIP leaves
#: its rounds of cuts; with few they are what finds it at all where there are thousands of machines
#: (measured on instances.families).
_MOST_CUT = 50
#: Rows in boxes have a demand of at most this: products stay far from the solver's limit.
_SHORT = 2**40


class Found(NamedTuple):
    """A program's answer, to build a schedule from or to go on with."""

    cost: Fraction
    machines: tuple[int, ...]
    choices: AnyChoices


class Answer(NamedTuple):
    """What a program ended with.

    ``status`` is "optimal", "feasible", "infeasible", "unknown", or "too large" for a program whose
    numbers leave the solver's range; ``bound`` is the solver's word on the cost. ``exact`` tells
    whether what is proved of the program holds for the task, i.e. no row was shortened inwards.
    """

    status: str
    found: Found | None
    bound: Fraction | None = None
    exact: bool = True


@dataclass(frozen=True)
class Task:
    """What a program is to decide."""

    fixed: AnyChoices
    free: Mapping[int, Sequence[Option]]
    boxes: Sequence[Box]
    least: Fraction
    target: Fraction | None
    around: Sequence[Fraction] | None = None
    usable: Sequence[bool] | None = None
    outer: bool = False


class _Model:
    """A program for a task, with the variables that its answer is read from."""

    def __init__(self, shapes: Shapes, jobs: Jobs, task: Task) -> None:
        self._shapes, self._jobs, self._task = shapes, jobs, task
        self.program, self.shortened = Program(), False
        self._picks: list[tuple[int, list[int]]] = []
        self._inside: list[tuple[Box, list[int | None]]] = []
        load = task.fixed.load()
        for box in task.boxes:
            load = [a + b for a, b in zip(load, box.lows, strict=True)]
        lows, highs = self._reach(load)
        held = [0] * len(load)
        for high, counts in zip(highs, shapes.counts, strict=True):
            held = [before + high * n for before, n in zip(held, counts, strict=True)]
        # For each block type the terms of what free jobs take.
        self._loads: list[list[tuple[int, int]]] = [[] for _ in load]
        for kind, options in sorted(task.free.items()):
            weight = self._jobs.weight(kind)
            z = [self.program.variable(weight) for _ in options]
            self.program.equals(dict.fromkeys(z, 1), weight)
            self._picks.append((kind, z))
            for variable, option in zip(z, options, strict=True):
                for i, blocks in enumerate(option):
                    if blocks:
                        self._loads[i].append((variable, -blocks))
        for box in task.boxes:
            self._add_box(box, held)
        self._machines = MachineVariables(shapes, self.program, lows, highs)
        terms = self._machines.keep_cost(task.least, task.target)
        if terms and (task.target is None or task.target > task.least):
            self.program.minimise(terms)
        for i, loads in enumerate(self._loads):
            short = load[i] - self._machines.have(i)
            most = short + sum(-factor * self.program.high(v) for v, factor in loads)
            # More blocks than can be short need not be told apart.
            of_machines = self._machines.held(i, enough=max(1, most))
            self.program.at_least(terms_of([*of_machines, *loads]), short)

    def _add_box(self, box: Box, held: Sequence[int]) -> None:
        """Add a job that takes blocks between its bounds: of too many no more than there can be."""
        row = self._jobs.row(box.kind)
        # The least blocks may serve all but little of a demand of many digits.
        served = sum(f * low for f, low in zip(row.supply, box.lows, strict=True))
        exact, row = row, row._replace(demand=max(0, row.demand - served))
        self.shortened = self.shortened or row.demand > _SHORT
        row = shortened(row, outer=self._task.outer)
        spread = [high - low for low, high in zip(box.lows, box.highs, strict=True)]
        y = [
            self.program.variable(most if most < LARGEST else min(most, there)) if f else None
            for most, there, f in zip(spread, held, row.supply, strict=True)
        ]
        self._inside.append((box, y))
        terms = {v: f for v, f in zip(y, row.supply, strict=True) if v is not None}
        if exact.rule is not None:
            self._add_rule(exact, y)
        if row.demand and not exact.is_equal:
            self.program.at_least(terms, row.demand)
        for i, variable in enumerate(y):
            if variable is not None:
                self._loads[i].append((variable, -1))

    def _add_rule(self, row: Row, y: Sequence[int | None]) -> None:
        """Count the blocks of a job: in equal shares of one alternative, and then no others."""
        program, ways = self.program, row.alternatives
        chosen = [program.variable(1) for _ in ways]
        if ways:
            program.equals(dict.fromkeys(chosen, 1), 1)
        for z, (number, able) in zip(chosen, ways, strict=True):
            counted = terms_of((v, 1) for i in able if (v := y[i]) is not None)
            program.at_least(counted | {z: -number}, 0)
        for i, v in enumerate(y) if row.is_equal else ():
            if v is not None:
                pairs = zip(chosen, ways, strict=True)
                there = {z: -program.high(v) for z, (_, able) in pairs if i in able}
                program.at_most({v: 1} | there, 0)

    def _reach(self, load: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the least numbers of machines and the largest."""
        task, shapes = self._task, self._shapes
        if task.around is None:
            most = sum(load) + sum(sum(box.highs) for box in task.boxes)
            for kind, options in task.free.items():
                most += self._jobs.weight(kind) * max(map(sum, options), default=0)
            lows = [0] * len(shapes)
            highs = [
                min(most, floor(task.target / cost)) if task.target is not None and cost else most
                for cost in shapes.costs
            ]
        else:
            lows = [max(0, floor(x) - REACH) for x in task.around]
            highs = [floor(x) + REACH for x in task.around]
        for c, use in enumerate(task.usable or ()):
            if not use:
                lows[c] = highs[c] = 0
        within_limits(shapes, lows, highs, LARGEST)
        return lows, highs

    def read(self, values: Sequence[int] | None) -> Found | None:
        """Turn the variables' values into machines and choices, if these serve the jobs."""
        if values is None or (self.shortened and self._task.outer):
            return None
        machines = self._machines.numbers(values)
        rows = [
            (kind, option, values[variable])
            for kind, z in self._picks
            for variable, option in zip(z, self._task.free[kind], strict=True)
        ]
        for box, y in self._inside:
            taken = tuple(
                low + (0 if variable is None else values[variable])
                for low, variable in zip(box.lows, y, strict=True)
            )
            rows.append((box.kind, taken, 1))
        choices = self._task.fixed.joined(choices_of(rows, len(self._shapes.problem.blocks)))
        return Found(self._shapes.cost(machines), machines, choices)

    def answer(self, outcome: Outcome) -> Answer:
        """Turn CP-SAT's outcome into words about the task."""
        task, bound = self._task, None
        if outcome.bound is not None and (task.target is None or task.target > task.least):
            bound = max(task.least, self._machines.cost_of(outcome.bound))
        exact = task.outer or not self.shortened
        return Answer(outcome.status, self.read(outcome.values), bound, exact)


def _built(shapes: Shapes, jobs: Jobs, task: Task) -> _Model | None:
    """Build a task's program; None if its numbers leave the solver's range."""
    try:
        return _Model(shapes, jobs, task)
    except TooLarge:
        return None


def close(
    shapes: Shapes,
    jobs: Jobs,
    task: Task,
    budget: Budget,
    *,
    nodes: int = 0,
    effort: float = 0.0,
    workers: int = 1,
) -> Answer:
    """Decide a task: SCIP within a number of nodes, or CP-SAT within its deterministic time."""
    model = _built(shapes, jobs, task)
    if model is None:
        return Answer("too large", None, exact=False)
    if nodes:
        hint = model.program.search(budget, nodes=nodes, cuts=len(shapes) <= _MOST_CUT)
        found = model.read(hint.values)
        status = "unknown" if found is None else "feasible"
        return Answer(status, found, None, not model.shortened)
    return model.answer(model.program.solve(budget, workers, effort=effort))


def improvements(
    shapes: Shapes, jobs: Jobs, task: Task, budget: Budget, workers: int = 1
) -> Generator[Found | Answer, None, None]:
    """Decide a task with CP-SAT alone, without limits but the budget's.

    Yields each better schedule while the solver works on, the answer last; closing the generator
    stops the solver.
    """
    model = _built(shapes, jobs, task)
    if model is None:
        yield Answer("too large", None, exact=False)
        return
    with closing(model.program.improvements(budget, workers)) as items:
        for item in items:
            if isinstance(item, Outcome):
                yield model.answer(item)
            else:
                found = model.read(item)
                if found is not None:
                    yield found


def round_off(
    search: PriceSearch, shapes: Shapes, mixture: Fractional, budget: Budget, **limits: Any
) -> Found | Schedule | None:
    """Round a fractional schedule and cover it with machines: by a program, or else roughly.

    ``limits`` are those of :func:`close`.
    """
    start, around = rounded(search, mixture, budget.seed), shapes.around(mixture)
    task = Task(start.choices, {}, start.boxes, Fraction(0), None, around)
    found = close(shapes, search.jobs, task, budget, **limits).found
    if found is not None:
        return found
    # Nothing so near the fractional machines, or numbers that no program can take.
    choices = start.choices
    if start.boxes:
        choices = rounded(search, mixture, budget.seed, most_boxes=0).choices
    machines = filled(shapes, choices.load(), around)
    return None if machines is None else cast("Schedule", choices.schedule(search.jobs, machines))


def schedule_of(shapes: Shapes, jobs: Jobs, found: Found) -> Any:
    """Build the schedule of an answer."""
    totals = {shapes.shapes[c]: number for c, number in enumerate(found.machines) if number}
    return found.choices.schedule(jobs, totals)


def shortened(row: Row, *, outer: bool = False) -> Row:
    """Cut supply at the demand; round a row of many digits to fewer.

    What serves the short row serves the job, or, if ``outer``, the other way round.
    """
    supply = tuple(min(f, row.demand) for f in row.supply)
    if row.demand <= _SHORT:
        return row._replace(supply=supply)
    up = row.demand - 1 if outer else 0
    return row._replace(
        demand=_SHORT, supply=tuple((f * _SHORT + up) // row.demand for f in supply)
    )


class MachineVariables:
    """Variables for machines above their least numbers; adds them and their limits to a program."""

    def __init__(
        self, shapes: Shapes, program: Program, lows: Sequence[int], highs: Sequence[int]
    ) -> None:
        self._shapes, self._program, self.lows = shapes, program, lows
        self.variables = [
            program.variable(max(0, high - low)) for low, high in zip(lows, highs, strict=True)
        ]
        for limit, mine in shapes.limited:
            room = limit - sum(lows[c] * n for c, n in mine.items())
            if room < sum((highs[c] - lows[c]) * n for c, n in mine.items()):
                program.at_most({self.variables[c]: n for c, n in mine.items()}, room)

    def held(self, i: int, *, enough: int) -> list[tuple[int, int]]:
        """Return the terms of the blocks of a type; more than ``enough`` are not told apart."""
        return [
            (variable, min(counts[i], enough))
            for variable, counts in zip(self.variables, self._shapes.counts, strict=True)
            if counts[i]
        ]

    def have(self, i: int) -> int:
        """Return the blocks of a type on the machines there are at least."""
        pairs = zip(self.lows, self._shapes.counts, strict=True)
        return sum(low * counts[i] for low, counts in pairs)

    def keep_cost(self, least: Fraction, target: Fraction | None) -> dict[int, int]:
        """Keep the cost between a bound and a target; return its terms, in the shapes' step."""
        shapes = self._shapes
        terms = {self.variables[c]: steps for c, steps in enumerate(shapes.steps) if steps}
        if terms:
            lowest = int(-(-least // shapes.step)) - self._spent
            if lowest > 0:
                self._program.at_least(terms, lowest)
            if target is not None:
                self._program.at_most(terms, floor(target / shapes.step) - self._spent)
        return terms

    def cost_of(self, aim: int) -> Fraction:
        """Return the cost behind a value of the terms of :meth:`keep_cost`."""
        return (aim + self._spent) * self._shapes.step

    @property
    def _spent(self) -> int:
        pairs = zip(self._shapes.steps, self.lows, strict=True)
        return sum(steps * low for steps, low in pairs)

    def numbers(self, values: Sequence[int]) -> tuple[int, ...]:
        """Return how many machines of each configuration a solution has."""
        pairs = zip(self.lows, self.variables, strict=True)
        return tuple(low + values[variable] for low, variable in pairs)


def within_limits(shapes: Shapes, lows: Sequence[int], highs: list[int], largest: int) -> None:
    """Lower the largest numbers of machines that reach ``largest`` to what limits allow.

    So that a program can be built where only a limit bounds them.
    """
    for limit, mine in shapes.limited:
        for c, n in mine.items():
            if highs[c] >= largest:
                highs[c] = min(highs[c], max(limit // n, lows[c]))


def every_option(
    shapes: Shapes, jobs: Jobs, point: PricePoint, least: Fraction, target: Fraction, budget: Budget
) -> Task | None:
    """Choose among all options and machines that a schedule up to the target can use.

    None if these are too many for it to be a good program (theory 6.7).
    """
    if len(jobs) > _MOST_OPTIONS:
        return None  # of each kind there is an option
    slack = target - point.bound
    near = NearOptions(jobs, point)
    free: dict[int, list[tuple[int, ...]]] = {}
    most = min(_MOST_OPTIONS, _OPTIONS_A_BLOCK * jobs.problem.n_jobs * len(jobs.problem.blocks))
    total = 0
    for kind in range(len(jobs)):
        options = near.all_within(kind, slack, _MOST_OPTIONS_A_KIND)
        if options is None or budget.stopped:
            return None
        free[kind] = options
        total += len(options)
        if total > most:
            return None
    usable = [cost <= slack for cost in shapes.reduced_costs(point.vector, Region(jobs.problem))]
    return Task(choices_of([], len(jobs.problem.blocks)), free, (), least, target, usable=usable)


def every_block(
    jobs: Jobs, least: Fraction, target: Fraction | None, *, outer: bool = False
) -> Task:
    """Choose blocks for every job and machines: the compact program (theory 1.2)."""
    boxes: list[Box] = []
    for kind in range(len(jobs)):
        row = jobs.row(kind)
        if not outer and not row.is_equal:
            row = shortened(row)  # with less supply a job may need more blocks
        highs = tuple(row.enough)
        boxes += [Box(kind, (0,) * len(highs), highs)] * jobs.weight(kind)
    return Task(choices_of([], len(jobs.problem.blocks)), {}, boxes, least, target, outer=outer)


def solver_bound(answer: Answer, task: Task, step: Fraction) -> SolverBound | None:
    """Return what CP-SAT's answer to such a task says about the problem."""
    if not answer.exact:
        return None
    beyond = None if task.target is None else task.target + step
    if answer.status == "infeasible":
        return SolverBound(beyond, "CP-SAT")
    if answer.bound is None or not step:
        return None
    # Of schedules dearer than the target the program knows nothing.
    return SolverBound(answer.bound if beyond is None else min(answer.bound, beyond), "CP-SAT")
