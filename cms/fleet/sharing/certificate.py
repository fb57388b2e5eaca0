"""Prices of both sides: what proves that no plan is worth more, in exact integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ...certificate.certificate import Proved
from ...errors import InvalidCertificate, InvalidProblem
from ...values.frozen import FrozenMap, Immutable
from ...values.names import checked_names, nearest
from ...values.numbers import shown, whole
from .problem import FORBIDDEN, SharingProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Pairs looked at between two looks at the clock.
_AT_ONCE = 1 << 20


class AssignmentPrices(Immutable):
    """A price on every class such that no allowed pair is worth more than its two prices.

    A plan is then worth at most ``sum(count * price)`` over all classes: what its pairs are worth,
    their prices are, and no class takes part more often than it counts.

    Parameters
    ----------
    online, offline : Mapping of str to int
        By name, each >= 0, in the unit of the weights; a class that is left out has the price 0.

    Notes
    -----
    Some prices prove exactly what the best plan is worth (the pairs form a bipartite graph, whose
    matrix is totally unimodular; Kuhn: The Hungarian method for the assignment problem, 1955,
    doi:10.1002/nav.3800020109). ``proofs_checks/assignment.py`` checks this by machine.

    Examples
    --------
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> AssignmentPrices({"g0": 400_000}, {}).upper_bound(posed([2], [5], [[400_000]]))
    800000
    """

    __slots__ = ("offline", "online")
    online: FrozenMap[str, int]
    offline: FrozenMap[str, int]

    def __init__(self, online: Mapping[str, int], offline: Mapping[str, int]) -> None:
        object.__setattr__(self, "online", _prices(online, "online class"))
        object.__setattr__(self, "offline", _prices(offline, "offline class"))

    @classmethod
    def of_offline(cls, problem: SharingProblem, prices: Sequence[int]) -> AssignmentPrices:
        """Return the prices that hold beside any prices >= 0 of the offline classes.

        An online class costs what the best workload on it is worth beyond its price.
        """
        v = np.array(prices, dtype=np.int64)
        left = np.where(problem.weights == FORBIDDEN, 0, problem.weights - v)
        u = left.max(axis=1, initial=0)
        sides = (problem.online, u.tolist()), (problem.offline, v.tolist())
        return cls(*({c.name: p for c, p in zip(*side, strict=True) if p} for side in sides))

    def upper_bound(self, problem: SharingProblem) -> int:
        """Return what no plan exceeds, by these prices; InvalidCertificate if they do not hold."""
        self._refuse_breach(problem, None)
        return self._total(problem)

    def judged(
        self,
        problem: SharingProblem,
        *,
        stopped: Callable[[], bool] | None = None,
        undisturbed: int = 0,
    ) -> Proved | None:
        """Return the bound on the loss, which the driver minimises; None if `stopped` said so.

        It is asked again and again, after so many numbers undisturbed.
        """
        if not self._refuse_breach(problem, stopped, undisturbed):
            return None
        return Proved(Fraction(problem.most - self._total(problem)), False)

    def _total(self, problem: SharingProblem) -> int:
        sides = (problem.online, self.online), (problem.offline, self.offline)
        return sum(each.count * prices.get(each.name, 0) for side, prices in sides for each in side)

    def _refuse_breach(
        self,
        problem: SharingProblem,
        stopped: Callable[[], bool] | None,
        undisturbed: int = 0,
    ) -> bool:
        """Raise InvalidCertificate if a pair is worth more than its prices; False if stopped."""
        weights = problem.weights
        # A higher price than any weight holds wherever that weight does, and fits into int64.
        most = int(weights.max(initial=0))
        u = _column(self.online, problem.online_index, "online class", most)
        v = _column(self.offline, problem.offline_index, "offline class", most)
        rows = max(1, _AT_ONCE // max(1, len(v)))
        for start in range(0, len(u), rows):
            if stopped is not None and start * len(v) >= undisturbed and stopped():
                return False
            part = slice(start, start + rows)
            over = weights[part] > u[part, None] + v
            if over.any():
                row, column = (int(place) for place in np.argwhere(over)[0])
                gpus, work = problem.online[start + row].name, problem.offline[column].name
                raise InvalidCertificate(
                    f"{work!r} beside {gpus!r} is worth {weights[start + row, column]}, more than "
                    f"their prices {shown(self.online.get(gpus, 0))} + "
                    f"{shown(self.offline.get(work, 0))}"
                )
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AssignmentPrices):
            return NotImplemented
        return (self.online, self.offline) == (other.online, other.offline)

    def __hash__(self) -> int:
        return hash((self.online, self.offline))

    def __reduce__(self) -> tuple[Any, ...]:
        return AssignmentPrices, (dict(self.online), dict(self.offline))

    def __repr__(self) -> str:
        return f"AssignmentPrices({dict(self.online)!r}, {dict(self.offline)!r})"


def _prices(given: Any, what: str) -> FrozenMap[str, int]:
    if not isinstance(given, Mapping):
        raise InvalidCertificate(
            f"prices of {what}es are {given!r}; expected a mapping of names to whole numbers"
        )
    try:
        names = checked_names(given, what)
    except InvalidProblem as fault:
        raise InvalidCertificate(str(fault)) from None
    values = {
        name: whole(price, f"the price of {what} {name!r}", least=0, error=InvalidCertificate)
        for name, price in zip(names, given.values(), strict=True)
    }
    return FrozenMap({name: price for name, price in values.items() if price})


def _column(
    prices: Mapping[str, int], places: Mapping[str, int], what: str, most: int
) -> NDArray[np.int64]:
    found = np.zeros(len(places), dtype=np.int64)
    for name, price in prices.items():
        if name not in places:
            raise InvalidCertificate(
                f"a price of {what} {name!r}, which the problem does not have"
                f"{nearest(name, places)}"
            )
        found[places[name]] = min(price, most)
    return found
