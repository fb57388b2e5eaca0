"""Exact for few jobs and few block types: integer conic combinations in fixed dimension."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Support
from cms.plugin.guarantee import Guarantee
from cms.values.fields import CheckedFields

from ..integer_problem import without_rules
from .run import Run
from .small_problems import Prepared, prepare

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget, Claim
    from cms.problem.problem import Problem

_ROUTES = ("auto", "points", "cells")


@dataclass(frozen=True)
class ConicOptions(CheckedFields):
    """Options of :class:`Conic`.

    Parameters
    ----------
    route : str, default "auto"
        "points": a column for every maximal content of a machine; "cells": for the corners
        of the polygon of all contents; "auto": points where they are few, else cells.
    plain : bool, default False
        Whether to run the integer program alone and claim nothing but its schedules.
    """

    route: str = "auto"
    plain: bool = False

    def __post_init__(self) -> None:
        self._one_of("route", _ROUTES)
        self._flag("plain")


class Conic:
    """Exact for few jobs and few block types, on all configurations up to a size or a short list.

    The columns of an integer program with the blocks of each job are a machine's maximal contents
    (*points*); or, with two block types, the corners of the polygon that its contents are, and two
    *slots* of free content (*cells*): whatever machines a schedule has, as many others have the
    same blocks in all, of which at most two are no corners. The linear program over options comes
    first: its prices certify a bound, its rounding is a schedule, and often that is all. Otherwise
    SCIP looks for a better schedule, and CP-SAT decides.

    Taken are at most 100 jobs, 8 block types that serve one, and one machine type, with a list of
    at most 100 configurations, none of which is part of another (long lists make two jobs and two
    block types NP-hard), size-bounded sets of at most 5,000 maximal contents, or both; or one set
    of two block types and any number. An error says if numbers leave the range of CP-SAT.

    Notes
    -----
    **Guarantee.** Optimal: cost <= OPT for every finished run. Beyond the prices' bound the proof
    is CP-SAT's word; SCIP's is not taken, only its schedule.

    **Running time.** For two block types the corners are found in time polynomial in the logarithm
    of the numbers, without listing a content. The integer program has a fixed number of variables
    for fixed numbers of jobs and block types, times the columns; CP-SAT is exponential in the
    worst case.

    References
    ----------
    The case: Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines,
    APPROX/RANDOM 2024, doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22. Integer conic combinations:
    Goemans, Rothvoss: Polynomiality for bin packing with a constant number of item types, J. ACM
    2020, arXiv:1307.5108. The number of slots in any dimension: Eisenbrand, Shmonin: Caratheodory
    bounds for integer cones, Operations Research Letters 2006, checked in
    ``proofs_checks/structure_theorem.py``.

    Examples
    --------
    >>> from cms import Job, Problem, SizeBoundedConfigurations, solve
    >>> problem = Problem(
    ...     configurations=SizeBoundedConfigurations({"s": 7, "l": 10}, capacity=291),
    ...     jobs=[Job("x", 14, {"l": 1}), Job("y", 21, {"s": 1})],
    ... )
    >>> solution = solve(problem, Conic(), options={"route": "cells"})
    >>> solution.machine_count, solution.status.value, str(solution.guarantee.verdict)
    (1, 'optimal', 'verified')
    """

    name = "conic"
    options_type = ConicOptions

    def support(self, problem: Problem, options: ConicOptions) -> Support:
        """Refuse long lists, several machine types, and what is too large for the program."""
        answer = without_rules(problem) and prepare(problem, options.route)
        return answer if isinstance(answer, Support) else Support(True)

    def guarantee(self, problem: Problem, options: ConicOptions) -> Guarantee:
        """Return that a finished run is optimal."""
        return Guarantee(1, 0, "OPT", "conic combinations (theory 5)")

    def run(self, problem: Problem, options: ConicOptions, budget: Budget) -> Iterator[Claim]:
        """Yield a certificate, a rounding, and what the integer program finds and proves."""
        given = prepare(problem, options.route)
        # Else the driver knows all there is to know: nothing to serve, or a job nothing serves.
        if isinstance(given, Prepared):
            yield from Run(given, options.plain, budget).claims()
