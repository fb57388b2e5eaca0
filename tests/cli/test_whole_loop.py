"""A node that is not there is observed, planned for, cut by its script, and observed again."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shared import Cms
from tests.fleet.stand_ins.machines import StandInNode


def listings(node: StandInNode) -> str:
    """What the node's ``nvidia-smi`` prints, as arguments."""
    for name, command in (("lgi", "mig -lgi"), ("gpus", "-q -x"), ("l", "-L")):
        Path(name).write_text(node.smi(command).text, "utf-8")
    return "node-a=lgi node-a=gpus node-a=l"


def test_from_a_plan_to_a_running_node_and_back_to_the_plan(here: Path, cms: Cms) -> None:
    node = StandInNode(here / "node", ["a100-80gb", "a100-80gb"], seed=3, texts="old")
    node.put(0, [("1g.10gb", 2)])
    node.put(1, [("1g.10gb", 0)], hollow=True)
    said = cms("observe", listings(node), "-o now.json").out
    assert "unknown" in said
    assert "! hollow" in said
    cms("plan plan.json --current now.json -o target.json -q")
    cms("show now.json target.json --exit-code -q", code=1)
    cms("apply target.json -q --check", listings(node), code=1)
    cms("export target.json --to nvidia-smi --current now.json -o out -q")
    ran = node.sh(str(here / "out" / "nvidia-smi" / "nodes" / "node-a.sh"))
    assert ran.code == 0, ran
    assert ("1g.10gb", 2) in node.layout(0), "it is another's"
    assert ("4g.40gb", 0) in node.layout(1)
    assert "all there: 2 GPUs" in cms("apply out --check", listings(node)).out
    cms("observe", listings(node), "--plan target.json -o now.json -q")
    cms("show now.json target.json --exit-code")
    said = cms("plan plan.json --current now.json").out
    assert "2 of 2 running instances stay (the most possible, checked)" in said
