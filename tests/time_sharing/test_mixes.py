"""Schedules of mixes and the dearest mix, by both checkers and by all mixes one by one."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from cms import Configuration, Mix, Schedule, TimeSharedJob, TimeSharedProblem, check
from cms.files import lay_out, problem_to_json, schedule_from_json, schedule_to_json
from cms.running.stopping import Stopped
from cms.time_sharing.dearest import dearest_mix
from cms.time_sharing.functions import Offer, PriceFunction
from cms.time_sharing.listed import ListedMixes
from cms.time_sharing.model import Choice
from proofs_checks.checker import check_schedule, parse_document
from proofs_checks.checker import dearest as checker
from proofs_checks.offered import all_mixes, by_the_checker, dearest, require_agreement
from tests.references.mixes import random_schedule, serves, time_shared_toy
from tests.samples import few, refusal

PAIR = Configuration({"60": 1, "40": 1}, "machine")
PROBLEM = TimeSharedProblem(
    configurations=PAIR,
    jobs=[
        TimeSharedJob("a", 250, "0.044", {"60": [(8, "0.012"), (16, "0.02")]}),
        TimeSharedJob("b", 125, "0.052", {"60": [(4, "0.02")], "40": [(4, "0.026")]}),
        TimeSharedJob("c", 0, 10, {"60": [(1, 1)]}),
    ],
    max_jobs=2,
)
BOTH = Mix({"a": 8, "b": 4})


def both_say(problem: TimeSharedProblem | cms.Problem, schedule: Schedule) -> list[str]:
    """The faults that the package finds; the second checker agrees that there are some, or none."""
    faults = [str(fault) for fault in check(problem, schedule)]
    documents = [lay_out(d) for d in (problem_to_json(problem), schedule_to_json(schedule))]
    theirs = check_schedule(*map(parse_document, documents))
    assert bool(theirs) is bool(faults)
    return faults


def given_to(content: Any, block: str = "60", count: int = 1, machines: int = 1) -> Schedule:
    return Schedule([cms.MachineGroup(PAIR, {(block, content): count}, machines)])


def test_a_schedule_at_every_limit_is_valid() -> None:
    """The cycle is 0.032: 0.032 + 0.012 = 0.044, 0.032 + 0.02 = 0.052; 8 and 4 / 0.032."""
    assert both_say(PROBLEM, given_to(BOTH)) == []


@pytest.mark.parametrize(
    ("schedule", "kinds"),
    [
        (given_to("a"), "content demand demand"),
        (given_to(Mix({"a": 8, "z": 4})), "content demand demand"),
        (given_to(Mix({"a": 9, "b": 4})), "point demand demand"),
        (given_to(BOTH, "40"), "point demand demand"),
        (given_to(Mix({"a": 8, "b": 4, "c": 1}), machines=50), "content cycle cycle"),
        (given_to(BOTH, "90"), "block blocks demand demand"),
        (given_to(BOTH, count=2), "blocks"),
        (given_to(BOTH, count=0), "count demand demand"),
        (given_to(BOTH, machines=0), "count demand demand"),
    ],
)
def test_what_is_wrong_is_named(schedule: Schedule, kinds: str) -> None:
    assert [fault.kind for fault in check(PROBLEM, schedule)] == kinds.split()
    assert both_say(PROBLEM, schedule)


@given(seed=st.integers(0, 10**9))
def test_both_checkers_agree_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    problem = time_shared_toy(rng)
    for _ in range(4):
        schedule = random_schedule(rng, problem)
        assert (not both_say(problem, schedule)) is serves(problem, schedule)


def test_counts_of_mixes_become_machines() -> None:
    schedule = Schedule.from_counts(PROBLEM, {PAIR: 10**12}, {("60", BOTH): 10**12 - 1})
    assert [(g.count, dict(g.assignment)) for g in schedule.groups] == [
        (10**12 - 1, {("60", BOTH): 1}),
        (1, {}),
    ]
    assert both_say(PROBLEM, schedule) == []
    assert schedule.excerpt(1).rows[0][2] == "60 -> a x 8 + b x 4"


@pytest.mark.parametrize(
    "given_blocks",
    [
        {("60", BOTH): 2},
        {("60", Mix({"z": 1})): 1},
        {("60", BOTH): 1, ("40", "b"): 1},
        {("90", BOTH): 1},
        {("60", BOTH): -1},
    ],
)
def test_counts_of_mixes_that_make_no_sense_are_refused(given_blocks: Any) -> None:
    refusal(cms.InvalidSchedule, Schedule.from_counts, PROBLEM, {PAIR: 1}, given_blocks)


def test_an_entry_twice_is_refused_however_it_is_written() -> None:
    document = copy.deepcopy(schedule_to_json(given_to(BOTH)))
    document["groups"][0]["assignment"].append(["60", {"b": "4.0", "a": "16/2"}, 1])
    message = refusal(ValueError, schedule_from_json, document)
    assert "gives blocks '60' to the mix 'a x 8 + b x 4' a second time" in message
    problem = parse_document(lay_out(problem_to_json(PROBLEM)))
    assert check_schedule(problem, parse_document(json.dumps(document)))[0].endswith("twice")


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
            cycle = sum(choice.length for choice in chosen)
            if all(cycle <= choice.longest for choice in chosen):
                rates = [choice.amount / cycle for choice in chosen]
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


def test_cycles_a_hair_longer_than_a_job_allows_are_not_listed() -> None:
    for hair, number in ((-Fraction(1, 10**30), 7), (NOTHING, 7), (Fraction(1, 10**30), 6)):
        point = Choice(Fraction(7), 20 + hair + Fraction(1, 3), Fraction(61))
        offers = [Offer(f"j{at}", Fraction(1, 9), PriceFunction(1), (point,)) for at in range(3)]
        listed = ListedMixes.of(offers, None, number)
        assert listed is not None
        assert len(listed) == number
        assert ListedMixes.of(offers, None, number - 1) is None
        assert require_best(offers) == number - 4
