"""The dearest mix of random offers: by both searches, and by trying out all mixes one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

from cms.time_sharing.dearest import Search, dearest_mix
from cms.time_sharing.duty_cycle import DutyCycleRule
from cms.time_sharing.functions import Offer, PriceFunction
from cms.time_sharing.listed import ListedMixes
from cms.time_sharing.model import Choice

from .checker.dearest import Dearer, Function, Offered, Place, dearer_mix
from .finding import require


def random_number(rng: random.Random, most: int = 20) -> Fraction:
    """Draw a number of few digits."""
    return Fraction(rng.randint(1, most), rng.choice([1, 1, 2, 3, 5, 7]))


def random_function(rng: random.Random, demand: Fraction) -> PriceFunction:
    """Draw a function of up to four steps."""
    slope = random_number(rng) if rng.random() < 0.8 else 0
    times = [
        rng.choice([Fraction(rng.randint(1, 6)) / (demand or 1), random_number(rng) / 6])
        for _ in range(rng.choice([0, 0, 1, 2, 4]))
    ]
    return PriceFunction(slope, [(t, random_number(rng) / 3) for t in times])


def random_points(rng: random.Random) -> list[tuple[Fraction, Fraction]]:
    """Draw up to three amounts with lengths."""
    amounts = rng.sample([1, 2, 4, 8, 16], rng.randint(1, 3))
    return [(Fraction(a), random_number(rng, 6 + 2 * a)) for a in amounts]


def random_offers(rng: random.Random, jobs: int) -> list[Offer]:
    """Draw offers by one rule; some jobs alike, some charges, some without an admissible point."""
    rule = rng.choice(list(DutyCycleRule))
    offers: list[Offer] = []
    for at in range(jobs):
        if offers and rng.random() < 0.3:
            offers.append(offers[-1]._replace(job=f"j{at}"))
            continue
        demand, limit = random_number(rng, 12) * rng.choice([0, 1, 1, 1]), random_number(rng, 120)
        charge = random_number(rng, 9) * rng.choice([0, 0, 0, 1, -1])
        choices = tuple(
            Choice(amount, length, rule.longest(length, limit))
            for amount, length in random_points(rng)
            if rule.admits(length, length, limit)
        )
        if choices:
            offers.append(Offer(f"j{at}", demand, random_function(rng, demand), choices, charge))
    return offers


def wild_number(rng: random.Random, least: int = -12, most: int = 12) -> Fraction:
    """Draw a number of any size between powers of ten."""
    return rng.randint(1, 99) * Fraction(10) ** rng.randint(least, most)


def wild_offers(rng: random.Random, jobs: int) -> list[Offer]:
    """Draw offers whose demands, lengths and prices are of all sizes, beside each other."""
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
        offers.append(Offer(f"j{at}", demand, function, tuple(choices), charge))
    return offers


def all_mixes(
    offers: Sequence[Offer], most_jobs: int | None = None
) -> Iterator[tuple[dict[str, Fraction], Fraction]]:
    """Iterate over every admitted mix and its worth, by the definition."""
    for size in range(1, min(most_jobs or len(offers), len(offers)) + 1):
        for chosen in combinations(offers, size):
            for choices in product(*(offer.choices for offer in chosen)):
                cycle = sum((choice.length for choice in choices), Fraction(0))
                if any(cycle > choice.longest for choice in choices):
                    continue
                worth = Fraction(0)
                for offer, choice in zip(chosen, choices, strict=True):
                    rate = choice.amount / cycle
                    worth += offer.charge + offer.function.worth(rate, offer.demand)
                picked = zip(chosen, choices, strict=True)
                yield {offer.job: choice.amount for offer, choice in picked}, worth


def by_the_checker(
    offers: Sequence[Offer], price: Fraction, most_jobs: int | None = None
) -> Dearer | None:
    """Ask the second checker for a mix that is worth more than a price."""
    jobs = [
        Offered(
            offer.job,
            offer.demand,
            Function(offer.function.slope, tuple(offer.function.steps)),
            tuple(Place(*choice, offer.charge) for choice in offer.choices),
        )
        for offer in offers
    ]
    return dearer_mix(jobs, price, most_jobs)


def dearest(offers: Sequence[Offer], above: Fraction, most_jobs: int | None = None) -> Search:
    """Ask the package for the dearest mix above a price, by search and by a list if any."""
    found = dearest_mix(offers, above=above, most_jobs=most_jobs)
    listed = ListedMixes.of(offers, most_jobs, 100_000)
    looked = dearest_mix(offers, above=above, most_jobs=most_jobs, listed=listed)
    require(found.decided and looked.decided, "the package does not decide")
    worths = [None if one.dearest is None else one.dearest.worth for one in (found, looked)]
    require(worths[0] == worths[1], f"worths {worths} by search and by a list")
    return found


def require_agreement(seed: int, *, jobs: int) -> None:
    """Both searches, the list and the enumeration agree, on the value and on either side of it."""
    rng = random.Random(f"dearest {seed}")
    make = wild_offers if seed % 10 == 4 else random_offers
    offers = make(rng, rng.randint(1, jobs))
    if seed % 10 == 7:  # worths come in steps alone
        offers = [each._replace(function=PriceFunction(0, each.function.steps)) for each in offers]
    most_jobs = rng.choice([None, None, 1, 2, 3])
    every = list(all_mixes(offers, most_jobs))
    nothing = Fraction(0)
    best = max((worth for _, worth in every), default=nothing)
    found = dearest(offers, nothing, most_jobs).dearest
    if best <= 0:
        none = found is None and by_the_checker(offers, nothing, most_jobs) is None
        require(none, "a mix is found where none is worth anything")
        return
    require(found is not None and found.worth == best, f"{found}, the dearest is worth {best}")
    require(found is not None and (dict(found.mix), best) in every, f"{found} is no mix")
    # At the value itself there is none, and a breath below it there is.
    require(not dearest(offers, best, most_jobs).mixes, f"something above {best}")
    require(by_the_checker(offers, best, most_jobs) is None, f"the checker has one above {best}")
    below = best * Fraction(10**9 - 1, 10**9)
    dearer = by_the_checker(offers, below, most_jobs)
    is_one = dearer is not None and (dearer.amounts, dearer.worth) in every
    require(
        is_one and dearer is not None and below < dearer.worth <= best, f"the checker: {dearer}"
    )
