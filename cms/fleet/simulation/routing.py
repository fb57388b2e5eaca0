"""Which instance a request goes to: policies, and the draws that some of them want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidOption
from ...values.names import nearest
from .kernel import ALONE, DRAWN, SHORTEST, TURNS, TWO_DRAWN
from .state import LARGEST_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HALF = 32


@dataclass(frozen=True, slots=True)
class Routing:
    """A policy: its name, what reports call it, what the loop does, whether all weigh the same."""

    name: str
    says: str
    policy: int
    equal: bool

    def policy_for(self, stations: int) -> int:
        """What the loop does: where there is one station, nothing is asked."""
        return ALONE if stations == 1 else self.policy

    @property
    def draws(self) -> int:
        """Draws a request."""
        return {DRAWN: 1, TWO_DRAWN: 2}.get(self.policy, 0)


#: The policies by name. By default an instance is chosen in proportion to its supply, and queues
#: are compared as requests for their supply; with ``equal_`` before it, supplies do not matter, as
#: where a load balancer does not know them.
ROUTINGS: dict[str, Routing] = {
    each.name: each
    for each in (
        Routing("weighted_random", "weighted random", DRAWN, equal=False),
        Routing("round_robin", "weighted round robin", TURNS, equal=False),
        Routing("shortest_queue", "shortest queue", SHORTEST, equal=False),
        Routing("two_choices", "two choices", TWO_DRAWN, equal=False),
        Routing("equal_random", "equal-weight random", DRAWN, equal=True),
        Routing("equal_round_robin", "equal-weight round robin", TURNS, equal=True),
        Routing("equal_shortest_queue", "equal-weight shortest queue", SHORTEST, equal=True),
        Routing("equal_two_choices", "equal-weight two choices", TWO_DRAWN, equal=True),
    )
}


def routing_of(name: str) -> Routing:
    """Find a policy by its name."""
    if name not in ROUTINGS:
        raise InvalidOption(
            f"there is no routing {name!r}; expected one of {', '.join(ROUTINGS)}"
            f"{nearest(name, ROUTINGS)}"
        )
    return ROUTINGS[name]


def whole_weights(weights: Sequence[Fraction], *, equal: bool = False) -> NDArray[np.int64]:
    """Scale weights to integers: exactly where they are short, else to nine digits."""
    if equal:
        return np.array([int(each > 0) for each in weights], dtype=np.int64)
    scale = Fraction(lcm(*(each.denominator for each in weights)))
    largest = max(weights, default=Fraction(0))
    if largest * scale > LARGEST_WEIGHT:
        scale = LARGEST_WEIGHT / largest
    # who has some weight keeps some
    whole = [max(round(each * scale), int(each > 0)) for each in weights]
    common = np.gcd.reduce(whole) if whole else 1
    return np.array(whole, dtype=np.int64) // max(int(common), 1)


class Alias:
    """Draw stations in proportion to integer weights, not all 0, each in constant time.

    A. J. Walker, *An efficient method for generating discrete random variables with general
    distributions*, ACM TOMS 1977, DOI 10.1145/355744.355749; here in integers.
    """

    def __init__(self, weights: NDArray[np.int64]) -> None:
        k, total = len(weights), int(weights.sum())
        left = [int(each) * k for each in weights]
        limits, aliases = [total] * k, list(range(k))
        small = [i for i in range(k) if left[i] < total]
        large = [i for i in range(k) if left[i] >= total]
        while small and large:
            low, high = small.pop(), large[-1]
            limits[low], aliases[low] = left[low], high
            left[high] -= total - left[low]
            if left[high] < total:
                small.append(large.pop())
        self._columns = np.uint64(k)
        self._limits = np.array([-(-(each << _HALF) // total) for each in limits], dtype=np.uint64)
        self._aliases = np.array(aliases, dtype=np.int32)

    def pick(self, raw: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Turn 64 random bits a draw into stations."""
        column = (raw >> np.uint64(_HALF)) * self._columns >> np.uint64(_HALF)
        at = column.astype(np.int32)
        below = (raw & np.uint64(2**_HALF - 1)) < self._limits[at]
        return np.where(below, at, self._aliases[at])
