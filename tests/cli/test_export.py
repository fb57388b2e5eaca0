"""``cms export``: a deployment as the files of tools; folders; and fleets of any size."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cms.fleet import Service
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, read_deployment
from cms.fleet.deployment.export import TARGETS
from cms.fleet.serving import RULES
from tests.cli.shared import A100, Cms, work, written
from tests.fleet.plans import words_of
from tests.samples import so_many

EVERY = ",".join(TARGETS)


def test_deployment_is_written_for_every_tool_with_what_is_lost(here: Path, cms: Cms) -> None:
    said = cms(f"export target.json --to {EVERY} -o out --advertise").flat
    for name in TARGETS:
        assert (here / "out" / name / "README.md").is_file()
        assert f"{name}: " in said
    assert "not said in these files - Part of a GPU: one whose counts change is emptied" in said
    assert "node-a nvidia.com/mig-3g.40gb: 1, nvidia.com/mig-4g.40gb: 1" in said
    assert os.access(here / "out" / "gpu-operator" / "labels.sh", os.X_OK)
    assert read_deployment("out/target.json") == read_deployment("target.json")
    assert "all there: 3 GPUs as in" in cms("apply out/dra --check target.json").out


def test_folder_of_somebody_else_is_not_written_over(here: Path, cms: Cms) -> None:
    (here / "out").mkdir()
    (here / "out" / "notes.txt").write_text("mine", "utf-8")
    command = "export target.json -t slurm -o out -q"
    assert "this folder holds" in cms(command, code=1).error
    cms(command, "--force")
    assert not (here / "out" / "notes.txt").exists()


def test_exports_as_json_and_without_a_folder(here: Path, cms: Cms) -> None:
    before = sorted(here.iterdir())
    document = cms("export target.json -t mig-parted --advertise -o -").json
    assert "mig-parted.yaml" in document["targets"]["mig-parted"]["files"]
    assert document["advertised"][1] == {
        "node": "node-b", "strategy": "mixed", "resources": {},
    }  # fmt: skip
    assert "nothing is written without -o DIR" in cms("export target.json -t mig-parted").out
    assert sorted(here.iterdir()) == before


# --- sizes ----------------------------------------------------------------------------------------


def test_three_thousand_gpus_fit_on_some_screens(tmp_path: Path, cms: Cms) -> None:
    """In the short run a thousand of them, in as many ways."""
    size = so_many(125, 375)
    nodes = []
    for number in range(size):
        name = f"node-{number:03}"
        cards = tuple(
            FleetGpu(
                name, index, A100,
                instances=tuple(
                    Instance("1g.10gb", s, work("1g.10gb"))
                    for s in range(7)
                    if (number * 8 + index) % 97 >> s & 1
                ),
            )
            for index in range(8)
        )  # fmt: skip
        nodes.append(FleetNode(name, cards))
    many = Deployment(tuple(nodes), (Service("chat", "bert", 100, 100),), RULES["parvagpu"])
    written(many, tmp_path / "now.json")
    lines = cms("observe now.json --picture now.svg").out.splitlines()
    assert len(lines) < 90
    assert max(map(len, lines)) <= 100
    assert any(f"{8 * size:,} x a100-80gb, used in 97 ways" in line for line in lines)
    drawn = ElementTree.parse("now.svg").getroot()
    counts = re.findall(r"(\d+) ×", words_of((tmp_path / "now.svg").read_text("utf-8")))
    assert sum(map(int, counts)) == 8 * size
    assert float(drawn.get("height") or 0) < 5000
    empty = many.with_gpus({(c.node, c.index): c.with_instances(()) for c in many.gpus()})
    written(empty, tmp_path / "then.json")
    assert len(cms("show now.json then.json --picture now.svg").out.splitlines()) < 260


def test_no_node_at_all_is_an_answer(tmp_path: Path, cms: Cms) -> None:
    written(Deployment(()), tmp_path / "none.json")
    for command in (
        "observe none.json --picture none.svg",
        "show none.json none.json",
        "apply none.json --check none.json",
        "check none.json",
        f"export none.json -t {EVERY} --advertise",
    ):
        assert "0 GPUs" in cms(command).out, command
