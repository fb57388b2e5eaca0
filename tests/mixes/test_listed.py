"""Mixes that are listed: the same answers as the search gives, and as all mixes one by one do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction

import pytest

from cms import Configuration, TimeSharedJob, TimeSharedProblem
from cms.mixes import listed as listing
from cms.mixes.dearest import dearest_mix
from cms.mixes.functions import PriceFunction
from cms.mixes.listed import ListedMixes
from cms.mixes.model import Choice
from cms.mixes.offers import Offer, amounts, worth_of
from proofs_checks.offered import all_mixes, random_offers, wild_offers
from tests.samples import few, so_many

NOTHING, THIRD = Fraction(0), Fraction(1, 3)


def in_list(offers: Sequence[Offer], most_jobs: int | None = None) -> ListedMixes:
    """The list of all mixes of some offers."""
    found = ListedMixes.of(offers, most_jobs, 100_000)
    assert found is not None
    return found


def other_prices(rng: random.Random, offers: Iterable[Offer]) -> list[Offer]:
    """Some of the offers, at other prices, without some of their choices."""
    found = []
    for offer in offers:
        if rng.random() < 0.2:
            continue
        kept = [choice for choice in offer.choices if rng.random() < 0.8] or offer.choices[:1]
        drawn = rng.choice([NOTHING, Fraction(rng.randint(-9, 9), rng.randint(1, 9))])
        choices = tuple(choice._replace(charge=drawn) for choice in kept)
        found.append(offer._replace(function=offer.function.scaled(THIRD), choices=choices))
    return found


def require_the_same(offers: Sequence[Offer], listed: ListedMixes, most_jobs: int | None) -> None:
    """List, search and definition agree about the dearest mix, at it and around it."""
    every = {tuple(sorted(mix.items())): worth for mix, worth in all_mixes(offers, most_jobs)}
    best = max(every.values(), default=NOTHING)
    breath = 1 - Fraction(1, 10**12)
    for above in {NOTHING, best / 2, max(NOTHING, best * breath), max(NOTHING, best), best**2}:
        found = dearest_mix(offers, above=above, most_jobs=most_jobs, listed=listed)
        plain = dearest_mix(offers, above=above, most_jobs=most_jobs)
        assert found.decided
        assert plain.decided
        assert [p.worth for p in found.mixes[:1]] == [p.worth for p in plain.mixes[:1]]
        for mix, worth in found.mixes:
            assert every[tuple(sorted(mix.items()))] == worth > above
        one = dearest_mix(offers, above=above, most_jobs=most_jobs, any_one=True, listed=listed)
        assert len(one.mixes) == (best > above)
        # None that is worth more is left out, and none is worth more than is said.
        likely = listed.likely(offers, above)
        if likely is None:
            continue
        told = {tuple(sorted(amounts(offers, picks).items())): most for picks, most in likely}
        assert all(every[mix] <= most > above for mix, most in told.items())
        assert all(mix in told for mix, worth in every.items() if worth > above)
        assert list(told.values()) == sorted(told.values(), reverse=True)


@pytest.mark.parametrize("part", few(1, range(100)))
def test_lists_agree_with_the_search_and_with_all_mixes_one_by_one(part: int) -> None:
    known, each = 0, so_many(40, 100)
    for seed in range(each * part, each * part + each):
        rng = random.Random(f"listed {seed}")
        offers = (wild_offers if seed % 5 == 0 else random_offers)(rng, rng.randint(1, 4))
        if seed % 5 == 1:  # worths come in steps alone
            offers = [o._replace(function=PriceFunction(0, o.function.steps)) for o in offers]
        most_jobs = rng.choice([None, 1, 2, 3])
        listed = ListedMixes.of(offers, most_jobs, 100_000)
        if listed is None:
            assert not offers or seed % 5 == 0
            continue
        known += 1
        assert len(listed) == sum(1 for _ in all_mixes(offers, most_jobs))
        require_the_same(offers, listed, most_jobs)
        require_the_same(other_prices(rng, offers), listed, most_jobs)
    assert known > each // 2


def offer(job: str, *points: tuple[Fraction | int, Fraction | int], demand: int = 1) -> Offer:
    """A job that pays 1 for its demand, in frames up to 60."""
    choices = [Choice(Fraction(a), Fraction(x), Fraction(60)) for a, x in points]
    return Offer(job, Fraction(demand), PriceFunction(1), tuple(choices))


def test_three_thirds_fill_a_frame_however_they_are_rounded() -> None:
    """Rounded down they are admitted in any case, in integers; and a hair more is not."""
    long = Fraction(1, 10**30 + 57)
    for hair in (-long, NOTHING, long):
        offers = [offer(f"j{at}", (7, 20 + hair + THIRD), demand=9) for at in range(3)]
        offers = [
            o._replace(choices=(o.choices[0]._replace(longest=Fraction(61)),)) for o in offers
        ]
        assert len(in_list(offers)) == (6 if hair > 0 else 7)
        require_the_same(offers, in_list(offers), None)


def test_a_step_at_a_whole_number_counts_it_and_no_more() -> None:
    """Rates of 1/3 of a demand, told by 3, by a hair less and by a hair more."""
    hair = Fraction(1, 10**40)
    for times in (3 - hair, Fraction(3), 3 + hair):
        steps = PriceFunction(0, [(times, THIRD)])
        for scale in (Fraction(1), Fraction(1, 10**12 + 39)):
            points = (1 * scale, 3 * scale), (2 * scale, 7 * scale)
            offers = [offer(f"j{at}", *points)._replace(function=steps) for at in range(3)]
            offers = [
                o._replace(choices=tuple(c._replace(longest=60 * scale) for c in o.choices))
                for o in offers
            ]
            require_the_same(offers, in_list(offers), None)


def test_a_frame_is_a_hair_longer_than_a_job_allows() -> None:
    """Fewer parts than the grid has, and not as many of them as it has in a whole number."""
    for parts in range(2**26, 2**26 + 60):
        lengths = (20 + THIRD, 20 + THIRD, 20 + THIRD + Fraction(1, parts))
        offers = [offer(f"j{at}", (7, length), demand=9) for at, length in enumerate(lengths)]
        offers = [
            o._replace(choices=(o.choices[0]._replace(longest=Fraction(61)),)) for o in offers
        ]
        assert len(in_list(offers)) == 6


def test_a_share_is_a_hair_more_than_a_whole_number_of_parts() -> None:
    hair = Fraction(1, 10**20)
    offers = [offer(job, (1 + hair, 1)) for job in "xy"]
    found = dearest_mix(offers, above=Fraction(1), listed=in_list(offers)).dearest
    assert found is not None
    assert (len(found.mix), found.worth) == (2, 1 + hair)


def test_worths_that_differ_by_one_in_64_bits_are_told_apart() -> None:
    less, more = Fraction(1), 1 + Fraction(1, 2**59)
    offers = [
        offer(job, (1, 4))._replace(function=PriceFunction(0, [(1, height)]))
        for job, height in (("x", less), ("y", more))
    ]
    listed = in_list(offers, 1)
    found = dearest_mix(offers, above=less, listed=listed, most_jobs=1).dearest
    assert found is not None
    assert found.worth == more
    assert listed.likely(offers, more) is not None
    assert not list(listed.likely(offers, more) or ())


def test_long_fractions_are_counted_as_they_are() -> None:
    """Of frames that are no whole parts of the grid, with rates that a step counts as 1."""
    lengths = [Fraction(7), 9 + Fraction(1, 10**30 + 57), 11 + Fraction(1, 10**31 + 33)]
    amount = sum(lengths, NOTHING) / 3
    steps = PriceFunction(0, [(3, THIRD)])
    offers = [
        offer(f"j{at}", (amount, length))._replace(function=steps)
        for at, length in enumerate(lengths)
    ]
    listed = in_list(offers)
    told = list(listed.likely(offers, Fraction(99, 100)) or ())
    assert (1, 3) in {(most, len(picks)) for picks, most in told}
    require_the_same(offers, listed, None)


@pytest.mark.parametrize("large", [10**12, 10**30, 10**300])
def test_numbers_may_be_of_any_size(large: int) -> None:
    offers = [offer(f"j{at}", (1, 4), (5 + at, 9), demand=3) for at in range(3)]
    for times in (Fraction(large), Fraction(1, large)):
        dearer = [o._replace(function=o.function.scaled(times)) for o in offers]
        mixed = [dearer[0], *offers[1:]]
        for own in (dearer, mixed):
            require_the_same(own, in_list(offers), None)
    demanding = [o._replace(demand=Fraction(large)) for o in offers]
    require_the_same(demanding, in_list(demanding), None)


def test_many_equal_jobs_tie() -> None:
    offers = [offer(f"j{at}", (2, 5), (9, 17), demand=2) for at in range(8)]
    found = in_list(offers, 3)
    best = max(worth for _, worth in all_mixes(offers, 3))
    assert not dearest_mix(offers, above=best, most_jobs=3, listed=found).mixes
    search = dearest_mix(offers, above=NOTHING, most_jobs=3, listed=found)
    assert search.dearest is not None
    assert search.dearest.worth == best


def test_what_cannot_be_bounded_in_64_bits_is_left_to_the_search() -> None:
    offers = [offer(f"j{at}", (1, 4), (5 + at, 9)) for at in range(3)]
    counting = [o._replace(function=PriceFunction(1, [(10**9, "1e-9")])) for o in offers]
    assert in_list(offers).likely(counting, NOTHING) is None
    require_the_same(counting, in_list(offers), None)


def test_lists_have_an_end() -> None:
    offers = [offer(f"j{at}", (1, 4), (5 + at, 9)) for at in range(3)]
    number = len(in_list(offers))
    assert number == 26
    assert ListedMixes.of(offers, None, number) is not None
    assert ListedMixes.of(offers, None, number - 1) is None
    assert ListedMixes.of([], None, number) is None
    # A length of a billionth of the longest frame is nothing in 33 bits.
    short = offers[0].choices[0]._replace(length=Fraction(1, 10**9))
    assert ListedMixes.of([offers[0]._replace(choices=(short,))], None, number) is None


def test_counts_that_are_dropped_are_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_KEPT", 2)
    rng = random.Random(3)
    for _ in range(10):
        offers = random_offers(rng, 3)
        if offers:
            require_the_same(offers, in_list(offers), None)


def test_problems_keep_their_lists_of_all_admitted_points() -> None:
    points = {"a": [(1, 5), (2, 4), (8, 9), (16, 11)], "b": [(1, 3)]}
    jobs = [TimeSharedJob("x", 1, 20, points), TimeSharedJob("y", 0, 20, {"a": [(1, 2)]})]
    problem = TimeSharedProblem(
        configurations=[Configuration({"a": 1}), Configuration({"b": 1, "c": 1})], jobs=jobs
    )
    listed = problem.listed_mixes("a")
    assert listed is problem.listed_mixes("a")
    assert listed is not None
    assert len(listed) == 3 + 1 + 3  # x alone, y alone, and both; 16 of x are late
    assert problem.listed_mixes("c") is None
    below = [Offer("x", Fraction(1), PriceFunction(), problem.choices("a", "x"))]
    first = below[0].choices[0]._replace(charge=Fraction(2))
    below = [below[0]._replace(choices=(first, *below[0].choices[1:]))]
    found = dearest_mix(below, above=NOTHING, listed=listed).dearest
    assert found is not None
    assert (dict(found.mix), found.worth) == ({"x": 1}, worth_of([(below[0], first)]))
