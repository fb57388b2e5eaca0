"""Deciding at a moment, and policies on a trace, held against the offline optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cms.errors import CmsError, InvalidOption, InvalidProblem
from cms.fleet import Service, get_gpu
from cms.fleet.deployment import Mode, check_deployment, desired_state
from cms.fleet.deployment.transition import check_transition
from cms.fleet.placement import place
from cms.fleet.replanner import (
    Always,
    Change,
    Daily,
    DayNight,
    Latest,
    Never,
    Planner,
    Policy,
    RateForecast,
    Rates,
    Scene,
    Start,
    Terms,
    Threshold,
    change_to,
    clairvoyant,
    compare,
    contender,
    contenders,
    decide,
    empty_fleet,
    fewest,
    play,
    roomy_fleet,
    shortest,
)
from cms.fleet.replanner.policies import shortage_s
from cms.fleet.serving import OperatingPoint
from tests.fleet.plans import POINTS as SHARED_POINTS
from tests.fleet.plans import colocate
from tests.samples import refusal, so_many

HOUR = Fraction(3600)
CARD = get_gpu("a30-24gb")
POINTS = [
    OperatingPoint("m", CARD.key, "1g.6gb", 1, 1, 10, 5),
    OperatingPoint("m", CARD.key, "2g.12gb", 1, 1, 22, 5),
    OperatingPoint("m", CARD.key, "4g.24gb", 1, 1, 45, 5),
]
PLANNER = Planner(
    [Service("a", "m", 0, 100), Service("b", "m", 0, 100)], POINTS, [CARD], margin="0.05",
    rule="plain",
)  # fmt: skip
FLEET = empty_fleet({CARD.key: 24}, {CARD.key: CARD})
TERMS = Terms(replan_cost=Fraction(1), restart_cost=Fraction(0))
rows = st.lists(
    st.tuples(st.integers(1, 150), st.integers(1, 150)), min_size=3, max_size=so_many(4, 7)
)


def scene(
    given_rows: list[tuple[int, int]], terms: Terms = TERMS, planner: Planner = PLANNER
) -> Scene:
    own = {
        each.name: tuple(map(Fraction, rates))
        for each, rates in zip(planner.services, zip(*given_rows, strict=True), strict=True)
    }
    return Scene(Rates(Fraction(0), HOUR, own), 0, planner, terms)


def shared_scene(given_rows: list[tuple[int, int]], method: str = "auto") -> Scene:
    return scene(given_rows, SHARED_TERMS, SHARED_PLANNER.by(method))


@settings(max_examples=so_many(2, 50))
@given(rows, st.integers(0, 6))
def test_the_clairvoyant_is_the_offline_optimum_and_nobody_is_cheaper(
    given_rows: list[tuple[int, int]], cost: int
) -> None:
    place_of, fixed = scene(given_rows), Fraction(cost)
    zero = Start(0, Fraction(0), lambda b: Fraction(0))
    best = shortest(place_of.windows(), [zero], lambda a, b, c: fixed).cost
    policy, terms = clairvoyant(place_of, fixed)
    ours = play(policy, terms, FLEET)
    assert ours.gpu_hours + fixed * ours.replans == best
    assert ours.longest_transition_s > TERMS.lead_s or ours.shortage_s == 0
    others: list[Policy] = [Never(), Always(), DayNight()]
    for other in others:
        theirs = play(other, place_of, FLEET)
        assert theirs.gpu_hours + fixed * theirs.replans >= best
        assert theirs.gpu_hours >= fewest(place_of.windows(), theirs.replans + 1).cost


@settings(max_examples=so_many(2, 50))
@given(rows, rows.map(lambda each: each[0]))
def test_after_its_own_change_it_goes_on(
    given_rows: list[tuple[int, int]], before: tuple[int, int]
) -> None:
    windows = scene(given_rows).windows(Fraction(1))
    start = PLANNER.plan(dict(zip("ab", map(Fraction, before), strict=True)))
    now = place(desired_state(start), FLEET).deployment  # type: ignore[union-attr]
    for _ in range(2):
        has = {name: now.capacity(name) for name in "ab"}
        found = decide(windows, has, PLANNER.cost_of(now))
        if found.keeps:
            break
        assert found.plan is not None
        change = change_to(now, found.plan)
        assert isinstance(change, Change)
        assert not check_transition(change.transition)
        now = change.transition.target
        assert not check_deployment(now)
    assert found.keeps


def test_what_is_short_now_is_replaced_whatever_that_costs() -> None:
    windows = scene([(100, 10)] * 3).windows(Fraction(1000))
    assert decide(windows, {"a": Fraction(105), "b": Fraction(11)}, Fraction(9)).keeps
    found = decide(windows, {"a": Fraction(99), "b": Fraction(11)}, Fraction(9), Fraction(1))
    assert not found.keeps
    assert found.short == ("a",)


def test_the_nearest_plan_keeps_what_another_one_starts_anew() -> None:
    both = [play(Always(), scene([(47, 61), (120, 114), (145, 27), (140, 31)], terms), FLEET)
            for terms in (TERMS, replace(TERMS, regrouped=True))]  # fmt: skip
    assert both[0].starts < both[1].starts


def test_policies_that_are_not_there_and_gpus_that_cost_nothing_are_refused() -> None:
    place_of = scene([(10, 10)] * 3)
    with pytest.raises(InvalidOption, match="nearest: 'always'"):
        contender("alwais", place_of, Latest())
    planner = Planner(PLANNER.services, POINTS, [CARD], rule="plain", costs={CARD.key: 0})
    with pytest.raises(CmsError, match="costs nothing"):
        roomy_fleet(replace(place_of, planner=planner))


def test_shortage_is_counted_exactly_and_once() -> None:
    courses = RateForecast(
        Fraction(10), {"a": (Fraction(0), Fraction(10)), "b": (Fraction(8),) * 2}
    )
    capacity = {
        "a": [(Fraction(0), Fraction(6))],
        "b": [(Fraction(0), Fraction(9)), (Fraction(5), Fraction(7))],
    }
    assert shortage_s(courses, {"a": capacity["a"]}, Fraction(10)) == 4
    assert shortage_s(courses, capacity, Fraction(10)) == 5


def test_terms_and_traces_that_cannot_be_meant_are_refused() -> None:
    gap = Rates(Fraction(0), HOUR, {"a": (Fraction(1), None), "b": (Fraction(1), Fraction(1))})
    makes: list[tuple[Callable[[], object], str]] = [
        (lambda: scene([(1, 1)] * 2, every(7200)), "shorter than the 7200 s"),
        (lambda: Scene(gap, 0, PLANNER, TERMS), "the trace has a gap: a: no value at 3600 s"),
        (lambda: scene([(1, 1)] * 202), "the part that is played has 201 moments"),
        (lambda: every(-60), "every_s is -60"),
        *(
            (
                partial(replace, TERMS, **{name: Fraction(-1)}),
                f"{name} is -1; expected a number >= 0",
            )
            for name in ("lead_s", "replan_cost", "restart_cost", "hysteresis")
        ),
    ]
    for make, says in makes:
        with pytest.raises((InvalidOption, InvalidProblem), match=says):
            make()


def every(seconds: int) -> Terms:
    return replace(TERMS, every_s=Fraction(seconds))


def test_where_nothing_is_asked_for_nothing_is_taken() -> None:
    for each in compare(scene([(0, 0)] * 3), Latest(), ("never", "always", "threshold")):
        assert (each.played.gpu_hours, each.best_gpu_hours, each.distance) == (0, 0, 0)


def test_a_forecast_that_will_not_do_is_refused_before_anything_is_played() -> None:
    """A gap of the day before is foreseen at some moment of the part that is played."""
    known: list[Fraction | None] = [Fraction(5)] * 49
    for gap in (None, 40 - 24):
        holed = [None if at == gap else rate for at, rate in enumerate(known)]
        trace = Rates(Fraction(0), HOUR, {"a": tuple(holed), "b": tuple(known)})
        found = compare(Scene(trace, 24, PLANNER, TERMS), Daily(), ("never", "forecast"))
        if gap is None:
            assert next(found).played.replans == 0
        else:
            said = "no earlier day says what a has at 144000 s"
            assert said in refusal(InvalidProblem, next, found)


def test_the_latest_rates_take_less_than_one_plan_for_all_where_rates_rise_and_fall() -> None:
    place_of = scene([(20 + 20 * min(h, 6 - h), 40) for h in range(7)])
    latest, never = compare(place_of, Latest(), ("latest", "never"))
    assert latest.played.replans >= 1
    assert latest.played.gpu_hours < never.played.gpu_hours


def test_day_and_night_come_again_each_day() -> None:
    days = [(100 if 8 <= h % 24 < 16 else 10, 10) for h in range(49)]
    played = play(DayNight(), scene(days, replace(TERMS, lead_s=Fraction(0))), FLEET)
    assert (played.replans, played.gpu_hours) == (4, 24 * 3 + 24 * 1)
    gpus = [number for _, number in played.steps]
    assert gpus == [1, 3, 1, 3, 1]
    daily = replace(TERMS, every_s=24 * HOUR, horizon_s=24 * HOUR)
    alone = play(DayNight(), scene(days, daily), FLEET)
    assert (alone.replans, alone.shortage_s) == (0, 0)


A100 = get_gpu("a100-80gb")
SHARED_SERVICES = [Service("chat", "bert", 0, 60), Service("see", "vgg", 0, 80)]
SHARED_PLANNER = Planner(SHARED_SERVICES, SHARED_POINTS, [A100], margin="0.05", sharing="time")
SHARED_FLEET = empty_fleet({A100.key: 16}, {A100.key: A100}, Mode.MPS)
SHARED_TERMS = Terms(replan_cost=Fraction(1), restart_cost=Fraction(0), lead_s=Fraction(120))
shared_rows = st.lists(
    st.tuples(st.integers(1, 1200), st.integers(1, 1200)), min_size=3, max_size=6
)


@pytest.mark.long
@given(shared_rows)
@settings(max_examples=10)
def test_who_knows_the_rates_is_never_short_and_nobody_takes_less(
    given_rows: list[tuple[int, int]],
) -> None:
    require_never_short(given_rows)


def test_who_knows_the_rates_of_three_hours_is_never_short() -> None:
    require_never_short([(140, 45), (570, 235), (140, 45)])


def require_never_short(given_rows: list[tuple[int, int]]) -> None:
    """Nor does anybody take less GPU hours than whoever knows the rates."""
    place_of = shared_scene(given_rows)
    ours = play(*clairvoyant(place_of, Fraction(0)), SHARED_FLEET)
    assert ours.longest_transition_s <= SHARED_TERMS.lead_s
    assert ours.shortage_s == 0
    assert ours.gpu_hours == fewest(place_of.windows(), place_of.count).cost
    others: list[Policy] = [Never(), Always()]
    for other in others:
        theirs = play(other, place_of, SHARED_FLEET)
        assert not theirs.refused
        assert theirs.shortage_s == 0
        assert theirs.gpu_hours >= fewest(place_of.windows(), theirs.replans + 1).cost


#: Batches that fill their limit alone, so that a cycle of two is too long: no two can take turns.
ALONE = [colocate("bert", 60, 8, 30), colocate("bert", 40, 4, 30), colocate("vgg", 60, 8, 40),
         colocate("vgg", 40, 4, 40)]  # fmt: skip


def test_batches_follow_the_rates_for_nothing_and_shares_are_prepared() -> None:
    moving = shared_scene([(140, 45), (140, 45), (570, 235), (140, 45)], "mix_first_fit")
    free = play(Always(), moving, SHARED_FLEET)
    assert (free.replans, free.starts, free.longest_transition_s) == (2, 0, 0)
    assert free.shortage_s == 0
    found = play(
        Threshold(Fraction(600)), shared_scene([(100, 50), (590, 900), (100, 50)]), SHARED_FLEET
    )
    assert found.starts > 0
    assert found.longest_transition_s in {15 * n for n in range(1, 5)}
    assert not found.refused


def test_what_is_played_where_services_share() -> None:
    place_of = shared_scene([(10, 10)] * 3)
    assert "gpulet" in contenders(place_of)
    assert "always_regrouped" not in contenders(place_of)
    plain = replace(place_of, planner=Planner(SHARED_SERVICES, ALONE, [A100], rule="half"))
    with pytest.raises(InvalidOption, match="no policy 'gpulet'"):
        contender("gpulet", plain, Latest())
    found = list(compare(place_of, Latest(), ("never", "gpulet")))
    assert [each.played.gpu_hours for each in found] == [2, 2]
    assert [each.distance for each in found] == [0, 0]
    few = empty_fleet({A100.key: 1}, {A100.key: A100}, Mode.MPS)
    with pytest.raises(CmsError, match="does not fit"):
        play(Never(), shared_scene([(1200, 1200)] * 3), few)
