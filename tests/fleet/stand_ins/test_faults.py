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


def test_a_destruction_can_be_refused_and_of_one_gpu_alone(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a100-80gb"] * 2)
    for command, hollow in (("dci", False), ("dgi", True)):
        for gpu in (0, 1):
            node.put(gpu, [("7g.80gb", 0)], hollow=hollow)
        node.fault(command, "in_use", times=2, gpu=1)
        said = [node.smi(f"mig -i {gpu} -{command}").code for gpu in (0, 1, 1, 1)]
        assert said == [0, 19, 19, 0]
        node.reboot()


@pytest.mark.parametrize(
    ("command", "line", "hollow"),
    [("cgi", "mig -cgi 0 -C", None), ("cci", "mig -cci", True), ("dci", "mig -dci", False),
     ("dgi", "mig -dgi", True), ("mig", "-mig 0", None), ("reset", "-r", False)],
)  # fmt: skip
def test_success_without_effect(
    tmp_path: Path, command: str, line: str, hollow: bool | None
) -> None:
    node = StandInNode(tmp_path / "node", ["h100-80gb"])
    if hollow is not None:
        node.put(0, [("4g.40gb", 0)], hollow=hollow)
    before = node.mode(0), node.instances(0)
    node.fault(command, "no_effect")
    ran = node.smi(line)
    assert ran.code == 0
    assert "Success" in ran.text or "All done." in ran.text
    assert (node.mode(0), node.instances(0)) == before


def test_success_without_effect_is_said_of_mig_parted_too(tmp_path: Path) -> None:
    node = a100(tmp_path)
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
