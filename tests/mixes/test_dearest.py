"""The dearest mix of a block: against all mixes one by one, in the package and the second checker.

Both searches round outwards and split frames in their own ways; the enumeration knows nothing of
either.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from cms.mixes import relaxation
from cms.mixes.dearest import Search, dearest_mix, mixes_worth
from cms.mixes.functions import PriceFunction
from cms.mixes.model import Choice
from cms.mixes.offers import ExactMixes, Offer, Pick
from cms.running.stopping import Stopped
from proofs_checks.checker import dearest as checker
from proofs_checks.offered import (
    all_mixes,
    by_the_checker,
    dearest,
    random_offers,
    require_agreement,
)
from tests.samples import few

NOTHING = Fraction(0)


@pytest.mark.parametrize("part", few(1, range(6)))
def test_both_searches_agree_with_all_mixes_one_by_one(part: int) -> None:
    for number in range(50):
        require_agreement(50 * part + number, jobs=2 + number % 10 // 9, listing=number % 5 == 0)


@pytest.mark.long
@pytest.mark.parametrize("part", range(50))
def test_both_searches_agree_with_all_mixes_of_four_jobs(part: int) -> None:
    for number in range(200):
        require_agreement(1000 + 200 * part + number, jobs=4, listing=number % 4 == 0)


def offer(job: str, *points: tuple[int, int], limit: int = 60, demand: int = 1) -> Offer:
    """A job that pays 1 for its demand, under round robin."""
    choices = [Choice(Fraction(a), Fraction(x), Fraction(limit - x)) for a, x in points]
    return Offer(job, Fraction(demand), PriceFunction(1), tuple(choices))


def charged(offer: Offer, *charges: Fraction) -> Offer:
    """The same with a charge for each of its points."""
    pairs = zip(offer.choices, charges, strict=True)
    return offer._replace(choices=tuple(c._replace(charge=charge) for c, charge in pairs))


@pytest.mark.parametrize("number", few(3, [2, 3, 20, 7, 40]))
def test_equal_jobs_are_exchanged_in_no_mix(number: int) -> None:
    """Otherwise twenty of them never end."""
    steps = PriceFunction("1/2", [("3/2", "1/7")])
    points = ((1, 2), (2, 3), (5, 7))
    one = offer("j", *points, limit=36)._replace(function=steps, demand=Fraction(2, 3))
    best = NOTHING
    for size in range(1, min(number, 17) + 1):  # eighteen would take longer than their limit
        for chosen in combinations_with_replacement(one.choices, size):
            frame = sum(choice.length for choice in chosen)
            if all(frame <= choice.longest for choice in chosen):
                rates = [choice.amount / frame for choice in chosen]
                worths = [steps.worth(rate, one.demand) for rate in rates]
                best = max(best, sum(worths, NOTHING))
    offers = [one._replace(job=f"j{at:02}") for at in range(number)]
    found = dearest(offers, NOTHING)
    assert found.dearest is not None
    assert found.dearest.worth == best
    assert not dearest(offers, best).mixes
    assert by_the_checker(offers, best) is None
    assert by_the_checker(offers, best - Fraction(1, 1000)) is not None


def test_a_listing_has_the_mixes_of_equal_jobs_under_every_name() -> None:
    offers = [offer(f"j{at}", (1, 4), (3, 7)) for at in range(5)]
    every = [(sorted(mix.items()), worth) for mix, worth in all_mixes(offers)]
    found = mixes_worth(offers, least=Fraction(-1), most=len(every))
    assert found.decided
    assert sorted((sorted(mix.items()), worth) for mix, worth in found.mixes) == sorted(every)
    assert not mixes_worth(offers, least=Fraction(-1), most=len(every) - 1).decided


def test_one_job_is_worth_what_its_best_point_is() -> None:
    alone = [offer("x", (1, 4), (8, 9), (16, 29), demand=2)]
    found = dearest(alone, NOTHING)
    assert found.dearest is not None
    assert (dict(found.dearest.mix), found.dearest.worth) == ({"x": 8}, Fraction(4, 9))


def test_without_an_admissible_point_there_is_no_mix() -> None:
    assert dearest([], NOTHING) == Search((), True, 0)
    assert mixes_worth([], least=NOTHING, most=1) == Search((), True, 0)
    late = checker.Offered(
        "x", Fraction(1), checker.Function(Fraction(1), ()),
        (checker.Place(Fraction(1), Fraction(4), Fraction(3)),),
    )  # fmt: skip
    assert checker.dearer_mix([late], NOTHING, None) is None


def test_jobs_that_pay_nothing_are_in_no_dearest_mix_but_are_listed() -> None:
    free = offer("free", (1, 1))._replace(function=PriceFunction())
    assert not dearest([free], NOTHING).mixes
    listed = mixes_worth([free], least=NOTHING, most=9)
    assert [(dict(mix), worth) for mix, worth in listed.mixes] == [({"free": 1}, 0)]


def test_limits_of_a_million_lengths_and_points_of_every_size() -> None:
    """Frames from the shortest point to the sum of all: the limit itself is far beyond."""
    limit = 10**6
    points = [[(1, 1), (50, 30)], [(7, 2), (2000, 900)], [(3, 1), (9000, 5000)]]
    offers = [
        offer(f"j{at}", *own, limit=limit, demand=3 + at)._replace(
            function=PriceFunction(1, [(Fraction(1, 2 + at), "1/5")])
        )
        for at, own in enumerate(points)
    ]
    best = max(worth for _, worth in all_mixes(offers))
    found = dearest(offers, NOTHING).dearest
    assert found is not None
    assert found.worth == best
    assert by_the_checker(offers, best) is None
    assert by_the_checker(offers, best * Fraction(999, 1000)) is not None


@pytest.mark.parametrize("digits", [30, 400, 2000])
def test_huge_rationals_are_compared_exactly(digits: int) -> None:
    """Two mixes differ by less than any integer of the search can tell."""
    tiny = Fraction(1, 10**digits + 7)
    first, second = offer("x", (6, 9)), offer("y", (6, 9))
    longer = second.choices[0]._replace(length=9 - tiny)
    offers = [first, second._replace(choices=(longer,))]
    found = dearest(offers, NOTHING).dearest
    assert found is not None
    best = max(worth for _, worth in all_mixes(offers))
    assert found.worth == best > Fraction(6, 9)
    assert by_the_checker(offers, best) is None
    dearer = by_the_checker(offers, Fraction(6, 9))
    assert dearer is not None
    assert dearer.worth == best


def test_huge_and_tiny_functions_are_no_trouble() -> None:
    """Steps that count to a billion, and ones that are far smaller than all else."""
    function = PriceFunction("1/3", [(10**9, "1e-9"), ("1e-30", 1), (1, "1e-40")])
    offers = [offer(f"j{at}", (2, 4), (8, 9 + at))._replace(function=function) for at in range(3)]
    best = max(worth for _, worth in all_mixes(offers))
    found = dearest(offers, NOTHING).dearest
    assert found is not None
    assert found.worth == best
    assert by_the_checker(offers, best) is None
    assert by_the_checker(offers, best - Fraction(1, 10**39)) is not None


@pytest.mark.parametrize("digits", few(2, [4, 30, 8, 12, 16]))
def test_lengths_may_be_of_any_two_sizes(digits: int) -> None:
    """What is far too long for an interval has no part in it."""
    large = 10**digits
    points = [((1, 4), (8 * large, 9 * large)), ((2, 5), (9, 14)), ((1, 3), (50, 11 * large))]
    function = PriceFunction("1/2", [("1/3", "1/4")])
    for limit in (40 * large, 100):
        offers = [
            charged(
                offer(f"j{at}", *own, limit=limit)._replace(function=function),
                *(Fraction(at - 1, 9 + place) for place in range(len(own))),
            )
            for at, every in enumerate(points)
            for own in [[point for point in every if 2 * point[1] <= limit]]
        ]
        best = max(worth for _, worth in all_mixes(offers))
        found = dearest(offers, NOTHING).dearest
        assert found is not None
        assert found.worth == best
        assert not dearest(offers, best).mixes
        assert by_the_checker(offers, best) is None


@pytest.mark.parametrize("digits", [3, 9, 12, 40])
def test_demands_may_be_far_beyond_what_a_block_gives(digits: int) -> None:
    """Then the whole demand is worth as much more than any mix."""
    demand = Fraction(10**digits)
    function = PriceFunction(demand, [(3 / demand, "1/99"), (Fraction(1, 2), "1/7")])
    points = [((1, 4), (8, 9)), ((2, 5), (9, 14)), ((1, 3), (5, 11), (20, 29))]
    offers = [
        offer(f"j{at}", *own)._replace(function=function, demand=demand)
        for at, own in enumerate(points)
    ]
    best = max(worth for _, worth in all_mixes(offers))
    found = dearest(offers, NOTHING).dearest
    assert found is not None
    assert found.worth == best
    assert by_the_checker(offers, best) is None
    assert by_the_checker(offers, best * Fraction(999, 1000)) is not None


def test_charges_decide_what_a_mix_has() -> None:
    paid, shunned = offer("paid", (1, 30)), offer("shunned", (1, 2), demand=5)
    offers = [
        charged(paid._replace(function=PriceFunction()), Fraction(1, 3)),
        charged(shunned, Fraction(-2)),
    ]
    found = dearest(offers, NOTHING).dearest
    assert found is not None
    assert (dict(found.mix), found.worth) == ({"paid": 1}, Fraction(1, 3))
    assert by_the_checker(offers, Fraction(1, 3)) is None
    worths = {tuple(sorted(mix)): worth for mix, worth in all_mixes(offers)}
    assert worths["shunned",] == Fraction(1, 10) - 2


def test_worths_in_steps_are_told_apart_by_a_step() -> None:
    """Twenty jobs worth 1 each: so many mixes of sixteen are worth as much as the best."""
    each = PriceFunction(0, [("1/9", 1)])
    offers = [
        offer(f"j{at:02}", (2, 20 + at), (9, 41 + at), limit=500)._replace(function=each)
        for at in range(20)
    ]
    found = dearest_mix(offers, above=NOTHING, node_limit=50_000)
    assert found.decided
    assert found.dearest is not None
    # Those of lengths 20 to 35 take 440, and the longest 35 more; 36 besides would be too much.
    assert found.dearest.worth == 16
    assert by_the_checker(offers, Fraction(16)) is None
    assert by_the_checker(offers, Fraction(31, 2)) is not None


def test_a_limit_of_nodes_ends_a_search_undecided_with_what_it_met() -> None:
    rng = random.Random(3)
    offers = [offer(f"j{at}", (at + 2, at + 3), (9, 11 + at % 4)) for at in range(8)]
    whole = dearest(offers, NOTHING)
    assert whole.dearest is not None
    cut = dearest_mix(offers, above=NOTHING, node_limit=2)
    assert not cut.decided
    assert cut.nodes == 3
    assert cut.dearest is not None  # single jobs are tried before anything else
    # What is not decided is not said to be refuted.
    none = dearest_mix(offers, above=whole.dearest.worth, node_limit=rng.randint(0, 2))
    assert (none.mixes, none.decided) == ((), False)


def test_the_checker_gives_up_with_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = [offer(f"j{at}", (at + 2, at + 3), (9, 11 + at)) for at in range(8)]
    best = dearest(offers, NOTHING).mixes[0].worth
    monkeypatch.setattr(checker, "_MOST_STEPS", 2)
    with pytest.raises(ValueError, match="not decided in 2 steps"):
        by_the_checker(offers, best)


def test_a_mix_of_hundreds_of_jobs_is_not_decided() -> None:
    """Each job is a call within the one before it, of which Python allows a thousand."""
    each = PriceFunction("1e-9", [("1e-6", 1)])
    point = Choice(Fraction(1), Fraction(1), Fraction(10**6))
    offers = [Offer(f"j{at}", Fraction(1), each, (point,)) for at in range(1100)]
    assert not dearest_mix(offers, above=Fraction(1099)).decided
    with pytest.raises(ValueError, match="a mix of more than 400 jobs"):
        by_the_checker(offers, Fraction(1099))


def test_how_many_intervals_are_looked_at_together_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(5)
    cases = [random_offers(rng, 3) for _ in range(6)]
    found = [dearest(offers, NOTHING) for offers in cases]
    for name in ("_TOGETHER", "_TOGETHER_OF_STEPS"):
        with monkeypatch.context() as changed:
            changed.setattr(relaxation, name, 1)
            assert [dearest(offers, NOTHING) for offers in cases] == found


def test_a_search_is_stopped_from_outside() -> None:
    steps = PriceFunction(0, [("1/9", 1)])
    offers = [
        offer(f"j{at:02}", (2, 20 + at), (9, 41 + at), limit=900)._replace(function=steps)
        for at in range(30)
    ]
    with pytest.raises(Stopped):
        dearest_mix(offers, above=NOTHING, stopped=lambda: True)


def test_any_one_ends_with_a_mix_that_is_worth_more() -> None:
    offers = [offer(f"j{at}", (at + 2, at + 3)) for at in range(8)]
    found = dearest_mix(offers, above=Fraction(1, 10), any_one=True)
    assert len(found.mixes) == 1
    assert not found.decided
    assert found.mixes[0].worth > Fraction(1, 10)


def test_worths_over_common_denominators_are_those_of_the_definition() -> None:
    rng = random.Random(11)
    for _ in range(40):
        offers = random_offers(rng, 3)
        exact = ExactMixes(offers)
        every = {tuple(sorted(mix.items())): worth for mix, worth in all_mixes(offers)}
        for _ in range(10):
            chosen = rng.sample(range(len(offers)), rng.randint(0, len(offers)))
            picks = [Pick(at, rng.randrange(len(offers[at].choices))) for at in chosen]
            if picks:
                amounts = [(offers[at].job, offers[at].choices[c].amount) for at, c in picks]
                assert exact.worth(picks) == every.get(tuple(sorted(amounts)))
