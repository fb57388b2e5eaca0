"""Greedy for the general case: logarithmic factors (theory 2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Named, Support
from cms.reduction.reduction import reduce
from cms.values.fields import CheckedFields

from ..aggregated.contents import solved
from ..aggregated.program import (
    Aggregated,
    certificate,
    doubled,
    guarantee_of_doubled,
    guarantee_of_one_block_each,
    one_block_each,
)
from ..aggregated.tidy import Answers
from ..tables.integers import MOST_SHAPES, Tables, without_limits
from ..tables.machines import listed
from . import machinewise, promises
from .factors import best_inflation
from .opened import Opened
from .paid import Paid, usable, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget
    from cms.plugin.guarantee import Guarantee
    from cms.problem.problem import Problem
    from cms.reduction.reduction import Reduction

    from ..aggregated.program import Counts, Vertex

_VARIANTS = ("best", "units", "inflated", "lp")
_INNER = ("auto", "greedy", "independent", "dependent", "exact")
#: Filling a machine exactly takes milliseconds up to so many blocks, and pays up to so many jobs.
_EXACT_BLOCKS, _EXACT_JOBS = 8, 500
#: The most blocks of a machine with which it is offered at all: the search is exponential.
_MOST_EXACT_BLOCKS = 16
#: Blocks of a type, as far as jobs can use them, that the assignment program can count in floats.
_MOST_COUNTED = 10**12
#: Shares of jobs (n k) up to which the aggregated program is part of "best".
_MOST_SHARES = 25_000
#: Blocks of a type that the aggregated program can have as a coefficient.
_LARGEST = 10**300
#: Variables of LP* up to which it is part of "best".
_MOST_VARIABLES = 3_000


@dataclass(frozen=True)
class GreedyOptions(CheckedFields):
    """Options of :class:`Greedy`.

    Parameters
    ----------
    variant : {"best", "units", "inflated", "lp"}, default "best"
        ``units``: every unit of demand counts the same (G-int). ``inflated``: every job's demand
        is 1, and is to be met ``1 + delta`` times (G-real). ``lp``: the linear program LP*, rounded
        (factor in min(n, s)); unless plain, T-2 takes its place where so many machines are needed
        that it is within that factor. ``best``: both greedy variants, the aggregated program
        rounded (T-2, T-add), and LP* where it is small and its factor is the smallest; the best
        schedule counts.
    inner : {"auto", "greedy", "independent", "dependent", "exact"}, default "auto"
        How a single machine is filled: item greedy (1/2), the assignment program with independent
        (1 - 1/e) or dependent rounding (3/4), or exactly (1). ``auto``: exactly where that is
        quick, item greedy otherwise.
    delta : number or None, default None
        The inflation of ``inflated``, > 0; by default near the best one for the number of jobs.
    plain : bool, default False
        Only the textbook algorithm of the variant: no clean-up afterwards, no certificate.
    """

    variant: str = "best"
    inner: str = "auto"
    delta: Fraction | None = None
    plain: bool = False

    def __post_init__(self) -> None:
        self._one_of("variant", _VARIANTS)
        self._one_of("inner", _INNER)
        if self.delta is not None:
            self._number("delta", above=0)
        self._flag("plain")


class Greedy:
    """Open the machine that gains most for its cost, again and again.

    To find it is Maximum Budgeted Allocation, solved by the inner method. A machine is opened as
    often at once as every copy gains the same, so huge demands take no longer. Afterwards
    superfluous blocks and machines go, and small problems have their blocks handed out anew.
    Where a set of contents is too large to be listed the aggregated program finds those it needs by
    their prices; greedy goes through these, without a promise.

    With the default ``variant="best"`` the schedules of both greedy variants and of the rounded
    aggregated program are claimed, so that the strongest of their guarantees holds; so is that of
    the LP version for small problems for which its factor is stronger still.

    Notes
    -----
    **Guarantee.** With the inner method's factor beta, the least of (as the variant has them):

    * G-int: ``H(g) / beta`` times the optimum, g the most units of demand one machine can gain;
    * G-real: ``(1 + delta) / beta * ln((1 + delta) n / delta)`` times the optimum, rounded up:
      with the best delta ``(ln n + ln ln n + O(1)) / beta``;
    * LP version: ``(alpha + 2) LP*``, alpha = ``kappa(min(n, s)) / (1 - 1/e)``; against the
      optimum where some machine costs more than serving all jobs one by one;
    * T-2: ``(1 + phi) LP_agg + p`` and T-add: ``LP_agg + p + n``, p = min(c, k).

    The paper states a logarithmic factor for the general case and that it is tight; the factors
    here are derived in full, also for costs. No polynomial algorithm has a factor
    ``(1 - epsilon) ln n`` unless P = NP.

    **Running time.** A step opens machines until some job gets less than before: about as many
    steps as jobs, each O(c s k log n) with item greedy. The aggregated program has n k variables,
    LP* at most c n k, of configurations that join as its prices ask for them; its rounding draws
    about 2 alpha groups of machines of each configuration.

    References
    ----------
    Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines, APPROX 2024,
    doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22, the general case. Budgeted allocation:
    arXiv:1403.7519. Checked in ``proofs_checks/g_int.py``, ``g_real.py``, ``lp_version.py``,
    ``inner_problem.py``, ``huge_demands.py``, ``t2_tadd.py`` and ``set_cover.py``.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solution = solve(problem, method="greedy", options={"variant": "units"})
    >>> solution.machine_count
    2
    """

    name = "greedy"
    options_type = GreedyOptions

    def support(self, problem: Problem, options: GreedyOptions) -> Support:
        """Refuse limits on machines, and what the chosen parts cannot take."""
        general = without_limits(problem, None)
        if not general:
            return general
        if options.variant != "best" and Tables.of(reduce(problem, fewer=True).problem).vast:
            return Support(
                False,
                f"a size-bounded set has more than {MOST_SHAPES} maximal configurations, and "
                f"variant={options.variant!r} fills a machine of each; choose variant='best' "
                "(T-2), auto or price_and_branch",
            )
        shapes, vast = listed(problem, MOST_SHAPES)
        sets = [
            bounded for bounded in problem.size_bounded_configurations if bounded.machine in vast
        ]
        most = max(
            *(sum(shape.blocks.values()) for shape in shapes),
            *(each.largest_count(block) for each in sets for block in each.sizes),
            0,
            0,
        )
        if options.inner == "exact" and most > _MOST_EXACT_BLOCKS:
            return Support(
                False,
                f"a machine has up to {most} blocks; filling it exactly is exponential and is "
                f"offered up to {_MOST_EXACT_BLOCKS}; choose inner='dependent' (3/4) or 'greedy'",
            )
        if options.inner in ("independent", "dependent"):
            counts = usable(Tables.of(reduce(problem, fewer=True).problem))
            largest = max((count for row in counts for count in row), default=0)
            if largest > _MOST_COUNTED:
                return Support(
                    False,
                    f"a machine has more than {_MOST_COUNTED} blocks of a type that jobs can use, "
                    "which linear programs cannot count; choose inner='greedy'",
                )
        if options.variant == "lp":
            size = variables(Tables.of(reduce(problem, fewer=True).problem))
            if size > machinewise.MOST_VARIABLES:
                return Support(
                    False,
                    f"LP* would have {size} variables (configurations, their block types, and the "
                    f"jobs these serve), at most {machinewise.MOST_VARIABLES} are tried; choose "
                    "variant='best'",
                )
        return Support(True)

    def guarantee(self, problem: Problem, options: GreedyOptions) -> Guarantee | None:
        """Return the strongest statement about this problem; see the notes above."""
        tables = Tables.of(reduce(problem, fewer=True).problem)
        inner = _inner(tables, options)
        if options.variant == "units":
            return promises.by_units(tables, inner)
        if options.variant == "inflated":
            return promises.inflated(tables, inner, _delta(tables, options))
        if options.variant == "lp":
            return None if tables.unservable else promises.linear(Paid.of(tables))
        return _strongest(tables, options)

    def run(self, problem: Problem, options: GreedyOptions, budget: Budget) -> Iterator[Named]:
        """Yield the schedules of the variant's parts, and the dual prices of linear programs."""
        yield from _Run(reduce(problem, fewer=True), options, budget).claims()


def _inner(tables: Tables, options: GreedyOptions) -> str:
    """Name the inner method that ``auto`` stands for."""
    if options.inner != "auto":
        return options.inner
    most = max((sum(row) for row in tables.counts), default=0)
    return "exact" if most <= _EXACT_BLOCKS and tables.n <= _EXACT_JOBS else "greedy"


def _delta(tables: Tables, options: GreedyOptions) -> Fraction:
    return best_inflation(tables.n) if options.delta is None else options.delta


def _countable(tables: Tables) -> bool:
    return all(count <= _LARGEST for row in tables.counts for count in row)


def _with_program(tables: Tables) -> bool:
    """Whether the aggregated program is part of "best": without lists nothing else promises."""
    return bool(tables.vast) or (tables.n * tables.k <= _MOST_SHARES and _countable(tables))


def _tiny(tables: Tables) -> bool:
    """Whether LP* is solved in no time."""
    return not (tables.unservable or tables.vast) and variables(tables) <= _MOST_VARIABLES


def _strongest(tables: Tables, options: GreedyOptions) -> Guarantee:
    """Return the strongest statement about the parts that "best" runs."""
    inner = _inner(tables, options)
    statements = []
    if not tables.vast:
        # A machine of each content is filled.
        statements.append(promises.by_units(tables, inner))
        statements.append(promises.inflated(tables, inner, _delta(tables, options)))
    if _with_program(tables):
        statements += [guarantee_of_doubled(tables), guarantee_of_one_block_each(tables)]
        if _tiny(tables):
            statements.append(promises.linear(Paid.of(tables)))
    return promises.strongest(statements, promises.rough_value(tables))


def _with_linear(tables: Tables, options: GreedyOptions) -> bool:
    """Whether the LP version is part of "best": its statement is the strongest."""
    return _tiny(tables) and _strongest(tables, options).theorem == promises.LINEAR


class _Run:
    """A run on a reduced problem."""

    def __init__(self, reduction: Reduction, options: GreedyOptions, budget: Budget) -> None:
        self._reduction, self._options, self._budget = reduction, options, budget
        self._tables = Tables.of(reduction.problem)
        self._inner = _inner(self._tables, options)
        self._answers = Answers(reduction, self._tables, plain=options.plain)
        self._vertex: Vertex | None = None

    def claims(self) -> Iterator[Named]:
        tables, options = self._tables, self._options
        if tables.unservable:
            return  # the driver knows that there is no schedule
        if tables.vast:
            # The contents that the program needs are those to go on with.
            found = solved(tables, self._budget)
            if found is None:
                return
            tables, self._vertex = found
            self._tables = tables
            self._answers = Answers(self._reduction, tables, plain=options.plain)
        known: Fraction | None = None
        if options.variant == "lp" or (options.variant == "best" and _with_program(tables)):
            for claim, counts in self._programs():
                yield claim
                if counts is not None:
                    cost = tables.cost(counts[0])
                    known = cost if known is None else min(known, cost)
        elif not options.plain:
            # A bound all the same, so that the guarantee can be judged.
            proof = certificate(self._reduction, promises.rough_prices(tables), "rough prices")
            if proof is not None:
                yield proof
        delta = _delta(tables, options)
        parts = [("units", Fraction(0), False), ("inflated", delta, True)]
        if options.variant == "best":
            # Without inflation there is no factor, but often the best schedule.
            parts.insert(1, ("demands", Fraction(0), True))
        for name, inflation, by_job in parts:
            if options.variant not in ("best", name) or self._budget.stopped:
                continue
            seconds = self._budget.remaining()
            run = Opened(tables, self._inner, inflation, by_job=by_job, seconds=seconds)
            # What costs more than is known already can be left unfinished (theory 2.4).
            counts = run.finish(known, self._budget)
            if counts is not None:
                yield self._answers.named(counts, f"{name}, {self._inner} inside")
                known = tables.cost(counts[0]) if known is None else known
        yield from self._answers.fewer(self._budget)

    def _programs(self) -> Iterator[tuple[Named, Counts | None]]:
        """Yield what the aggregated program proves, its roundings, and the LP version."""
        tables, options = self._tables, self._options
        best, many = options.variant == "best", False
        asked = (best or not options.plain) and _countable(tables)
        vertex = self._vertex
        if vertex is None and asked:
            vertex = Aggregated(tables).solve(self._budget)
        if vertex is not None:
            if not options.plain:
                proof = certificate(self._reduction, vertex.prices)
                if proof is not None:
                    yield proof, None
            # With many machines T-2 costs at most 3 LP_agg, within the LP version's factor.
            many = vertex.value >= tables.dearest(tables.p)
            counts = doubled(vertex, tables)
            yield self._answers.named(counts, "aggregated program, T-2"), counts
            if best:
                counts = one_block_each(vertex, tables)
                yield self._answers.named(counts, "aggregated program, T-add"), counts
        if many or self._budget.stopped or (best and not _with_linear(tables, options)):
            return
        paid = Paid.of(tables)
        fractional = machinewise.solve(paid, self._budget)
        rounded = fractional and machinewise.round_machinewise(paid, fractional, self._budget)
        if rounded:
            yield self._answers.named(rounded, "LP version"), rounded
