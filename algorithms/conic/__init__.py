"""Exact for few jobs and block types, all configurations up to a size: conic combinations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Support
from cms.plugin.guarantee import Guarantee
from cms.values.fields import CheckedFields

from .prepared import Prepared, prepared

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
        "points": a column for every maximal content of a machine; "cells": for the corners of
        parallelepipeds that cover all contents, and free machines beside them; "auto": points
        where they are few, else cells.
    plain : bool, default False
        Whether to run the integer program alone: no prices, no rounding, and no claims but its
        schedules.
    """

    route: str = "auto"
    plain: bool = False

    def __post_init__(self) -> None:
        self._one_of("route", _ROUTES)
        self._flag("plain")


class Conic:
    """Exact for few jobs and few block types, if all configurations up to a size are allowed.

    The contents of a machine are then the integer points of a polytope in as many dimensions as
    there are block types. Integral parallelepipeds inside it cover them; X is the set of their
    vertices. Whatever machines a schedule has, as many others have the same blocks in all, of which
    those outside X are different from each other and at most 2^k. So one integer program decides
    the problem: a column for each content in X, 2^k *slots* of free content, and the blocks of each
    job. SCIP looks for a schedule first, with little effort, and CP-SAT decides. Where a machine
    has few maximal contents, these are the columns, and no slots are needed.

    The linear program over options comes first: its prices certify a bound, its rounding is a
    schedule, and often that is all. Otherwise the prices tell which contents, and how many blocks
    of each type for a job, a better schedule can have; the integer program leaves out the rest.

    Listed configurations are refused: with them the problem is NP-hard for two jobs and two block
    types already. One size-bounded set is taken, with a limit of machines or of blocks a machine if
    need be; at most 100 jobs and 8 block types that serve one; numbers within the range of CP-SAT.
    With three block types and more the route "cells" lists all contents, of which there may be
    5,000. (In the theory this, too, is polynomial.) Where there are more maximal contents than that
    the route "auto" takes those that the prices leave; if these are too many as well, and the
    rounding is not proved optimal, the run ends with an error: it may not end otherwise.

    Notes
    -----
    **Guarantee.** Optimal: cost <= OPT for every finished run. Beyond the prices' bound the proof
    is CP-SAT's word; SCIP's is not taken, only its schedule, once that is checked. A ``plain`` run
    does without SCIP.

    **Running time.** For two block types the cells are found in time polynomial in the logarithm
    of the numbers, without listing a content. The integer program has a fixed number of variables
    for fixed numbers of jobs and block types, times the size of X, which is polynomial in that
    logarithm; the theory's polynomial algorithm for it is not run. CP-SAT is exponential in the
    worst case.

    References
    ----------
    The case: Casey, Rajaraman, Stalfa, Tan: Scheduling Splittable Jobs on Configurable Machines,
    APPROX/RANDOM 2024, doi:10.4230/LIPIcs.APPROX/RANDOM.2024.22. Integer conic combinations:
    Goemans, Rothvoss: Polynomiality for bin packing with a constant number of item types, J. ACM
    2020, arXiv:1307.5108. The number of slots: Eisenbrand, Shmonin: Caratheodory bounds for integer
    cones, Operations Research Letters 2006. The claim is checked in
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
        """Refuse listed configurations, and what is too large for the integer program."""
        answer = prepared(problem, options.route, plain=options.plain)
        return answer if isinstance(answer, Support) else Support(True)

    def guarantee(self, problem: Problem, options: ConicOptions) -> Guarantee:
        """Return that a finished run is optimal."""
        return Guarantee(1, 0, "OPT", "conic combinations (theory 5): X and 2^k slots")

    def run(self, problem: Problem, options: ConicOptions, budget: Budget) -> Iterator[Claim]:
        """Yield a certificate, a rounding, and what the integer program finds and proves."""
        from .run import Run

        given = prepared(problem, options.route, plain=options.plain)
        # Else the driver knows all there is to know: nothing to serve, or a job nothing serves.
        if isinstance(given, Prepared):
            yield from Run(given, options.plain, budget).claims()
