"""In what manner a way is gone: what decides where several choices are as good by the rules."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from math import exp

__all__ = ["Manner"]

#: Of a changed manner: one service in this many gets another weight, times e to this deviation.
_ONE_IN, _DEVIATION = 6, 0.7


@dataclass(frozen=True)
class Manner:
    """What decides between equal choices; equal manners go equal ways."""

    seed: int | None = None  # of what is random; None: always the best by the rules
    #: Whether a free position goes to the service that frees most room soonest, instead of
    #: the one that waits most.
    room_first: bool = False
    side_by_side: bool = True  # whether covers of several positions are made at once
    #: By service, how much sooner it gets a free position; empty: at random.
    weights: tuple[float, ...] = ()
    _rng: random.Random | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rng = None if self.seed is None else random.Random(self.seed)
        object.__setattr__(self, "_rng", rng)

    @property
    def is_random(self) -> bool:
        """Whether something is random."""
        return self._rng is not None

    def noise(self, by: float) -> float:
        """Return a factor from 1 to 1 + `by`; 1 where nothing is random."""
        return 1.0 if self._rng is None else 1.0 + by * self._rng.random()

    def weight(self, service: int) -> float:
        """Return the factor of a service that waits."""
        return self.weights[service] if self.weights and service >= 0 else self.noise(0.5)

    def again(self) -> Manner:
        """Return the same manner from its beginning."""
        return replace(self)

    def changed(self, services: int, rng: random.Random) -> Manner:
        """Return a manner that differs a little."""
        weights = list(self.weights or [1.0] * services)
        for at in rng.sample(range(services), -(-services // _ONE_IN)):
            weights[at] *= exp(rng.gauss(0.0, _DEVIATION))
        seed = self.seed if rng.random() < 0.5 else rng.randrange(2**32)
        return replace(self, seed=seed, weights=tuple(weights))
