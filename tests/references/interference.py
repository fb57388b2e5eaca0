"""Services on shares that slow one another, from the definition alone: toys, and their optimum.

Every mix on every share, beside every mix on the other one: as a way to solve it is hopeless, on
toys it is exact, and it shares nothing with classes, images or check of the package.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

from cms.fleet.serving import Interference, NeighbourServing, OperatingPoint, Pair, Service
from cms.fleet.serving import build_problem as posed_as

GPU = "a100-80gb"
Slots = tuple[tuple[int, int], ...]  # (service, batch)
Rates = tuple[Fraction, ...]


class Toy(NamedTuple):
    """Services ``(model, rate, limit)``, lengths and factors, all in whole numbers of something."""

    services: list[tuple[str, int, int]]
    lengths: dict[tuple[str, int, int], Fraction]  # (model, share, batch)
    factors: dict[tuple[str, int, int, str, int], Fraction]
    rule: str
    most: int | None

    def pose(self, classes: int | None = None) -> NeighbourServing:
        """The images that the package makes of it."""
        return posed_as(
            [
                Service(f"s{i}", model, rate, ms)
                for i, (model, rate, ms) in enumerate(self.services)
            ],
            [
                OperatingPoint(model, GPU, f"mps:{share}", 1, batch, 1000 * batch / ms, ms)
                for (model, share, batch), ms in self.lengths.items()
            ],
            GPU,
            sharing="time",
            rule=self.rule,
            max_services=self.most,
            interference=self.table(),
            classes=classes,
        )

    def table(self) -> Interference:
        """The factors as a table of pairs."""
        return Interference(
            {
                Pair(model, GPU, f"mps:{share}", batch, other, taken): factor
                for (model, share, batch, other, taken), factor in self.factors.items()
            }
        )


def toy(rng: random.Random, *, services: int = 3) -> Toy:
    """One to three services of two models, one or two batches, a GPU in two or three ways."""
    split = rng.choice([(60, 40), (50,), (60, 40, 100), (50, 100), (80, 20, 30)])
    batches = rng.sample([1, 2, 4], rng.randint(1, 2))
    lengths = {
        (model, share, batch): Fraction(rng.randint(2, 12 + 4 * batch), rng.choice([1, 2]))
        for model in "xy"
        for share in split
        for batch in batches
        if rng.random() < 0.9 or batch == batches[0]
    }
    factors = {
        (model, share, batch, other, taken): Fraction(rng.choice([9, 10, 11, 13, 15, 20, 30]), 10)
        for model, share, batch in lengths
        for other in "xy"
        for taken in batches
        if share != 100
    }
    asked = [
        (rng.choice("xy"), rng.randint(10, 250), rng.randint(15, 80))
        for _ in range(rng.randint(1, services))
    ]
    rule = rng.choice(["round_robin", "collect_then_run"])
    return Toy(asked, lengths, factors, rule, rng.choice([None, None, 1]))


def rates_of(of: Toy, share: int, slots: Slots, beside: Slots) -> Rates | None:
    """What a mix gives each service beside another one; None if a limit is violated."""
    lengths = []
    for i, batch in slots:
        factor = Fraction(1)
        for j, taken in beside:
            key = of.services[i][0], share, batch, of.services[j][0], taken
            factor = max(factor, of.factors[key])
        lengths.append(of.lengths[of.services[i][0], share, batch] * factor)
    cycle = sum(lengths, Fraction(0))
    for (i, _), length in zip(slots, lengths, strict=True):
        took = cycle + length if of.rule == "round_robin" else 2 * cycle
        if took > of.services[i][2]:
            return None
    given = dict(slots)
    return tuple(
        Fraction(1000 * given.get(i, 0)) / cycle if cycle else Fraction(0)
        for i in range(len(of.services))
    )


def mixes_on(of: Toy, share: int) -> Iterator[Slots]:
    """Nothing, and every mix that meets its limits alone."""
    yield ()
    for size in range(1, (of.most or len(of.services)) + 1):
        for chosen in combinations(range(len(of.services)), size):
            options = [
                [
                    (i, batch)
                    for model, at, batch in of.lengths
                    if (model, at) == (of.services[i][0], share)
                ]
                for i in chosen
            ]
            for slots in product(*options):
                if rates_of(of, share, slots, ()) is not None:
                    yield slots


def machines_of(of: Toy) -> set[Rates]:
    """What one GPU can give, cut off at what is asked for."""
    shares = sorted({share for _, share, _ in of.lengths})
    asked = [Fraction(rate) for _, rate, _ in of.services]
    found = set()
    for share in shares:
        rest = 100 - share
        for mine in mixes_on(of, share):
            for other in mixes_on(of, rest) if rest in shares else [()]:
                one, two = rates_of(of, share, mine, other), rates_of(of, rest, other, mine)
                if one is not None and two is not None:
                    total = zip(one, two, asked, strict=True)
                    found.add(tuple(min(a + b, most) for a, b, most in total))
    return found


def optimum(of: Toy, most: int = 6) -> int | None:
    """The least number of GPUs; None if `most` do not suffice."""
    asked = tuple(Fraction(rate) for _, rate, _ in of.services)
    machines = _maximal(machines_of(of))
    reached: set[Rates] = {tuple(Fraction(0) for _ in asked)}
    for number in range(most + 1):
        if asked in reached:
            return number
        sums = (zip(a, b, asked, strict=True) for a in reached for b in machines)
        reached = _maximal({tuple(min(x + y, top) for x, y, top in each) for each in sums})
    return None


def _maximal(vectors: set[Rates]) -> set[Rates]:
    def beaten(one: Rates) -> bool:
        return any(
            other != one and all(a >= b for a, b in zip(other, one, strict=True))
            for other in vectors
        )

    return {one for one in vectors if not beaten(one)}


def lengths_in(serving: NeighbourServing) -> Mapping[str, dict[tuple[str, Fraction], Fraction]]:
    """``{block: {(service, amount): length}}`` of the inner image."""
    return {
        block: {
            (job.name, point.amount): point.length
            for job in serving.problem.jobs
            for point in job.points.get(block, ())
        }
        for block in serving.problem.blocks
    }
