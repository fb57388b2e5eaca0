"""``cms report``: a page of every kind of file, and none of one that ``cms check`` refuses."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench.row import Outcome, RunRow
from bench.task import Kind, Source, Task
from cms.cli.app import run
from cms.fleet.deployment.transition import write_transition
from cms.fleet.report.simulations import policy_name
from cms.fleet.sharing import share
from cms.fleet.sharing.edge_problems import posed
from cms.fleet.sharing.files import write_sharing_problem, write_sharing_solution
from cms.fleet.simulation import ModelledInstance, ModelledService, simulate, write_simulation
from cms.fleet.simulation.sharing_loop.result import write_shared_day
from tests.fleet.simulation.shared import made_up_day
from tests.fleet.transitions import pair


@pytest.fixture
def sharing(tmp_path: Path) -> list[str]:
    problem = posed([2, 7], [5, 1], [[640_000, 550_000], [300_000, 800_000]])
    files = [tmp_path / "sharing.json", tmp_path / "share.json"]
    write_sharing_problem(problem, files[0])
    write_sharing_solution(problem, share(problem), files[1])
    return [str(each) for each in files]


@pytest.fixture
def simulation(tmp_path: Path) -> Path:
    """Two services at a low load, which keep their limits."""
    one = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 4)
    services = [
        ModelledService(name, Fraction(100), 60_000_000, Fraction(1, 100), (one,))
        for name in ("chat", "see")
    ]
    path = tmp_path / "simulation.json"
    write_simulation(simulate(services, requests=20_000), path)
    return path


@pytest.fixture
def transition(tmp_path: Path) -> Path:
    path = tmp_path / "transition.json"
    write_transition(pair(3), path)
    return path


def row(**found: Any) -> RunRow:
    source = Source(family="packing", arguments={"n": 5})
    task = Task(suite="proof", kind=Kind.SOLVE, source=source, method="auto", time_limit=10)
    how = {"outcome": Outcome.ANSWERED, "status": "optimal", "proof": "checked", "cost": 3,
           "lower_bound": 3, "gap": 0, "seconds": 0.5, "instance_sha256": "ab"}  # fmt: skip
    return RunRow.of(task, **(how | found))


def files_of(kind: str, request: pytest.FixtureRequest) -> list[str]:
    files = request.getfixturevalue(kind)
    return files if isinstance(files, list) else [str(files)]


def page_of(arguments: list[str], tmp_path: Path) -> str:
    page = tmp_path / "page.html"
    assert run(["report", *arguments, "-o", str(page), "-q"]) == 0
    return page.read_text("utf-8")


# --- each kind ------------------------------------------------------------------------------------


def test_a_plan_is_rechecked_and_planned_again_at_other_rates(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert run(["report", str(plan), "-o", str(page)]) == 0
    said = capsys.readouterr().out
    assert said == f"{page}: {page.stat().st_size:,} bytes, rechecked before they were drawn\n"
    text = page.read_text("utf-8")
    for words in ("every point is rechecked: 10 points proved optimal", "chat",
                  "The proof of the bound", f"cms check {plan}", f"cms-check {plan}"):  # fmt: skip
        assert words in text


def test_json_says_what_was_written_and_the_curve(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert run(["report", str(plan), "-o", str(page), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["of"], said["bytes"]) == ("cms-plan", page.stat().st_size)
    curve = {each["rate"]: each for each in said["curve"]}
    assert len(curve) == 10
    assert curve[1] == {"rate": 1, "cost": 1, "lower_bound": 1, "status": "optimal"}
    assert all(each["cost"] == each["lower_bound"] for each in said["curve"])
    costs = [each["cost"] for each in said["curve"]]
    assert costs == sorted(costs)
    assert max(costs) > 1


def test_a_page_goes_into_a_pipe_alone(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    title = ["--title", "a <title>"]
    assert run(["report", str(plan), "--no-curve", *title, "-o", "-"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("<!doctype html>")
    assert said.out.rstrip().endswith("</html>")
    assert said.err == ""
    assert "If the rates change" not in said.out
    assert "<h1>a &lt;title&gt;</h1>" in said.out


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("target", "node-a<span>, 2 x a100-80gb; Rates met; If the rates change; The proof"),
        ("transition", "What happens when; The GPUs before; The GPUs after; all floors hold; "
         "Durations are as given; floor/s"),
        ("simulation", "Limits kept; Requests replayed; 40,000; simulated, no proof"),
        ("sharing", "Workloads placed; Online classes; one more GPU; A price on every; "
         "cms check "),
    ],
)  # fmt: skip
def test_a_document_has_a_page(
    kind: str, words: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    own = tmp_path / "durations.json"
    own.write_text('{"start_s": 7777}', "utf-8")
    more = ["--durations", str(own)] if kind == "transition" else []
    page = page_of([*files_of(kind, request), *more], tmp_path)
    assert not [each for each in words.split("; ") if each not in page]


def test_rows_of_a_benchmark_have_a_page(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    other = row(cost=4, lower_bound=2, gap=2, status="feasible", proof="none")
    bad = row(outcome=Outcome.FAILED, error="<it> crashed", cost=None, gap=None, lower_bound=None)
    rows.write_text("".join(f"{each.to_line()}\n" for each in (row(), other, bad)), "utf-8")
    page = page_of([str(rows)], tmp_path)
    for words in ("3 runs of proof", "1.167", "&lt;it&gt; crashed", "packing n=5"):
        assert words in page


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
def test_what_the_check_refuses_is_refused_in_the_same_words(
    kind: str, change: Any, words: str, tmp_path: Path, request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    *others, altered = files = files_of(kind, request)
    document = json.loads(Path(altered).read_text("utf-8"))
    change(document)
    wrong, page = tmp_path / "wrong.json", tmp_path / "page.html"
    wrong.write_text(json.dumps(document), "utf-8")
    capsys.readouterr()
    assert run(["check", *files]) == 0
    assert capsys.readouterr().out.startswith("valid")
    assert run(["check", *others, str(wrong)]) == 1
    checked = capsys.readouterr()
    assert words in checked.out + checked.err
    assert run(["report", *others, str(wrong), "-o", str(page)]) == 1
    assert capsys.readouterr() == checked
    assert run(["report", *others, str(wrong), "-o", str(page), "--json"]) == 1
    assert not page.exists()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"lower_bound": 4}, "a lower bound of 4"),
        ({"gap": 1}, "a gap of 1"),
        ({"lower_bound": 2, "gap": 1}, "a bound of 2"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(
    found: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(f"{row().to_line()}\n{row(**found).to_line()}\n", "utf-8")
    assert run(["report", str(rows), "-o", str(tmp_path / "page.html")]) == 1
    said = capsys.readouterr().out
    assert said.startswith("not valid: ")
    assert f"row 2 (auto) has {words}" in said


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(RunRow)])
def test_a_value_of_another_type_is_no_row(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    good = json.loads(row(measurements={"ours": [0.5]}).to_line())
    odd: tuple[object, ...] = (
        None, True, "x", 1.5, 10**400, -1, [], [1], [[1]], [None], {}, {"a": [{}]}, "1e999999999",
    )  # fmt: skip
    for value in odd:
        rows.write_text(f"{json.dumps(good)}\n{json.dumps({**good, name: value})}\n", "utf-8")
        code = run(["report", str(rows), "-o", str(tmp_path / "page.html")])
        out, err = capsys.readouterr()
        assert "bug" not in err, value
        assert code == 0 or "row 2" in out or f"{rows}:2: this is no row" in err or "rows of" in err
    for wrong in ({**good, "seconds": float("nan")}, {"a": 1}):
        rows.write_text(f"{json.dumps(good)}\n{json.dumps(wrong)}\n", "utf-8")
        assert run(["report", str(rows), "-o", str(tmp_path / "page.html")]) == 1
        assert f"{rows}:2: " in capsys.readouterr().err


def test_a_day_of_shared_gpus_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = made_up_day()
    file, page = tmp_path / "day.json", tmp_path / "page.html"
    write_shared_day(day, file)
    assert run(["report", str(file), "-o", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["of"] == "cms-shared-day"
    text = page.read_text("utf-8")
    for nth, each in enumerate(day.policies):
        assert policy_name(day, nth) in text
        assert f'data-key="{float(each.throughput)!r}"' in text
    assert day.problem_sha256 in text
    told = json.loads(file.read_text("utf-8"))
    told["verdict"] = "kept" if told["verdict"] == "broken" else "broken"
    file.write_text(json.dumps(told), "utf-8")
    page.unlink()
    assert run(["report", str(file), "-o", str(page)]) == 1
    assert "verdict" in capsys.readouterr().err
    assert not page.exists()


def test_what_has_no_page_is_refused_with_what_to_give(
    problem: str, plan: Path, sharing: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    page, learnt = ["-o", str(tmp_path / "page.html")], tmp_path / "model.json"
    learnt.write_text('{"format": "cms-predictor"}', "utf-8")
    for arguments, words in (
        ([problem, *page], "a page is made of a plan"),
        ([sharing[1], *page], "holds a sharing solution"),
        ([str(learnt), *page], "holds a predictor; a page is made of a plan"),
        ([sharing[0], *page], "give its solution, too"),
        ([str(plan), sharing[1], *page], "leave it out"),
        (["-", "-", *page], "only one of them can be standard input"),
        ([str(plan), "-o", "-", "--json"], "name a file"),
        ([str(plan), "-o", str(tmp_path / "no" / "page.html")], "there is no folder"),
        ([str(plan)], "--output"),
    ):
        assert run(["report", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err
