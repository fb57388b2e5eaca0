"""Which problems ``conic`` takes, and by which route: what a run starts from, or why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cms.plugin.algorithm import Support
from cms.problem.parts import SizeBoundedConfigurations
from cms.reduction.reduction import Reduction, reduce

from ..tables.demands import Demand, demands_of
from ..tables.machines import maximal_contents
from .cells import MOST_POINTS
from .demands import simple_count
from .polytope import Point, Polytope, contents

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: The program has a variable for every job and block type: the theory's O(1) jobs.
MOST_JOBS = 100
#: It has 2^k slots with k variables each: the theory's O(1) block types.
MOST_BLOCKS = 8
#: Maximal contents that are columns one by one; beyond, corners of cells are fewer (theory 5.2).
MOST_MAXIMAL = 5_000
#: Demands and capacities in integers. CP-SAT's sums must stay below 2^60: a job's sum has up to
#: 2 x 8 times its demand, a slot's 9 times the capacity ...
_LARGEST = 2**55
#: ... and a block type's sum up to 2^13 columns (5,000 listed points are fewer, and so are the
#: corners of cells) with all its blocks, 2^46.
_MOST_SUPPLY = 2**46


class Prepared(NamedTuple):
    """A problem, reduced to what must be decided, in integers.

    ``points`` are the maximal contents for the route "points", None for the route "cells".
    ``simple`` machines are enough for a simple schedule. ``later`` says that the maximal contents
    are too many, but that those may not be which the prices leave.
    """

    reduction: Reduction
    shape: SizeBoundedConfigurations
    polytope: Polytope
    demands: tuple[Demand, ...]
    simple: int
    points: tuple[Point, ...] | None
    later: bool


def prepared(problem: Problem, route: str, *, plain: bool = False) -> Prepared | Support:
    """Prepare a problem for a run.

    Parameters
    ----------
    problem : Problem
    route : str
        "auto", "points" or "cells".
    plain : bool, default False
        Whether the integer program is all there is.

    Returns
    -------
    Prepared or Support
        A refusal, with its reason; or ``Support(True)`` where nothing is left to decide: nothing to
        serve, or a job that nothing serves.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> listed = Problem(configurations=Configuration({"a": 1}), jobs=[Job("x", 1, {"a": 1})])
    >>> print(prepared(listed, "auto").reason)
    the configurations are listed one by one; that is NP-hard even for two jobs and two block \
types, and what makes the problem easy is to have all configurations up to a size \
(SizeBoundedConfigurations)
    """
    if problem.listed_configurations:
        return Support(
            False,
            "the configurations are listed one by one; that is NP-hard even for two jobs and two "
            "block types, and what makes the problem easy is to have all configurations up to a "
            "size (SizeBoundedConfigurations)",
        )
    sets = len(problem.size_bounded_configurations)
    if sets != 1:
        return Support(False, f"it has {sets} size-bounded sets of configurations; expected one")
    if problem.n_jobs > MOST_JOBS:
        return Support(
            False,
            f"it has {problem.n_jobs} jobs; at most {MOST_JOBS} are taken, since the integer "
            "program has a variable for every job and block",
        )
    reduction = reduce(problem)
    small = reduction.problem
    if not small.n_jobs or not all(any(small.rows.row(j).supply) for j in range(small.n_jobs)):
        return Support(True)
    blocks = len(small.blocks)
    if blocks > MOST_BLOCKS:
        return Support(
            False,
            f"it has {blocks} block types that serve a job; at most {MOST_BLOCKS} are taken, since "
            "the integer program has 2^k machines of free content for k types",
        )
    (shape,) = small.size_bounded_configurations
    polytope, demands = contents(shape, small.blocks), demands_of(small)
    simple = simple_count(demands, polytope.highest)
    largest = max(*polytope.right, *(demand.demand for demand in demands))
    if largest > _LARGEST or simple * max(polytope.highest) > _MOST_SUPPLY:
        return Support(
            False,
            "its numbers are too large for CP-SAT's 63 bits: written as integers, demands and the "
            f"capacity may go up to 2^{_LARGEST.bit_length() - 1} and the blocks of all machines "
            f"up to 2^{_MOST_SUPPLY.bit_length() - 1}",
        )
    points = None if route == "cells" else _maximal(shape, small.blocks)
    later = points is None and route == "auto" and polytope.dimension > 2 and not plain
    if points is None and not later:
        refusal = _no_cells(polytope, route)
        if refusal is not None:
            return Support(False, refusal)
    return Prepared(reduction, shape, polytope, demands, simple, points, later)


def _maximal(shape: SizeBoundedConfigurations, blocks: tuple[str, ...]) -> tuple[Point, ...] | None:
    found = maximal_contents(shape, MOST_MAXIMAL)
    if found is None:
        return None
    return tuple(tuple(content.get(block, 0) for block in blocks) for content in found)


def _no_cells(polytope: Polytope, route: str) -> str | None:
    """Why the problem cannot be solved on cells, if so."""
    many = too_many_contents()
    if route == "points":
        return f"{many}, which the route 'points' lists one by one; take the route 'cells'"
    if polytope.dimension <= 2:
        return None
    if route == "auto":
        return (
            f"{many} of more than two block types: their cells are found point by point, and have "
            "hardly fewer corners (measured)"
        )
    if polytope.points(MOST_POINTS) is None:
        return (
            f"a machine has more than {MOST_POINTS:,} contents of more than two block types: "
            "their cells are found point by point"
        )
    return None


def too_many_contents() -> str:
    """Say why maximal contents are not listed one by one."""
    return f"a machine has more than {MOST_MAXIMAL:,} maximal contents"
