"""``cms capacity``, and what ``cms plan`` makes of its rules, curves and margins."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cms import Configuration, Job, MachineGroup, MachineType, Problem, Schedule, solve
from cms.cli.app import run
from cms.cli.searching import _grown
from cms.fleet import read_load_curves, read_operating_points, read_plan
from tests.cli.shared import POINTS, SERVICES


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A service that half a GPU can serve, and points of one and of three processes."""
    services, points = tmp_path / "services.csv", tmp_path / "points.csv"
    services.write_text(f"{SERVICES}chat,bert,300,60\n", "utf-8")
    points.write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,1,8,320,25\nbert,a100-80gb,3g.40gb,1,1,100,10\n"
        "bert,a100-80gb,3g.40gb,3,8,900,27\n",
        "utf-8",
    )
    return [str(services), str(points)]


def test_load_curves_are_made_once_and_planned_with(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services, points = files
    curves, plan = str(tmp_path / "curves.csv"), str(tmp_path / "plan.json")
    quick = ["--requests", "1000", "--processes", "1"]
    assert run(["capacity", points, *quick, "-o", curves]) == 0
    assert capsys.readouterr().out == ""  # how far it is, it says beside, where it takes long
    found = read_load_curves(curves)
    assert [key[3:] for key in found] == [(1, 8), (1, 1)]

    asked = ["-s", services, "-p", points, "--max-processes", "1", "--load-curves", curves]
    assert run(["plan", *asked, "-o", plan]) == 0
    made = read_plan(plan)
    ((point,),) = made.serving.points.values()
    entry = json.loads(Path(plan).read_text("utf-8"))["operating_points"][0]
    assert entry["evidence"] == "simulated"
    assert entry["fill_ms"] == {"1": 10, "8": 25}
    curve = found["bert", "a100-80gb", "3g.40gb", 1, 8]
    (use,) = made.services[0].uses
    assert use.point == point == read_operating_points(points)[0]
    limit = made.serving.services[0].latency_limit_ms
    assert limit is not None
    assert 0 <= curve.sustained(limit) - use.supply_rps < 1


def test_load_curves_go_to_stdout_as_a_table_or_as_json(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one.csv"
    one.write_text(f"{POINTS}bert,a100-80gb,3g.40gb,1,1,100,10\n", "utf-8")
    quick = ["capacity", str(one), "--requests", "1000", "--late-share", "5%"]
    assert run(quick) == 0
    table = capsys.readouterr().out
    one.write_text(table, "utf-8")
    (curve,) = read_load_curves(one).values()
    one.write_text(f"{POINTS}bert,a100-80gb,3g.40gb,1,1,100,10\n", "utf-8")
    assert run([*quick, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["load_curves"]
    assert entry == {
        "model": "bert", "device": "a100-80gb", "profile": "3g.40gb", "processes": 1, "batch": 1,
        **curve.to_json(),
    }  # fmt: skip


def test_a_plan_says_how_much_all_rates_may_grow(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cms.cli.searching.GROWTH_SECONDS", 600.0)  # the proof, however long
    services, points = files
    asked = ["plan", "-s", services, "-p", points]
    assert run(asked) == 0
    out = capsys.readouterr().out
    assert re.search(r"All rates may grow by [\d.]+ % together on these GPUs \(proved most\)", out)
    assert "99 % within the limit" in out
    assert run([*asked, "--no-spread"]) == 0
    assert "may grow" not in capsys.readouterr().out
    assert run([*asked, "--rule", "half"]) == 0
    assert "may grow" not in capsys.readouterr().out


def test_no_growth_is_said_of_a_schedule_that_is_not_shown() -> None:
    """What grows does without the machine that serves nothing: it is cheaper, and not taken."""
    idle = Configuration({"c": 1}, "n")
    problem = Problem(
        configurations=[Configuration({"b": 4}, "m"), idle],
        jobs=[Job("x", 3, {"b": 1})],
        machine_types=[MachineType("m"), MachineType("n")],
    )
    solution = solve(problem)
    plain, grown = _grown(problem, solution, {"seed": 0})
    assert grown is not None
    assert (grown.share, plain.cost) == (Fraction(1333, 1000), 1)

    dear = Schedule([*solution.schedule.groups, MachineGroup(idle, {}, 1)])
    shown = replace(solution, schedule=dear, cost=Fraction(2))
    assert _grown(problem, shown, {"seed": 0}) == (shown, None)


def test_a_margin_is_planned_for(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    services, points = files
    asked = ["plan", "-s", services, "-p", points, "--json"]
    assert run([*asked, "--rate-margin", "12.5%"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problem"]["jobs"][0]["demand"] == "337.5"
    assert document["promise"]["rate_margin"] == document["rate_margin"] == "0.125"
    for wrong in ("much", "1%%", "-1", "10% "):
        code = run([*asked, "--rate-margin", wrong])
        assert code == (0 if wrong == "10% " else 2)
    capsys.readouterr()


def test_a_limit_of_less_than_two_batches_names_the_one_that_would_do(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    services, points = files
    Path(services).write_text(f"{SERVICES}chat,bert,300,19\n", "utf-8")
    assert run(["plan", "-s", services, "-p", points]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "10 ms a batch is 1.9 times within 19 ms; the rule needs 2: a limit of 20 ms" in out


def test_curves_for_a_rule_that_asks_for_none_are_bad_usage(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services, points = files
    curves = tmp_path / "curves.csv"
    head = "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
    curves.write_text(f"{head}bert,a100-80gb,3g.40gb,1,8,0.01,measured,100 200,30 40\n", "utf-8")
    asked = ["plan", "-s", services, "-p", points, "--load-curves", str(curves)]
    assert run([*asked, "--rule", "half"]) == 2
    assert "which the rule 'half' does not ask for" in capsys.readouterr().err
    assert run([*asked, "--rule", "capacity_certified"]) == 2
    assert "takes only what is proved" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("throughput", "wish", "code", "says"),
    [
        ("100", ["--late-share", "0.01%"], 2, "expected at least 100,000"),
        ("1e-9", [], 1, "may take longer than nine years"),
        ("100", ["--late-share", "99.99%"], 0, ""),
    ],
)
def test_a_curve_says_no_more_than_its_requests_do(
    throughput: str,
    wish: list[str],
    code: int,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    points = tmp_path / "points.csv"
    points.write_text(f"{POINTS}bert,a100-80gb,3g.40gb,1,1,{throughput},10\n", "utf-8")
    assert run(["capacity", str(points), "--requests", "1000", *wish]) == code
    assert says in capsys.readouterr().err
