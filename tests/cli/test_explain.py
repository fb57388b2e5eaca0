"""``cms explain``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.certificate.certificate import BlockPrices, Branch
from cms.certificate.quantity import BlocksOf
from cms.cli.app import run
from cms.fleet import Plan, explain, read_plan
from cms.fleet.report.what_if import explained_page
from tests.cli.shared import POINTS, SERVICES, error_of
from tests.fleet.plans import printed


def test_an_explanation_says_what_each_choice_costs_and_what_that_means(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(plan), "chat"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "plan.json: why chat is served so"
    assert lines[1] == "chat (bert): 100 items/s within 100 ms"
    assert "Gets 120 requests/s from 1 x 3g.40gb (p=2 b=4, 120/s, 20 ms)." in lines
    (row,) = (line for line in lines if line.startswith("3g.40gb"))
    assert row.split()[1:4] == ["120", "1", "1/3"]
    assert row.endswith("1: >= 1 (+0)  impossible")
    assert "of no use to it (too slow, not allowed or not measured): 4g.40gb" in out
    said = " ".join(out.split())
    assert "It is a bound, no promise: such a plan may cost more, and there may be none." in said
    assert "the service pays 0.3333 of the bound's 1 GPUs" in said
    assert "1 GPU, proved >= 1: optimal, proof checked" in out
    assert max(map(len, lines)) <= 100


def test_json_is_one_document_on_stdout_and_the_same_in_the_file(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "why.json"
    assert run(["explain", str(plan), "see", "--json", "-o", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == path.read_text("utf-8")
    document = json.loads(out)
    assert (document["service"], document["cost"], document["lower_bound"]) == ("see", 1, 1)
    (four,) = document["choices"]
    assert (four["profile"], four["count"], four["needed"]) == ("4g.40gb", 1, 1)
    assert four["without"] == {"possible": False, "bound": None, "more": None, "at_least": None}
    assert run(["explain", str(plan), "see", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def infeasible(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text(f"{SERVICES}chat,bert,100,1\n", "utf-8")
    (tmp_path / "p.csv").write_text(f"{POINTS}bert,a100-80gb,3g.40gb,2,4,120,20\n", "utf-8")
    path = tmp_path / "lost.json"
    tables = ["-s", str(tmp_path / "s.csv"), "-p", str(tmp_path / "p.csv"), "--rule", "plain"]
    assert run(["plan", *tables, "-q", "-o", str(path)]) == 3
    return path


@pytest.mark.parametrize("command", [["explain", "chat"], ["rightsize"]])
def test_an_infeasible_plan_has_no_answer_but_where_to_look(
    command: list[str], infeasible: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *rest = command
    capsys.readouterr()
    assert run([name, str(infeasible), *rest]) == 3
    said = capsys.readouterr().err
    assert "lost.json: the plan is infeasible, so that nothing can be" in said
    assert "'cms plan' says why" in said
    assert run([name, str(infeasible), *rest, "--json"]) == 3
    assert json.loads(capsys.readouterr().err)["exit_code"] == 3


@pytest.mark.parametrize("command", [["explain", "chat"], ["rightsize"]])
def test_other_files_than_plans_are_refused_by_what_they_hold(
    command: list[str],
    problem: str,
    target: Path,
    tables: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, *rest = command
    for file, words, code in (
        (problem, '"cms-problem", expected "cms-plan" (a plan)', 1),
        (str(target), "holds a deployment, and plans are", 2),
        (tables[2], "this is a table, expected a JSON document", 1),
        ("nowhere.json", "there is no such file", 1),
    ):
        capsys.readouterr()
        assert run([name, file, *rest]) == code
        assert words in error_of(capsys)


def test_an_unknown_service_is_refused_with_the_nearest(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(plan), "caht"]) == 2
    said = "error: there is no service 'caht'; nearest: 'chat'; expected one of: chat, see\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("command", [["explain", "chat"], ["rightsize"]])
def test_a_plan_that_does_not_hold_is_not_believed(
    command: list[str], plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document: dict[str, Any] = json.loads(plan.read_text("utf-8"))
    prices = document["solution"]["certificate"]["tree"]["prices"]
    prices[next(iter(prices))] = 2
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(document), "utf-8")
    name, *rest = command
    assert run([name, str(path), *rest]) == 1
    out = capsys.readouterr().out
    assert out.startswith("not valid: ")
    assert "is worth 8/3 at these prices" in out
    assert run([name, str(path), *rest, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["valid"] is False


def test_a_service_that_wants_nothing_and_a_proof_in_cases_are_said_so(plan: Path) -> None:
    made = read_plan(plan)
    prices = {"3g.40gb": "1/2", "4g.40gb": "1/2"}
    tree = Branch(
        BlocksOf("3g.40gb"), 0, BlockPrices(prices, multipliers=[0]),
        BlockPrices(prices, multipliers=[0]),
    )  # fmt: skip
    branched = Plan(made.serving, replace(made.solution, certificate=tree))
    said = printed(explained_page(explain(branched, "chat"), branched, "x"))
    assert "The proof has 2 cases; each number is the least of all of them." in said
    assert "worth" not in said
    nothing = replace(explain(made, "chat"), blocks=())
    nothing = replace(nothing, given=replace(nothing.given, planned_rps=Fraction(0)))
    assert "It wants nothing" in printed(explained_page(nothing, made, "x"))


def test_a_plan_from_standard_input(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with plan.open() as text:
        monkeypatch.setattr("sys.stdin", text)
        assert run(["explain", "-", "chat"]) == 0
    assert capsys.readouterr().out.startswith("-: why chat is served so")


@pytest.mark.parametrize(("width", "scale"), [(80, "1"), (60, "1")])
def test_a_number_that_has_no_room_is_seen_to_be_cut(
    width: int, scale: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", str(width))
    path = tmp_path / "plan.json"
    assert run(["plan", "--published", "S5", "--scale", scale, "-q", "-o", str(path)]) == 0
    assert run(["explain", str(path), "vgg16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("───"))
    rows = lines[start + 1 : start + 6]
    if width == 80:
        assert not any("…" in row for row in rows)
    else:
        assert any("…" in row for row in rows)
    if width != 60:
        assert [row.split()[0] for row in rows] == [
            "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
        ]  # fmt: skip
