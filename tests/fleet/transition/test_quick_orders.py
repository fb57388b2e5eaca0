"""How long a transition takes: bounds against all orders, and beginnings that differ."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest

from cms.errors import AlgorithmError
from cms.fleet.deployment.programs import Limits
from cms.fleet.deployment.transition import Transition, schedule, transition
from cms.fleet.deployment.transition.durations import Durations, Timed
from cms.fleet.deployment.transition.model import most_gpus
from cms.fleet.deployment.transition.order import ordered
from cms.fleet.deployment.transition.ordering import sequences
from cms.fleet.deployment.transition.state import Fleet
from tests.samples import few, so_many

from .cases import Pair, leg

_MOST_ACTIONS = 6


def _shortest(found: Transition) -> Fraction:
    """The seconds of the best of all orders of a transition's actions."""
    most = most_gpus(found.start, found.target) + found.spare.count
    best = None
    for order in permutations(found.actions):
        try:
            done = ordered(found.start, order, found.floors, most)
        except (AlgorithmError, ValueError):
            continue  # it is not safe, or removes what is not there yet
        timed = Timed.of(found.start, done, Durations(), None)
        end = timed.end(timed.begin([action.after for action in done]))
        best = end if best is None else min(best, end)
    assert best is not None
    return Fraction(best, 1000)


@pytest.mark.long
def test_no_order_is_shorter_than_the_bound() -> None:
    close = tried = 0
    for seed in range(so_many(11, 16)):
        found = transition(Pair(seed).start, Pair(seed).wanted)
        assert isinstance(found, Transition)
        if 2 <= len(found.actions) <= _MOST_ACTIONS:
            least, best = schedule(found).least_s, _shortest(found)
            assert least <= best <= schedule(found).makespan_s
            tried += 1
            close += least == best
    assert tried > 4
    assert close > tried // 2


@pytest.mark.parametrize("step", few(1, [2, 3]))
def test_equal_manners_go_equal_ways(step: int) -> None:
    ours, _ = leg(step)
    fleet = Fleet(ours.start, ours.target, ours.floors, is_late=True)
    most = most_gpus(ours.start, ours.target)
    first, second = (sequences(fleet, most, seed=3, restarts=4, limits=Limits()) for _ in range(2))
    assert first == second
