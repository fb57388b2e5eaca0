"""The dearest mix of a block: by a list, by search, by the second checker and by all mixes.

The first three leave mixes out in ways of their own; the enumeration knows nothing of any.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from cms import Configuration, TimeSharedJob, TimeSharedProblem
from cms.running.stopping import Stopped
from cms.time_sharing.dearest import dearest_mix, price_mix
from cms.time_sharing.functions import Offer, PriceFunction
from cms.time_sharing.listed import ListedMixes
from cms.time_sharing.model import Choice
from proofs_checks.checker import dearest as checker
from proofs_checks.offered import all_mixes, by_the_checker, dearest, require_agreement
from tests.samples import few

NOTHING = Fraction(0)


@pytest.mark.parametrize("part", few(1, range(50)))
def test_all_agree_with_all_mixes_one_by_one(part: int) -> None:
    for number in range(100):
        require_agreement(100 * part + number, jobs=2 + number % 10 // 8)


def offer(job: str, *points: tuple[Fraction | int, Fraction | int], **more: int) -> Offer:
    """A job that pays 1 for its demand, under round robin."""
    limit = more.get("limit", 60)
    choices = [Choice(Fraction(a), Fraction(x), limit - Fraction(x)) for a, x in points]
    return Offer(job, Fraction(more.get("demand", 1)), PriceFunction(1), tuple(choices))


def require_best(offers: Sequence[Offer], breath: Fraction = Fraction(1, 10**9)) -> Fraction:
    """All find the best of all mixes, none above it, and one a breath below it."""
    best = max(worth for _, worth in all_mixes(offers))
    found = dearest(offers, NOTHING).dearest
    assert found is not None
    assert (dict(found.mix), found.worth) in list(all_mixes(offers))
    assert found.worth == best
    assert not dearest(offers, best).mixes
    assert dearest(offers, best - best * breath).dearest is not None
    assert by_the_checker(offers, best) is None
    assert by_the_checker(offers, best - best * breath) is not None
    return best


@pytest.mark.parametrize("number", few(3, [2, 3, 20, 7, 40]))
def test_equal_jobs_are_exchanged_in_no_mix(number: int) -> None:
    """Otherwise twenty of them never end."""
    steps = PriceFunction("1/2", [("3/2", "1/7")])
    one = offer("j", (1, 2), (2, 3), (5, 7), limit=36)
    one, best = one._replace(function=steps, demand=Fraction(2, 3)), NOTHING
    for size in range(1, min(number, 17) + 1):  # eighteen would take longer than their limit
        for chosen in combinations_with_replacement(one.choices, size):
            frame = sum(choice.length for choice in chosen)
            if all(frame <= choice.longest for choice in chosen):
                rates = [choice.amount / frame for choice in chosen]
                best = max(best, sum((steps.worth(r, one.demand) for r in rates), NOTHING))
    offers = [one._replace(job=f"j{at:02}") for at in range(number)]
    found, none = dearest_mix(offers, above=NOTHING), dearest_mix(offers, above=best)
    assert found.dearest is not None
    assert found.dearest.worth == best
    assert (none.mixes, none.decided) == ((), True)
    assert by_the_checker(offers, best) is None
    assert by_the_checker(offers, best - Fraction(1, 1000)) is not None


POINTS = (((1, 4), (8, 9)), ((2, 5), (9, 14)), ((1, 3), (5, 11), (20, 29)))


@pytest.mark.parametrize("large", [10**3, 10**12, 10**30, 10**300])
def test_prices_demands_lengths_and_limits_may_be_of_any_size(large: int) -> None:
    # Two mixes differ by less than any float can tell.
    longer = 9 - Fraction(1, 7 * large + 1)
    assert require_best([offer("x", (6, 9)), offer("y", (6, longer))]) > Fraction(6, 9)
    plain = [offer(f"j{at}", *own, demand=3) for at, own in enumerate(POINTS)]
    for times in (Fraction(large), Fraction(1, large)):
        dearer = [o._replace(function=o.function.scaled(times)) for o in plain]
        require_best(dearer)
        require_best([dearer[0], *plain[1:]])
    demand = Fraction(large)
    function = PriceFunction(demand, [(3 / demand, "1/99"), (Fraction(1, 2), "1/7")])
    require_best([o._replace(function=function, demand=demand) for o in plain])
    require_best([offer(f"j{at}", *own, limit=large * 100) for at, own in enumerate(POINTS)])
    # What is far too long for an interval has no part in it; charges of either sign.
    function = PriceFunction("1/2", [("1/3", "1/4")])
    points = [((1, 4), (8 * large, 9 * large)), ((2, 5), (9, 14)), ((1, 3), (50, 11 * large))]
    offers = [offer(f"j{at}", *own, limit=40 * large) for at, own in enumerate(points)]
    charged = enumerate(offers)
    require_best([o._replace(function=function, charge=Fraction(at - 1, 9)) for at, o in charged])


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


def test_what_is_not_decided_is_not_said_to_be_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = [offer(f"j{at}", (at + 2, at + 3), (9, 11 + at % 4)) for at in range(8)]
    best = dearest_mix(offers, above=NOTHING).mixes[0].worth
    cut = dearest_mix(offers, above=NOTHING, node_limit=2)
    assert (cut.decided, cut.nodes) == (False, 3)
    assert cut.dearest is not None  # single jobs are tried before anything else
    none = dearest_mix(offers, above=best, node_limit=1)
    assert (none.mixes, none.decided) == ((), False)
    with pytest.raises(Stopped):
        dearest_mix(offers, above=NOTHING, stopped=lambda: True)
    monkeypatch.setattr(checker, "_MOST_STEPS", 2)
    with pytest.raises(ValueError, match="not decided in 2 steps"):
        by_the_checker(offers, best)
    # Each job is a call within the one before it, of which Python allows a thousand.
    each = PriceFunction("1e-9", [("1e-6", 1)])
    point = Choice(Fraction(1), Fraction(1), Fraction(10**6))
    hundreds = [Offer(f"j{at}", Fraction(1), each, (point,)) for at in range(1100)]
    assert not dearest_mix(hundreds, above=Fraction(1099)).decided


def test_frames_a_hair_longer_than_a_job_allows_are_not_listed() -> None:
    for hair, number in ((-Fraction(1, 10**30), 7), (NOTHING, 7), (Fraction(1, 10**30), 6)):
        point = Choice(Fraction(7), 20 + hair + Fraction(1, 3), Fraction(61))
        offers = [Offer(f"j{at}", Fraction(1, 9), PriceFunction(1), (point,)) for at in range(3)]
        listed = ListedMixes.of(offers, None, number)
        assert listed is not None
        assert len(listed) == number
        assert ListedMixes.of(offers, None, number - 1) is None
        assert require_best(offers) == number - 4


def test_problems_keep_their_lists_of_the_mixes_that_may_be_best() -> None:
    points = {"a": [(1, 5), (2, 4), (8, 9), (16, 11)], "b": [(1, 3)]}
    jobs = [TimeSharedJob("x", 1, 20, points), TimeSharedJob("y", 0, 20, {"a": [(1, 2)]})]
    shapes = [Configuration({"a": 1}), Configuration({"b": 1, "c": 1})]
    problem = TimeSharedProblem(configurations=shapes, jobs=jobs)
    listed = problem.listed_mixes("a")
    assert listed is problem.listed_mixes("a")
    assert listed is not None
    assert len(listed) == 2 + 1 + 2  # x alone, y alone, and both; 16 of x are late, 1 takes longer
    assert problem.listed_mixes("c") is None
    # Of jobs that are not offered there is no mix; a charge is paid whatever the rate.
    found = price_mix(problem, "a", {}, {"x": Fraction(2)}, above=NOTHING).dearest
    assert found is not None
    assert (list(found.mix), found.worth) == (["x"], 2)
    more = problem.replace(jobs=[TimeSharedJob("x", "1/9", 20, points), *jobs[1:]])
    found = price_mix(more, "a", {"x": PriceFunction(1)}, {}, above=NOTHING).dearest
    assert found is not None
    assert (list(found.mix), found.worth) == (["x"], 1)
