"""Deployments and the cards they describe: judged by the independent checker and the package."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import FileError, InvalidProblem, solve
from cms.files.documents import lay_out
from cms.fleet import OperatingPoint, Plan, Service, build_problem, get_gpu
from cms.fleet.deployment import Deployment, FleetNode, deployment_from_json, deployment_to_json
from cms.fleet.hardware.catalogue import DevicePart
from cms.fleet.serving import plan_to_json
from cms.fleet.serving.capacity import sustainable_load
from proofs_checks.checker import check_deployment, check_transition, tables
from proofs_checks.checker.__main__ import main
from proofs_checks.checker.deployment import examine_deployment
from tests.files.test_schemas import is_valid
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import Document, changed, group, problem, solution
from tests.proofs_checks.moves import (
    FULL,
    LEFT,
    LENT,
    action,
    deployment,
    instance,
    side,
    transition,
)
from tests.proofs_checks.test_replay import SMALL, in_package

ME = instance("2g.12gb+me", 0)
AT_START = deployment(LENT)
DEPLOYED = ("nodes", 0, "gpus", 0)


def test_a_deployment_is_judged_by_its_devices() -> None:
    assert check_deployment(read(AT_START)) == []
    assert is_valid(AT_START)
    for held, words in (
        ([FULL, SMALL[0]], "the compute slices are 5, at most 4 may be"),
        ([FULL, ME, instance("1g.6gb+me", 1)], "the instances with media engines are 2"),
        ([LEFT, SMALL[1]], "memory slice 1 are 2"),
        ([instance("2g.12gb"), SMALL[1], SMALL[2]], "what is there has no starts that go together"),
        ([instance("huge", 0)], "which a30-24gb does not have"),
        ([instance("2g.12gb", 0, "chat", uuid="GPU-1")], "'GPU-1' is there 2 times"),
        ([LEFT], "service 'chat' is supplied 60 of 110 requests/s"),
    ):
        seen = "unknown" if None in [each["start"] for each in held] else "observed"
        of = changed(AT_START, *DEPLOYED, "start_source", to=seen)
        (*_, fault) = faults = check_deployment(changed(of, *DEPLOYED, "instances", to=held))
        assert any(words in each for each in faults), (fault, words)
    old = changed(AT_START, "nodes", 0, "driver", to="470.1")
    assert check_deployment(old) == []
    (fault, *_) = check_deployment(changed(old, *DEPLOYED, "instances", to=[ME]))
    assert fault == "n/0: 2g.12gb+me@0 needs the driver R525, and the node has R470"


@pytest.mark.parametrize("driver", ["x", "", "R", "５５０", "123456789"])
def test_a_driver_without_a_version_is_refused_by_both(driver: str) -> None:
    of = deployment_to_json(Deployment((FleetNode("n", driver="550.54"),)))
    assert check_deployment(of) == []
    assert is_valid(of)
    wrong = changed(of, "nodes", 0, "driver", to=driver)
    assert any("which is no version of a driver" in each for each in check_deployment(wrong))
    with pytest.raises(FileError, match="node 'n'.*expected its version, as nvidia-smi prints it"):
        deployment_from_json(wrong)
    with pytest.raises(InvalidProblem, match="expected its version"):
        FleetNode("n", driver=driver)


@pytest.mark.parametrize(
    ("key", "value"), [("uuid", "MIG-7"), ("gpu_instance", 7), ("is_guessed", True)]
)
def test_what_goes_is_called_as_what_is_there(key: str, value: object) -> None:
    """Both checkers compare what no rule of placement speaks of."""
    for path in (("actions", 1, "removes", 0), ("start", "nodes", 0, "gpus", 0, "instances", 0)):
        of = changed(LENT, *path, key, to=value)
        assert any("by marks" in each for each in check_transition(read(of)))
        assert {each.kind for each in in_package(of)} == {"action"}


@pytest.mark.parametrize(
    "change",
    [
        {"memory_slices": 10**8}, {"schema": 2}, {"geometry": "x"}, {"compute_slices": 17},
        {"max": 99}, {"compute": 0}, {"starts": []}, {"starts": [9]},
    ],
    ids=str,
)  # fmt: skip
def test_a_device_of_ones_own_has_bounds(change: Document) -> None:
    of = deployment_to_json(Deployment((FleetNode("n"),)))
    device = {
        **DevicePart.from_object(get_gpu("a30-24gb")).to_json(),
        "key": "mine",
        "aliases": [],
        "pci_device_ids": [],
    }
    assert check_deployment(changed(of, "devices", to=[device])) == []
    deployment_from_json(changed(of, "devices", to=[device]))
    if not change.keys() <= device.keys():
        change = {"profiles": [{**device["profiles"][0], **change}]}
    bad = changed(of, "devices", to=[{**device, **change}])
    assert check_deployment(bad)
    with pytest.raises(FileError):
        deployment_from_json(bad)


def described(**changes: Any) -> Document:
    """A card of the catalogue, described by a document of the user's."""
    device = DevicePart.from_object(get_gpu("a30-24gb")).to_json()
    return deployment_to_json(Deployment(())) | {"devices": [{**device, **changes}]}


def profile_as(**changes: Any) -> Document:
    first, *others = DevicePart.from_object(get_gpu("a30-24gb")).to_json()["profiles"]
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
    serving = build_problem([Service("chat", "chat", 40, 100)], [point], "a30-24gb", rule="half")
    plan = plan_to_json(Plan(serving, solve(serving.problem)))
    assert is_valid(json.loads(lay_out(plan)))
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
    cover = changed(LENT, "actions", 0, "adds", 0, "point", to="chat 2g.12gb")
    cover = changed(cover, "actions", 4, "removes", 0, "point", to="chat 2g.12gb")
    assert any(each.kind == "point" for each in in_package(cover))
    assert any("its point was measured on" in each for each in check_transition(read(cover)))
    old = transition(
        side({}, []), side({}, []), {},
        [action("create", 0, [], [ME], temporary=True),
         action("delete", 0, [ME], [], 0, temporary=True)],
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
    of = problem([{"blocks": {"4g.24gb": 1}}], {"chat": (115, {"4g.24gb": 120})})
    proved = solution(
        of, [group({"4g.24gb": 1}, [["4g.24gb", "chat", 1]])], {"prices": {"4g.24gb": 1}}
    )
    plan = {"format": "cms-plan", "schema": 2, "problem": of, "solution": proved}
    planned = changed(AT_START, "plan", to=plan)
    faults, words = examine_deployment(planned)
    assert faults == []
    assert "its plan: the schedule is valid" in words
    weaker = json.loads(json.dumps(planned).replace("120", "112"))
    assert "service 'chat' is supplied 112 requests/s of the 115 that the plan promises" in (
        check_deployment(weaker)
    )
    (fault, *_) = check_deployment(changed(planned, "plan", "solution", "cost", to=2))
    assert fault.startswith("its plan: ")
    (fault,) = check_deployment(changed(planned, "plan", "schema", to=1))
    assert "the schema version is 1" in fault


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


CURVE = {
    "late_share": "1/100", "evidence": "measured",
    "rates_rps": [100, 200], "latencies_ms": [30, 35],
}  # fmt: skip
GRANTED = Fraction(3468, 5)
MEASURED = changed(certified(8, 200, evidence="measured"), "points", 0, "load_curve", to=CURVE)
SIMULATED = CURVE | {"evidence": "simulated", "batches_sha256": "a" * 64}
# of a simulated one, too, nothing is known between its rates
CLOSE = SIMULATED | {"rates_rps": [100, 200, 300, 400], "latencies_ms": [10, 20, 50, 90]}


def by(curve: Document, supply: int | None = None) -> Document:
    """The point of `MEASURED` with another curve, or what is simulated supplies so much by it."""
    of = MEASURED if supply is None else certified(8, supply, evidence="simulated")
    return changed(of, "points", 0, "load_curve", to=curve)


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (certified(8, str(GRANTED)), ""),
        *(
            (certified(8, n), f"supplies {n} requests/s: the rule grants {GRANTED}")
            for n in (650, 780)
        ),
        (certified(8, 1, certified=True, queue="instance"), "1 requests/s: the rule grants 0"),
        (
            changed(certified(8, str(GRANTED)), "points", 0, "evidence", to=None),
            "the evidence of p",
        ),
        (MEASURED, ""),
        *((changed(MEASURED, "points", 0, "supply_rps", to=n), "grants 200") for n in (150, 201)),
        (by({**CURVE, "batches_sha256": "a" * 64}), "which no simulated batches have"),
        (by({**CURVE, "batches_sha256": ""}), ""),
        (by({**SIMULATED, "batches_sha256": "A" * 64}), "which no simulated batches have"),
        (by({**SIMULATED, "batches_sha256": None}), "not a text"),
        (by({**SIMULATED, "late_share": 1}), "not between 0 and 1"),
        (by(CLOSE, 200), ""),
        (by(CLOSE, 250), "the rule grants"),
    ],
)
def test_supplies_under_load_are_proved_again(of: Document, words: str) -> None:
    found = check_deployment(of)
    assert [words in each for each in found] == ([True] if words else [])


def test_one_machines_curve_holds_for_all_services_whose_limit_it_speaks_of() -> None:
    second = {**MEASURED["services"][0], "name": "other"}
    bare = {**MEASURED["points"][0], "name": "bare", "service": "other", "load_curve": None}
    twice = changed(MEASURED, "services", to=[*MEASURED["services"], second])
    for counted, evidence in ((200, "measured"), (str(GRANTED), "table")):
        more = {**bare, "supply_rps": counted, "evidence": evidence}
        found = check_deployment(changed(twice, "points", to=[*MEASURED["points"], more]))
        assert any("'bare' has no load curve" in each for each in found), found


def test_a_table_that_says_too_much_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    better = tables.Entry(1, 8, Fraction(7, 2), Fraction(1, 100), Fraction(99, 100))
    monkeypatch.setattr("proofs_checks.checker.supplies.looked_up", lambda *asked: better)
    (fault,) = check_deployment(certified(8, 792))
    assert "supplies 792 requests/s: at load 99/100 the late share is not at most 1/100" in fault


def test_several_processes_on_one_queue_count_by_the_table_of_what_was_simulated() -> None:
    several = certified(8, "628", queue="instance", processes=2, throughput_rps=800)
    supply = sustainable_load(2, 8, Fraction(7, 4), Fraction(1, 100), queue="instance") * 800
    assert supply == 0  # 20 ms a batch are more than half of the limit
    (fault,) = check_deployment(several)
    assert "supplies 628 requests/s: the rule grants 0" in fault
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
