"""Fleets whose load changes: the services of S1 to S6 at two moments, and days of daily waves.

For two moments, rates are those of the scenarios, times a random factor each, scaled to a fleet;
at the second each is multiplied by another. All are seeded and rounded to tenths of an item/s.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import pi, sin

import numpy as np

from cms.errors import InvalidOption
from cms.fleet.serving.operating_point import OperatingPoint
from cms.fleet.serving.scenario import Scenario
from cms.fleet.serving.service import Service
from cms.values.frozen import FrozenMap

from . import published
from .families.time_sharing import CURVES

#: Of the factors by which the first moment's rates differ from the scenarios'.
_SPREAD = 0.5
_DOUBLINGS = 60


@cache
def pool() -> tuple[Service, ...]:
    """Return the 61 services of S1 to S6, named after model and scenario."""
    return tuple(
        replace(each, name=f"{each.name}-{name}")
        for name in ("S1", "S2", "S3", "S4", "S5", "S6")
        for each in published.scenario(name).services
    )


def before_and_after(
    gpus: int, *, sigma: str | float, seed: int, services: int | None = None
) -> tuple[Scenario, Scenario]:
    """Draw the load of a fleet of about `gpus` GPUs at two moments.

    `sigma` is the standard deviation of the logarithm of the factor between the moments; so many
    `services` of the pool are drawn, by default all.
    """
    every = pool()
    count = len(every) if services is None else services
    if not 1 <= count <= len(every):
        raise InvalidOption(f"services is {count}; expected 1 to {len(every)}")
    chance = np.random.default_rng(seed)
    drawn = [every[at] for at in sorted(chance.choice(len(every), count, replace=False))]
    rates = [float(s.rate_rps) * chance.lognormal(0.0, _SPREAD) for s in drawn]
    factors = chance.lognormal(0.0, float(sigma), count)
    scale = _scale(drawn, rates, gpus)
    first = [_with_rate(s, scale * rate) for s, rate in zip(drawn, rates, strict=True)]
    later = zip(first, factors, strict=True)
    second = [_with_rate(s, float(s.rate_rps) * factor) for s, factor in later]
    name = f"{gpus} GPUs, {count} services, sigma {sigma}, seed {seed}"
    before, after = (
        replace(
            published.scenario("S1"),
            name=f"{name}, {when}",
            title=f"{count} services of S1 to S6",
            services=tuple(side),
            load_curves=None,
            optimum=None,
            bounds=FrozenMap(),
        )
        for when, side in (("before", first), ("after", second))
    )
    return before, after


def _with_rate(service: Service, rate: float) -> Service:
    return replace(service, rate_rps=Fraction(max(1, round(10 * rate)), 10))


def _scale(services: Sequence[Service], rates: Sequence[float], gpus: int) -> float:
    """Find the factor at which services fill `gpus` GPUs, if any slices of a GPU fit together."""
    tables = [_tables()[each.name] for each in services]
    if len(services) > 7 * gpus:
        least = -(-len(services) // 7)
        raise InvalidOption(f"gpus is {gpus}; expected {least} or more for that many services")

    def slices(scale: float) -> int:
        total = 0
        for table, rate in zip(tables, rates, strict=True):
            whole = int(scale * rate / table[-1])
            total += 7 * whole + bisect_left(table, scale * rate - whole * table[-1])
        return total

    low, high = 0.0, 1.0
    while slices(high) <= 7 * gpus:
        high *= 2
    for _ in range(_DOUBLINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slices(middle) <= 7 * gpus else (low, middle)
    return low


@cache
def _tables() -> Mapping[str, tuple[float, ...]]:
    """Return, for each service of the pool, the most that 0, 1, ... 7 slices serve of it."""
    serving = replace(published.scenario("S1"), services=pool()).build_problem()
    tables = {}
    for service in serving.services:
        best: dict[int, float] = {}
        for block in serving.problem.blocks:
            slices = serving.gpus[0].profile(serving.profile_of(block)).compute
            best[slices] = max(best.get(slices, 0.0), float(serving.supply(service.name, block)))
        table = [0.0]
        for slices in range(1, 8):
            parts = (table[slices - k] + rate for k, rate in best.items() if k <= slices)
            table.append(max(table[-1], *parts))
        tables[service.name] = tuple(table)
    return tables


_DAY_S = 86_400
#: Waves go up and down by these shares of the mean rate; noise has this standard deviation.
_LEAST_SWING, _MOST_SWING, _NOISE = 0.2, 0.8, 0.03
#: Rates of the published scenarios times this: then 16 services of seed 0 take 30 GPUs at the peak.
_FACTOR = 2
#: Latency limits of the made-up services in milliseconds, and the GPU that their points are of.
_LIMITS, _SHARED_GPU = (60, 110, 180), "a100-80gb"


@dataclass(frozen=True)
class Days:
    """Services with their highest rates, and their rates every `step_s` to the last day's end."""

    services: tuple[Service, ...]
    operating_points: tuple[OperatingPoint, ...]
    rates_rps: Mapping[str, tuple[Fraction, ...]]
    step_s: int


def draw(
    *, services: int = 16, days: int = 8, step_s: int = 3600, seed: int = 0, sharing: bool = False
) -> Days:
    """Draw services and their rates, the same waves every day.

    Each service is one of the 61 of S1 to S6 or, `sharing` GPUs in time, one of 30 of made-up
    models (:mod:`instances.families.time_sharing`). Its rate is a wave of a day with a phase of its
    own, and noise at each step; a step divides a day.
    """
    chance = random.Random(seed)
    known = [replace(each, rate_rps=each.rate_rps * _FACTOR) for each in pool()]
    points = published.scenario("S1").operating_points
    if sharing:
        known, points = _shared()
    drawn, rates = [], {}
    for each in chance.sample(known, services):
        swing, phase = chance.uniform(_LEAST_SWING, _MOST_SWING), chance.uniform(0, 2 * pi)
        mean = float(each.rate_rps)
        own = []
        for at in range(days * _DAY_S // step_s + 1):
            wave = 1 + swing * sin(2 * pi * at * step_s / _DAY_S + phase)
            own.append(Fraction(max(0, round(10 * mean * wave * chance.gauss(1, _NOISE))), 10))
        drawn.append(replace(each, rate_rps=max(own)))
        rates[each.name] = tuple(own)
    return Days(tuple(drawn), points, rates, step_s)


def _shared() -> tuple[list[Service], tuple[OperatingPoint, ...]]:
    services = [
        Service(f"{curve.name}-{limit}ms", curve.name, 100 + 150 * ((3 * at + nth) % 7), limit)
        for at, curve in enumerate(CURVES)
        for nth, limit in enumerate(_LIMITS)
    ]
    points = [
        OperatingPoint(curve.name, _SHARED_GPU, block, 1, batch, batch / length, 1000 * length)
        for curve in CURVES
        for block, own in curve.points().items()
        for batch, length in own
    ]
    return services, tuple(points)
