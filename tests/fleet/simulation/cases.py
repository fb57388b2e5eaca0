"""Small services and a plain arrival process for the tests of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cms.fleet.colocation import ColocationProblem, MeasuredPair, OfflineClass, OnlineClass
from cms.fleet.replanner import Rates
from cms.fleet.simulation import ModelledInstance, ModelledService
from cms.fleet.simulation.arrivals import PIECE
from cms.fleet.simulation.colocation_loop import (
    Diurnal,
    Noise,
    SharedDay,
    Terms,
    Traced,
    colocation_day,
)

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


STILL = Diurnal(swing=0, noise=Noise(0, 0))
LONG = 10_000  # hours of a job, so that none ends


def posed(
    gpus: int = 1,
    jobs: int = 1,
    activity: int = 30,
    limit: str | None = "1.2",
    model: str = "bert",
) -> ColocationProblem:
    return ColocationProblem(
        online=[
            OnlineClass("a30", count=gpus, sm_activity=activity, model=model, slowdown_limit=limit)
        ],
        offline=[OfflineClass("train", count=jobs)],
        weights=[[0]],
    )


def pair(throughput: str = "0.6", slowdown: str = "1.12", share: int = 60) -> MeasuredPair:
    return MeasuredPair("bert", "train", "a30", share, Fraction(throughput), Fraction(slowdown))


def trace(*minutes: int | str, name: str = "activity") -> Traced:
    return Traced(Rates(Fraction(0), Fraction(60), {name: tuple(map(Fraction, minutes))}))


def made_up_day(hours: int = 2) -> SharedDay:
    """All policies on a few GPUs whose jobs do not all end."""
    terms = Terms(hours=hours, job_hours=1, sample=1)
    return colocation_day(posed(4, 6), [pair(share=share) for share in (40, 60, 80)], terms=terms)
