"""One odd GPU, in real-looking texts, is shown and fixed; the rest of the fleet is planned on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cms.fleet.deployment import read_deployment
from proofs_checks.checker import check_deployment
from tests.cli.shared import Cms, flat
from tests.fleet.cluster import ELSEWHERE, claim, claiming, device, node, slices
from tests.fleet.smi import card, lgi, log

A100, ANY = "NVIDIA A100-SXM4-80GB", "--max-age none"
LGI = lgi("0 3g.40gb 2 4:4")
OVERVIEW = """\
Sat Nov 28 10:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                   On |
| ERR!  ERR! ERR!             N/A /  N/A  |       0MiB /  81920MiB |     N/A      Default |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
|  0    2   0   0  |              37MiB / 40192MiB  | 42      0 |  3   0    2    0    0 |
+-----------------------------------------------------------------------------------------+

"""


def gpus(*odd: str, **more: Any) -> str:
    """A log: GPU 0 with MIG on, and beside it what is odd."""
    return log(card("GPU-a0"), *odd, **more)


def observe(*texts: str, to: str = "now.json") -> str:
    """The command that observes node-a from these texts."""
    for number, text in enumerate(texts):
        Path(f"t{number}").write_bytes(text.encode())
    return f"observe {' '.join(f'node-a=t{n}' for n in range(len(texts)))} -o {to}"


LIST = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a0)\n  MIG 3g.40gb     Device  0: (UUID: MIG-b)\n"
NEW = "|   0  MIG {}      47        2          4:4     |\n"
WELL, LOST = card("GPU-a1", "Disabled"), "GPU 0000:3B:00.0: GPU is lost. Reboot the system"
ODD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no MIG": ((gpus(card("GPU-a1", "N/A", "Tesla T4")), LGI), 1, "Tesla T4"),
    "a virtual GPU": ((gpus(card("GPU-a1", "N/A", "GRID A100D-3-40C")), LGI), 1, "A100D-3-40C"),
    "a reset": ((gpus(card("GPU-a1", "GPU requires reset")), LGI), 1, "requires reset"),
    "an error": ((gpus(card("GPU-a1", "Unknown Error")), LGI), 1, "Unknown Error"),
    "ERR!": ((gpus(card("GPU-a1", "ERR!", "ERR!")), LGI), 1, "ERR!"),
    "no UUID": ((gpus(card("N/A", "Disabled")), LGI), 1, "uuid"),
    "permissions": ((gpus(card("GPU-a1", "[Insufficient Permissions]")), LGI), 1, "Insufficient"),
    "all of it": ((gpus(card("Unknown Error", "N/A", "Unknown Error")), LGI), 1, "Unknown Error"),
    "another field": (
        (gpus(WELL.replace("</gpu>", "<power>GPU is lost</power></gpu>")), LGI), 1, "GPU is lost",
    ),
    "a UUID of -L": (
        (gpus(WELL), LGI, LIST + "GPU 1: NVIDIA A100-SXM4-80GB (UUID: Unknown Error)\n"), 1, "uuid",
    ),
    "a lost handle with a number": (
        (gpus(WELL), LGI,
         "Unable to determine the device handle for GPU1: 0000:D5:00.0: Unknown Error\n"),
        1, "Unknown Error",
    ),
    "a lost handle in a gap": (
        (gpus(card("GPU-a2", "Disabled"), attached=3), LGI,
         f"GPU 0: {A100} (UUID: GPU-a0)\nGPU 2: {A100} (UUID: GPU-a2)\n"
         f"Unable to determine the device handle for {LOST}\n"), 1, "GPU is lost",
    ),
    "+gfx": ((gpus(), NEW.format("1g.24gb+gfx")), 0, "1g.24gb+gfx"),
    "+me.all": ((gpus(), NEW.format("4g.96gb+me.all")), 0, "4g.96gb+me.all"),
    "another size": ((gpus(), LGI.replace("3g.40gb", "3g.39gb")), 0, "3g.39gb"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_gpu_is_fixed_and_all_commands_live_with_it(name: str, here: Path, cms: Cms) -> None:
    texts, index, why = ODD[name]
    spare = log(card("GPU-a3", "Disabled"), attached=4)
    listed = f"GPU 3: {A100} (UUID: GPU-a3)\n"
    said = cms(observe(*texts, spare, listed)).err
    assert f"node-a/{index}: fixed" in said
    assert why in said
    found = next(each for each in read_deployment("now.json").gpus() if each.index == index)
    assert found.mode == "fixed"
    assert {each.owner for each in found.instances} == {"unknown"}
    cms(f"plan plan.json --current now.json {ANY} -q -o target.json")
    assert next(c for c in read_deployment("target.json").gpus() if c.index == index) == found
    for path in ("now.json", "target.json"):
        cms(f"check {path}")
        assert check_deployment(json.loads(Path(path).read_text("utf-8"))) == []
    tools = "mig-parted,slurm"
    cms(f"export target.json --current now.json {ANY} --to {tools} -q -o out")
    parted = (here / "out" / "mig-parted" / "mig-parted.yaml").read_text("utf-8")
    entry = next(e for e in parted.split("- devices: ")[2:] if str(index) in e.split("\n")[0])
    kept = [each.profile for each in found.instances if each.profile != "whole"]
    assert ("mig-enabled: true" in entry) is bool(kept)
    assert all(profile in entry for profile in kept)
    for tool in ("mig-parted", "slurm"):  # it is in no count, and offered to no job
        text = (here / "out" / tool / "README.md").read_text("utf-8")
        owners = [line for line in text.splitlines() if "Owners:" in line]
        assert not any(f"node-a/{index} " in line for line in owners)
    cms(f"show now.json now.json {ANY} --exit-code")
    cms(f"apply target.json --current now.json {ANY} -q --dry-run")
    sources = [f"node-a=t{n}" for n in range(len(texts) + 2)]
    cms("apply now.json --check", sources, ANY)
    cms("show target.json -o page.html --no-curve")


def test_what_became_unfit_is_passed_over_only_where_nothing_is_meant(cms: Cms) -> None:
    whole = gpus(card("GPU-a1"))
    cms(observe(whole, LGI, to="meant.json"))
    for odd, code in ((1, 0), (0, 1)):
        text = whole.replace(card(f"GPU-a{odd}"), card(f"GPU-a{odd}", name="Unknown Error"))
        cms(observe(text, LGI))
        drift = cms(f"apply meant.json --check node-a=t0 node-a=t1 {ANY}", code=code)
        shown = cms(f"show now.json meant.json {ANY}", code=code)
    assert "node-a/0 has been found not fit" in drift.out
    assert "node-a/0 is to have 3g.40gb@4" in shown.err


def test_list_with_instances_says_that_mig_is_on(cms: Cms) -> None:
    assert "t0:2: MIG is on on node-a/0" in flat(cms(observe(LIST), code=1).err)
    cms(observe(LIST, "No MIG-enabled devices found.\n"), code=1)


def test_overview_windows_lines_and_warnings_of_the_tool_are_read_over(cms: Cms) -> None:
    note = "WARNING: infoROM is corrupted at gpu 0000:07:00.0\n"
    text = gpus(card("GPU-a1", pending="Disabled"))
    said = flat(cms(observe((OVERVIEW + LGI + text + note).replace("\n", "\r\n"))).err)
    first, second = read_deployment("now.json").gpus()
    assert ([each.place for each in first.instances], second.is_empty) == (["3g.40gb@4"], True)
    assert "infoROM is corrupted" in said
    assert "node-a/1: MIG is on and will be off after a reset" in said
    for text in (OVERVIEW, "No devices were found\n", LGI.rstrip().rpartition("\n")[0]):
        cms(observe(text), code=1)


# --- names of dynamic resource allocation ---------------------------------------------------------


def test_devices_of_claims_have_numbers_by_uuid_alone(tmp_path: Path, cms: Cms) -> None:
    """`gpu-1` is what nvidia-smi calls GPU 0, and the other way round."""
    name = "gpu-1-mig-3g40gb-9-4"
    held = device(name, profile="3g.40gb", parentUUID="GPU-a0", uuid="MIG-b")
    whole = device("gpu-0", uuid="GPU-a1")
    objects = [
        node("a", {}), slices(held, whole), ELSEWHERE, claim("c-1", name), claiming("p", "c-1"),
    ]  # fmt: skip
    listed: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": objects}
    (tmp_path / "k.json").write_text(json.dumps(listed), "utf-8")
    (tmp_path / "q").write_text(gpus(card("GPU-a1", "Disabled")), "utf-8")
    (tmp_path / "lgi").write_text(LGI, "utf-8")
    cms("observe k.json -q -o alone.json")
    cms("observe k.json a=q a=lgi -q -o both.json")
    cards = read_deployment("both.json").gpus()
    assert [(c.index, c.uuid, [i.place for i in c.instances]) for c in cards] == [
        (0, "GPU-a0", ["3g.40gb@4"]), (1, "GPU-a1", []),
    ]  # fmt: skip
    assert check_deployment(json.loads((tmp_path / "alone.json").read_text("utf-8"))) == []
    for tool in ("dra", "kubernetes", "mig-parted", "gpu-operator", "slurm"):
        write = f"--to {tool} {ANY} -q -o out-{tool} --force"
        said = cms(f"export alone.json {write}", code=int(tool not in ("dra", "kubernetes")))
        cms(f"export both.json {write}")
    assert "nvidia-smi -q -x" in said.err
    cms(f"apply both.json --check k.json {ANY}")
    cms(f"apply alone.json --check k.json a=q a=lgi {ANY}")
    assert "is the one with the UUID" in cms("observe k.json a=lgi --gpu a100-80gb", code=1).err


# --- other names ----------------------------------------------------------------------------------

OWN = """\
{schema: 1, version: 1, key: mine-48gb, aliases: [RTX X5000 Server], pci_device_ids: ["0x123410DE"],
 architecture: blackwell, compute_slices: 2, memory_slices: 2, mode_change_needs_reset: null,
 profiles: [{id: 14, name: 1g.24gb, family: 1g, compute: 1, memory: 1, starts: [0, 1], max: 2,
             sms: null, memory_mib: null, attributes: []}],
 sources: [{fields: [starts], evidence: capture, source: my card, driver: null, date: null}]}
"""


@pytest.mark.parametrize(
    "name", ["mine-48gb", "RTX X5000 Server", "NVIDIA RTX X5000 Server", "nvidia-rtx_x5000-server",
             "0x123410DE"],
)  # fmt: skip
def test_own_device_is_known_by_all_its_names(name: str, tmp_path: Path, cms: Cms) -> None:
    for path, text in {
        "own.yaml": OWN,
        "s.csv": "service,model,rate_rps,latency_limit_ms\nchat,bert,100,100\n",
        "p.csv": "model,device,profile,processes,batch,throughput_rps,latency_ms\n"
        f"bert,{name},1g.24gb,1,4,120,20\n",
        "nodes.csv": f"node,gpu,count\nn,{name},1\n",
        "gpus.xml": log(card("GPU-1", name=name), driver="580.95.05"),
        "lgi.txt": "|   0  MIG 1g.24gb          14        3          0:1     |\n",
        "cut.yaml": "version: v1\nmig-configs:\n  current:\n  - device-filter: ['0x123410DE']\n"
        "    devices: [0]\n    mig-enabled: true\n    mig-devices: {1g.24gb: 2}\n",
    }.items():
        (tmp_path / path).write_text(text, "utf-8")
    own, seen = "--gpu own.yaml", "n=gpus.xml n=lgi.txt"
    limit = ["--max-gpus", f"{name}=1"]
    cms(f"plan -s s.csv -p p.csv --rule parvagpu {own} -q -o plan.json", limit)
    cms(f"plan plan.json --nodes nodes.csv {own} -q -o t.json")
    assert check_deployment(json.loads((tmp_path / "t.json").read_text("utf-8"))) == []
    for more in (own, "--plan t.json"):
        cms(f"observe {seen} {more} -q -o now.json")
        assert [card.mode for card in read_deployment("now.json").gpus()] == ["mig"]
    cms(f"apply t.json --check {seen} {ANY}")
    cms(f"observe n=cut.yaml {own} -q")
    assert cms("gpus own.yaml").out.startswith("mine-48gb\n")
    said = cms(f"observe {seen}").err
    assert f"no device file is of the GPU '{name}'" in said
    assert "read_gpu" not in said


def test_each_driver_is_told_the_names_that_it_knows(cms: Cms) -> None:
    """Driver 510 calls the whole of an A100-80GB 7g.79gb, later ones 7g.80gb."""
    for driver, known, other in (
        ("510.47.03", "7g.79gb", "7g.80gb"), ("550.54.15", "7g.80gb", "7g.79gb"),
    ):  # fmt: skip
        cms(observe(gpus(driver=driver), lgi(f"0 {known} 0 0:8")))
        assert read_deployment("now.json").node("node-a").gpus[0].counts == {"7g.80gb": 1}
        tools = ("mig-parted", "gpu-operator", "slurm")
        cms(f"export now.json --to {','.join(tools)} {ANY} -q -o out")
        for tool in tools:
            files = [path for path in Path("out", tool).rglob("*") if path.is_file()]
            texts = "".join(path.read_text("utf-8") for path in files)
            assert known in texts
            assert other not in texts, tool
        parted = Path("out/mig-parted/mig-parted.yaml").read_text("utf-8")
        config = next(line for line in parted.splitlines() if "  cms-" in line)
        Path("cut").write_text(parted.replace(config, "  current:"), "utf-8")
        cms(f"apply now.json --check node-a=cut node-a=t0 {ANY}")
