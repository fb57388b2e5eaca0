"""What services can serve on the way: exact, and never below their floors."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidOption
from cms.fleet.deployment.transition import Durations, Schedule, Transition, schedule
from cms.fleet.deployment.transition.curves import (
    Curve,
    capacity_curve,
    capacity_curves,
    seconds_below,
    service_names,
)
from tests.fleet.transition.cases import leg
from tests.fleet.transitions import every_kind, pair
from tests.property.problems import share
from tests.samples import so_many


def slow_capacity(found: Transition, plan: Schedule, service: str, when: Fraction) -> Fraction:
    """From the definition: what is removed counts until it begins, what is added once it ended."""
    now = sum(
        (
            each.supply_rps
            for _, each in found.start.instances()
            if each.work is not None and each.work.service == service
        ),
        Fraction(0),
    )
    for action, begin, end in zip(found.actions, plan.begin_s, plan.end_s, strict=True):
        now -= action.removed_rps(service) * (begin <= when)
        now += action.added_rps(service) * (end <= when)
    return now


def random_execution(found: Transition, rng: random.Random) -> Schedule:
    """Whatever the order allows: any durations, any delays, any parallelism."""
    begin: list[Fraction] = []
    end: list[Fraction] = []
    for action in found.actions:
        ready = max((end[before] for before in action.after), default=Fraction(0))
        begin.append(ready + rng.choice((0, 0, Fraction(rng.randint(1, 400), 7))))
        end.append(begin[-1] + rng.choice((0, Fraction(rng.randint(1, 900), 11))))
    return Schedule(tuple(begin), tuple(end), Fraction(0))


def assert_curves(found: Transition, plan: Schedule) -> None:
    for curve in capacity_curves(found, plan):
        name = curve.service
        moments = {*plan.begin_s, *plan.end_s, Fraction(0)}
        slow = {when: slow_capacity(found, plan, name, when) for when in moments}
        assert slow == {when: curve.at(when) for when in moments}
        assert curve.lowest == min(curve.before, *slow.values()) >= curve.floor
        assert curve.lowest in (curve.at(curve.lowest_s), curve.before)
        assert curve.highest == max(curve.before, *slow.values())
        assert all(one[0] < other[0] for one, other in pairwise(curve.steps))
        known = {each.name for each in found.target.services}
        assert curve.after == (found.target.capacity(name) if name in known else 0)


seconds = st.integers(0, 500).map(lambda number: Fraction(number, 2))


@share(4)
@given(
    st.integers(0, 20),
    st.builds(Durations, seconds, seconds, seconds, seconds, seconds, seconds),
    st.sampled_from((None, 1, 2)),
    st.randoms(use_true_random=False),
)
def test_a_capacity_is_never_below_its_floor_whatever_the_durations(
    seed: int, durations: Durations, most: int | None, rng: random.Random
) -> None:
    found = pair(seed)
    assert_curves(found, schedule(found, durations, most))
    assert_curves(found, random_execution(found, rng))


@pytest.mark.parametrize("step", range(4))
def test_the_published_chain_keeps_its_floors_in_any_execution(step: int) -> None:
    for found in leg(step)[: so_many(1, 2)]:
        assert_curves(found, schedule(found))
        for seed in range(so_many(1, 3)):
            assert_curves(found, random_execution(found, random.Random(seed)))


def test_a_curve_by_hand() -> None:
    found = every_kind()
    curve = capacity_curve(found, schedule(found), "chat")
    # at 80 s one ends and another begins, at 185 s the repartition begins, at 350 s likewise
    assert curve.steps == ((0, 40), (185, 20))
    assert (curve.before, curve.lowest, curve.lowest_s, curve.after) == (40, 20, 185, 20)
    assert curve.at(Fraction(-1)) == 40
    assert curve.changes
    assert service_names(found) == ("chat", "code")
    with pytest.raises(InvalidOption, match="'chatt'; the nearest|'chatt'"):
        capacity_curve(found, schedule(found), "chatt")


@given(st.data())
def test_seconds_below_a_rate_as_counted_second_by_second(data: st.DataObject) -> None:
    def steps(first: int) -> tuple[tuple[Fraction, Fraction], ...]:
        at = sorted(data.draw(st.sets(st.integers(1, 19), max_size=4)))
        moments = [first, *[each + first for each in at]]
        return tuple((Fraction(m), Fraction(data.draw(st.integers(0, 9)))) for m in moments)

    curve, rates = (
        Curve("a", Fraction(5), steps(0), Fraction(0)),
        steps(data.draw(st.integers(0, 3))),
    )
    asked = [[rps for when, rps in rates if when <= second] for second in range(20)]
    slow = sum(bool(own) and curve.at(Fraction(t)) < own[-1] for t, own in enumerate(asked))
    assert seconds_below(curve, rates, Fraction(20)) == slow
