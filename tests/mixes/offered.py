"""Random offers of jobs on a block, and the dearest mixes by trying out all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

from cms.mixes.frames import FrameRule
from cms.mixes.functions import PriceFunction
from cms.mixes.offers import Choice, Offer


def random_number(rng: random.Random, most: int = 20) -> Fraction:
    return Fraction(rng.randint(1, most), rng.choice([1, 1, 2, 3, 5, 7]))


def random_function(rng: random.Random, demand: Fraction) -> PriceFunction:
    slope = random_number(rng) if rng.random() < 0.8 else 0
    times = [
        rng.choice([Fraction(rng.randint(1, 6)) / (demand or 1), random_number(rng) / 6])
        for _ in range(rng.choice([0, 0, 1, 2, 4]))
    ]
    return PriceFunction(slope, [(t, random_number(rng) / 3) for t in times])


def random_points(rng: random.Random) -> list[tuple[Fraction, Fraction]]:
    amounts = rng.sample([1, 2, 4, 8, 16], rng.randint(1, 3))
    return [(Fraction(a), random_number(rng, 6 + 2 * a)) for a in amounts]


def random_offers(rng: random.Random, jobs: int) -> list[Offer]:
    """Offers by one rule; some jobs alike, some charges, some without an admissible point."""
    rule = rng.choice(list(FrameRule))
    offers: list[Offer] = []
    for at in range(jobs):
        if offers and rng.random() < 0.3:
            offers.append(offers[-1]._replace(job=f"j{at}"))
            continue
        demand, limit = random_number(rng, 12) * rng.choice([0, 1, 1, 1]), random_number(rng, 120)
        charge = random_number(rng, 9) * rng.choice([-1, 1]) if rng.random() < 0.3 else Fraction(0)
        choices = tuple(
            Choice(amount, length, rule.longest(length, limit))
            for amount, length in random_points(rng)
            if rule.admits(length, length, limit)
        )
        if choices:
            offers.append(Offer(f"j{at}", demand, random_function(rng, demand), charge, choices))
    return offers


def wild_number(rng: random.Random, least: int = -12, most: int = 12) -> Fraction:
    """A number of any size between powers of ten."""
    return rng.randint(1, 99) * Fraction(10) ** rng.randint(least, most)


def wild_offers(rng: random.Random, jobs: int) -> list[Offer]:
    """Offers whose demands, lengths and prices are of all sizes, beside each other."""
    offers = []
    for at in range(jobs):
        demand, limit = wild_number(rng), wild_number(rng, 0, 6)
        choices: list[Choice] = []
        parts = [Fraction(rng.randint(1, 100), 100) / 10 ** rng.randint(0, 9) for _ in range(3)]
        for length in sorted(limit / 2 * part for part in parts):
            amount = wild_number(rng, -6, 6)
            if not choices or amount > choices[-1].amount:
                choices.append(Choice(amount, length, limit - length))
        steps = [
            (rng.choice([wild_number(rng), rng.randint(1, 6) / demand]), wild_number(rng, -9, 3))
            for _ in range(rng.randint(0, 3))
        ]
        slope = rng.choice([Fraction(0), wild_number(rng, -6, 6), demand])
        charge = rng.choice([Fraction(0), wild_number(rng, -9, 9), -wild_number(rng, -9, 9)])
        function = PriceFunction(slope, steps)
        offers.append(Offer(f"j{at}", demand, function, charge, tuple(choices)))
    return offers


def all_mixes(
    offers: Sequence[Offer], most_jobs: int | None = None
) -> Iterator[tuple[dict[str, Fraction], Fraction]]:
    """Every admitted mix and its worth, by the definition."""
    for size in range(1, min(most_jobs or len(offers), len(offers)) + 1):
        for chosen in combinations(offers, size):
            for choices in product(*(offer.choices for offer in chosen)):
                frame = sum((choice.length for choice in choices), Fraction(0))
                if any(frame > choice.longest for choice in choices):
                    continue
                worth = Fraction(0)
                for offer, choice in zip(chosen, choices, strict=True):
                    rate = choice.amount / frame
                    worth += offer.charge + offer.function.worth(rate, offer.demand)
                picked = zip(chosen, choices, strict=True)
                yield {offer.job: choice.amount for offer, choice in picked}, worth
