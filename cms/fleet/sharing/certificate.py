"""Prices of both sides: what proves that no plan is worth more, in exact integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ...certificate.certificate import Proved
from ...errors import InvalidCertificate, InvalidProblem
from ...values.frozen import FrozenMap
from ...values.names import checked_names, nearest
from ...values.numbers import shown, whole
from .problem import FORBIDDEN, SharingProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Pairs looked at between two looks at the clock.
_AT_ONCE = 1 << 20


class AssignmentPrices:
    """A price on every class such that no allowed pair is worth more than its two prices.

    A plan is then worth at most ``sum(count * price)`` over all classes: what its pairs are worth,
    their prices are, and no class takes part more often than it counts.

    Parameters
    ----------
    online, offline : Mapping of str to int
        By name, each >= 0, in the unit of the weights; a class that is left out has the price 0.

    Attributes
    ----------
    online, offline : FrozenMap
        Without zeros.

    Raises
    ------
    InvalidCertificate
        If a name or a price is none.

    Notes
    -----
    Some prices prove exactly what the best plan is worth (the pairs form a bipartite graph, whose
    matrix is totally unimodular). ``proofs_checks/assignment.py`` checks this by machine.

    References
    ----------
    Kuhn: The Hungarian method for the assignment problem, Naval Research Logistics Quarterly 2,
    1955, 83-97, doi:10.1002/nav.3800020109.

    Examples
    --------
    >>> from cms.fleet.sharing import OfflineClass, OnlineClass
    >>> problem = SharingProblem(
    ...     online=[OnlineClass("a30", count=2, sm_activity=50, name="gpu")],
    ...     offline=[OfflineClass("train", count=5)],
    ...     weights=[[400_000]],
    ... )
    >>> AssignmentPrices({"gpu": 400_000}, {}).upper_bound(problem)
    800000
    >>> AssignmentPrices({"gpu": 399_999}, {}).upper_bound(problem)
    Traceback (most recent call last):
        ...
    cms.errors.InvalidCertificate: 'train' beside 'gpu' is worth 400000, more than their prices \
399999 + 0
    """

    __slots__ = ("offline", "online")
    online: FrozenMap[str, int]
    offline: FrozenMap[str, int]

    def __init__(self, online: Mapping[str, int], offline: Mapping[str, int]) -> None:
        object.__setattr__(self, "online", _prices(online, "online class"))
        object.__setattr__(self, "offline", _prices(offline, "offline class"))

    @classmethod
    def of_offline(cls, problem: SharingProblem, prices: Sequence[int]) -> AssignmentPrices:
        """Return the prices that hold beside some of the offline classes, least on the online side.

        Any prices >= 0 will do: an online class then costs what the best workload on it is worth
        beyond its price.

        Examples
        --------
        >>> from cms.fleet.sharing import OfflineClass, OnlineClass
        >>> problem = SharingProblem(
        ...     online=[OnlineClass("a30", count=2, sm_activity=50, name="gpu")],
        ...     offline=[OfflineClass("train", count=5)],
        ...     weights=[[400_000]],
        ... )
        >>> dict(AssignmentPrices.of_offline(problem, [150_000]).online)
        {'gpu': 250000}
        """
        v = np.array(prices, dtype=np.int64)
        left = np.where(problem.weights == FORBIDDEN, 0, problem.weights - v)
        u = left.max(axis=1, initial=0).tolist()
        return cls(
            {gpus.name: price for gpus, price in zip(problem.online, u, strict=True) if price},
            {
                work.name: int(price)
                for work, price in zip(problem.offline, v.tolist(), strict=True)
                if price
            },
        )

    def upper_bound(self, problem: SharingProblem) -> int:
        """Return what no plan exceeds, by these prices.

        Raises
        ------
        InvalidCertificate
            If they do not hold; the message names the pair.
        """
        self._refuse_breach(problem, None)
        return self._total(problem)

    def judged(
        self,
        problem: SharingProblem,
        *,
        stopped: Callable[[], bool] | None = None,
        undisturbed: int = 0,
    ) -> Proved | None:
        """Return the bound on the loss, which is what the driver minimises; None if stopped.

        Parameters
        ----------
        problem : SharingProblem
        stopped : callable, optional
            Asked again and again; once it is true, the check is given up.
        undisturbed : int, default 0
            Numbers looked at before it is asked first.

        Raises
        ------
        InvalidCertificate
            If the prices do not hold.
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

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"AssignmentPrices are immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"AssignmentPrices are immutable: {name!r} cannot be deleted")

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
    values: Iterable[int] = (
        whole(price, f"the price of {what} {name!r}", least=0, error=InvalidCertificate)
        for name, price in zip(names, given.values(), strict=True)
    )
    return FrozenMap({name: price for name, price in zip(names, values, strict=True) if price})


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
