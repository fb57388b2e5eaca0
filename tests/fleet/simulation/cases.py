"""Small services and a plain arrival process for the tests of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cms.fleet.simulation import ModelledInstance, ModelledService
from cms.fleet.simulation.arrivals import PIECE

MS = 10**6
NONE, NOBODY = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)


def service(
    *instances: ModelledInstance,
    rate: Fraction | int = 100,
    limit: int = 25 * MS,
    name: str = "chat",
) -> ModelledService:
    return ModelledService(name, Fraction(rate), limit, Fraction(1, 100), instances)


def instance(
    weight: Fraction | int = 1, processes: int = 1, batch: int = 1, ns: int = 10 * MS, **more: Any
) -> ModelledInstance:
    """An instance whose batches all take the same time."""
    return ModelledInstance(Fraction(weight), processes, (ns,) * batch, **more)


class Given(NamedTuple):
    """An arrival process of a test's own: these times."""

    times: tuple[int, ...]
    name: str = "given"

    def pieces(
        self, service: str, rate: Fraction, random: np.random.Generator, size: int = PIECE
    ) -> Iterator[np.typing.NDArray[np.int64]]:
        for at in range(0, len(self.times), size):
            yield np.array(self.times[at : at + size], dtype=np.int64)
