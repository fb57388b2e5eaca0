"""Prices that prove an upper bound of all plans, and the checker of claims, in integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...certificate.certificate import ProvedBound
from ...checker.kinds import InitialBounds
from ...errors import InvalidCertificate
from ...plugin.registry import NamedProblem
from ...running.stopping import never
from ...schedule.faults import Violation
from ...solving.rough_prices import rough_certificates
from ...values.frozen import FrozenMap
from ...values.names import checked_names, nearest
from ...values.numbers import shown, whole
from .problem import FORBIDDEN, ColocationPlan, ColocationProblem, Ints

#: Pairs looked at between two looks at the clock.
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class AssignmentPrices:
    """A price on every class such that no allowed pair is worth more than its two prices.

    A plan is then worth at most ``sum(count * price)`` over all classes: the prices of its pairs
    are at least their weights, and no class takes part more often than it counts. Prices are by
    name, each >= 0, in the unit of the weights; a class that is left out has the price 0.

    Some prices prove exactly what the best plan is worth (the pairs form a bipartite graph, whose
    matrix is totally unimodular; Kuhn: The Hungarian method for the assignment problem, 1955,
    doi:10.1002/nav.3800020109). ``proofs_checks/assignment.py`` checks this by machine.
    """

    online: Mapping[str, int]
    offline: Mapping[str, int]

    def __post_init__(self) -> None:
        for side in ("online", "offline"):
            object.__setattr__(self, side, _prices(getattr(self, side), f"{side} class"))

    @classmethod
    def of_offline(cls, problem: ColocationProblem, prices: Sequence[int]) -> AssignmentPrices:
        """Return the least prices of the online classes beside these of the offline classes."""
        v = np.array(prices, dtype=np.int64)
        left = np.where(problem.weights == FORBIDDEN, 0, problem.weights - v)
        u = left.max(axis=1, initial=0)
        sides = (problem.online, u.tolist()), (problem.offline, v.tolist())
        return cls(*({c.name: p for c, p in zip(*side, strict=True) if p} for side in sides))

    def upper_bound(self, problem: ColocationProblem) -> int:
        """Return the bound by these prices; InvalidCertificate if they do not hold."""
        judged = self.judged(problem)
        assert judged is not None
        return int(problem.most - judged.value)

    def judged(
        self,
        problem: ColocationProblem,
        *,
        stopped: Callable[[], bool] | None = None,
        undisturbed: int = 0,
    ) -> ProvedBound | None:
        """Return the bound on the loss, which the driver minimises; None if `stopped` said so.

        `stopped` is called again and again, but not for the first `undisturbed` numbers. Raises
        InvalidCertificate if a pair is worth more than its prices.
        """
        weights = problem.weights
        # A higher price than any weight holds wherever that weight does, and fits into int64.
        most = int(weights.max(initial=0))
        u = _column(self.online, problem.online_index, "online class", most)
        v = _column(self.offline, problem.offline_index, "offline class", most)
        rows = max(1, _AT_ONCE // max(1, len(v)))
        for start in range(0, len(u), rows):
            if stopped is not None and start * len(v) >= undisturbed and stopped():
                return None
            over = weights[start : start + rows] > u[start : start + rows, None] + v
            for row, column in np.argwhere(over)[:1]:
                gpus, work = problem.online[start + row].name, problem.offline[column].name
                prices = shown(self.online.get(gpus, 0)), shown(self.offline.get(work, 0))
                said = f"{work!r} beside {gpus!r} is worth {weights[start + row, column]}"
                raise InvalidCertificate(f"{said}, more than their prices {' + '.join(prices)}")
        sides = (problem.online, self.online), (problem.offline, self.offline)
        total = sum(one.count * own.get(one.name, 0) for side, own in sides for one in side)
        return ProvedBound(Fraction(problem.most - total), False)


def _prices(given: Mapping[str, int], what: str) -> FrozenMap[str, int]:
    names = checked_names(given, what, InvalidCertificate)
    values = {
        name: whole(price, f"the price of {what} {name!r}", least=0, error=InvalidCertificate)
        for name, price in zip(names, given.values(), strict=True)
    }
    return FrozenMap({name: price for name, price in values.items() if price})


def _column(prices: Mapping[str, int], places: Mapping[str, int], what: str, most: int) -> Ints:
    found = np.zeros(len(places), dtype=np.int64)
    for name, price in prices.items():
        if name not in places:
            said = f"a price of {what} {name!r}, which the problem does not have"
            raise InvalidCertificate(f"{said}{nearest(name, places)}")
        found[places[name]] = min(price, most)
    return found


class ColocationChecker:
    """Checks claims about a :class:`cms.fleet.ColocationProblem`."""

    schedules = ColocationPlan
    certificates = (AssignmentPrices,)
    step = Fraction(1)
    limited = False  # to share nothing is a plan

    def __init__(self, problem: ColocationProblem) -> None:
        self._problem, self._most = problem, problem.most

    def first(self) -> InitialBounds:
        """Return a price of every workload at its best GPU; the empty plan if that is 0."""
        problem = self._problem
        best = problem.weights.max(axis=0, initial=0).tolist()
        named = {each.name: w for each, w in zip(problem.offline, best, strict=True) if w}
        by_work = AssignmentPrices({}, named)
        if not self._most:
            return InitialBounds(by_work, Fraction(0), schedule=ColocationPlan())
        by_gpus = AssignmentPrices.of_offline(problem, [0] * len(best))
        if not by_gpus.upper_bound(problem):  # no GPU takes any workload
            return InitialBounds(by_gpus, Fraction(self._most), schedule=ColocationPlan())
        return InitialBounds(by_work, Fraction(0))

    def cost(self, schedule: ColocationPlan) -> Fraction:
        """Return the loss of a plan against every workload where it is worth most."""
        return Fraction(self._most - self._problem.value(schedule))

    def faults(self, schedule: ColocationPlan) -> Iterator[Violation]:
        """Iterate over unknown classes, forbidden pairs, and classes that are used too often."""
        problem = self._problem
        sides = (
            ("online", problem.online, problem.online_index, Counter[str](), "", ": one a GPU"),
            ("offline", problem.offline, problem.offline_index, Counter[str](), " placed", ""),
        )
        for online, offline, count in schedule:
            where, known = f"the pair {online!r} and {offline!r}", True
            for name, (side, _, places, used, *_) in zip((online, offline), sides, strict=True):
                used[name] += count
                if name not in places:
                    known = False
                    has = f"the {side} class {name!r}, which the problem does not have"
                    needs = f"a known one{nearest(name, places)}"
                    yield Violation(f"{side} class", where, has, needs)
            if known and problem.weight(online, offline) is None:
                yield Violation("pair", where, f"{shown(count)} workloads", "0: forbidden")
        for side, classes, _, used, placed, more in sides:
            for each in classes:
                if (n := used[each.name]) > each.count:
                    had, needs = f"{shown(n)} workloads{placed}", f"at most {shown(each.count)}"
                    yield Violation(side, f"{side} class {each.name!r}", had, needs + more)

    @staticmethod
    def edge_problems() -> tuple[tuple[NamedProblem, ...], tuple[NamedProblem, ...]]:
        """Return small and large problems for the conformance suite."""
        from .edge_problems import SHARING_CROWDS, SHARING_EDGE_PROBLEMS

        return SHARING_EDGE_PROBLEMS, SHARING_CROWDS


@rough_certificates.register(ColocationProblem)
def rough_colocation(
    problem: ColocationProblem, stopped: Callable[[], bool] = never
) -> tuple[AssignmentPrices]:
    """Price every GPU at its best workload; the initial bounds price the workloads."""
    return (AssignmentPrices.of_offline(problem, [0] * len(problem.offline)),)
