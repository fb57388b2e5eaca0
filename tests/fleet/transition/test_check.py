"""The check of transitions: it refuses what is wrong, whoever made it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cms.errors import AlgorithmError, FileError
from cms.fleet import Service, gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from cms.fleet.deployment.transition import (
    Action,
    Floor,
    Kept,
    Spare,
    Transition,
    What,
    check_transition,
    transition_from_json,
    transition_to_json,
)
from cms.fleet.deployment.transition.order import ordered
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from proofs_checks import checker
from tests.samples import few, so_many

from .cases import Pair, leg, work

GROWTH, SHRINKING = 2, 3


def kinds(transition: Transition) -> set[str]:
    return {violation.kind for violation in check_transition(transition)}


def changed(found: Transition, at: int, **parts: object) -> Transition:
    action = replace(found.actions[at], **parts)  # type: ignore[arg-type]
    return replace(found, actions=(*found.actions[:at], action, *found.actions[at + 1 :]))


@pytest.mark.parametrize("step", few(1, [0, SHRINKING]))
def test_a_wait_that_can_be_left_out_is_rare_and_idle(step: int) -> None:
    """What others wait for can make up for one: the second checker must say so too."""
    found, _ = leg(step)
    needed = idle = 0
    for at, action in [*enumerate(found.actions)][:: so_many(2, 1)]:
        for before in action.after[:: so_many(4, 1)]:
            fewer = tuple(other for other in action.after if other != before)
            cut = changed(found, at, after=fewer)
            if kinds(cut) & {"floor", "layout", "wait", "gpus"}:
                needed += 1
            else:
                assert not checker.check_transition(transition_to_json(cut))
                idle += 1
    assert needed > so_many(7, 10) > 5 * idle


def _raised(found: Transition) -> Transition:
    name = min(each for each, floor in found.floors.items() if floor.rps)
    floor = replace(found.floors[name], rps=found.start.capacity(name) + Fraction(1, 1000))
    return replace(found, floors={**found.floors, name: floor})


def _moved(found: Transition) -> Transition:
    at = next(i for i, a in enumerate(found.actions) if a.what is What.CREATE)
    (instance,) = found.actions[at].adds
    start = 6 if instance.profile == "3g.40gb" else 7
    return changed(found, at, adds=(replace(instance, start=start),))


def _foreign(found: Transition) -> Transition:
    at = next(i for i, a in enumerate(found.actions) if a.what is What.DELETE)
    (instance,) = found.actions[at].removes
    other = replace(instance, owner="pod team-x/trainer")
    cards = {
        (c.node, c.index): replace(
            c, instances=tuple(other if e == instance else e for e in c.instances)
        )
        for c in found.start.gpus()
        if (c.node, c.index) == found.actions[at].gpu
    }
    return replace(changed(found, at, removes=(other,)), start=found.start.with_gpus(cards))


def _backwards(found: Transition) -> Transition:
    return changed(found, 0, after=(1,))


def _unknown_gpu(found: Transition) -> Transition:
    return changed(found, 0, index=99)


def _twice(found: Transition) -> Transition:
    return replace(found, actions=(*found.actions, found.actions[-1]))


def _short(found: Transition) -> Transition:
    return replace(found, actions=found.actions[:-1])


def _kept(found: Transition) -> Transition:
    return replace(found, kept=replace(found.kept, count=found.kept.count + 1))


def _bound(found: Transition) -> Transition:
    return replace(found, kept=replace(found.kept, most=found.kept.count - 1))


def _restart(found: Transition) -> Transition:
    at = next(i for i, a in enumerate(found.actions) if a.what is What.CREATE)
    return changed(found, at, what=What.RESTART)


def _unsorted(found: Transition) -> Transition:
    at = next(i for i, a in enumerate(found.actions) if len(a.after) > 1)
    return changed(found, at, after=found.actions[at].after[::-1])


def _overlapping(found: Transition) -> Transition:
    card = next(c for c in found.start.used_gpus() if c.instances[0].start is not None)
    twice = card.with_instances([*card.instances, Instance("7g.80gb", 0)])
    return replace(found, start=found.start.with_gpus({(card.node, card.index): twice}))


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        (_raised, "floor"),
        (_moved, "layout"),
        (_foreign, "action"),
        (_backwards, "wait"),
        (_unknown_gpu, "action"),
        (_twice, "action"),
        (_short, "end"),
        (_kept, "kept"),
        (_bound, "kept"),
        (_restart, "action"),
        (_unsorted, "wait"),
        (_overlapping, "overlap"),
    ],
)
def test_planted_faults_are_refused(plant: Callable[[Transition], Transition], kind: str) -> None:
    found, _ = leg(SHRINKING)
    assert kind in kinds(plant(found))


# --- documents ------------------------------------------------------------------------------------


def _looser(document: dict[str, Any]) -> None:
    document["services"][0]["latency_limit_ms"] = 10_000


def _tighter(document: dict[str, Any]) -> None:
    document["target"]["services"][0]["latency_limit_ms"] = 1


def _one_more(document: dict[str, Any]) -> None:
    document["target"]["services"].append(document["target"]["services"][0])


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (_looser, "is another service there than in the target"),
        (_tighter, "is another service there than in the target"),
        (_one_more, "there are two services"),
    ],
)
def test_points_are_counted_by_no_other_limits_than_the_target_states(
    forge: Callable[[dict[str, Any]], None], says: str
) -> None:
    document = json.loads(json.dumps(transition_to_json(leg(SHRINKING)[0])))
    forge(document)
    assert checker.check_transition(document)
    with pytest.raises(FileError, match=says):
        transition_from_json(document)


def test_a_whole_gpu_runs_what_was_measured_on_the_profile_that_is_all_of_it() -> None:
    """Both checkers know it, and that no smaller profile will do."""
    for profile, holds in (("4g.24gb", True), ("2g.12gb", False)):
        held = (Instance("whole", None, work("a", profile)),)
        card = FleetGpu("n", 0, gpu("a30-24gb"), Mode.WHOLE, held)
        service = Service("a", "a", 20, 1000)
        now = Deployment((FleetNode("n", (card,)),), (service,), RULES["half"])
        stays = Transition(
            now, now, {"a": Floor(Fraction(20), "")}, (), Spare(0), Kept(1, 1, Proof.CHECKED)
        )
        assert (check_transition(stays) == ()) is holds
        assert (checker.check_transition(transition_to_json(stays)) == []) is holds


# --- GPUs in use ----------------------------------------------------------------------------------


def _two_for_one() -> tuple[Deployment, tuple[Action, ...]]:
    """A GPU is given back, another taken into use by two instances."""
    old = Instance("4g.24gb", 0, work("a", "4g.24gb"))
    start = Deployment(
        (FleetNode("n", tuple(FleetGpu("n", i, gpu("a30-24gb"), instances=h) for i, h in HELD)),),
        Pair(0).start.services,
    )
    new = [Instance("1g.6gb", slot, work("b", "1g.6gb")) for slot in (0, 1)]
    return start, (
        Action(What.DELETE, "n", 0, removes=(old,)),
        Action(What.CREATE, "n", 1, adds=(new[0],)),
        Action(What.CREATE, "n", 1, adds=(new[1],)),
    )


HELD = ((0, (Instance("4g.24gb", 0, work("a", "4g.24gb")),)), (1, ()))


def test_all_that_come_to_a_gpu_wait_until_another_is_empty() -> None:
    start, actions = _two_for_one()
    done = ordered(start, actions, {}, most_gpus=1)
    assert [action.after for action in done] == [(), (0,), (0,)]
    free = ordered(start, actions, {}, most_gpus=2)
    assert [action.after for action in free] == [(), (), ()]
    with pytest.raises(AlgorithmError, match="uses more than 1 GPUs"):
        ordered(start, actions[1:], {}, most_gpus=1)


def test_a_second_instance_that_does_not_wait_is_found() -> None:
    start, actions = _two_for_one()
    new = tuple(each for action in actions for each in action.adds)
    services = tuple(replace(each, rate_rps=Fraction(0)) for each in start.services)
    start = replace(start, services=services)
    target = start.with_gpus(
        {(c.node, c.index): c.with_instances(new if c.index else ()) for c in start.gpus()}
    )
    done = ordered(start, actions, {}, most_gpus=1)
    found = Transition(start, target, {}, done, Spare(0), Kept(0, 0, Proof.CHECKED))
    assert check_transition(found) == ()
    assert kinds(changed(found, 2, after=())) == {"gpus"}
    assert kinds(changed(found, 1, after=())) == {"gpus"}


def test_an_instance_that_comes_again_goes_only_once_it_has_come() -> None:
    """Equal instances at one place, one after the other: each deletion has its own."""
    held = Instance("4g.24gb", 0, work("a", "4g.24gb"))
    card = FleetGpu("n", 0, gpu("a30-24gb"), instances=(held,))
    services = tuple(replace(each, rate_rps=Fraction(0)) for each in Pair(0).start.services)
    start = Deployment((FleetNode("n", (card,)),), services)
    target = start.with_gpus({("n", 0): card.with_instances(())})
    gone, come = (
        Action(What.DELETE, "n", 0, removes=(held,)),
        Action(What.CREATE, "n", 0, adds=(held,), is_temporary=True),
    )
    done = ordered(start, (gone, come, replace(gone, is_temporary=True)), {}, most_gpus=1)
    assert [action.after for action in done] == [(), (0,), (1,)]
    found = Transition(start, target, {}, done, Spare(0), Kept(0, 0, Proof.CHECKED))
    assert check_transition(found) == ()
    assert kinds(changed(found, 2, after=(0,))) == {"wait"}


def test_a_floor_is_kept_by_what_has_ended_alone() -> None:
    pair = Pair(3)
    start = pair.start
    a_floor = {"a": Floor(start.capacity("a"), "all")}
    (card, instance), *_ = [
        (card, each)
        for card, each in start.instances()
        if each.work is not None and each.work.service == "a"
    ]
    with pytest.raises(AlgorithmError, match="takes a below its floor"):
        ordered(start, [Action(What.DELETE, card.node, card.index, (instance,))], a_floor)


# --- limits ---------------------------------------------------------------------------------------


def test_no_cover_comes_that_only_the_old_limit_admits() -> None:
    """A work of 100 ms is within half of 1000 ms, and not within half of 150 ms."""
    new = work("a", "1g.6gb")
    new = replace(new, point=replace(new.point, latency_ms=Fraction(50)))
    held = [Instance("1g.6gb", 0, work("a", "1g.6gb")), Instance("1g.6gb", 1, new)]
    cover = replace(held[0], start=2)
    services = (Service("a", "a", Fraction(10), 1000),)
    start = Deployment(
        (FleetNode("n", (FleetGpu("n", 0, gpu("a30-24gb"), instances=(held[0],)),)),),
        services,
        RULES["half"],
    )
    ends = start.with_gpus({("n", 0): next(start.gpus()).with_instances((held[1],))})
    actions = (
        Action(What.CREATE, "n", 0, adds=(cover,), is_temporary=True),
        Action(What.DELETE, "n", 0, removes=(held[0],), after=(0,)),
        Action(What.CREATE, "n", 0, adds=(held[1],), after=(1,)),
        Action(What.DELETE, "n", 0, removes=(cover,), after=(2,), is_temporary=True),
    )
    floors = {"a": Floor(Fraction(10), "the rate")}
    for limit, faults in ((1000, set[str]()), (150, {"limit"})):
        target = replace(ends, services=(replace(services[0], latency_limit_ms=Fraction(limit)),))
        found = Transition(start, target, floors, actions, Spare(0), Kept(0, 0, Proof.CHECKED))
        assert kinds(found) == faults
        refused = checker.check_transition(transition_to_json(found))
        assert bool(refused) == bool(faults)
        if faults:
            with pytest.raises(FileError, match="does not admit its point"):
                transition_from_json(transition_to_json(found))
        assert all("only the old limit admits it" in fault for fault in refused)
