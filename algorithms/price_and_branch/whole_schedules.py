"""Schedules where jobs are alike: of whole machines and whole blocks, cut last (theory 6.6)."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.certificate.certificate import next_below

from ..closing.diving import Diver
from ..closing.near import NearOptions
from ..closing.undecided import Undecided
from ..closing.whole_fleets import cheapest_fleet, whole_fleet, within
from ..prices.region import configuration_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction
    from cms.schedule.schedule import Schedule

    from ..closing.undecided import Pick
    from ..prices.choices import Choices
    from ..prices.jobs import Jobs
    from ..prices.points import PricePoint
    from ..prices.region import Region, Row
    from .blend import Blend, Blends

#: Options of a kind to begin with: so many, out of so many within some cost steps of the cheapest.
_OPTIONS, _LISTED, _SLACK_STEPS = 8, 60, 20
#: SCIP's nodes for all totals at once, and for jobs that share blocks out.
_FLEET_NODES, _THIS_FLEET_NODES, _JOBS_NODES = 1500, 300, 50
#: Dives for the machines of jobs that have chosen.
_DIVES = slice(6)


class WholeSchedules:
    """Looks for schedules by whole totals.

    Parameters
    ----------
    given : Reduction
    jobs : Jobs
        Of its problem.
    region : Region
        Without branches.
    blends : Blends
        What it knows is used, and more is added to it.
    point : PricePoint
        The best without branches.
    budget : Budget
    """

    def __init__(
        self,
        given: Reduction,
        jobs: Jobs,
        region: Region,
        blends: Blends,
        point: PricePoint,
        budget: Budget,
    ) -> None:
        self._given, self._jobs, self._region = given, jobs, region
        self._blends, self._budget, self._bound = blends, budget, point.bound
        self._step = given.original.cost_step
        self._diver, self._near = Diver(jobs, region, budget), NearOptions(jobs, point)
        self._smaller = _smaller(region)
        # Options that have gone together.
        self._more: list[Pick] = []

    def first(
        self, cost: Fraction, least: Fraction, chosen: Sequence[NDArray[np.int64]]
    ) -> Schedule | None:
        """Look for a schedule with a program over all totals at once (theory 6.6).

        Parameters
        ----------
        cost : Fraction
            Only cheaper ones are of interest.
        least : Fraction
            No schedule costs less.
        chosen : sequence of arrays of shape (kinds, k)
            Options that have gone together.
        """
        for kind in range(len(self._jobs)):
            near = self._near.some(kind, _SLACK_STEPS * self._step, _LISTED)
            for option in smallest(near, self._smaller)[:_OPTIONS]:
                self._blends.add_option(kind, option)
        for kind in range(len(self._jobs)):
            taken = dict.fromkeys(tuple(each[kind].tolist()) for each in chosen)
            self._more += [(kind, option) for option in smallest([*taken], self._smaller)]
        given = self._given_to_programs()
        fleet = cheapest_fleet(*given, self._budget, least=least, nodes=_FLEET_NODES)
        if fleet is None:
            return None
        costs = zip(fleet, self._region.costs, strict=True)
        least = sum((number * each for number, each in costs), Fraction(0))
        below = next_below(cost, self._step)
        if least > below:
            return None
        # Few fleets need more than the cheapest one that does for jobs in parts.
        found = self.of_fleet(fleet, cost)
        if found is None:
            fleets = whole_fleet(
                *given, self._budget, least=least, target=below, nodes=_FLEET_NODES
            )
            found = None if fleets is None else self._packed(fleets.choices, fleets.cost, cost)
        return found

    def of_fleet(self, machines: Sequence[int], cost: Fraction) -> Schedule | None:
        """Look for a schedule of so many machines of each type."""
        pairs = zip(machines, self._region.costs, strict=True)
        least = sum((number * each for number, each in pairs), Fraction(0))
        found = whole_fleet(
            *self._given_to_programs(),
            self._budget,
            least=least,
            target=least,
            nodes=_THIS_FLEET_NODES,
            machines=machines,
        )
        return None if found is None else self._packed(found.choices, least, cost)

    def _given_to_programs(self) -> tuple[Jobs, Region, Mapping[Pick, object], Mapping[Row, int]]:
        options = dict.fromkeys((*self._blends.options, *self._more))
        return self._jobs, self._region, options, self._blends.contents

    def whole(self, blend: Blend, cost: Fraction) -> Schedule | None:
        """Look for a schedule with the blocks of a blend whose totals are whole."""
        blocks = [round(blend.totals.get((False, i), 0)) for i in range(len(self._region.blocks))]
        choices = within(self._jobs, self._blends.options, blocks, self._budget, nodes=_JOBS_NODES)
        return None if choices is None else self._packed(choices, self._bound, cost)

    def _packed(self, choices: Choices, least: Fraction, cost: Fraction) -> Schedule | None:
        """Cut machines for what jobs take; None if that costs no less than what is known."""
        best = None
        start = Undecided.none(choices)
        for dived in self._diver.dives(start, least, cost, _DIVES):
            best = dived
        if best is None:
            return None
        problem = self._jobs.problem
        machines = {configuration_of(problem, row): n for row, n in best.machines.items()}
        return self._given.restore(best.choices.schedule(self._jobs, machines))


def smallest(
    options: Sequence[tuple[int, ...]], smaller: Mapping[int, frozenset[int]]
) -> list[tuple[int, ...]]:
    """Leave out options that still serve with a smaller block in a block's place.

    Parameters
    ----------
    options : sequence of options
        Of one kind.
    smaller : Mapping[int, frozenset of int]
        The blocks that fit wherever a block does.

    Examples
    --------
    >>> smallest([(0, 1, 0), (1, 0, 0), (0, 0, 2), (0, 1, 1)], {1: frozenset({0})})
    [(1, 0, 0), (0, 0, 2), (0, 1, 1)]
    """
    known = set(options)

    def shrinks(option: tuple[int, ...]) -> bool:
        for i, n in enumerate(option):
            for j in smaller.get(i, ()) if n else ():
                other = list(option)
                other[i] -= 1
                other[j] += 1
                if tuple(other) in known:
                    return True
        return False

    return [option for option in options if not shrinks(option)]


def _smaller(region: Region) -> dict[int, frozenset[int]]:
    """Find for each block the smaller ones of its set, where both are in no other configuration."""
    sets = Counter(i for bounded in region.bounded for i in bounded.columns)
    listed = {i for row in region.rows if row.shape for i, n in enumerate(row.counts) if n}
    found: dict[int, frozenset[int]] = {}
    for bounded in region.bounded:
        sizes = {i: bounded.shape.sizes[region.blocks[i]] for i in bounded.columns}
        alone = [i for i in bounded.columns if sets[i] == 1 and i not in listed]
        for i in alone:
            found[i] = frozenset(j for j in alone if sizes[j] < sizes[i])
    return found
