"""What the stand-in for nvidia-smi lists and says, against published texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fleet.stand_ins.machines import StandInNode
from tests.fleet.stand_ins.placement import MODELS

# The expression that the documents give for reading the real tool's text.
INSTANCE = re.compile(r"^\|\s+(\d+)\s+MIG\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s*\|$")


def a100(folder: Path, **options: object) -> StandInNode:
    return StandInNode(folder / "node", ["a100-80gb"], **options)  # type: ignore[arg-type]


def test_listings_line_by_line(tmp_path: Path) -> None:
    node = a100(tmp_path, choice="guide")
    node.put(0, [("1g.10gb", 6), ("4g.40gb", 0)])
    first, second = (node.at(0, start).gi for start in (6, 0))
    assert node.smi("mig -lgi").text == (
        "+---------------------------------------------------------+\n"
        "| GPU instances:                                          |\n"
        "| GPU   Name               Profile  Instance   Placement  |\n"
        "|                            ID       ID       Start:Size |\n"
        "|=========================================================|\n"
        f"|   0  MIG 1g.10gb           19       {first:>2}          6:1     |\n"
        "+---------------------------------------------------------+\n"
        f"|   0  MIG 4g.40gb            5       {second:>2}          0:4     |\n"
        "+---------------------------------------------------------+\n"
    )
    assert node.smi("mig -i 0 -lci").text == (
        "+--------------------------------------------------------------------+\n"
        "| Compute instances:                                                 |\n"
        "| GPU     GPU       Name             Profile   Instance   Placement  |\n"
        "|       Instance                       ID        ID       Start:Size |\n"
        "|         ID                                                         |\n"
        "|====================================================================|\n"
        f"|   0     {first:>2}       MIG 1g.10gb          0         0          0:1     |\n"
        "+--------------------------------------------------------------------+\n"
        f"|   0     {second:>2}       MIG 4g.40gb          3         0          0:4     |\n"
        "+--------------------------------------------------------------------+\n"
    )


def test_older_tables_are_narrower_and_show_no_places_of_compute_instances(tmp_path: Path) -> None:
    node = a100(tmp_path, texts="old", driver="515.65.01")
    node.put(0, [("3g.40gb", 4)])
    gi = node.at(0, 4).gi
    gpu_instance = f"|   0  MIG 3g.40gb          9       {gi:>2}          4:4     |\n"
    assert gpu_instance in node.smi("mig -lgi").text
    compute = f"|   0     {gi:>2}       MIG 3g.40gb          2         0     |\n"
    assert compute in node.smi("mig -lci").text
    # The double-memory 1g of A100 came with R525.
    assert node.smi("mig -cgi 1g.20gb").code == 2


@pytest.mark.parametrize("key", sorted(set(MODELS) - {"l40s"}))
def test_the_documented_expression_reads_every_table(tmp_path: Path, key: str) -> None:
    for texts in ("new", "old"):
        node = StandInNode(tmp_path / texts / "node", [key, key], texts=texts)
        for one in MODELS[key].profiles:
            node.put(1, [(one.name, one.starts[-1])])
            lines = node.smi("mig -lgi").text.splitlines()
            assert len({len(line) for line in lines}) == 1
            (found,) = (m.groups() for m in map(INSTANCE.match, lines) if m)
            gi = node.at(1, one.starts[-1]).gi
            numbers = map(str, (one.number, gi, one.starts[-1], one.size))
            assert found == ("1", one.name, *numbers)
            node.reboot()


def test_devices_and_their_uuids(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a30-24gb", "h200-141gb"], mig=[True, False])
    node.put(0, [("2g.12gb", 0), ("1g.6gb", 3)])
    node.put(0, [("1g.6gb", 2)], hollow=True)
    lines = node.smi("-L").text.splitlines()
    assert lines[0] == f"GPU 0: NVIDIA A30 (UUID: {node.uuid(0)})"
    assert lines[-1] == f"GPU 1: NVIDIA H200 (UUID: {node.uuid(1)})"
    uuids = node.mig_uuids(0)
    devices = sorted((node.at(0, start).gi, name, uuids[start]) for name, start in node.layout(0))
    assert lines[1:-1] == [
        f"  MIG {name:<12}Device  {number}: (UUID: {uuid})"
        for number, (_, name, uuid) in enumerate(devices)
    ]


def test_query(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a100-40gb", "l40s"], driver="535.183.01")
    assert node.smi("--query-gpu=index,name,mig.mode.current,driver_version --format=csv").text == (
        "index, name, mig.mode.current, driver_version\n"
        "0, NVIDIA A100-SXM4-40GB, Enabled, 535.183.01\n1, NVIDIA L40S, [N/A], 535.183.01\n"
    )
    assert node.smi("-i 1 --query-gpu uuid --format csv,noheader").text == f"{node.uuid(1)}\n"
    unknown = 'Field "colour" is not a valid field to query.\n\n'
    assert node.smi("--query-gpu=colour --format=csv") == (2, unknown, "")


def test_nothing_to_list(tmp_path: Path) -> None:
    node = StandInNode(
        tmp_path / "node", ["a100-40gb", "a100-40gb", "l40s"], mig=[True, False, True]
    )
    none, off = "No GPU instances found: Not Found\n", "No MIG-enabled devices found.\n"
    for command, text in (
        ("-lgi", none), ("-dgi", none), ("-i 1 -lgi", off), ("-i 2 -lgi", off),
        ("-i 7 -lgi", "No devices were found\n"),
    ):  # fmt: skip
        assert node.smi(f"mig {command}") == (6, text, "")
    node.put(0, [("7g.40gb", 0)], hollow=True)
    for command in ("-lci", "-dci"):
        assert node.smi(f"mig {command}") == (6, "No compute instances found: Not Found\n", "")


@pytest.mark.parametrize(
    "command",
    ["-q", "mig", "mig -lgi -lci", "mig -lgi -gi 1", "mig -cgi", "mig -dgi -C", "mig --list",
     "mig -i 0 -cgi 9 -cgi 9", "-mig", "-mig 2", "-L -r", "--query-gpu=name", "all mig -lgi"],
)  # fmt: skip
def test_wrong_command_lines(tmp_path: Path, command: str) -> None:
    node = a100(tmp_path)
    ran = node.smi(command)
    assert ran.code == 2
    assert "Please run 'nvidia-smi" in ran.text
    assert node.instances(0) == ()
