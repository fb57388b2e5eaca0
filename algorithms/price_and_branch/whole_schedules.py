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
#: Options for programs of whole jobs: so many of all kinds together, out of so many of each.
_WIDE, _WIDE_LISTED, _WIDE_STEPS = 1500, 200, 5
#: SCIP's nodes: for jobs in parts, for all totals at once, for one fleet, and for jobs that share
#: blocks out.
_PARTS_NODES, _FLEET_NODES, _THIS_FLEET_NODES, _JOBS_NODES = 200, 400, 300, 50
#: The same for a schedule that meets the bound.
_NEAR_NODES = 60
#: So small a part of the cost above the bound is left to branches.
_CLOSE = Fraction(1, 5000)
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
        # Options for programs alone; fleets that were looked into.
        self._more: list[Pick] = []
        self._fleets: set[tuple[int, ...]] = set()

    def first(
        self, cost: Fraction, least: Fraction, chosen: Sequence[NDArray[np.int64]]
    ) -> Schedule | None:
        """Look for a schedule with programs over all totals at once (theory 6.6).

        Where schedules are far from the bound the last one has more time, for any that is cheaper.

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
        if not self._more:
            for kind in range(len(self._jobs)):
                taken = dict.fromkeys(tuple(each[kind].tolist()) for each in chosen)
                self._more += [(kind, option) for option in smallest([*taken], self._smaller)]
            self._more += self._wide()
        below = next_below(cost, self._step)
        fleet = cheapest_fleet(
            self._jobs,
            self._region,
            self._blends.options,
            self._blends.contents,
            self._budget,
            least=least,
            target=below,
            nodes=_PARTS_NODES,
        )
        # Few fleets need more than the cheapest one that does for jobs in parts.
        new = fleet is not None and tuple(fleet) not in self._fleets
        found = self.of_fleet(fleet, cost) if fleet is not None and new else None
        if found is not None:
            below = min(below, found.cost(self._given.original) - self._step)
        # Where the bound can be met that is soon found, or else soon known.
        better = self._some_fleet(least, least, _NEAR_NODES, cost) if least <= below else None
        if better or found or cost - least <= _CLOSE * least:
            return better or found
        return self._some_fleet(least, below, _FLEET_NODES, cost)

    def _wide(self) -> list[Pick]:
        """List the options of lowest reduced cost among all kinds (theory 6.7).

        Of hundreds of jobs some take what costs a little more, for how all that is taken adds up to
        whole machines.
        """
        found: list[tuple[int, int, tuple[int, ...]]] = []
        for kind in range(len(self._jobs)):
            near = self._near.some(kind, _WIDE_STEPS * self._step, _WIDE_LISTED)
            priced = [(self._near.price(o), o) for o in smallest(near, self._smaller)]
            cheapest = min(price for price, _ in priced)
            found += [(price - cheapest, kind, option) for price, option in priced]
        return [(kind, option) for _, kind, option in sorted(found)[:_WIDE]]

    def _some_fleet(
        self,
        least: Fraction,
        target: Fraction,
        nodes: int,
        cost: Fraction,
    ) -> Schedule | None:
        given = self._given_to_programs()
        found = whole_fleet(*given, self._budget, least=least, target=target, nodes=nodes)
        return None if found is None else self._packed(found.choices, found.cost, cost)

    def of_fleet(self, machines: Sequence[int], cost: Fraction) -> Schedule | None:
        """Look for a schedule of so many machines of each type."""
        self._fleets.add(tuple(machines))
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
        options = self._given_to_programs()[2]
        choices = within(self._jobs, options, blocks, self._budget, nodes=_JOBS_NODES)
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
