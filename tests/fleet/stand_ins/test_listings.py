"""What the stand-in for nvidia-smi lists and says, against published texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fleet.stand_ins.machines import StandInNode
from tests.fleet.stand_ins.placement import MODELS

# The expressions that the documents give for reading the real tool's texts.
PLACEMENTS = re.compile(r"^GPU\s+(\d+)\s+Profile ID\s+(\d+)\s+Placements?\s*:\s*\{([\d,]+)\}:(\d+)")
PROFILE = re.compile(
    r"^\|\s+(\d+)\s+MIG\s+(\S+)\s+(\d+)\s+(\d+)/(\d+)\s+([\d.]+)\s+(Yes|No)"
    r"\s+(\d+)\s+(\d+)\s+(\d+)\s*\|$"
)
ENGINES = re.compile(r"^\|\s+(\d+)\s+(\d+)\s+(\d+)\s*\|$")
INSTANCE = re.compile(r"^\|\s+(\d+)\s+MIG\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s*\|$")


def a100(folder: Path, **options: object) -> StandInNode:
    return StandInNode(folder / "node", ["a100-80gb"], **options)  # type: ignore[arg-type]


def test_listings_line_by_line(tmp_path: Path) -> None:
    node = a100(tmp_path, choice="guide")
    node.put(0, [("1g.10gb", 6), ("2g.20gb", 4), ("4g.40gb", 0)])
    first, second, third = (node.at(0, start).gi for start in (6, 4, 0))
    assert node.smi("mig -lgi").text == (
        "+---------------------------------------------------------+\n"
        "| GPU instances:                                          |\n"
        "| GPU   Name               Profile  Instance   Placement  |\n"
        "|                            ID       ID       Start:Size |\n"
        "|=========================================================|\n"
        f"|   0  MIG 1g.10gb           19       {first:>2}          6:1     |\n"
        "+---------------------------------------------------------+\n"
        f"|   0  MIG 2g.20gb           14       {second:>2}          4:2     |\n"
        "+---------------------------------------------------------+\n"
        f"|   0  MIG 4g.40gb            5       {third:>2}          0:4     |\n"
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
        f"|   0     {second:>2}       MIG 2g.20gb          1         0          0:2     |\n"
        "+--------------------------------------------------------------------+\n"
        f"|   0     {third:>2}       MIG 4g.40gb          3         0          0:4     |\n"
        "+--------------------------------------------------------------------+\n"
    )


def test_older_tables_are_narrower_and_show_no_places_of_compute_instances(tmp_path: Path) -> None:
    node = a100(tmp_path, texts="old", driver="515.65.01", names={"7g.80gb": "7g.79gb"})
    node.put(0, [("3g.40gb", 4)])
    gi = node.at(0, 4).gi
    assert f"|   0  MIG 3g.40gb          9       {gi:>2}          4:4     |\n" in (
        node.smi("mig -lgi").text
    )
    assert f"|   0     {gi:>2}       MIG 3g.40gb          2         0     |\n" in (
        node.smi("mig -lci").text
    )
    profiles = node.smi("mig -lgip").text
    assert "|   0  MIG 2g.20gb       14     2/3        19.50      No     28     1     0   |\n" in (
        profiles
    )
    assert "7g.79gb" in profiles
    # The double-memory 1g of A100 came with R525.
    assert "1g.20gb" not in profiles


def test_possible_placements(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["h100-80gb"])
    assert node.smi("mig -lgipp").text == (
        "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1\n"
        "GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1\n"
        "GPU  0 Profile ID 15 Placements: {0,2,4,6}:2\n"
        "GPU  0 Profile ID 14 Placements: {0,2,4}:2\n"
        "GPU  0 Profile ID  9 Placements: {0,4}:4\n"
        "GPU  0 Profile ID  5 Placement : {0}:4\n"
        "GPU  0 Profile ID  0 Placement : {0}:8\n"
    )


@pytest.mark.parametrize(
    ("key", "texts"),
    # The narrow tables are older than Blackwell.
    [(key, "new") for key in sorted(set(MODELS) - {"l40s"})]
    + [(key, "old") for key in ("a100-40gb", "a30-24gb", "h100-94gb")],
)
def test_documented_expressions_read_every_table(tmp_path: Path, key: str, texts: str) -> None:
    node = StandInNode(tmp_path / "node", [key, key], texts=texts)
    profiles = MODELS[key].profiles
    placements = [PLACEMENTS.match(line) for line in node.smi("mig -i 1 -lgipp").text.splitlines()]
    assert [(int(m[2]), m[3], int(m[4])) for m in placements if m] == [
        (one.number, ",".join(map(str, one.starts)), one.size) for one in profiles
    ]
    lines = node.smi("mig -i 1 -lgip").text.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [m[2] for m in map(PROFILE.match, lines) if m] == [one.name for one in profiles]
    assert len([line for line in lines if ENGINES.match(line)]) == len(profiles)
    node.put(1, [(profiles[0].name, profiles[0].starts[1])])
    found = [m for m in map(INSTANCE.match, node.smi("mig -lgi").text.splitlines()) if m]
    held = node.at(1, profiles[0].starts[1])
    assert [m.groups() for m in found] == [
        ("1", held.profile, str(profiles[0].number), str(held.gi), str(held.start),
         str(profiles[0].size))
    ]  # fmt: skip


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
    fields = "index,name,mig.mode.current,driver_version,memory.total"
    assert node.smi(f"--query-gpu={fields} --format=csv").text == (
        "index, name, mig.mode.current, driver_version, memory.total [MiB]\n"
        "0, NVIDIA A100-SXM4-40GB, Enabled, 535.183.01, 40960 MiB\n"
        "1, NVIDIA L40S, [N/A], 535.183.01, 46068 MiB\n"
    )
    bare = node.smi("-i 1 --query-gpu uuid,memory.total --format csv,noheader,nounits")
    assert bare.text == f"{node.uuid(1)}, 46068\n"
    assert node.smi("--query-gpu=colour --format=csv") == (
        2,
        'Field "colour" is not a valid field to query.\n\n',
        "",
    )
    pid = node.client(0, name="./BlackScholes")
    node.client(0, hidden=True)
    apps = node.smi("--query-compute-apps=pid,process_name,gpu_uuid --format=csv,noheader")
    assert apps.text == f"{pid}, ./BlackScholes, {node.uuid(0)}\n"


def test_nothing_to_list(tmp_path: Path) -> None:
    node = StandInNode(
        tmp_path / "node", ["a100-40gb", "a100-40gb", "l40s"], mig=[True, False, True]
    )
    assert node.smi("mig -lgi") == (6, "No GPU instances found: Not Found\n", "")
    assert node.smi("mig -i 1 -lgi") == (6, "No MIG-enabled devices found.\n", "")
    assert node.smi("mig -i 2 -lgip") == (6, "No MIG-enabled devices found.\n", "")
    assert node.smi("mig -i 7 -lgi") == (6, "No devices were found\n", "")
    assert node.smi("mig -dgi") == (6, "No GPU instances found: Not Found\n", "")
    node.put(0, [("7g.40gb", 0)], hollow=True)
    assert node.smi("mig -lci") == (6, "No compute instances found: Not Found\n", "")
    assert node.smi("mig -dci") == (6, "No compute instances found: Not Found\n", "")


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


def test_help(tmp_path: Path) -> None:
    node = a100(tmp_path)
    assert "mig " in node.smi("-h").text
    assert "[-cgi | --create-gpu-instance]" in node.smi("mig --help").text
