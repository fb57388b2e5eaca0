"""The independent checker of transitions and deployments, by hand and beside the package's own."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import solve
from cms.errors import FileError, InvalidProblem
from cms.fleet import OperatingPoint, Plan, Service, as_problem, gpu
from cms.fleet.deployment import (
    Deployment,
    FleetNode,
    deployment_from_json,
    deployment_to_json,
)
from cms.fleet.deployment.transition.checking import check_transition as check_in_package
from cms.fleet.deployment.transition.files import transition_from_json, transition_to_json
from cms.fleet.serving import plan_to_json
from cms.fleet.serving.loads import sustainable_load
from cms.fleet.serving.part_files import device_to_json
from proofs_checks import parallel_order
from proofs_checks.checker import check_deployment, check_transition, parse_document, tables
from proofs_checks.checker.__main__ import main
from proofs_checks.checker.deployment import examine_deployment
from proofs_checks.checker.replay import examine_transition
from proofs_checks.checker.waits import moments, worst
from tests.proofs_checks.documents import Document, changed, group, problem, solution
from tests.proofs_checks.moves import (
    FULL,
    LEFT,
    LENT,
    RESTARTED,
    REWRITTEN,
    SHARED,
    THEIRS,
    action,
    deployment,
    instance,
    real,
    side,
    transition,
)

VALID = {"lent": LENT, "restarted": RESTARTED, "rewritten": REWRITTEN, "shared": SHARED}


def read(document: Document) -> Any:
    """As a file would hold it."""
    return parse_document(json.dumps(document))


@pytest.mark.parametrize("name", VALID)
def test_transitions_made_by_hand_are_safe(name: str) -> None:
    faults, words = examine_transition(read(VALID[name]))
    assert faults == []
    assert words.startswith(f"{len(VALID[name]['actions'])} actions, in any order")


def in_package(of: Document) -> Any:
    """What the package says of a transition, with an A30 for the card of the tests."""
    try:
        return check_in_package(transition_from_json(real(of)))
    except FileError as fault:
        return fault


@pytest.mark.parametrize("name", VALID)
def test_the_package_is_of_the_same_opinion(name: str) -> None:
    assert in_package(VALID[name]) == ()


def test_what_is_found_is_said() -> None:
    assert examine_transition(LENT)[1].split("; ")[1:] == [
        "the lowest floor of a service that stays is 1 of the smaller rate, of chat",
        "the least above a floor is 10 items/s, of chat",
        "0 instances are kept of 0, and both sides have no more in common",
        "1 spare GPUs, not proved the least",
    ]


SMALL = [instance("small", at, "chat") for at in range(4)]
HELD = ("start", "nodes", 0, "gpus", 0, "instances")
END = ("target", "nodes", 0, "gpus", 0, "instances")
OTHER = ("target", "nodes", 0, "gpus", 1, "instances")

#: What is changed in which transition, and what must be said of it.
FORGED: list[tuple[Document, tuple[Any, ...], Any, str]] = [
    # waits left out
    (LENT, ("actions", 1, "after"), [], "service 'chat' can fall to 0 items/s, below its floor"),
    (LENT, ("actions", 2, "after"), [], "on n/0 the instances in memory slice 0 can be 2"),
    (LENT, ("actions", 4, "after"), [0, 2], "can fall to 60 items/s, below its floor of 110"),
    (LENT, ("actions", 4, "after"), [], "can be removed by 4 before it is there"),
    (REWRITTEN, ("actions", 1, "after"), [], "service 'chat' can fall to 0 items/s"),
    (SHARED, ("actions", 1, "after"), [], "on n/0 the shares can be 140 once 1 have begun"),
    # sequences that do not work
    (LENT, ("actions", 0, "adds", 0, "start"), 1, "full@1 for 'chat full' cannot start at 1"),
    (LENT, ("actions", 1, "removes", 0), LEFT, "action 1 removes half@0 for 'chat half', which is"),
    (LENT, ("actions", 3, "adds", 0), LEFT, "memory slice 0 can be 2"),
    (LENT, ("actions", 2, "what"), "delete", "action 2 is a delete, removes 0 instances and adds"),
    (LENT, ("actions", 2, "mode"), "mig", "changes the mode of a GPU and is no rewrite"),
    (LENT, ("actions", 2, "adds", 0, "owner"), "pod a/b", "action 2 adds half@0 of 'pod a/b'"),
    (LENT, ("actions", 2, "adds", 0, "state"), "starting", "which is starting"),
    (LENT, ("actions", 2, "adds", 0, "point"), "chat full", "its point was measured on card full"),
    (LENT, ("actions", 2, "adds", 0, "start"), None, "does not say where"),
    (RESTARTED, ("actions", 0, "adds", 0, "profile"), "full", "restarts half@0 for 'chat half' in"),
    (RESTARTED, ("actions", 0, "removes", 0), THEIRS, "of 'pod team-x/a', which is another's"),
    (REWRITTEN, ("actions", 1, "removes"), [], "action 1 rewrites n/0 over half@0"),
    (REWRITTEN, ("actions", 1, "mode"), None, "has the profile 'mps:60', which card does not have"),
    (REWRITTEN, ("actions", 1, "adds", 0, "profile"), "mps:70", "its point was measured on card"),
    # the ends
    (REWRITTEN, (*OTHER, 0, "start"), 1, "in the end n/1 lacks small@1 of 'pod team-x/a'"),
    (LENT, (*END, 1), SMALL[1], "in the target, n/0: the instances in memory slice 1 are 2"),
    (LENT, HELD, [], "action 1 removes full@0 for 'chat full', which is not there"),
    (LENT, ("target", "nodes", 0, "gpus", 1, "uuid"), "GPU-9", "another uuid in the target"),
    (LENT, ("target", "nodes", 0, "driver"), "560", "is not the same on both sides"),
    (LENT, ("target", "nodes", 0, "name"), "m", "GPU m/0 is on one side alone"),
    (LENT, ("target", "services", 0, "rate_rps"), 121, "not those of the target"),
    (SHARED, ("target", "nodes", 0, "gpus", 0, "mode"), "mig", "which card does not have"),
    # floors, supplies
    (LENT, ("floors", "chat", "rps"), "120.001", "can fall to 120 items/s, below its floor"),
    (LENT, ("points", 1, "supply_rps"), 61, "supplies 61 items/s: the rule grants 60"),
    (LENT, ("points", 1, "latency_ms"), "10.001", "supplies 60 items/s: the rule grants 0"),
    (LENT, ("points", 1, "model"), "code", "is of another model than its service"),
    (LENT, ("rule", "latency_share"), 1, "the rule is not what 'half' means"),
    # what it says of itself
    (LENT, ("spare", "count"), 0, "2 GPUs can be in use at once, 1 and 0 spare ones may be"),
    (LENT, ("spare", "count"), 2, "2 spare GPUs are said to be used, and 1 are"),
    (LENT, ("spare", "least"), 1, "at least 1 spare GPUs are said to be needed"),
    (LENT, ("spare", "borrowed"), [], "the borrowed GPUs are n/1"),
    (LENT, ("kept", "count"), 1, "1 instances are said to be kept, and 0 are"),
    (RESTARTED, ("kept", "most"), 0, "1 instances are said to be kept, of at most 0"),
    (LENT, ("actions", 0, "is_temporary"), False, "action 0 is not said to be temporary, and is"),
]  # fmt: skip


@pytest.mark.parametrize(("of", "path", "to", "words"), FORGED)
def test_a_forged_transition_is_refused(
    of: Document, path: tuple[Any, ...], to: Any, words: str
) -> None:
    faults = check_transition(read(changed(of, *path, to=to)))
    assert any(words in fault for fault in faults), faults
    assert in_package(changed(of, *path, to=to))


def test_what_starts_and_another_name_of_a_card() -> None:
    started = changed(RESTARTED, *HELD, 1, "state", to="starting")
    started = changed(started, *END, 1, "state", to="running")
    named = changed(started, "devices", 0, "aliases", to=["A Card"])
    faults = check_transition(changed(named, "points", 1, "device", to="A Card"))
    assert not any("measured" in each or "the target" in each for each in faults), faults


def test_what_is_removed_twice_waits_twice() -> None:
    """It was there from the start, but not for the second time."""
    actions = [
        action("delete", 0, [LEFT], []),
        action("create", 0, [], [LEFT], 0, temporary=True),
        action("delete", 0, [LEFT], [], 1, temporary=True),
    ]
    of = transition(side({}, [{**LEFT, "point": None}]), side({}, []), {}, actions)
    idle = json.loads(json.dumps(of).replace('"chat half"', "null"))
    assert check_transition(idle) == []
    (fault,) = check_transition(changed(idle, "actions", 2, "after", to=[]))
    assert fault == "on n/0 half@0 can be removed by 0, 2 before it is there"


def test_a_rewrite_has_its_gpu_for_itself() -> None:
    of = transition(
        side({}, [instance("small", 3)]),
        side({}, [instance("small", 0), instance("small", 1)]),
        {},
        [
            action("delete", 0, [instance("small", 3)], []),
            action("rewrite", 0, [], [instance("small", 0)], 0),
            action("create", 0, [], [instance("small", 1)], 1),
        ],
    )
    assert check_transition(of) == []
    for at, words in ((1, "does not wait for action 0"), (2, "action 1, which rewrites n/0")):
        (fault, *_) = check_transition(changed(of, "actions", at, "after", to=[]))
        assert words in fault


def test_nothing_comes_beside_an_instance_whose_start_is_not_known() -> None:
    unknown = instance("half")
    of = transition(
        side({"chat": 0}, [unknown]), side({"chat": 0}, [unknown, LEFT]), {},
        [action("create", 0, [], [LEFT])],
    )  # fmt: skip
    assert check_transition(of) == ["action 0 adds to n/0 beside an instance with no known start"]
    assert {each.kind for each in in_package(of)} == {"start"}
    gone = transition(
        side({"chat": 0}, [unknown]), side({"chat": 0}, [LEFT]), {},
        [action("delete", 0, [unknown], []), action("create", 0, [], [LEFT], 0)],
    )  # fmt: skip
    assert check_transition(gone) == []
    crowded = changed(of, *HELD, to=[unknown, unknown, instance("small")])
    assert "the compute slices are 5, at most 4 may be" in check_transition(crowded)[0]
    apart = changed(of, *HELD, to=[unknown, instance("small", 1), instance("small", 2)])
    (fault, *_) = check_transition(changed(apart, "actions", to=[]))
    assert fault == "in the start, n/0: what is there has no starts that go together"


def test_a_whole_gpu_is_for_one_service() -> None:
    whole = instance("whole", None, "chat")
    other = {**whole, "point": None, "owner": "unknown"}
    alone = deployment(transition(side({"chat": 120}, [whole], modes=("whole",)), side({}), {}, []))
    assert check_deployment(alone) == []
    path = ("nodes", 0, "gpus", 0, "instances")
    for two in ([whole, whole], [whole, other]):  # each was measured alone there
        (fault,) = check_deployment(changed(alone, *path, to=two))
        assert fault == "n/0: the instances on the whole GPU are 2, at most 1 may be"


# --- deployments ----------------------------------------------------------------------------------

ME = instance("small+me", 0)
AT_START = deployment(LENT)
DEPLOYED = ("nodes", 0, "gpus", 0)


def test_a_deployment_is_judged_by_its_devices() -> None:
    assert check_deployment(read(AT_START)) == []
    for held, words in (
        ([FULL, SMALL[0]], "the compute slices are 5, at most 4 may be"),
        ([FULL, ME, instance("small+me", 1)], "the instances with media engines are 2"),
        ([LEFT, SMALL[1]], "memory slice 1 are 2"),
        ([instance("half"), SMALL[1], SMALL[2]], "what is there has no starts that go together"),
        ([instance("huge", 0)], "which card does not have"),
        ([instance("half", 0, "chat", uuid="GPU-1")], "'GPU-1' is there 2 times"),
        ([LEFT], "service 'chat' is supplied 60 of 110 items/s"),
    ):
        seen = "unknown" if None in [each["start"] for each in held] else "seen"
        of = changed(AT_START, *DEPLOYED, "seen", to=seen)
        (*_, fault) = faults = check_deployment(changed(of, *DEPLOYED, "instances", to=held))
        assert any(words in each for each in faults), (fault, words)
    old = changed(AT_START, "nodes", 0, "driver", to="470.1")
    assert check_deployment(old) == []
    (fault, *_) = check_deployment(changed(old, *DEPLOYED, "instances", to=[ME]))
    assert fault == "n/0: small+me@0 needs the driver R525, and the node has R470"


@pytest.mark.parametrize("driver", ["x", "", "R", "５５０"])
def test_a_driver_without_a_version_is_refused_by_both(driver: str) -> None:
    of = deployment_to_json(Deployment((FleetNode("n", driver="550.54"),)))
    assert check_deployment(of) == []
    wrong = changed(of, "nodes", 0, "driver", to=driver)
    assert any("which is no version of a driver" in each for each in check_deployment(wrong))
    with pytest.raises(FileError, match="node 'n'.*expected its version, as nvidia-smi prints it"):
        deployment_from_json(wrong)
    with pytest.raises(InvalidProblem, match="expected its version"):
        FleetNode("n", driver=driver)


def described(**changes: Any) -> Document:
    """A card of the catalogue, described by a document of the user's."""
    device = device_to_json(gpu("a30-24gb"))
    return deployment_to_json(Deployment(())) | {"devices": [{**device, **changes}]}


def profile_as(**changes: Any) -> Document:
    first, *others = device_to_json(gpu("a30-24gb"))["profiles"]
    return described(profiles=[{**first, **changes}, *others])


@pytest.mark.parametrize(
    ("of", "is_that_card"),
    [
        (described(), True),
        (described(version=9, aliases=["A30", "A card of ours"], pci_device_ids=[]), True),
        (described(profiles=described()["devices"][0]["profiles"][1:]), True),
        (profile_as(id=77, sms=1, memory_mib=6000, other_names=["1g.7gb"]), True),
        (described(key="a30-of-ours", version=1), True),
        (described(compute_slices=8, memory_slices=8), False),
        (described(aliases=["H100 PCIe"]), False),
        (profile_as(max=3), False),
        (profile_as(starts=[0, 1]), False),
        (profile_as(name="1g.3gb"), False),
        (profile_as(since_driver="R525"), False),
        (profile_as(other_names=["7g.79gb"]), True),
    ],
)
def test_a_known_card_is_the_catalogues_for_both(of: Document, is_that_card: bool) -> None:
    assert (check_deployment(read(of)) == []) == is_that_card
    if is_that_card:
        deployment_from_json(of)
    else:
        with pytest.raises(FileError, match="the key 'a30-24gb' of the catalogue, and|fit at once"):
            deployment_from_json(of)


def test_a_plan_is_for_gpus_that_can_be_cut_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = OperatingPoint("chat", "a30-24gb", "1g.6gb", 1, 1, 10, 1)
    serving = as_problem([Service("chat", "chat", 40, 100)], [point], "a30-24gb", rule="half")
    plan = plan_to_json(Plan(serving, solve(serving.problem)))
    path = tmp_path / "plan.json"
    for changes, status, words in (
        ({}, 0, "the schedule is valid: 1 machines"),
        ({"devices": described(memory_slices=8)["devices"]}, 1, "is not the catalogue's"),
        (json.loads(json.dumps(plan).replace('"1g.6gb": 4', '"1g.6gb": 8')), 1, "slices are 8"),
    ):
        path.write_text(json.dumps({**plan, **changes}), "utf-8")
        assert main([str(path)]) == status
        out, err = capsys.readouterr()
        assert words in (err if status else out)


@pytest.mark.parametrize(
    ("side", "driver", "is_one"),
    [("start", None, True), ("target", None, True), ("target", "550.99", True),
     ("target", "560.1", False)],
)  # fmt: skip
def test_a_driver_may_be_unknown_to_one_side(side: str, driver: str | None, is_one: bool) -> None:
    of = changed(LENT, side, "nodes", 0, "driver", to=driver)
    assert (check_transition(read(of)) == []) == is_one
    assert (in_package(of) == ()) == is_one


def test_what_comes_on_the_way_is_offered_and_runs_what_was_measured_there() -> None:
    cover = changed(LENT, "actions", 0, "adds", 0, "point", to="chat half")
    cover = changed(cover, "actions", 4, "removes", 0, "point", to="chat half")
    assert any(each.kind == "point" for each in in_package(cover))
    assert any("its point was measured on" in each for each in check_transition(read(cover)))
    small = instance("small+me", 0)
    old = transition(
        side({}, []), side({}, []), {},
        [action("create", 0, [], [small], temporary=True),
         action("delete", 0, [small], [], 0, temporary=True)],
        spare=1, borrowed=("n/0",),
    )  # fmt: skip
    assert check_transition(read(old)) == []
    assert in_package(old) == ()
    for name, unsure in (("start", "target"), ("target", "start")):  # whichever side knows it
        other = changed(old, unsure, "nodes", 0, "driver", to=None)
        other = changed(other, name, "nodes", 0, "driver", to="460.32")
        assert any("needs the driver R525" in each for each in check_transition(read(other)))
        assert {each.kind for each in in_package(other)} == {"driver"}


def test_a_deployment_keeps_what_its_plan_promises() -> None:
    of = problem([{"blocks": {"full": 1}}], {"chat": (115, {"full": 120})})
    proved = solution(of, [group({"full": 1}, [["full", "chat", 1]])], {"prices": {"full": 1}})
    plan = {"format": "cms-plan", "schema": 1, "problem": of, "solution": proved}
    planned = changed(AT_START, "plan", to=plan)
    faults, words = examine_deployment(planned)
    assert faults == []
    assert "its plan: the schedule is valid" in words
    weaker = json.loads(json.dumps(planned).replace("120", "112"))
    assert "service 'chat' is supplied 112 items/s of the 115 that the plan promises" in (
        check_deployment(weaker)
    )
    (fault, *_) = check_deployment(changed(planned, "plan", "solution", "cost", to=2))
    assert fault.startswith("its plan: ")
    (fault,) = check_deployment(changed(planned, "plan", "schema", to=2))
    assert "the schema version is 2" in fault


def certified(
    batch: int, supply: Any, processes: int = 1, throughput_rps: int = 0, evidence: Any = "table",
    **more: Any,
) -> Document:  # fmt: skip
    """A deployment under the rule about load: a batch of so many takes 10 ms, the limit is 35."""
    rule = {"name": "mine", "late_share": "1/100", "queue": "process", "certified": False} | more
    of = changed(AT_START, "rule", to=rule)
    of = changed(of, "services", 0, "latency_limit_ms", to=35)
    of["services"][0]["rate_rps"] = 0
    if rule["certified"]:
        evidence = "certified"
    of["points"] = [
        {**of["points"][2], "batch": batch, "processes": processes, "supply_rps": supply,
         "throughput_rps": throughput_rps or 100 * batch, "evidence": evidence}
    ]  # fmt: skip
    return of


def test_supplies_under_load_are_proved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    granted = Fraction(3468, 5)
    assert check_deployment(certified(8, str(granted))) == []
    for other in (650, 780):
        (fault,) = check_deployment(certified(8, other))
        assert f"supplies {other} items/s: the rule grants {granted}" in fault
    (fault, *_) = check_deployment(certified(8, 1, certified=True, queue="instance"))
    assert "supplies 1 items/s: the rule grants 0" in fault
    (fault,) = check_deployment(
        changed(certified(8, str(granted)), "points", 0, "evidence", to=None)
    )
    assert "the evidence of point" in fault
    curve = {"late_share": "1/100", "evidence": "measured", "rates_rps": [100, 200],
             "latencies_ms": [30, 35]}  # fmt: skip
    measured = changed(certified(8, 200, evidence="measured"), "points", 0, "load_curve", to=curve)
    assert check_deployment(measured) == []
    for other in (150, 201):
        (fault,) = check_deployment(changed(measured, "points", 0, "supply_rps", to=other))
        assert "the rule grants 200" in fault
    named = changed(measured, "points", 0, "load_curve", to={**curve, "batches_sha256": "a" * 64})
    (fault,) = check_deployment(named)
    assert "is measured, and says which batches were simulated" in fault
    # a table that says too much is no proof
    better = tables.Entry(1, 8, Fraction(7, 2), Fraction(1, 100), Fraction(99, 100))
    monkeypatch.setattr("proofs_checks.checker.supplies.looked_up", lambda *asked: better)
    (fault,) = check_deployment(certified(8, 792))
    assert "supplies 792 items/s: at load 99/100 the late share is not at most 1/100" in fault


def test_several_processes_on_one_queue_count_by_the_table_of_what_was_simulated() -> None:
    several = certified(8, "628", queue="instance", processes=2, throughput_rps=800)
    supply = sustainable_load(2, 8, Fraction(7, 4), Fraction(1, 100), queue="instance") * 800
    assert supply == 0  # 20 ms a batch are more than half of the limit
    (fault,) = check_deployment(several)
    assert "supplies 628 items/s: the rule grants 0" in fault
    fast = certified(8, 1, queue="instance", processes=2, throughput_rps=1600)
    supply = sustainable_load(2, 8, Fraction(7, 2), Fraction(1, 100), queue="instance") * 1600
    faults, words = examine_deployment(changed(fast, "points", 0, "supply_rps", to=str(supply)))
    assert faults == []
    assert words.endswith("the supplies of 1 points are by the table of what was simulated")
    for wrong in (10**6, 1):
        (fault,) = check_deployment(changed(fast, "points", 0, "supply_rps", to=wrong))
        assert f"the rule grants {supply}" in fault


def test_what_an_unknown_rule_makes_of_points_is_taken_and_said() -> None:
    own = changed(certified(8, 9000), "rule", to={"name": "my own"})
    assert examine_deployment(own)[1].endswith("the supplies of 1 points are taken from the file")
    (fault,) = check_deployment(changed(own, "rule", "name", to="half"))
    assert fault == "the rule is not what 'half' means"


def test_the_command_line_takes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.json"
    for document, status, words in (
        (LENT, 0, "5 actions, in any order"),
        (AT_START, 0, "1 instances on 2 GPUs are where they can be"),
        (changed(LENT, "actions", 1, "after", to=[]), 1, "service 'chat' can fall to 0 items/s"),
        (changed(LENT, "schema", to=2), 1, "this checker knows version 1"),
    ):
        path.write_text(json.dumps(document), "utf-8")
        assert main([str(path)]) == status
        out, err = capsys.readouterr()
        assert words in (err if status else out)


# --- documents ------------------------------------------------------------------------------------


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document but the document itself."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*path, key))


_FREE = {"reason", "source", "extra", "labels", "pci_device_ids", "sources"}
PLACES = [path for path in paths(REWRITTEN) if not _FREE & set(path)]
KEYS = [path for path in paths(REWRITTEN) if isinstance(path[-1], str) and path[0] != "floors"]


def test_a_document_with_a_part_missing_is_refused_in_words() -> None:
    optional = {"since_driver", "source", "aliases", "pci_device_ids", "geometry"}
    for path in [path for path in KEYS if path[-1] not in optional]:
        (fault, *_) = check_transition(changed(REWRITTEN, *path, to=...))
        assert "has no" in fault or "is None" in fault or "is not what" in fault, (path, fault)


@given(
    st.sampled_from(PLACES), st.sampled_from((None, True, -1, 1.5, "", "x", [], [[]], {}, {"x": 1}))
)
def test_a_document_with_a_wrong_part_never_breaks_the_checker(path: Any, to: Any) -> None:
    for fault in check_transition(read(changed(REWRITTEN, *path, to=to))):
        assert fault == fault.strip() != ""


@pytest.mark.parametrize("value", [None, [], 3, "text", {}, {"format": "cms-plan"}])
def test_what_is_no_transition_is_refused(value: Any) -> None:
    assert len(check_transition(value)) == len(check_deployment(value)) == 1


# --- the worst moment, and the package's own check ------------------------------------------------


@given(st.data())
def test_the_flow_is_the_worst_of_all_moments(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 7))
    before: list[int] = []
    for at in range(n):
        waits = data.draw(st.sets(st.integers(0, at - 1))) if at else set()
        before.append(sum({1 << b for b in waits}) if not waits else 0)
        for b in waits:
            before[at] |= before[b] | 1 << b
    amounts = st.integers(0, 5).map(lambda n: Fraction(n, 3))
    gains, losses = ({at: data.draw(amounts) for at in range(n)} for _ in range(2))
    every = moments(before, 10**6)
    assert every is not None
    most = max(
        sum(gains[at] for at in range(n) if begun >> at & 1)
        - sum(losses[at] for at in range(n) if ended >> at & 1)
        for begun, ended in every
    )
    gains, losses = ({at: each for at, each in p.items() if each} for p in (gains, losses))
    assert worst(gains, losses, dict(enumerate(before)))[0] == most
    assert moments([0] * 9, 100) is None


@given(st.integers(0, 10**9))
def test_both_checkers_say_of_any_sequence_what_every_moment_shows(seed: int) -> None:
    rng = random.Random(seed)
    of = parallel_order.random_transition(rng)
    assert check_in_package(of) == ()
    assert check_transition(transition_to_json(of)) == []
    other = parallel_order.rearranged(of, rng, rng.choice((1, 1, 0.8, 0.5)))
    is_unsafe = any(True for _ in parallel_order.breaches(other))
    assert parallel_order.refused(other) == (is_unsafe, is_unsafe)
    if not is_unsafe:
        parallel_order.require_exact(other)


@pytest.mark.long
def test_thousands_of_parallel_executions_keep_every_floor() -> None:
    finding = parallel_order.check(seed=1, cases=3000)
    assert finding.ok, finding.failures
