"""When actions begin and end, what that does to capacities, and floors in words."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from cms.errors import FileError, InvalidOption
from cms.fleet.deployment import Deployment
from cms.fleet.deployment.recounting import outdated, recounted
from cms.fleet.deployment.transition import (
    Durations,
    Schedule,
    What,
    floors_of,
    read_durations,
    schedule,
)
from cms.fleet.report.transitions import transition_page
from cms.fleet.serving import RULES
from cms.values.frozen import FrozenMap
from tests.fleet.plans import printed

from .cases import chain, does, leg, on_node, planned, small, work


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


def test_a_floor_of_a_service_that_is_not_there() -> None:
    with pytest.raises(InvalidOption, match="'c'; expected one of a"):
        floors_of(_with(1), _with(1), shares={"c": 1})


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
    for found in (planned(0, "slurm"), planned(1, "gpu-operator"), small("slurm")):
        plan, apart = (schedule(found, max_parallel=most, by_node=by) for by in (True, False))
        turns: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for at, action in enumerate(found.actions):
            turns.setdefault((action.node, action.after), []).append(at)
            assert all(plan.end_s[before] <= plan.begin_s[at] for before in action.after)
        cut = Durations().repartition_s
        for turn in turns.values():
            if any(found.actions[at].what is What.REPARTITION for at in turn):
                assert len({plan.begin_s[at] for at in turn}) == 1
                for at in turn:
                    coming = Durations().start_s if any(
                        each.work for each in found.actions[at].adds
                    ) else 0  # fmt: skip
                    assert plan.end_s[at] >= plan.begin_s[at] + cut + coming
        assert plan.least_s <= plan.makespan_s
    kinds = [found.actions[at].what for at in range(len(found.actions))]
    assert {*kinds} == {What.REPARTITION, What.RESTART}
    assert len({*plan.end_s}) == 1
    assert len({*apart.end_s}) == 2
    assert "restart 2 min 45 s, repartition 2 min 45 s" in printed(
        transition_page(found, by_node=True)
    )
