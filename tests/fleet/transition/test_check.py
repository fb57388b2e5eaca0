"""The check of transitions: it refuses what is wrong, whoever made it."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from fractions import Fraction

import pytest

from cms.errors import AlgorithmError, FileError
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from cms.fleet.deployment.transition import (
    Action,
    Floor,
    Kept,
    Spare,
    Transition,
    What,
    check_transition,
    replay,
    transition,
    transition_from_json,
    transition_to_json,
)
from cms.fleet.deployment.transition.waits import ordered
from cms.solving.solution import Proof
from proofs_checks import checker

from .cases import A30, does, leg, on_node, work


def kinds(transition: Transition) -> set[str]:
    return {violation.kind for violation in check_transition(transition)}


def changed(found: Transition, at: int, **parts: object) -> Transition:
    action = replace(found.actions[at], **parts)  # type: ignore[arg-type]
    return replace(found, actions=(*found.actions[:at], action, *found.actions[at + 1 :]))


# --- documents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("spoiled", ["looser", "tighter", "twice"])
def test_points_are_counted_by_no_other_limits_than_the_target_states(spoiled: str) -> None:
    document = json.loads(json.dumps(transition_to_json(leg(3)[0])))
    if spoiled == "looser":
        document["services"][0]["latency_limit_ms"] = 10_000
    elif spoiled == "tighter":
        document["target"]["services"][0]["latency_limit_ms"] = 1
    else:
        document["target"]["services"] += document["target"]["services"][:1]
    assert checker.check_transition(document)
    says = "two services" if spoiled == "twice" else "is another service there than in the target"
    with pytest.raises(FileError, match=says):
        transition_from_json(document)


def test_a_whole_gpu_runs_what_was_measured_on_the_profile_that_is_all_of_it() -> None:
    """Both checkers know it, and that no smaller profile will do."""
    for profile, holds in (("4g.24gb", True), ("2g.12gb", False)):
        held = (Instance("whole", None, work("a", profile)),)
        card = FleetGpu("n", 0, A30, Mode.WHOLE, held)
        now = replace(on_node(rate=20), nodes=(FleetNode("n", (card,)),))
        stays = Transition(
            now, now, {"a": Floor(Fraction(20), "")}, (), Spare(0), Kept(1, 1, Proof.CHECKED)
        )
        assert (check_transition(stays) == ()) is holds
        assert (checker.check_transition(transition_to_json(stays)) == []) is holds


# --- GPUs in use ----------------------------------------------------------------------------------

OLD = does("a", "4g.24gb")
NEW = tuple(does("b", "1g.6gb", slot) for slot in (0, 1))
GONE = Action(What.DELETE, "n", 0, removes=(OLD,))
COME = tuple(Action(What.CREATE, "n", 1, adds=(each,)) for each in NEW)


def moves(start: Deployment, target: Deployment, actions: tuple[Action, ...]) -> Transition:
    return Transition(start, target, {}, actions, Spare(0), Kept(0, 0, Proof.CHECKED))


def test_all_that_come_to_a_gpu_wait_until_another_is_empty() -> None:
    """A GPU is given back, another taken into use by two instances."""
    start, target, actions = on_node([OLD], []), on_node([], NEW), (GONE, *COME)
    done = ordered(start, actions, {}, most_gpus=1)
    assert [action.after for action in done] == [(), (0,), (0,)]
    free = ordered(start, actions, {}, most_gpus=2)
    assert [action.after for action in free] == [(), (), ()]
    with pytest.raises(AlgorithmError, match="uses more than 1 GPUs"):
        ordered(start, COME, {}, most_gpus=1)
    found = moves(start, target, done)
    assert check_transition(found) == ()
    assert kinds(changed(found, 2, after=())) == kinds(changed(found, 1, after=())) == {"gpus"}


@pytest.mark.parametrize(
    ("function", "line", "instead", "says"),
    [
        ("change_gpus", "(*held, *action.adds)", "held", "needs no more"),
        ("list_uses", "now[place].adders.append(at)", "pass", "2 GPUs in use at once"),
        ("list_changes", "if rps:", "if not rps:", "service a has 0 requests/s while action 2"),
    ],
)
def test_the_check_shares_no_fault_with_the_planner(
    function: str, line: str, instead: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, scope = getattr(replay, function), dict(vars(replay))
    faulty = inspect.getsource(planned).replace(line, instead)
    exec(f"from __future__ import annotations\n{faulty}", scope)
    monkeypatch.setattr(planned, "__code__", scope[function].__code__)
    rate = 20 if function == "list_changes" else 0
    to = on_node([], [does("a", "2g.12gb", slot) for slot in (0, 2)], rate=rate)
    with pytest.raises(AlgorithmError, match=f"refused: .*{says}"):
        transition(on_node([OLD], [], rate=rate), to)


def test_an_instance_that_comes_again_goes_only_once_it_has_come() -> None:
    """Equal instances at one place, one after the other: each deletion has its own."""
    start, target = on_node([OLD]), on_node([])
    come = Action(What.CREATE, "n", 0, adds=(OLD,), is_temporary=True)
    done = ordered(start, (GONE, come, replace(GONE, is_temporary=True)), {}, most_gpus=1)
    assert [action.after for action in done] == [(), (0,), (1,)]
    found = moves(start, target, done)
    assert check_transition(found) == ()
    assert kinds(changed(found, 2, after=(0,))) == {"wait"}


def test_a_creation_waits_for_its_slots_and_where_a_maximum_binds_for_all() -> None:
    """Quarters of an A30, of which one with media engines may be there at a time."""
    gone = [does("a", "1g.6gb", 0), does("a", "1g.6gb", 1), Instance("1g.6gb+me", 3)]
    deletions = tuple(Action(What.DELETE, "n", 0, (each,)) for each in gone)
    for comes, after in (
        ("1g.6gb", (1,)), ("2g.12gb", (0, 1)), ("1g.6gb+me", (0, 1, 2)),
    ):  # fmt: skip
        start = int(comes != "2g.12gb")
        create = Action(What.CREATE, "n", 0, adds=(Instance(comes, start),))
        done = ordered(on_node(gone), (*deletions, create), {})
        assert done[-1].after == after
        found = moves(on_node(gone), on_node([Instance(comes, start)]), done)
        assert check_transition(found) == ()
        for missing in after:
            fewer = tuple(each for each in after if each != missing)
            wrong = kinds(changed(found, 3, after=fewer))
            assert wrong == (set() if comes == "1g.6gb+me" and missing == 0 else {"layout"})
    whole = FleetGpu("n", 0, A30, Mode.WHOLE, (Instance("whole"),))
    now = replace(on_node(), nodes=(FleetNode("n", (whole,)),))
    swap = (
        Action(What.DELETE, "n", 0, whole.instances),
        Action(What.CREATE, "n", 0, (), whole.instances),
    )
    assert [each.after for each in ordered(now, swap, {}, most_gpus=1)] == [(), (0,)]


def test_a_repartition_waits_for_all_on_its_gpu_and_all_after_it_for_the_repartition() -> None:
    start = on_node([OLD], [])
    actions = (
        GONE,
        Action(What.REPARTITION, "n", 0, adds=NEW),
        *(Action(What.DELETE, "n", 0, (each,)) for each in NEW),
        replace(COME[0], index=0),
    )
    done = ordered(start, actions, {})
    assert [each.after for each in done] == [(), (0,), (1,), (1,), (2,)]


# --- limits ---------------------------------------------------------------------------------------


def test_no_cover_comes_that_only_the_old_limit_admits() -> None:
    """A work of 100 ms is within half of 1000 ms, and not within half of 150 ms."""
    held, cover = does("a", "1g.6gb"), does("a", "1g.6gb", 2)
    new = replace(
        work("a", "1g.6gb"), point=replace(work("a", "1g.6gb").point, latency_ms=Fraction(50))
    )
    comes = Instance("1g.6gb", 1, new)
    actions = (
        Action(What.CREATE, "n", 0, adds=(cover,), is_temporary=True),
        Action(What.DELETE, "n", 0, removes=(held,), after=(0,)),
        Action(What.CREATE, "n", 0, adds=(comes,), after=(1,)),
        Action(What.DELETE, "n", 0, removes=(cover,), after=(2,), is_temporary=True),
    )
    for limit, faults in ((1000, set[str]()), (150, {"limit"})):
        sides = on_node([held], rate=10), on_node([comes], rate=10, limit=limit)
        found = replace(moves(*sides, actions), floors={"a": Floor(Fraction(10), "the rate")})
        assert kinds(found) == faults
        refused = checker.check_transition(transition_to_json(found))
        assert bool(refused) == bool(faults)
        if faults:
            with pytest.raises(FileError, match="does not admit its point"):
                transition_from_json(transition_to_json(found))
        assert all("only the old limit admits it" in fault for fault in refused)
