"""When actions begin and end, what that does to capacities, and floors in words."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import AlgorithmError, FileError, InvalidOption
from cms.fleet.deployment import Deployment
from cms.fleet.deployment.recounting import outdated, recounted
from cms.fleet.deployment.transition import (
    Durations,
    PartitioningTool,
    Schedule,
    Transition,
    What,
    floors_of,
    read_durations,
    schedule,
)
from cms.fleet.deployment.transition.curves import (
    Curve,
    capacity_curves,
    seconds_below,
    service_names,
)
from cms.fleet.deployment.transition.durations import Timed
from cms.fleet.deployment.transition.model import most_gpus
from cms.fleet.deployment.transition.waits import ordered
from cms.fleet.report.transitions import transition_page
from cms.fleet.serving import RULES
from cms.values.frozen import FrozenMap
from tests.fleet.plans import printed
from tests.fleet.transitions import every_kind, pair
from tests.property.problems import share
from tests.samples import so_many

from .cases import Pair, chain, does, leg, on_node, on_nodes, planned, reached, small, work


@pytest.mark.parametrize("most", [None, 3, 1])
def test_a_schedule_respects_waits_and_one_change_at_a_time(most: int | None) -> None:
    for found, _ in chain():
        plan = schedule(found, max_parallel=most)
        spans = list(zip(plan.begin_s, plan.end_s, found.actions, strict=True))
        for begin, _, action in spans:
            assert all(plan.end_s[before] <= begin for before in action.after)
        cut: dict[tuple[str, int], list[tuple[Fraction, Fraction]]] = {}
        for begin, end, action in spans:
            if action.what is not What.RESTART:
                cut.setdefault(action.gpu, []).append((begin, end))
        for own in cut.values():
            assert all(one[1] <= other[0] for one, other in pairwise(sorted(own)))
        if most is not None:
            for at in plan.begin_s:
                assert sum(begin <= at < end for begin, end, _ in spans) <= most
        assert plan.least_s <= plan.makespan_s


def test_the_published_chain_is_short() -> None:
    """Minutes of greedy orders of the experiment: 13, 11, 6 and 12."""
    minutes = [float(schedule(found).makespan_s) / 60 for found, _ in chain()]
    assert all(ours <= most for ours, most in zip(minutes, (13, 12, 10, 12), strict=True))
    for ours, other in chain():
        assert schedule(ours).makespan_s <= schedule(other).makespan_s


def test_durations_from_a_file_and_of_a_point(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("delete_s: 12.5\npartition_s: 1\n")
    read = read_durations(path)
    assert (read.delete_s, read.partition_s, read.start_s) == (Fraction(25, 2), 1, 75)
    path.write_text("delet_s: 1\n")
    with pytest.raises(FileError, match="delet_s"):
        read_durations(path)
    with pytest.raises(InvalidOption, match="stop_s"):
        Durations(stop_s=Fraction(-1))
    found, _ = leg(0)
    create = next(action for action in found.actions if action.what is What.CREATE)
    (instance,) = create.adds
    assert instance.work is not None
    assert (read.of(create), Durations().of(create)) == (76, 80)
    slow = replace(instance.work.point, extra=FrozenMap({"cold_start_s": "300"}))
    cold = replace(create, adds=(replace(instance, work=replace(instance.work, point=slow)),))
    assert Durations().of(cold) == 305


def test_nothing_to_do_takes_no_time() -> None:
    found, _ = leg(0)
    idle = replace(found, actions=(), start=found.target)
    assert schedule(idle) == Schedule((), (), Fraction(0))
    with pytest.raises(InvalidOption, match="max_parallel is 0"):
        schedule(idle, max_parallel=0)


# --- floors ---------------------------------------------------------------------------------------


def _with(rate: int, *places: int, limit: int = 1000) -> Deployment:
    """Quarters of an A30 that each serve 10 requests/s."""
    return on_node([does("a", "1g.6gb", start) for start in places], rate=rate, limit=limit)


@pytest.mark.parametrize(
    ("old", "new", "share", "says"),
    [
        (20, 30, 1, "20 requests/s (100 % of the smaller of 20 and 30 requests/s)"),
        (20, 10, "0.5", "5 requests/s (50 % of the smaller of 20 and 10 requests/s)"),
        (
            90, 80, 1,
            "40 requests/s (all it has today, less than 100 % of the smaller of 90 and 80 "
            "requests/s)",
        ),
        (
            0, 60, 1,
            "40 requests/s (100 % of the smaller of 40 and 60 requests/s, the first being all it "
            "has today)",
        ),
    ],
)  # fmt: skip
def test_floors_in_words(old: int, new: int, share: int | str, says: str) -> None:
    floors = floors_of(_with(old, 0, 1, 2, 3), _with(new), share)
    assert str(floors["a"]) == says


def test_supplies_are_counted_by_the_new_limits() -> None:
    """What a new limit does not admit serves as before, and is outdated; the target's holds."""
    now, same, target = _with(20, 0, 1), _with(20), _with(20, limit=150)
    for side, old in ((same, set[str]()), (target, {"a"})):
        found = recounted(now, side.services, RULES["half"])
        assert found.capacity("a") == 20
        assert {each.service for each in outdated(found, side)} == old
    known = replace(work("a", "1g.6gb"), supply_rps=Fraction(7))
    assert recounted(now, (), None, [known]).capacity("a") == 14


@pytest.mark.parametrize("most", [None, 2, 1])
def test_nothing_starts_on_a_drained_node_before_all_of_it_is_cut(most: int | None) -> None:
    """A restart in place would have ended long before; the node takes no work meanwhile."""
    usual = Durations()
    for found in (planned(0, "slurm"), planned(1, "gpu-operator"), small("slurm")):
        plan, apart = (schedule(found, max_parallel=most, by_node=by) for by in (True, False))
        turns: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for at, action in enumerate(found.actions):
            turns.setdefault((action.node, action.after), []).append(at)
            assert all(plan.end_s[before] <= plan.begin_s[at] for before in action.after)
        for turn in turns.values():
            if any(found.actions[at].what is What.REPARTITION for at in turn):
                assert len({plan.begin_s[at] for at in turn}) == 1
                for at in turn:
                    starts = any(each.work for each in found.actions[at].adds)
                    least = usual.repartition_s + usual.start_s * starts
                    assert plan.end_s[at] >= plan.begin_s[at] + least
        assert plan.least_s <= plan.makespan_s
    assert {action.what for action in found.actions} == {What.REPARTITION, What.RESTART}
    assert (len({*plan.end_s}), len({*apart.end_s})) == (1, 2)
    page = printed(transition_page(found, by_node=True))
    assert "restart 2 min 45 s, repartition 2 min 45 s" in page


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
        end = Timed.of(found.start, done, Durations(), None).end
        best = end if best is None else min(best, end)
    assert best is not None
    return Fraction(best, 1000)


@pytest.mark.long
def test_no_order_is_shorter_than_the_bound() -> None:
    close = tried = 0
    for seed in range(so_many(11, 16)):
        found = reached(Pair(seed).start, Pair(seed).wanted)
        if 2 <= len(found.actions) <= _MOST_ACTIONS:
            least, best = schedule(found).least_s, _shortest(found)
            assert least <= best <= schedule(found).makespan_s
            tried += 1
            close += least == best
    assert tried > 4
    assert close > tried // 2


@pytest.mark.parametrize("tool", PartitioningTool)
def test_equal_seeds_give_equal_transitions(tool: PartitioningTool) -> None:
    start, wanted = on_nodes(Pair(4, 6).start, 2), Pair(4).wanted
    assert reached(start, wanted, tool=tool) == reached(start, wanted, tool=tool)


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


def test_a_curve_by_hand() -> None:
    found = every_kind()
    curve, _ = capacity_curves(found, schedule(found))
    # at 80 s one ends and another begins, at 185 s the repartition begins, at 350 s likewise
    assert curve.steps == ((0, 40), (185, 20))
    assert (curve.before, curve.lowest, curve.lowest_s, curve.after) == (40, 20, 185, 20)
    assert curve.at(Fraction(-1)) == 40
    assert service_names(found) == ("chat", "code")


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
