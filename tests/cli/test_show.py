"""``cms show``: every kind of file as a view and a page, and none that the check refuses."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench.row import Outcome, RunRow
from bench.task import Kind, Source, Task
from cms.files.documents import write_document
from cms.fleet.deployment import Instance
from cms.fleet.deployment.transition import write_transition
from cms.fleet.report.simulations import name_policy
from cms.fleet.simulation import ModelledInstance, ModelledService, simulate, write_simulation
from cms.fleet.simulation.colocation_loop.day import shared_day_to_json
from tests.cli.shared import Cms, fleet, work, written
from tests.fleet.plans import words_of
from tests.fleet.simulation.cases import made_up_day
from tests.fleet.transitions import pair

PAGE = "-o page.html"
#: What is typed for a document of each kind; the last file is the one that is altered.
FILES = {
    "plan": "plan.json",
    "deployment": "target.json",
    "transition": "transition.json",
    "simulation": "simulation.json",
    "sharing": "sharing.json share.json",
}


@pytest.fixture
def documents(here: Path) -> Path:
    """Documents of every kind; the simulation is of two services at a low load."""
    one = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 4)
    services = [
        ModelledService(name, Fraction(100), 60_000_000, Fraction(1, 100), (one,))
        for name in ("chat", "see")
    ]
    write_simulation(simulate(services, requests=20_000), here / "simulation.json")
    write_transition(pair(3), here / "transition.json")
    return here


def row(**found: Any) -> RunRow:
    source = Source(family="packing", arguments={"n": 5})
    task = Task(suite="proof", kind=Kind.SOLVE, source=source, method="auto", time_limit=10)
    how = {"outcome": Outcome.ANSWERED, "status": "optimal", "proof": "checked", "cost": 3,
           "lower_bound": 3, "gap": 0, "seconds": 0.5, "instance_sha256": "ab"}  # fmt: skip
    return RunRow.of(task, **(how | found))


# --- each kind ------------------------------------------------------------------------------------


def test_plan_is_rechecked_and_planned_again_at_other_rates(here: Path, cms: Cms) -> None:
    assert "1 GPU, lower bound 1: optimal, proof checked" in cms("show plan.json", PAGE).out
    text = (here / "page.html").read_text("utf-8")
    for words in (
        "every point is rechecked: 10 points proved optimal", "chat", "The proof prices every",
        "cms check plan.json", "cms-check plan.json",
    ):  # fmt: skip
        assert words in text
    found = cms("show plan.json --curve --json").json
    assert found["of"] == "cms-plan"
    curve = {each["rate"]: each for each in found["curve"]}
    assert len(curve) == 10
    assert curve[1] == {"rate": 1, "cost": 1, "lower_bound": 1, "status": "optimal"}
    assert all(each["cost"] == each["lower_bound"] for each in found["curve"])
    costs = [each["cost"] for each in found["curve"]]
    assert costs == sorted(costs)
    assert max(costs) > 1
    found = cms("show plan.json --json").json
    plan = json.loads((here / "plan.json").read_text("utf-8"))
    assert found == {"of": "cms-plan", "document": plan, "curve": []}


def test_page_goes_into_a_pipe_alone(here: Path, cms: Cms) -> None:
    out, err = cms("show plan.json --no-curve -o - --title", ["a <title>"])
    assert out.startswith("<!doctype html>")
    assert out.rstrip().endswith("</html>")
    assert err == ""
    assert "If the rates change" not in out
    assert "<h1>a &lt;title&gt;</h1>" in out


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("deployment", "node-a<span>, 2 x a100-80gb; Rates met; If the rates change; The proof"),
        ("transition", "What happens when; The GPUs before; The GPUs after; all floors hold; "
         "Durations are as given; floor/s"),
        ("simulation", "Limits met; Requests replayed; 40,000; simulated, no proof"),
        ("sharing", "Workloads placed; Online classes; one more GPU; The proof prices every class; "
         "cms check "),
    ],
)  # fmt: skip
def test_document_has_a_view_and_a_page(kind: str, words: str, documents: Path, cms: Cms) -> None:
    if kind == "transition":
        (documents / "fleet.toml").write_text("[transition.durations]\nstart_s = 7777\n", "utf-8")
    assert len(cms("show", FILES[kind], PAGE).out.splitlines()) > 4
    assert cms("show", FILES[kind], "-q -o again.html") == ("", "")
    page = (documents / "page.html").read_text("utf-8")
    assert page == (documents / "again.html").read_text("utf-8")
    assert not [each for each in words.split("; ") if each not in page]


def test_rows_of_a_benchmark_have_a_page(tmp_path: Path, cms: Cms) -> None:
    other = row(cost=4, lower_bound=2, gap=2, status="feasible", proof="none")
    bad = row(outcome=Outcome.FAILED, error="<it> crashed", cost=None, gap=None, lower_bound=None)
    text = "".join(f"{each.to_line()}\n" for each in (row(), other, bad))
    (tmp_path / "rows.jsonl").write_text(text, "utf-8")
    cms("show rows.jsonl", PAGE)
    page = (tmp_path / "page.html").read_text("utf-8")
    for words in ("3 runs of proof", "1.167", "&lt;it&gt; crashed", "packing n=5"):
        assert words in page


def test_day_of_shared_gpus_has_a_page(tmp_path: Path, cms: Cms) -> None:
    day = made_up_day()
    write_document(lambda: shared_day_to_json(day), tmp_path / "day.json")
    assert cms("show day.json --json", PAGE).json["of"] == "cms-colocation-day"
    text = (tmp_path / "page.html").read_text("utf-8")
    for nth, each in enumerate(day.policies):
        assert name_policy(day, nth) in text
        assert f'data-key="{float(each.throughput)!r}"' in text
    assert day.problem_sha256 in text
    told = json.loads((tmp_path / "day.json").read_text("utf-8"))
    told["verdict"] = "met" if told["verdict"] == "violated" else "violated"
    (tmp_path / "day.json").write_text(json.dumps(told), "utf-8")
    (tmp_path / "page.html").unlink()
    assert "verdict" in cms("show day.json", PAGE, code=1).err
    assert not (tmp_path / "page.html").exists()


# --- two deployments ------------------------------------------------------------------------------


@pytest.fixture
def before_and_after(tmp_path: Path) -> str:
    """A deployment and one with an instance of each fate on its first GPU."""
    others = Instance("1g.10gb", 6, owner="pod team-x/a")
    chat = Instance("1g.10gb", 0, work("1g.10gb"))
    before = [chat, Instance("1g.10gb", 1), Instance("2g.20gb", 2, work("2g.20gb")), others]
    idle = Instance("1g.10gb", 0)
    after = [idle, Instance("1g.10gb", 1), Instance("1g.10gb", 4, work("1g.10gb")), others]
    kept = [Instance("3g.40gb", 4, work())]
    written(fleet([before, kept, kept]), tmp_path / "now.json")
    written(fleet([after, kept, kept]), tmp_path / "target.json")
    return "show now.json target.json"


def test_difference_draws_what_becomes_of_instances(
    before_and_after: str, tmp_path: Path, cms: Cms
) -> None:
    said = cms(before_and_after, "--picture d.svg", PAGE).out
    assert "1 GPU changes, 2 stay: 3 instances kept, 1 restarted, 1 created, 1 deleted" in said
    for cell in ("1g.10gb ~│", "1g.10gb =│", "2g.20gb p=2 b=4", "1g.10gb +│", "- deleted"):
        assert cell in said
    assert "2 GPUs untouched: node-a/1-2" in said
    signs = re.findall(r"1g.10gb ([-+=~])", words_of((tmp_path / "d.svg").read_text("utf-8")))
    assert sorted(signs) == ["+", "=", "=", "~", "~"]
    assert "3 instances kept" in (tmp_path / "page.html").read_text("utf-8")


def test_difference_is_json_and_an_exit_code(before_and_after: str, cms: Cms) -> None:
    document = cms(before_and_after, "--json --exit-code", code=1).json
    (card,) = document["gpus"]
    assert card["created"] == ["1g.10gb@4 chat (2p b4, 120 requests/s)"]
    assert card["foreign"] == ["1g.10gb@6 of pod team-x/a"]
    assert document["untouched"] == ["node-a/1", "node-a/2"]
    assert "0 GPUs change, 3 stay" in cms("show now.json now.json --exit-code").out


# --- refused --------------------------------------------------------------------------------------


def raise_floors(document: dict[str, Any]) -> None:
    for floor in document["floors"].values():
        floor |= {"rps": 10**6, "reason": "given"}


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("plan", lambda it: it["solution"].update(lower_bound=2), "bound"),
        ("plan", lambda it: it["services"][0].update(instances=2), "instances"),
        ("plan", lambda it: it.update(format="cms-plam"), "cms-plam"),
        ("transition", raise_floors, "not valid"),
        (
            "simulation",
            lambda it: it["services"][0].update(late=1, late_share=[0, 0]),
            "late share",
        ),
        ("simulation", lambda it: it["services"][0].update(p50_ms=10**6), "quantiles that ascend"),
        ("sharing", lambda it: it.update(value=it["value"] + 1), ""),
    ],
)
def test_what_the_check_refuses_is_not_shown(
    kind: str, change: Callable[[Any], None], words: str, documents: Path, cms: Cms
) -> None:
    assert cms("check", FILES[kind]).out.startswith("valid")
    altered = documents / FILES[kind].split()[-1]
    document = json.loads(altered.read_text("utf-8"))
    change(document)
    altered.write_text(json.dumps(document), "utf-8")
    checked = cms("check", FILES[kind], code=1)
    assert words in checked.out + checked.err
    assert cms("show", FILES[kind], PAGE, code=1) == checked
    cms("show", FILES[kind], PAGE, "--json", code=1)
    assert not (documents / "page.html").exists()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"lower_bound": 4}, "a lower bound of 4"),
        ({"gap": 1}, "a gap of 1"),
        ({"lower_bound": 2, "gap": 1}, "a bound of 2"),
    ],
)
def test_contradictory_row_is_refused(
    found: dict[str, Any], words: str, tmp_path: Path, cms: Cms
) -> None:
    lines = f"{row().to_line()}\n{row(**found).to_line()}\n"
    (tmp_path / "rows.jsonl").write_text(lines, "utf-8")
    said = cms("show rows.jsonl", PAGE, code=1).out
    assert said.startswith("not valid: ")
    assert f"row 2 (auto) has {words}" in said


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(RunRow)])
def test_value_of_another_type_is_no_row(name: str, tmp_path: Path, cms: Cms) -> None:
    rows = tmp_path / "rows.jsonl"
    good = json.loads(row(measurements={"ours": [0.5]}).to_line())
    odd: tuple[object, ...] = (
        None, True, "x", 1.5, 10**400, -1, [], [1], [[1]], [None], {}, {"a": [{}]}, "1e999999999",
    )  # fmt: skip
    for value in odd:
        rows.write_text(f"{json.dumps(good)}\n{json.dumps({**good, name: value})}\n", "utf-8")
        said = cms("show rows.jsonl -q", PAGE, code=(0, 1))
        assert "bug" not in said.err, value
        known = "row 2" in said.out or "rows.jsonl:2: this is no row" in said.err
        assert known or not said.out + said.err or "rows of" in said.err
    for wrong in ({**good, "seconds": float("nan")}, {"a": 1}):
        rows.write_text(f"{json.dumps(good)}\n{json.dumps(wrong)}\n", "utf-8")
        assert "rows.jsonl:2: " in cms("show rows.jsonl", PAGE, code=1).err
