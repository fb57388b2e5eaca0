"""``cms rightsize``: what it prints and writes, and what it refuses; and ``cms plan``'s what-if."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet import read_plan, rightsize
from cms.fleet.report.what_if import rightsized_page
from cms.fleet.what_if.least import Outcome
from tests.cli.shared import POINTS, SERVICES, error_of
from tests.fleet.plans import printed


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """A plan of two GPUs, and its table: 10 items/s less, or 20 ms more, would save one."""
    services, points = tmp_path / "s.csv", tmp_path / "p.csv"
    services.write_text(f"{SERVICES}chat,bert,130,100\n", "utf-8")
    points.write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,1,2,60,33\nbert,a100-80gb,3g.40gb,1,8,90,120\n", "utf-8"
    )
    path = tmp_path / "plan.json"
    tables = ["-s", str(services), "-p", str(points), "--rule", "plain"]
    assert run(["plan", *tables, "-q", "-o", str(path)]) == 0
    capsys.readouterr()
    return [str(path), "-p", str(points)]


def test_the_least_relaxations_are_listed_with_their_proofs(
    made: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rightsize", *made]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert out.splitlines()[0] == "plan.json: what would save a GPU, 2 -> 1"
    assert "chat rate 130/s 120/s -7.7 % the least, proved" in lines
    assert "chat latency limit 100 ms 120 ms +20 % the least, proved" in lines
    said = " ".join(out.split())
    assert "a plan of at most 1 GPU was found and checked" in said
    assert "No smaller change of any one of these numbers is enough, proved: -7.7 %" in said
    assert max(map(len, out.splitlines())) <= 100


def test_json_is_one_document_on_stdout_and_the_same_in_the_file(
    made: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "less.json"
    assert run(["rightsize", *made, "--json", "-o", str(path)]) == 0
    out, err = capsys.readouterr()
    assert (err, out) == ("", path.read_text("utf-8"))
    document = json.loads(out)
    assert (document["cost"], document["target"], document["proved"]) == (2, 1, True)
    assert [each["enough"] for each in document["relaxations"]] == [120, 120]
    assert run(["rightsize", *made, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_without_the_table_it_is_said_what_is_not_looked_at(
    made: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rightsize", made[0], "--service", "chat"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not looked at: limits: a looser one may admit operating points" in said
    assert "latency limit" not in said.split("not looked at")[0]


def test_a_published_scenario_has_its_points(
    made: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s4.json"
    assert run(["plan", "--published", "S4", "-q", "-o", str(path)]) == 0
    command = ["rightsize", str(path), "--published", "S4", "--service", "vgg16", "--json"]
    assert run(command) == 0
    document = json.loads(capsys.readouterr().out)
    rate, limit = document["relaxations"]
    assert (rate["enough"], rate["outcome"], rate["cost"]) == ("840.592", "least", 6)
    assert (limit["what"], limit["outcome"]) == ("latency_limit", "none")
    assert run([*command, "-p", "x.csv"]) == 2
    assert "give --published or the tables, not both" in capsys.readouterr().err
    assert run(["rightsize", made[0], "--published", "S3"]) == 2
    assert "are not those of the plan" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--to", "2"], "the wanted cost is 2, and the plan costs 2; expected less"),
        (["--to", "some"], "'some' is not a number"),
        (["--service", "caht"], "there is no service 'caht'; nearest: 'chat'"),
        (["--time-limit", "-1"], "--time-limit: '-1': expected seconds >= 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    more: list[str], said: str, made: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rightsize", *made, *more]) == 2
    assert said in error_of(capsys)


def test_load_curves_go_with_the_table(
    made: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    curves = tmp_path / "c.csv"
    curves.write_text(
        "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
        "bert,a100-80gb,3g.40gb,1,2,0.01,measured,10 58,20 90\n",
        "utf-8",
    )
    assert run(["rightsize", made[0], "--load-curves", str(curves)]) == 2
    assert "they are of operating points: give these, too" in error_of(capsys)
    services, plan = tmp_path / "s.csv", tmp_path / "curved.json"
    tables = ["-s", str(services), "-p", made[2], "--load-curves", str(curves)]
    assert run(["plan", *tables, "-q", "-o", str(plan)]) == 0
    assert run(["rightsize", str(plan), "-p", made[2]]) == 2
    assert "the plan was made with load curves" in error_of(capsys)
    assert run(["rightsize", str(plan), "-p", made[2], "--load-curves", str(curves)]) == 0
    assert "chat" in capsys.readouterr().out


def test_a_plan_without_a_schedule_saves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.json"
    assert run(["plan", "--published", "S5", "--time-limit", "0", "-q", "-o", str(path)]) == 4
    assert run(["rightsize", str(path)]) == 4
    assert "the plan has no schedule, so that there is nothing to save" in capsys.readouterr().err


def test_what_is_found_and_not_proved_is_not_called_proved(made: list[str]) -> None:
    plan = read_plan(made[0])
    found = rightsize(plan)
    (rate,) = found.relaxations
    loose = replace(rate, outcome=Outcome.FOUND, short=Fraction(371, 3))
    said = printed(rightsized_page(replace(found, relaxations=(loose,)), plan, "x"))
    assert "found; 123.6667/s is proved too little" in said
    assert "the least, proved" not in said
    bare = replace(loose, short=None)
    said = printed(rightsized_page(replace(found, relaxations=(bare,), proved=False), plan, "x"))
    assert "found, not proved" in said
    assert "That 1 will not do as it is, was not proved" in " ".join(said.split())
    opened = replace(rate, plan=None, outcome=Outcome.OPEN, ruled_out=Fraction(1, 30))
    said = printed(rightsized_page(replace(found, relaxations=(opened,)), plan, "x"))
    assert "rate: not known: chat (at least 3.3 %)" in said
    said = printed(rightsized_page(replace(found, better=plan, relaxations=()), plan, "x"))
    assert "The plan can be had for 2 without any relaxation: plan again." in said


def test_plans_at_other_rates_and_without_services(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    more = ["--scale", "3", "--scale", "chat=1/2", "--cost", "a100-80gb=2", "-o", str(path)]
    assert run([*tables, *more]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "services (what if: all rates x 3, chat x 0.5)"
    plan = read_plan(path)
    assert [each.wanted_rps for each in plan.services] == [50, 150]
    assert plan.solution.cost == 2 * (plan.solution.machine_count or 0)
    assert run([*tables, "--drop", "[red]see[/red]", "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "services (what if: without [red]see[/red])"
    assert [each.service.name for each in read_plan(path).services] == ["chat"]
    assert run([*tables, "--drop", "chat", "--drop", "[red]see[/red]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solution"]["machine_count"] == 0
    assert run(["plan", "--published", "S1", "--scale", "2"]) == 0
    assert "(what if: all rates x 2)" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--drop", "cht"], "there is no service 'cht'; nearest: 'chat'"),
        (["--scale", "cht=2"], "there is no service 'cht'; nearest: 'chat'"),
        (["--scale", "chat=2", "--drop", "chat"], "service 'chat' is left out, and its rate is"),
        (["--scale", "2", "--scale", "3"], "--scale: 2 and 3 are all for all rates; give one"),
        (
            ["--scale", "chat=2", "--scale", "chat=3"],
            "--scale: 'chat' is there twice; give it once",
        ),
        (["--scale", "-1"], "--scale: the factor of all rates is -1; expected a number >= 0"),
        (["--scale", "chat="], "--scale: the factor of 'chat': '' is not a number"),
        (["--scale", "twice"], "--scale: the factor of all rates: 'twice' is not a number"),
    ],
)
def test_what_if_something_cannot_be_meant(
    more: list[str], said: str, tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*tables, *more]) == 2
    assert said in error_of(capsys)
