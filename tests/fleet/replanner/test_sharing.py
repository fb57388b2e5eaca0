"""Policies on a trace where services share GPUs in time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cms.errors import CmsError, InvalidOption
from cms.fleet import Service, get_gpu
from cms.fleet.deployment import Mode
from cms.fleet.deployment.transition import Durations
from cms.fleet.replanner import (
    Always,
    Latest,
    Never,
    Planner,
    Policy,
    Rates,
    Scene,
    Terms,
    Threshold,
    clairvoyant,
    compare,
    contender,
    contenders,
    empty_fleet,
    fewest,
    play,
)
from tests.fleet.mixes import POINTS, colocate

HOUR = Fraction(3600)
CARD = get_gpu("a100-80gb")
SERVICES = [Service("chat", "bert", 0, 60), Service("see", "vgg", 0, 80)]
PLANNER = Planner(SERVICES, POINTS, [CARD], margin="0.05", sharing="time")
FLEET = empty_fleet({CARD.key: 16}, {CARD.key: CARD}, Mode.MPS)
TERMS = Terms(replan_cost=Fraction(1), restart_cost=Fraction(0), lead_s=Fraction(120))
rows = st.lists(st.tuples(st.integers(1, 1200), st.integers(1, 1200)), min_size=3, max_size=6)


def scene(given_rows: list[tuple[int, int]], planner: Planner = PLANNER) -> Scene:
    own = {
        each.name: tuple(map(Fraction, rates))
        for each, rates in zip(planner.services, zip(*given_rows, strict=True), strict=True)
    }
    return Scene(Rates(Fraction(0), HOUR, own), 0, planner, TERMS)


@pytest.mark.long
@given(rows)
@settings(max_examples=10)
def test_who_knows_the_rates_is_never_short_and_nobody_takes_less(
    given_rows: list[tuple[int, int]],
) -> None:
    require_never_short(given_rows)


def test_who_knows_the_rates_of_three_hours_is_never_short() -> None:
    require_never_short([(140, 45), (570, 235), (140, 45)])


def require_never_short(given_rows: list[tuple[int, int]]) -> None:
    """Nor does anybody take less GPU hours than whoever knows the rates."""
    place_of = scene(given_rows)
    ours = play(*clairvoyant(place_of, Fraction(0)), FLEET)
    assert ours.longest_s <= TERMS.lead_s
    assert ours.shortage_s == 0
    assert ours.gpu_hours == fewest(place_of.windows(), place_of.count).cost
    others: list[Policy] = [Never(), Always()]
    for other in others:
        theirs = play(other, place_of, FLEET)
        assert not theirs.refused
        assert theirs.shortage_s == 0
        assert theirs.gpu_hours >= fewest(place_of.windows(), theirs.replans + 1).cost


@pytest.mark.long
@given(rows)
@settings(max_examples=10)
def test_gpulets_plans_take_no_fewer_gpus_at_the_same_moments(
    given_rows: list[tuple[int, int]],
) -> None:
    """Where preparing takes no time, both plan again at the same moments for the same rates."""
    own, theirs = (
        play(
            Threshold(period_s=Fraction(900)),
            scene(given_rows, PLANNER.by(method)),
            FLEET,
            durations=Durations(prepare_s=Fraction(0)),
        )
        for method in ("auto", "gpulet")
    )
    assert [at for at, _ in own.steps] == [at for at, _ in theirs.steps]
    for (_, fewer), (_, more) in zip(own.steps, theirs.steps, strict=True):
        assert fewer <= more
    assert own.longest_s == theirs.longest_s == 0


#: Batches that fill their limit alone, so that a cycle of two is too long: no two can take turns.
ALONE = [colocate("bert", 60, 8, 30), colocate("bert", 40, 4, 30), colocate("vgg", 60, 8, 40),
         colocate("vgg", 40, 4, 40)]  # fmt: skip


@pytest.mark.long
@given(rows)
@settings(max_examples=10)
def test_services_that_cannot_take_turns_are_planned_as_without_sharing(
    given_rows: list[tuple[int, int]],
) -> None:
    shared = Planner(SERVICES, ALONE, [CARD], margin="0.05", sharing="time", splits="any")
    plain = Planner(SERVICES, ALONE, [CARD], margin="0.05", rule="half")
    places = [scene(given_rows, planner) for planner in (shared, plain)]
    assert [each.planner.largest_supply("chat") for each in places] == [Fraction(800, 3)] * 2
    for policy in (Never, Always):
        ours = play(policy(), places[0], FLEET)
        theirs = play(policy(), places[1], empty_fleet({CARD.key: 64}, {CARD.key: CARD}))
        assert ours.gpu_hours == theirs.gpu_hours
        assert ours.steps == theirs.steps
        assert ours.replans == theirs.replans
    costs = [fewest(each.windows(), 2).cost for each in places]
    assert costs[0] == costs[1]


def test_batches_follow_the_rates_for_nothing_and_shares_are_prepared() -> None:
    moving = scene([(140, 45), (140, 45), (570, 235), (140, 45)], PLANNER.by("mix_first_fit"))
    free = play(Always(), moving, FLEET)
    assert (free.replans, free.starts, free.longest_s) == (2, 0, 0)
    assert free.shortage_s == 0
    found = play(Threshold(Fraction(600)), scene([(100, 50), (590, 900), (100, 50)]), FLEET)
    assert found.starts > 0
    assert found.longest_s in {15 * n for n in range(1, 5)}
    assert not found.refused


def test_what_is_played_where_services_share() -> None:
    place_of = scene([(10, 10)] * 3)
    assert "gpulet" in contenders(place_of)
    assert "always_regrouped" not in contenders(place_of)
    plain = replace(place_of, planner=Planner(SERVICES, ALONE, [CARD], rule="half"))
    with pytest.raises(InvalidOption, match="no policy 'gpulet'"):
        contender("gpulet", plain, Latest())
    found = list(compare(place_of, Latest(), ("never", "gpulet")))
    assert [each.played.gpu_hours for each in found] == [2, 2]
    assert [each.distance for each in found] == [0, 0]
    few = empty_fleet({CARD.key: 1}, {CARD.key: CARD}, Mode.MPS)
    with pytest.raises(CmsError, match="does not fit"):
        play(Never(), scene([(1200, 1200)] * 3), few)
