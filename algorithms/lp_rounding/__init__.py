"""Linear programs, rounded: constant factors where configurations are few (theory 3)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, fsum
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Named, SolverBound, Support
from cms.plugin.guarantee import Guarantee
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
    rounded,
    solved,
)
from ..aggregated.tidy import Answers
from ..integer_problem import MOST_SHAPES, Tables, least_pay, without_limits
from ..solvers.floats import near
from .search import (
    cheapest_support,
    cheapest_whole,
    cut_by,
    cut_by_vertex,
    in_reach,
    limit_on_cost,
    number_of_vectors,
    vectors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget, Claim
    from cms.presolver.presolve import PresolvedProblem
    from cms.problem.problem import Problem

    from ..aggregated.purchase import Blocks, Vertex
    from ..integer_problem import Counts

_VARIANTS = ("milp", "published", "supports", "enumeration", "doubling")
#: The most machine vectors that "enumeration" may have to go through.
_MOST_VECTORS = 1_000_000
#: Beyond this many machines MILP_c is not worth the time.
_MOST_TOLD = 10**6
#: Jobs whose blocks are rounded in a part of the half second that is left after the end.
_MOST_LATE_JOBS = 100_000
#: What a sum of floats may be wrong by, at most, as a part of it.
_LAST = Fraction(1, 10**13)


@dataclass(frozen=True)
class LpRoundingOptions(CheckedFields):
    """Options of :class:`LpRounding`.

    Parameters
    ----------
    variant : {"milp", "published", "supports", "enumeration", "doubling"}, default "milp"
        ``milp``: twice MILP_c, the program with whole machines (Theorem A). ``supports``: 3 times
        the optimum by linear programs alone, one a set of configurations (Theorem A''); and
        ``published``: the same with machine counts known only within a factor ``1 + epsilon / 3``,
        the paper's ``3 + epsilon``. ``enumeration``: ``2 + epsilon``, over all machine
        vectors of a constant size (Theorem A'). ``doubling``: ``(1 + phi) LP_agg + p`` (T-2).
    epsilon : number, default 1/2
        > 0, of ``published`` and ``enumeration``.
    plain : bool, default False
        Only the textbook algorithm: no clean-up afterwards, no bound. Stopped before its program
        is solved, a run ends with T-2, for which the first linear program suffices.
    """

    variant: str = "milp"
    epsilon: Fraction = Fraction(1, 2)
    plain: bool = False

    def __post_init__(self) -> None:
        self._one_of("variant", _VARIANTS)
        self._number("epsilon", above=0)
        self._flag("plain")


class LpRounding:
    """Find machines that would do if blocks could be cut, take them twice, and round.

    With twice the machines every job can be given one block's worth more than it wants, along the
    edges of a pseudoforest; the rounding lemma then loses less than one block a job. The variants
    differ in how the machines are found. Afterwards superfluous blocks and machines go, and in
    small problems smaller numbers of machines are tried by a small integer program over the blocks.

    Notes
    -----
    **Guarantee.** No tolerance has a part in it: floats propose, rationals decide. ``milp``:
    ``2 MILP_c`` (Theorem A); nothing is stated where the cost of the machines that may be needed,
    in steps of which all costs are multiples, exceeds CP-SAT's integers (about 10^17), unless there
    are machines enough for T-add to stay within 2 LP_agg. ``supports``: 3 times the optimum (A'').
    ``published``: ``3 + epsilon`` times the optimum, the factor of the paper. ``enumeration``:
    ``2 + epsilon`` times the optimum (A'). ``doubling``: ``(1 + phi) LP_agg + p``, phi the largest
    part of a demand that one block satisfies and p = min(c, k) (T-2). No factor below 2 is possible
    in polynomial time, even for one configuration, unless P = NP (Partition).

    **Running time.** Polynomial for O(1) configurations: a linear program of n k variables, and as
    many of them as there are sets of configurations (2^c, most are cut off) or machine vectors
    (O(1/epsilon)^c); for ``milp`` an integer program in c variables.

    References
    ----------
    Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines, APPROX 2024,
    doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22, O(1) configurations; arXiv:2312.05416v1. Checked in
    ``proofs_checks/theorem_a.py``, ``few_configurations.py``, ``rounding_lemma.py`` and
    ``t2_tadd.py``.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solution = solve(problem, method="lp_rounding")
    >>> solution.machine_count, str(solution.guarantee.guarantee)
    (2, 'cost <= 2 MILP_C (Theorem A, theory 3)')
    """

    name = "lp_rounding"
    options_type = LpRoundingOptions

    def support(self, problem: Problem, options: LpRoundingOptions) -> Support:
        """Refuse limits on machines, and more machine vectors than can be gone through."""
        general = without_limits(problem, None)
        if not general or options.variant in ("milp", "doubling"):
            return general
        tables = Tables.of(presolve(problem).problem)
        if tables.unservable:
            return Support(True)  # the driver knows that there is no schedule
        if tables.vast:
            return Support(
                False,
                f"a size-bounded set has more than {MOST_SHAPES} maximal configurations, and "
                f"variant={options.variant!r} goes through sets of them; choose variant='doubling' "
                "or 'milp' (T-2), auto or branch_and_price",
            )
        if options.variant != "enumeration":
            return general
        if not all(tables.costs):
            return Support(
                False,
                "some machines cost nothing, so that no cost limits how many there are; choose "
                "variant='supports'",
            )
        least, most = _switch(tables, options.epsilon)
        number = number_of_vectors(tables, most)
        # Beyond that number of machines no vector is gone through; no solver is needed to tell.
        if number > _MOST_VECTORS and _told(tables) < least:
            return Support(
                False,
                f"{tables.c} configurations have up to {number} machine vectors to go through, at "
                f"most {_MOST_VECTORS} are; choose a larger epsilon or variant='supports'",
            )
        return Support(True)

    def guarantee(self, problem: Problem, options: LpRoundingOptions) -> Guarantee | None:
        """Return the variant's guarantee; see the notes above."""
        epsilon = options.epsilon
        if options.variant == "published":
            return Guarantee(3 + epsilon, 0, "OPT", "APPROX 2024, O(1) configurations")
        if options.variant == "supports":
            return Guarantee(3, 0, "OPT", "Theorem A'', theory 3")
        if options.variant == "enumeration":
            return Guarantee(2 + epsilon, 0, "OPT", "Theorem A', theory 3")
        tables = Tables.of(presolve(problem).problem)
        return _theorem_a(tables) if options.variant == "milp" else guarantee_of_doubled(tables)

    def run(self, problem: Problem, options: LpRoundingOptions, budget: Budget) -> Iterator[Claim]:
        """Yield the dual prices of the aggregated program, then the variant's schedule."""
        with suppress(Stopped):
            reduction = presolve(problem, lambda: budget.stopped)
            tables = Tables.of(reduction.problem, budget=budget)
            yield from _Run(reduction, tables, options, budget).claims()


def _theorem_a(tables: Tables) -> Guarantee | None:
    """State Theorem A; T-2 or None where MILP_c can neither be solved nor be done without."""
    stated = Guarantee(2, 0, "MILP_C", "Theorem A, theory 3")
    if tables.unservable or (in_reach(tables) and not tables.vast):
        return stated
    if _told(tables) >= guarantee_of_one_block_each(tables).additive:
        return stated
    return guarantee_of_doubled(tables) if tables.vast else None


def _told(tables: Tables) -> Fraction:
    """Bound LP_agg from below, by prices that can be told without a solver.

    A block costs at least what it does on a machine that is full: its part of the blocks, or of the
    capacity where contents are not listed.
    """
    pairs = list(zip(tables.costs, tables.counts, strict=True))
    each = [
        min((cost / sum(row) for cost, row in pairs if row[i]), default=Fraction(0))
        for i in range(tables.k)
    ]
    problem = tables.problem
    for shape in problem.size_bounded_configurations:
        if shape.machine in tables.vast:
            whole = problem.machine_type(shape.machine).cost / shape.capacity
            for i, block in enumerate(problem.blocks):
                if block in shape.sizes and shape.largest_count(block):
                    each[i] = min(each[i], whole * shape.sizes[block])
    worth = least_pay(tables.alone, [near(price) for price in each])
    # Floats that are cut are too small; the others are right but for a few units of the last place.
    return Fraction(fsum(worth.tolist())) * (1 - _LAST)


def _switch(tables: Tables, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Return from which LP_agg on T-2 is within 2 + epsilon, and what the optimum is below that.

    ``2 LP_agg + p <= (2 + epsilon) LP_agg`` from p / epsilon on, in costs.
    """
    loss = tables.dearest(tables.p)
    least = loss / epsilon
    return least, 2 * least + loss


class _Run:
    def __init__(
        self,
        reduction: PresolvedProblem,
        tables: Tables,
        options: LpRoundingOptions,
        budget: Budget,
    ) -> None:
        self._reduction, self._tables = reduction, tables
        self._options, self._budget = options, budget

    def claims(self) -> Iterator[Claim]:
        tables, budget = self._tables, self._budget
        if tables.unservable:
            return  # the driver knows that there is no schedule
        tables, vertex = solved(tables, budget)
        self._tables = tables
        plain = self._options.plain
        if not plain:
            proof = certificate(self._reduction, vertex.prices)
            if proof is not None:
                yield proof
        answers = Answers(self._reduction, tables, budget, plain=plain)
        with suppress(Stopped):
            for part, counts in self._roundings(vertex):
                if not isinstance(counts, SolverBound):
                    yield answers.named(counts, part)
                elif not plain:
                    yield Named(counts, part)
        if answers.best is None and tables.n <= _MOST_LATE_JOBS:
            # Stopped within the variant's own program: what is left is what the first one gives.
            counts = doubled(vertex, tables)
            yield Named(tables.schedule(self._reduction, *counts), "aggregated program, T-2")
        yield from answers.fewer()

    def _roundings(self, vertex: Vertex) -> Iterator[tuple[str, Counts | SolverBound]]:
        tables, variant = self._tables, self._options.variant
        if variant == "doubling" or not self._options.plain:
            yield "aggregated program, T-2", doubled(vertex, tables, self._budget)
        if not self._options.plain:
            yield "aggregated program, T-add", one_block_each(vertex, tables, self._budget)
        if variant == "milp":
            yield from self._milp(vertex)
        elif variant in ("supports", "published"):
            found = cheapest_support(tables, self._budget)
            counts = self._twice(self._counted(found.machines), found.blocks)
            yield "one program a support", counts
        elif variant == "enumeration":
            yield from self._enumeration(vertex)

    def _milp(self, vertex: Vertex) -> Iterator[tuple[str, Counts | SolverBound]]:
        """Theorem A: whole machines and blocks in parts, then everything twice."""
        tables, budget = self._tables, self._budget
        added = guarantee_of_one_block_each(tables)
        loss = added.additive
        many = vertex.value >= max(loss, _MOST_TOLD * tables.dearest(1))
        if many or tables.vast or not in_reach(tables):
            # So many machines that T-add costs no more than twice the program (theory 2.4, regime
            # A); or costs so far apart that nothing is stated, or contents too many to list.
            if self._options.plain and tables.vast and vertex.value < loss:
                yield "aggregated program, T-2", doubled(vertex, tables, budget)
            elif self._options.plain:
                yield "aggregated program, T-add", one_block_each(vertex, tables, budget)
            return
        stated = guarantee_of_doubled(tables), added
        most = min(limit_on_cost(tables), *(one.allows(vertex.value) for one in stated))
        whole, found = cheapest_whole(tables, vertex, most, budget)
        yield "whole machines", SolverBound(tables.cost(whole), "CP-SAT")
        # The machines that cost nothing are added, whole.
        machines = [Fraction(x + ceil(free)) for x, free in zip(whole, found.machines, strict=True)]
        yield "whole machines, twice", self._twice(machines, found.blocks)

    def _enumeration(self, vertex: Vertex) -> Iterator[tuple[str, Counts | SolverBound]]:
        """Theorem A': T-2 for many machines, the cheapest machine vector that does for few."""
        tables, budget = self._tables, self._budget
        least, most = _switch(tables, self._options.epsilon)
        if vertex.value >= least:
            if self._options.plain:
                yield "aggregated program, T-2", doubled(vertex, tables, self._budget)
            return
        program = Aggregated(tables, budget)
        cuts = [cut_by(vertex.prices, vertex.value, tables)]
        for machines in vectors(tables, vertex.value, most):
            if budget.stopped:
                return
            # What other machines lacked rules most out at once.
            if not all(cut.keeps(machines) for cut in cuts):
                continue
            found = program.beside(machines, budget)
            if not found.value:
                counts = self._twice(list(map(Fraction, machines)), found.blocks)
                yield "the cheapest machines, twice", counts
                return
            cuts.append(cut_by_vertex(found, tables, machines))
        if not budget.stopped:
            raise AssertionError("no machines within T-2's bound do, though its own machines do")

    def _counted(self, machines: Sequence[Fraction]) -> list[Fraction]:
        """Return counts as ``published`` knows them: too large by up to ``epsilon / 3``."""
        if self._options.variant == "supports":
            return list(machines)
        counted = []
        for x in machines:
            part = x * self._options.epsilon / 3
            power = Fraction(2) ** (part.numerator.bit_length() - part.denominator.bit_length())
            unit = power if power <= part else power / 2  # the largest power of 2 within the part
            counted.append(ceil(x / unit) * unit if x else x)
        return counted

    def _twice(self, machines: Sequence[Fraction], blocks: Blocks) -> Counts:
        # Of no job's demand one block satisfies more than the part phi.
        factor = 2 if self._options.plain else 1 + self._tables.phi
        return rounded(self._tables, [factor * x for x in machines], blocks, self._budget)
