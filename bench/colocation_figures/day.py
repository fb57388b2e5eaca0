"""Figure 12: a day in the closed loop, of made-up pairs and of measured ones."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.expected import Line
from cms.fleet.colocation import (
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    PredictedWeights,
    read_measured_pairs,
    read_profiles,
    train_predictor,
)
from cms.fleet.simulation.colocation_loop import (
    Diurnal,
    LineWeights,
    SharedDay,
    Terms,
    colocation_day,
)
from cms.fleet.simulation.colocation_loop.day import shared_day_to_json
from instances.families.colocation import daily_fleet, made_up_pairs

from .predictor import PAIRS, PROFILES

#: How far a scheduler's pairs are from the true made-up ones: a predictor's error on unseen pairs.
ERROR = 0.04
#: Of measured pairs: the GPU, the limit, and how many of the pairs a predictor is trained on.
DEVICE, LIMIT, SEEN = "v100", "1.5", 0.7
_SECONDS = 60


class Days(NamedTuple):
    """A fleet's day with the monitor beside all policies, and without it."""

    on: SharedDay
    off: SharedDay
    cpu_seconds: float
    same: bool


def made_up(gpus: int, hours: int, activity: Diurnal) -> Days:
    """Play days of made-up pairs, which the scheduler sees with errors."""
    problem, truth = daily_fleet(gpus, seed=0), made_up_pairs(0)
    seen = LineWeights(made_up_pairs(0, error=ERROR), problem.margin, problem.lowest_share)

    def played(protection: bool, *names: str) -> SharedDay:
        terms = Terms(hours=hours, job_hours=12, sample=0, protection=protection)
        return colocation_day(
            problem, truth, sees=seen, terms=terms, policies=names, activity=activity
        )

    begun = time.process_time()
    alone = played(True, "muxflow")
    cpu = time.process_time() - begun
    on, off = played(True, "muxflow", "random", "clairvoyant"), played(False, "muxflow")
    return Days(on, off, cpu, _text(alone) == _text(on))


def _text(day: SharedDay) -> str:
    return json.dumps(shared_day_to_json(day)["policies"][0])


def measured(gpus: int, hours: int) -> tuple[int, dict[tuple[str, bool], SharedDay]]:
    """Play days of Gavel's pairs, of which the scheduler sees a predictor of seven tenths.

    Return the number of GPUs, and the days by what limits go by, with the monitor or without.
    """
    truth = [each for each in read_measured_pairs(PAIRS) if each.device == DEVICE]
    online = sorted({each.online_model for each in truth})
    offline = sorted({each.offline_model for each in truth})
    rng = random.Random(0)
    models = sorted({each[:2] for each in truth})
    known = set(rng.sample(models, int(SEEN * len(models))))
    predictor = train_predictor(
        [each for each in truth if each[:2] in known], read_profiles(PROFILES)
    )
    each_of = max(gpus // len(online), 1)
    problem = ColocationProblem(
        online=[
            OnlineClass(
                DEVICE, count=each_of, sm_activity=rng.randint(15, 70), model=name,
                slowdown_limit=LIMIT, name=name,
            )
            for name in online
        ],
        offline=[OfflineClass(name, count=3 * each_of + 1) for name in offline],
        weights=lambda *_: 0,
    )  # fmt: skip
    weights = {by: PredictedWeights(predictor, limit_by=by) for by in ("expected", "upper")}
    days = {
        (by, protection): colocation_day(
            problem, truth, sees=weights[by], policies=["muxflow", "clairvoyant"],
            terms=Terms(hours=hours, job_hours=12, sample=0, protection=protection),
        )
        for by, protection in (("expected", True), ("expected", False), ("upper", True))
    }  # fmt: skip
    return each_of * len(online), days


def day_figure(gpus: int, hours: int, activity: Diurnal | None = None) -> Iterator[Line]:
    """Make the figure with made-up pairs."""
    found = made_up(gpus, hours, activity or Diurnal())
    of = f"{gpus:,} GPUs, {hours} h, made-up pairs"
    cpu = found.cpu_seconds
    yield Line("12", f"{of}: CPU", f"<= {_SECONDS} s", f"{cpu:.1f} s", cpu <= _SECONDS)
    yield from _kept(of, found.on, found.off)
    random_one, ours = found.on["random"].throughput, found.on["muxflow"].throughput
    said = f"{float(random_one / ours):.1%}"
    yield Line("12", f"{of}: matched at random, of ours", "less", said, random_one < ours)
    of = f"{of}: the same seed"
    said = "the same bytes" if found.same else "others"
    yield Line("12", of, "the same bytes", said, found.same)


def measured_figure(gpus: int, hours: int) -> Iterator[Line]:
    """Make the figure with Gavel's pairs as the truth, and a predictor."""
    count, days = measured(gpus, hours)
    of = f"{count:,} GPUs, {hours} h, Gavel's pairs, by what is expected"
    yield from _kept(of, days["expected", True], days["expected", False])
    upper = days["upper", True]
    kept, part = upper["muxflow"].over_share, upper.of_clairvoyant or 0
    of = f"{count:,} GPUs, {hours} h, Gavel's pairs, by upper ends"
    said = f"{float(kept):.2%}; {float(part):.1%} of the foreseeing matching"
    yield Line("12", f"{of}: over the limit", "<= 1 %", said, 100 * kept <= 1)


def _kept(of: str, on: SharedDay, off: SharedDay) -> Iterator[Line]:
    with_it, without = on["muxflow"].over_share, off["muxflow"].over_share
    said = f"{float(with_it):.2%}"
    yield Line("12", f"{of}: over the limit", "<= 1 %", said, 100 * with_it <= 1)
    said = f"{float(without):.2%}"
    broken = 100 * without > 1 and without > with_it
    yield Line("12", f"{of}: over the limit without protection", "> 1 %", said, broken)
    part = on.of_clairvoyant or 0
    said, wanted = f"{float(part):.1%}", ">= 90 %"
    yield Line("12", f"{of}: work, of the foreseeing matching", wanted, said, 10 * part >= 9)
