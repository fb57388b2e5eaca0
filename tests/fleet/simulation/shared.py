"""Small fleets of shared GPUs, pairs and traces for the tests of the closed loop."""

from __future__ import annotations

from fractions import Fraction

from cms.fleet.colocation import ColocationProblem, MeasuredPair, OfflineClass, OnlineClass
from cms.fleet.replanner import Rates
from cms.fleet.simulation.colocation_loop import (
    Diurnal,
    Noise,
    SharedDay,
    Terms,
    Traced,
    colocation_day,
)

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


def trace(*minutes: int, name: str = "activity") -> Traced:
    return Traced(Rates(Fraction(0), Fraction(60), {name: tuple(map(Fraction, minutes))}))


def made_up_day(hours: int = 2) -> SharedDay:
    """All policies on a few GPUs whose jobs do not all end."""
    terms = Terms(hours=hours, job_hours=1, sample=1)
    return colocation_day(posed(4, 6), [pair(share=share) for share in (40, 60, 80)], terms=terms)
