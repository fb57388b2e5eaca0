"""Few jobs and few block types: how many of each ``conic`` takes, and the columns for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.plugin.algorithm import Support
from cms.presolver.presolve import PresolvedProblem, presolve
from cms.problem.parts import MachineType, SizeBoundedConfigurations

from ..integer_problem import Demand, blocks_and_costs, demands_of, listed
from .polygon import Polygon, read_polygon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem.problem import Problem

#: How many blocks of each type.
Content: TypeAlias = tuple[int, ...]
#: The program has a variable for every job and block type: the theory's O(1) of both.
MAX_JOBS, MAX_BLOCKS = 100, 8
#: Maximal configurations of a list: the theory's O(1), where there is no polygon. A MIG device has
#: 12, or 28 with double memory.
MAX_LISTED = 100
#: Maximal contents of a size-bounded set that are columns one by one; beyond, corners of cells are
#: fewer (theory 5.2).
MAX_MAXIMAL = 5_000


class Prepared(NamedTuple):
    """A reduced problem, the most blocks of each type on a machine, and the program's columns.

    These are the maximal contents, or, by cells, the corners of the ``polygon`` of all.
    """

    reduction: PresolvedProblem
    machine: MachineType
    demands: tuple[Demand, ...]
    highest: Content
    contents: Sequence[Content]
    polygon: Polygon | None

    @property
    def simple(self) -> int:
        """Machines enough for a simple schedule: each job alone, on blocks of its best type."""
        pairs = (zip(demand.enough, self.highest, strict=True) for demand in self.demands)
        return sum(min(-(-blocks // most) for blocks, most in each if blocks) for each in pairs)


def prepare(problem: Problem, route: str) -> Prepared | Support:
    """Prepare a problem, or refuse it; ``Support(True)`` where nothing is left to decide."""
    if problem.n_jobs > MAX_JOBS:
        return Support(False, f"it has {problem.n_jobs} jobs; expected at most {MAX_JOBS}")
    for group in problem.group_limits:
        return Support(False, f"{problem.limit_label(group)} has a limit; expected none of groups")
    reduction = presolve(problem)
    small, blocks = reduction.problem, reduction.problem.blocks
    if not small.n_jobs or not all(any(small.rows.row(j).supply) for j in range(small.n_jobs)):
        return Support(True)
    if len(blocks) > MAX_BLOCKS:
        number = f"{len(blocks)} block types that serve a job"
        return Support(False, f"it has {number}; expected at most {MAX_BLOCKS}")
    machines = {shape.machine for shape in small.configurations}
    if len(machines) > 1:
        return Support(False, f"it has {len(machines)} machine types; expected one")
    machine = small.machine_type(machines.pop())
    shape, *others = small.configurations
    polygon = None
    if len(blocks) == 2 and isinstance(shape, SizeBoundedConfigurations) and not others:
        polygon = read_polygon(shape, blocks, small.useful_blocks())
    elif len(blocks) > 1 and route == "cells":
        return Support(
            False,
            "the route 'cells' takes one size-bounded set of at most two block types that serve a "
            "job: a list can have holes, and of more types cells have hardly fewer corners than "
            "contents; take 'points'",
        )
    points = "" if polygon and route == "cells" else _list_points(small)
    if not isinstance(points, str):
        highest = tuple(map(max, zip(*points, strict=True)))
        return Prepared(reduction, machine, demands_of(small), highest, points, None)
    if polygon is None or route == "points":
        return Support(False, points)
    corners = [corner for corner in polygon.list_corners() if any(corner)]
    return Prepared(reduction, machine, demands_of(small), polygon.highest, corners, polygon)


def _list_points(small: Problem) -> tuple[Content, ...] | str:
    """List the maximal contents, or say why not."""
    lists = len(small.listed_configurations)
    if lists > MAX_LISTED:
        return (
            f"it lists {lists} configurations none of which is part of another; expected at most "
            f"{MAX_LISTED}: with long lists the problem is NP-hard even for two jobs and two block "
            "types, unlike with all configurations up to a size"
        )
    listing = listed(small, MAX_MAXIMAL)
    if listing.left_out:
        return (
            f"a machine has more than {MAX_MAXIMAL:,} maximal contents, which are listed one by "
            "one; take the route 'cells' for two block types, branch_and_price for more"
        )
    return tuple(map(tuple, blocks_and_costs(small, listing.shapes)[0]))
