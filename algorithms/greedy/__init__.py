"""Greedy for the general case: logarithmic factors (theory 2)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Named, Support
from cms.presolver.presolve import presolve
from cms.running.stopping import Stopped
from cms.values.fields import CheckedFields

from ..aggregated.program import (
    Aggregated,
    certificate,
    doubled,
    guarantee_of_doubled,
    guarantee_of_one_block_each,
    one_block_each,
    solved,
)
from ..aggregated.tidy import Answers
from ..integer_problem import Tables, supported, without_limits
from . import promises
from .opening import Opening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget
    from cms.plugin.guarantee import Guarantee
    from cms.presolver.presolve import PresolvedProblem
    from cms.problem.problem import Problem

_VARIANTS = ("best", "units", "inflated", "alone")
_INNER = ("auto", "greedy", "independent", "dependent", "exact")
#: Filling a machine exactly takes milliseconds up to this many blocks, and pays up to these jobs.
_EXACT_BLOCKS, _EXACT_JOBS = 8, 500
#: The most blocks of a machine with which it is offered at all: the search is exponential.
_MOST_EXACT_BLOCKS = 16
#: Blocks of a type, as far as jobs can use them, that the assignment program can count in floats.
_MOST_COUNTED = 10**12
#: Triples of job, block type and configuration up to which assignment programs are quick, and
#: "alone" is part of "best".
_MOST_TRIPLES = 3_000
#: Shares of jobs (n k) up to which the aggregated program is part of "best".
_MOST_SHARES = 25_000
#: Blocks of a type that the aggregated program can have as a coefficient.
_LARGEST = 10**300


@dataclass(frozen=True)
class GreedyOptions(CheckedFields):
    """Options of :class:`Greedy`.

    Parameters
    ----------
    variant : {"best", "units", "inflated", "alone"}, default "best"
        ``units``: every unit of demand counts the same (G-int). ``inflated``: every job's demand
        is 1, and is to be met ``1 + delta`` times (G-real). ``alone``: likewise, but a unit counts
        what it costs where the job is served by itself (G-alone). ``best``: the best schedule of
        the aggregated program rounded (T-2, T-add), ``units``, ``inflated`` with and without
        inflation, and ``alone`` in small problems if it promises most.
    inner : {"auto", "greedy", "independent", "dependent", "exact"}, default "auto"
        How a single machine is filled: item greedy (1/2), the assignment program with independent
        (1 - 1/e) or dependent rounding (3/4), or exactly (1). ``auto``: exactly where that is
        quick, item greedy otherwise; for ``alone`` in small problems dependent rounding.
    delta : number or None, default None
        The inflation of ``inflated`` and ``alone``, > 0; by default near the best one.
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
    often at once as every copy gains the same, so huge demands take no longer. Of sets too large to
    be listed greedy takes the contents that the aggregated program needs, without a promise.

    Notes
    -----
    **Guarantee.** With the inner method's factor beta, the least of (as the variant has them):

    * G-int: ``H(g) / beta`` times the optimum, g the most units of demand one machine can gain;
    * G-real: ``(1 + delta) / beta * ln((1 + delta) n / delta)`` times the optimum, rounded up:
      with the best delta ``(ln n + ln ln n + O(1)) / beta``;
    * G-alone: ``(1 + delta) / beta * (1 + ln(min(n, s) / min(1, delta)))`` times the optimum, s
      the most blocks of a machine: ``O(log min(n, s))``;
    * T-2: ``(1 + phi) LP_agg + p`` and T-add: ``LP_agg + p + n``, p = min(c, k).

    The first three are stated where floats tell gains of one unit apart: up to demands of some
    10^270, less where costs are far apart. No polynomial algorithm has a factor
    ``(1 - epsilon) ln n`` unless P = NP.

    **Running time.** A step opens machines until some job gets less than before: about as many
    steps as jobs, each O(c s k log n) with item greedy. The aggregated program has n k variables.

    References
    ----------
    Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines, APPROX 2024,
    doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22, the general case. Budgeted allocation:
    arXiv:1403.7519. Checked in ``proofs_checks/g_int.py``, ``g_real.py``, ``g_alone.py``,
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
        best = options.variant == "best"
        if not general or (best and options.inner in ("auto", "greedy")):
            return general
        small = presolve(problem, fewer=True).problem
        tables = Tables.of(small)
        if tables.vast and not best:
            return supported(problem, small)
        most = _most_blocks(tables)
        if options.inner == "exact" and most > _MOST_EXACT_BLOCKS:
            return Support(
                False,
                f"a machine has up to {most} blocks; filling it exactly is exponential and is "
                f"offered up to {_MOST_EXACT_BLOCKS}; choose inner='dependent' (3/4) or 'greedy'",
            )
        if options.inner in ("independent", "dependent") and not _countable(tables):
            return Support(
                False,
                f"a machine has more than {_MOST_COUNTED} blocks of a type that jobs can use, "
                "which linear programs cannot count; choose inner='greedy'",
            )
        return Support(True)

    def guarantee(self, problem: Problem, options: GreedyOptions) -> Guarantee | None:
        """Return the strongest statement about this problem; see the notes above."""
        tables = Tables.of(presolve(problem, fewer=True).problem)
        if options.variant == "best":
            return _strongest(tables, options)
        return promises.of(tables, *_part(options.variant, tables, options))

    def run(self, problem: Problem, options: GreedyOptions, budget: Budget) -> Iterator[Named]:
        """Yield the schedules of the variant's parts, and prices that prove a bound."""
        with suppress(Stopped):
            reduction = presolve(problem, lambda: budget.stopped, fewer=True)
            yield from _claims(reduction, options, budget)


def _part(variant: str, tables: Tables, options: GreedyOptions) -> tuple[str, str, Fraction]:
    """State a run of greedy: its variant, how it fills machines, and how it inflates demands."""
    inner, delta = options.inner, Fraction(0)
    if inner == "auto":
        exactly = _most_blocks(tables) <= _EXACT_BLOCKS and tables.n <= _EXACT_JOBS
        inner = "exact" if exactly else "greedy"
        if variant == "alone" and not exactly and _small(tables) and _countable(tables):
            inner = "dependent"
    if variant == "inflated":
        delta = options.delta or promises.best_inflation(tables.n)
    elif variant == "alone":
        delta = options.delta or promises.best_alone_inflation(promises.served_at_once(tables))
    return variant, inner, delta


def _most_blocks(tables: Tables) -> int:
    return max((sum(row) for row in tables.counts), default=0)


def _countable(tables: Tables) -> bool:
    return all(count <= _MOST_COUNTED for row in promises.usable(tables) for count in row)


def _small(tables: Tables) -> bool:
    """Whether the jobs that each block type of each configuration serves are few in all."""
    serves = (tables.supply > 0).sum(axis=0).tolist()
    triples = sum(serves[i] for row in tables.counts for i, count in enumerate(row) if count)
    return not tables.vast and triples <= _MOST_TRIPLES


def _with_program(tables: Tables) -> bool:
    """Whether the aggregated program is part of "best": without lists nothing else promises."""
    few = tables.n * tables.k <= _MOST_SHARES
    return bool(tables.vast) or (few and _most_blocks(tables) <= _LARGEST)


def _strongest(tables: Tables, options: GreedyOptions) -> Guarantee | None:
    """Return the strongest statement about the parts that "best" may run."""
    # Greedy's own need the full list of contents, which vast sets lack.
    variants = [] if tables.vast else ["units", "inflated", *["alone"] * _small(tables)]
    stated = [promises.of(tables, *_part(each, tables, options)) for each in variants]
    if _with_program(tables):
        stated += [guarantee_of_doubled(tables), guarantee_of_one_block_each(tables)]
    value = promises.rough_value(tables)
    known = (each for each in stated if each is not None)
    return min(known, key=lambda each: (each.allows(value), each.theorem), default=None)


def _parts(tables: Tables, options: GreedyOptions) -> list[tuple[str, str, Fraction]]:
    """List the greedy runs of the variant."""
    if options.variant != "best":
        return [_part(options.variant, tables, options)]
    # Without inflation demands have no factor, but often the best schedule.
    parts = [_part(each, tables, options) for each in ("units", "demands", "inflated")]
    if _small(tables):
        alone = _part("alone", tables, options)
        if (stated := promises.of(tables, *alone)) and _strongest(tables, options) == stated:
            parts.append(alone)
    return parts


def _claims(reduction: PresolvedProblem, options: GreedyOptions, budget: Budget) -> Iterator[Named]:
    """Yield the claims of a run on a reduced problem. Raises Stopped."""
    tables = Tables.of(reduction.problem, budget=budget)
    if tables.unservable:
        return  # the driver knows that there is no schedule
    vertex = None
    if tables.vast:
        # The contents that the program needs are those to go on with.
        tables, vertex = solved(tables, budget)
    elif options.variant == "best" and _with_program(tables):
        with suppress(Stopped):
            vertex = Aggregated(tables, budget).solve(budget)
    if not options.plain:
        # A bound even without the program, so that the guarantee can be judged.
        rough = promises.rough_prices(tables), "rough prices"
        proof = certificate(reduction, *(rough if vertex is None else (vertex.prices,)))
        if proof is not None:
            yield proof
    answers = Answers(reduction, tables, budget, plain=options.plain)
    costs = []
    for theorem, rounding in (("T-2", doubled), ("T-add", one_block_each)):
        if vertex is not None:
            counts = rounding(vertex, tables, budget)
            yield answers.named(counts, f"aggregated program, {theorem}")
            costs.append(tables.cost(counts[0]))
    for variant, inner, delta in _parts(tables, options):
        weights = "demands" if variant == "inflated" else variant
        run = Opening(tables, inner, weights, delta, budget)
        # What costs more than is known already can be left unfinished (theory 2.4).
        opened = run.finish(min(costs, default=None))
        if opened is not None:
            yield answers.named(opened, f"{variant}, {inner} inside")
            costs = costs or [tables.cost(opened[0])]
    yield from answers.fewer()
