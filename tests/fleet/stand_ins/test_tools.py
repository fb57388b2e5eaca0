"""The stand-ins for nvidia-smi and mig-parted: as strict as the tools, or no test says anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fleet.stand_ins.machines import Ran, StandInNode
from tests.fleet.stand_ins.placement import MODELS, layouts

HALVES = (("4g.40gb", 0), ("3g.40gb", 4))


def a100(folder: Path, **options: object) -> StandInNode:
    return StandInNode(folder / "node", ["a100-80gb"], **options)  # type: ignore[arg-type]


def test_stand_ins_import_nothing_of_the_package() -> None:
    rooms = re.compile(r"^\s*(?:from|import) (?:cms|algorithms|instances|bench)\b", re.MULTILINE)
    files = sorted(Path(__file__).parent.rglob("*.py"))
    assert len(files) > 10
    assert [file.name for file in files if rooms.search(file.read_text("utf-8"))] == []


def test_every_layout_is_created_and_every_other_start_refused(tmp_path: Path) -> None:
    model, base = MODELS["a30-24gb"], ["1g.6gb", "2g.12gb", "4g.24gb"]
    every = set(layouts(model, base))
    places = [(name, at) for name in base for at in model.by_name[name].starts]
    for number, layout in enumerate(sorted(every)):
        node = StandInNode(tmp_path / str(number), ["a30-24gb"])
        for name, start in sorted(layout, reverse=number % 2 == 0):
            assert node.smi(f"mig -cgi {name}:{start} -C").code == 0
        assert node.layout(0) == tuple(sorted(layout, key=lambda place: place[1]))
        for name, start in places:
            if tuple(sorted([*layout, (name, start)])) not in every:
                assert node.smi(f"mig -cgi {name}:{start}").code == 23
    for word in ("5g.50gb", "9:2", "9:x", "9:", "1g.5gb", ""):
        assert a100(tmp_path / f"-{word}").smi(["mig", "-cgi", word]).code == 2


def test_listings_have_the_published_widths_and_columns(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.put(0, [("1g.10gb", 6), ("4g.40gb", 0)])
    first, second = (node.at(0, start).gi for start in (6, 0))
    row = f"|   0  MIG 4g.40gb          9       {second:>2}          0:4     |\n"
    assert row in node.smi("mig -lgi").text
    row = f"|   0     {second:>2}       MIG 4g.40gb          3         0          0:4     |\n"
    assert row in node.smi("mig -i 0 -lci").text
    node.put(0, [("1g.10gb", 5)], hollow=True)
    assert node.smi("-L").text.splitlines() == [
        f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {node.cards[0].uuid})",
        *(
            f"  MIG {node.at(0, start).profile:<12}Device  {at}: (UUID: {node.at(0, start).uuid})"
            for at, start in enumerate((6, 0) if first < second else (0, 6))
        ),
    ]


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("mig -lgi -lci", 2, "Please run 'nvidia-smi"), ("mig -cgi", 2, "Please run 'nvidia-smi"),
        ("mig -dgi -C", 2, "Please run 'nvidia-smi"), ("-q", 2, "Please run 'nvidia-smi"),
        ("mig -lgip", 2, "Please run 'nvidia-smi"), ("mig -lgi", 6, "No GPU instances found"),
        ("mig -i 7 -lgi", 6, "No devices were found"), ("mig -i 1 -lgi", 6, "No MIG-enabled devi"),
        ("mig -i 0 -gi x -dgi", 2, "Invalid Argument"), ("-mig 2", 2, "Please run 'nvidia-smi"),
    ],
)  # fmt: skip
def test_wrong_command_lines_and_empty_listings_fail(
    tmp_path: Path, command: str, code: int, says: str
) -> None:
    node = StandInNode(tmp_path / "node", ["a100-80gb"] * 2, mig=[True, False])
    ran = node.smi(command)
    assert (ran.code, says in ran.text) == (code, True), ran


def test_a_gpu_instance_is_destroyed_after_its_client_and_compute_instance(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.put(0, HALVES)
    gi = node.at(0, 4).gi
    assert node.smi(f"mig -i 0 -gi {gi} -dgi").code == 19
    server = node.client(0, 4)
    assert node.smi(f"mig -i 0 -gi {gi} -dci").code == 19
    node.leave(server)
    node.remove(0, 4)
    assert node.layout(0) == HALVES[:1]
    # At another start the same id: only the listing tells which instance it is now.
    assert node.smi("mig -cgi 19:5 -C").code == 0
    assert node.at(0, 5).gi == gi


def test_mode_changes_at_once_from_hopper_on_and_on_ampere_by_a_reset(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["h100-80gb", "a100-80gb"], mig=False)
    for gpu, mode in ((0, "Enabled"), (1, "Disabled")):
        assert node.smi(f"-i {gpu} -mig 1").code == 0
        assert node.cards[gpu].mode == mode
    assert node.smi("mig -i 1 -cgi 0").text == "No MIG-enabled devices found.\n"
    pid = node.client(1)
    assert node.smi("-i 1 --gpu-reset").code == 255
    node.leave(pid)
    assert node.smi("-i 1 --gpu-reset").code == 0
    node.put(0, [("7g.80gb", 0)])
    assert (node.cards[1].mode, node.smi("-i 0 -mig 0").code) == ("Enabled", 19)
    node.reboot()
    assert (node.cards[0].mode, node.layout(0)) == ("Enabled", ())


# --- faults -------------------------------------------------------------------------------------


def test_faults_come_at_their_operation_and_leave_what_they_say(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.fault("cgi", "insufficient", at=2)
    assert node.smi("mig -cgi 19:0,19:1,19:2 -C").code == 23
    assert node.layout(0) == (("1g.10gb", 0),)
    node.fault("cgi", "half")
    assert node.smi("mig -cgi 19:1 -C").code == 255
    assert node.at(0, 1).hollow
    node.fault("cgi", "delayed", listings=2)
    assert node.smi("mig -cgi 3g.40gb:4 -C").code == 0
    late = [node.smi(command).text for command in ("mig -lgi", "-L", "mig -lgi")]
    assert ["3g.40gb" in text for text in late] == [False, False, True]
    for kind, starts in (("killed_before", [0, 1, 4]), ("killed_after", [0, 1, 2, 4])):
        node.fault("cgi", kind)
        assert node.smi("mig -cgi 19:2").code == 137
        assert [held.start for held in node.instances(0)] == starts
    node.fault("list", "unknown")
    assert [node.smi("mig -lgi").code for _ in range(2)] == [255, 0]


# --- mig-parted ---------------------------------------------------------------------------------


def entry(counts: str, devices: str = "all") -> str:
    """A file with one entry."""
    one = f"{{devices: {devices}, mig-enabled: true, mig-devices: {{{counts}}}}}"
    return f"version: v1\nmig-configs:\n  it:\n  - {one}\n"


def parted(node: StandInNode, word: str, counts: str, devices: str = "all") -> Ran:
    return node.mig_parted(f"{word} -f - -c it", entry(counts, devices))


@pytest.mark.parametrize("choice", ["lowest", "any"])
def test_mig_parted_repartitions_a_whole_gpu_unless_its_counts_match(
    tmp_path: Path, choice: str
) -> None:
    node = StandInNode(tmp_path / "node", ["h100-80gb"] * 2, choice=choice)
    node.put(0, HALVES)
    node.put(1, [("4g.40gb", 0)])
    node.client(0, 4)
    before, other = node.mig_uuids(0), node.mig_uuids(1)[0]
    counts = '"4g.40gb": 1, "3g.40gb": 1'
    assert parted(node, "assert", counts).code == 1
    assert parted(node, "apply", counts).code == parted(node, "assert", counts).code == 0
    assert (node.layouts(), node.mig_uuids(0)) == ((HALVES, HALVES), before)
    assert other not in node.mig_uuids(1).values()
    assert parted(node, "assert", counts, "[0]").code == 1, "it wants every GPU to be named"
    assert parted(node, "apply", '"7g.80gb": 1', "[0]").code == 1, "a client is in the way"
    anew = node.mig_uuids(1)
    assert parted(node, "apply", f'{counts}, "1g.10gb": 0', "[1]").code == 0
    assert node.mig_uuids(1) != anew, "a count of zero is never as wanted"
    assert parted(node, "apply", '"1g.18gb": 1', "[1]").code == 1
    assert node.instances(1) == ()


def test_mig_parted_resets_all_gpus_for_a_mode_and_counts_compute_instances(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a100-80gb"] * 2, mig=[True, False])
    node.put(0, HALVES)
    before, pid = node.mig_uuids(0), node.client(1)
    counts = '"4g.40gb": 1, "3g.40gb": 1'
    assert (parted(node, "apply", counts).code, node.cards[1].mode) == (1, "Disabled")
    node.leave(pid)
    assert parted(node, "apply", counts).code == 0
    assert node.layouts() == (HALVES, HALVES)
    assert node.mig_uuids(0) != before
    node.smi("mig -i 1 -dci")
    assert "devices:\n    - 1\n    mig-enabled: true\n    mig-devices: {}" in (
        node.mig_parted("export").text.replace("\n    -", "\n    -")
    )
    assert parted(node, "apply", counts).code == 1, "a hollow instance is in the way"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mig-configs: {}", "'version' is a required"), ("version: v2", "version: 'v1' was"),
        (entry("1g.5gb: 1") + "more: 1\n", "'more' was unexpected"),
        (entry("1g.5gb: 1", "0"), "devices"), (entry("1g5gb: 1"), "1g5gb"),
        (entry("1g.5gb: 1").replace("true", "false"), "mig-configs.it.0"),
        (entry("1g.5gb: 0"), "mig-configs.it.0"),
        (entry("1g.5gb: 1").replace("it:", "other:"), "selected mig-config not present: it"),
    ],
)  # fmt: skip
def test_mig_parted_refuses_what_its_file_may_not_hold(
    tmp_path: Path, text: str, reason: str
) -> None:
    ran = a100(tmp_path).mig_parted("assert -f - -c it", text)
    assert (ran.code, reason in ran.error) == (1, True), ran
