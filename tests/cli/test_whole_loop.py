"""A node that is not there is observed, planned for, cut by its script, and observed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms.cli.app import run
from tests.fleet.stand_ins.machines import StandInNode


def listings(node: StandInNode, folder: Path) -> list[str]:
    """What the node's ``nvidia-smi`` prints, as arguments."""
    found = []
    for name, command in (("lgi", "mig -lgi"), ("gpus", "-q -x"), ("l", "-L")):
        (folder / name).write_text(node.smi(command).text, "utf-8")
        found.append(f"node-a={folder / name}")
    return found


def test_from_a_plan_to_a_running_node_and_back_to_the_plan(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = StandInNode(tmp_path / "node", ["a100-80gb", "a100-80gb"], seed=3, texts="old")
    node.put(0, [("1g.10gb", 2)])
    node.put(1, [("1g.10gb", 0)], hollow=True)
    now, target, out = tmp_path / "now.json", tmp_path / "target.json", tmp_path / "out"
    assert run(["observe", *listings(node, tmp_path), "-o", str(now)]) == 0
    said = capsys.readouterr().out
    assert "unknown" in said
    assert "! hollow" in said
    assert run(["place", str(plan), "--now", str(now), "-o", str(target), "-q"]) == 0
    assert run(["diff", str(now), str(target), "--fail-on-difference", "-q"]) == 1
    assert run(["verify", *listings(node, tmp_path), "--against", str(target), "-q"]) == 1
    tools = ["--to", "nvidia-smi", "--now", str(now), "-o", str(out), "-q"]
    assert run(["export", str(target), *tools]) == 0
    capsys.readouterr()
    ran = node.sh(str(out / "nvidia-smi" / "nodes" / "node-a.sh"))
    assert ran.code == 0, ran
    assert ("1g.10gb", 2) in node.layout(0), "it is another's"
    assert ("4g.40gb", 0) in node.layout(1)
    after = listings(node, tmp_path)
    assert run(["verify", *after, "--against", str(out)]) == 0
    assert "all there: 2 GPUs" in capsys.readouterr().out
    assert run(["observe", *after, "--plan", str(target), "-o", str(now), "-q"]) == 0
    assert run(["diff", str(now), str(target), "--fail-on-difference"]) == 0
    assert run(["place", str(plan), "--now", str(now)]) == 0
    assert "2 of 2 running instances stay (the most possible, checked)" in capsys.readouterr().out
