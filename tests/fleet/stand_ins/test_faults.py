"""What can go wrong with a stand-in on demand: refusals, half a creation, late news, death."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.stand_ins.machines import StandInNode


def a100(folder: Path) -> StandInNode:
    return StandInNode(folder / "node", ["a100-80gb"])


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [("insufficient", 23, "Insufficient Resources"), ("in_use", 19, "In use by another client"),
     ("unknown", 255, "Unknown Error")],
)  # fmt: skip
def test_a_refusal_comes_at_its_operation_and_once(
    tmp_path: Path, kind: str, code: int, words: str
) -> None:
    node = a100(tmp_path)
    node.fault("cgi", kind, at=2)
    ran = node.smi("mig -cgi 19,14,19 -C")
    assert ran.code == code
    assert ran.text.endswith(f"Failed to create GPU instances: {words}\n")
    assert node.layout(0) == (("1g.10gb", 0),)
    assert node.pending_faults() == 0
    assert node.smi("mig -cgi 14,19 -C").code == 0


@pytest.mark.parametrize("command", ["dci", "dgi"])
def test_a_destruction_can_be_refused(tmp_path: Path, command: str) -> None:
    node = a100(tmp_path)
    node.put(0, [("7g.80gb", 0)], hollow=command == "dgi")
    node.fault(command, "in_use", times=2)
    assert [node.smi(f"mig -{command}").code for _ in range(3)] == [19, 19, 0]


def test_a_fault_of_one_gpu_leaves_the_others_alone(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a30-24gb"] * 2)
    node.fault("cgi", "insufficient", gpu=1)
    assert node.smi("mig -i 0 -cgi 0 -C").code == 0
    assert node.smi("mig -i 1 -cgi 0 -C").code == 23


@pytest.mark.parametrize("command", ["cgi", "cci", "dci", "dgi", "mig", "reset"])
def test_success_without_effect(tmp_path: Path, command: str) -> None:
    node = StandInNode(tmp_path / "node", ["h100-80gb"])
    node.put(0, [("4g.40gb", 0)])
    node.put(0, [("3g.40gb", 4)], hollow=True)
    if command == "mig":
        node.reboot()
    before = node.mode(0), node.instances(0)
    node.fault(command, "no_effect")
    lines = {"cgi": "mig -cgi 0", "mig": "-mig 0", "reset": "-r"}
    gi = node.at(0, 4 if command in ("cci", "dgi") else 0).gi if before[1] else 0
    if command == "cgi":
        node.smi("mig -i 0 -dci")
        for held in node.instances(0):
            node.smi(f"mig -gi {held.gi} -dgi")
        before = node.mode(0), node.instances(0)
    ran = node.smi(lines.get(command, f"mig -gi {gi} -{command}"))
    assert ran.code == 0
    assert "Success" in ran.text or "All done." in ran.text
    assert (node.mode(0), node.instances(0)) == before


def test_success_without_effect_is_said_to_the_end(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.fault("cgi", "no_effect")
    ran = node.smi("mig -cgi 9:4 -C")
    assert (ran.code, ran.text.count("Successfully created")) == (0, 2)
    assert node.instances(0) == ()
    node.fault("cgi", "no_effect")
    text = "version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: "
    assert node.mig_parted("apply -f -", f'{text}{{"7g.80gb": 1}}}}]}}').code == 0
    assert node.instances(0) == ()


def test_half_a_creation_leaves_a_hollow_instance(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.fault("cgi", "half", at=2)
    ran = node.smi("mig -cgi 3g.40gb:4,2g.20gb:0,1g.10gb:2 -C")
    assert ran.code == 255
    assert ran.text.endswith("Failed to create compute instances: Unknown Error\n")
    assert node.at(0, 0).hollow
    assert node.layout(0) == (("3g.40gb", 4),)
    assert "2g.20gb" in node.smi("mig -lgi").text
    assert "2g.20gb" not in node.smi("mig -lci").text
    assert "2g.20gb" not in node.smi("-L").text
    assert node.smi(f"mig -gi {node.at(0, 0).gi} -dgi").code == 0


def test_a_delayed_listing_shows_what_was_before(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.put(0, [("4g.40gb", 0)])
    node.fault("cgi", "delayed", listings=3)
    assert node.smi("mig -cgi 3g.40gb:4 -C").code == 0
    late = [node.smi(command).text for command in ("mig -lgi", "mig -lci", "-L", "mig -lgi")]
    assert ["3g.40gb" in text for text in late] == [False, False, False, True]
    assert node.layout(0) == (("4g.40gb", 0), ("3g.40gb", 4))


def test_killed_before_and_after(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.fault("cgi", "killed_before")
    node.fault("cci", "killed_before")
    node.fault("dci", "killed_after")
    assert node.smi("mig -cgi 9:0 -C").code == 137
    assert node.instances(0) == ()
    assert node.smi("mig -cgi 9:0 -C").code == 137
    assert node.at(0, 0).hollow
    assert node.smi("mig -cci").code == 0
    assert node.smi("mig -dci").code == 137
    assert node.at(0, 0).hollow
    node.fault("list", "killed_before")
    assert [node.smi("mig -lgi").code for _ in range(2)] == [137, 0]


def test_a_listing_can_fail(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.fault("list", "unknown")
    assert node.smi("mig -lgi") == (255, "Failed to display GPU instances: Unknown Error\n", "")
    node.fault("list", "unknown", at=2)
    node.clear_faults()
    assert [node.smi("mig -lgi").code for _ in range(2)] == [6, 6]


def test_faults_and_options_that_do_not_exist(tmp_path: Path) -> None:
    node = a100(tmp_path)
    with pytest.raises(ValueError, match="no such fault"):
        node.fault("cgi", "thunder")
    with pytest.raises(ValueError, match="no such choice"):
        StandInNode(tmp_path / "other", [], choice="best")


@pytest.mark.parametrize(("kind", "done"), [("cut_before", False), ("cut_after", True)])
def test_a_cut_ends_the_script(tmp_path: Path, kind: str, done: bool) -> None:
    node = a100(tmp_path)
    node.fault("cgi", kind, at=2)
    ran = node.sh("for at in 4 5 6; do nvidia-smi mig -cgi 19:$at -C || true; done; echo end")
    assert ran.code == -9
    assert "end" not in ran.text.splitlines()
    assert [held.start for held in node.instances(0)] == [4, 5][: 1 + done]
    # Not in a script of the node's, it is the tool alone that ends.
    node.fault("cgi", kind)
    assert node.smi("mig -cgi 19:0").code == 137
