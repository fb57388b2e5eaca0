"""``cms check``: true documents pass, those that were tampered with do not."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cms.fleet.deployment import Instance
from tests.cli.fleets import fleet, written
from tests.cli.shared import TABLES, Cms

Change = Callable[[Any], object]
CHECK = "check problem.json solution.json"


def tampered(file: str, change: Change) -> None:
    document = json.loads(Path(file).read_text("utf-8"))
    change(document)
    Path(file).write_text(json.dumps(document), "utf-8")


def kinds(cms: Cms, file: str) -> list[str]:
    found = cms("check", file, "--json", code=1).json
    assert not found["valid"]
    return [fault["kind"] for fault in found["faults"]]


def test_true_solution_passes_the_check(here: Path, cms: Cms) -> None:
    assert cms(CHECK).out == "valid: 2 machines, lower bound 2: optimal, proof checked\n"


def test_plan_goes_through_a_pipe(here: Path, cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("", "--json", "-q"):
        out, err = cms("plan", TABLES, "-o -", extra)
        assert json.loads(out)["format"] == "cms-plan"
        assert err == ""
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode()), "utf-8"))
        assert cms("check -").out.startswith("valid: 1 GPU, ")


@pytest.mark.parametrize(
    "typed", ["problem solve problem.json", CHECK, "gpus", "problem algorithms"]
)
def test_document_for_a_pipe_is_printed_once(typed: str, here: Path, cms: Cms) -> None:
    assert isinstance(cms(typed, "-o -").json, dict)


def drop_a_block(document: dict[str, Any]) -> None:
    for group in document["schedule"]["groups"]:
        group["assignment"] = [entry for entry in group["assignment"] if entry[1] != "vgg"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (drop_a_block, "demand"),
        (lambda it: it["certificate"]["tree"].update(prices={"7g": "5/4"}), "certificate"),
        (lambda it: it["certificate"]["tree"].update(prices={}), "bound"),
    ],
)  # fmt: skip
def test_altered_solution_fails_the_check(change: Change, kind: str, here: Path, cms: Cms) -> None:
    tampered("solution.json", change)
    assert kind in kinds(cms, CHECK.removeprefix("check "))
    assert cms(CHECK, code=1).out.startswith("not valid: ")


def test_deployment_is_checked_with_the_plan_in_it(here: Path, cms: Cms) -> None:
    said = cms("check target.json").out
    assert said.startswith("valid: 3 GPUs on 2 nodes, 2 instances; its plan: 1 GPU, lower bound 1")
    tampered("target.json", lambda it: it["nodes"][0]["gpus"][0]["instances"].pop(0))
    assert kinds(cms, "target.json") == ["capacity", "count"]
    written(fleet([[Instance("3g.40gb", 0), Instance("4g.40gb", 0)]]), here / "bad.json")
    assert "3g.40gb@0 and 4g.40gb@0 on memory slice 0" in cms("check bad.json", code=1).out


def test_transition_that_was_tampered_with_is_found_out(here: Path, cms: Cms) -> None:
    found = cms("apply then.json --current now.json --dry-run -o -").out
    (here / "way.json").write_text(found, "utf-8")
    assert "all floors hold" in cms("check way.json").out
    tampered("way.json", lambda it: it["actions"][1].update(after=[]))
    assert "floor" in kinds(cms, "way.json")
