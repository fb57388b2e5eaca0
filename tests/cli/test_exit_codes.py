"""Exit codes, and the one line that explains each failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.cli.app import application, run
from tests.cli.shared import SERVICES, error_of


def test_the_help_names_every_command_with_a_whole_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.partition("\nPlan:\n")[2].partition("\n  Exit")[0].splitlines()
    summaries = dict(line.split(None, 1) for line in lines if line.startswith("  "))
    commands = {*application.registered_commands, *application.registered_groups}
    assert len(summaries) == len(commands)
    assert all(text.endswith(".") and "..." not in text for text in summaries.values())


def test_an_impossible_service_exits_with_3_and_the_reason(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    services = Path(tables[2])
    services.write_text(services.read_text("utf-8").replace("bert,100,100", "bert,100,40"), "utf-8")
    assert run(tables) == 3
    out = capsys.readouterr().out
    assert "chat: no profile meets 40 ms" in out
    assert "infeasible, proof checked" in out
    assert run([*tables, "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["solution"]["status"] == "infeasible"
    assert list(document["unservable"]) == ["chat"]


def test_too_few_gpus_exit_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cms.cli.searching.SHORTAGE_SECONDS", 600)  # of a busy machine
    assert run(["plan", "--published", "S5", "--max-gpus", "a100-80gb=11"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "the GPUs do not suffice: there are only 11 x a100-80gb; allow more" in said
    assert "1 more a100-80gb GPU would do (proved fewest), or 92.4 % of every rate" in said


def test_no_schedule_in_time_exits_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--published", "S6", "--time-limit", "0"]) == 4
    assert "no schedule was found" in capsys.readouterr().out


PLAN = "plan --published S1"
RATES = "reconcile a --rates r.csv --services s.csv --operating-points p.csv"
WRONG_USAGE = {
    "": "Research:",
    "frob": "frob",
    "plan --frob": "--frob",
    "plan": "--published NAME",
    "plan -s s.csv": "--operating-points",
    "plan -s s.csv --published S1": "not both",
    "plan -s - -p -": "--services and --operating-points are",
    "check - -": "only one of them can be standard input",
    "plan --published S9": "'S9' is unknown; cms plan takes S1, S2, S3, S4, S5, S6 (try",
    "solve --published decoy": "nearest: 'decoys'; cms solve takes aggregated-lp-gap, ",
    f"{PLAN} -g H100": "h100-80gb (H100 80GB HBM3, H100 PCIe), h100-94gb (H100 NVL) or h100-96gb",
    "plan --published three-thirds": "cms solve --published",
    "solve --published S1": "cms plan --published S1",
    f"{PLAN} --gpu a100-80": "a100-80gb",
    f"{PLAN} --gpu my-card": "or the path of a device file, .yaml or .json",
    "gpus h201-141gb": "h200-141gb",
    f"{PLAN} -m magic": "installed are auto",
    f"{PLAN} --option x=1": "no option 'x'",
    f"{PLAN} --option x": "expected KEY=VALUE",
    f"{PLAN} --time-limit soon": "--time-limit: 'soon'",
    f"{PLAN} --time-limit -1": "'-1'",
    f"{PLAN} --gap 5%": "--gap: ",
    f"{PLAN} --seed x": "--seed",
    f"{PLAN} --threads 0": "--threads",
    f"{PLAN} --max-gpus a100-80gb=2.5": "2.5",
    f"{PLAN} --max-gpus h100-80gb=2": "--max-gpus: 'h100-80gb' is no GPU of this plan",
    f"{PLAN} --max-gpus a100-80gb=1 --max-gpus a100-80gb=2": "twice",
    f"{PLAN} --cost a100-80gb=x": "--cost: ",
    f"{PLAN} --cost a100-80gb=-1": "--cost: ",
    f"{PLAN} --rule hope": "parvagpu",
    f"{PLAN} --rate-margin 20": "--rate-margin: '20'",
    "capacity p.csv --late-share 5": "--late-share: '5'",
    "transition a b --floor chat=80": "--floor: '80'",
    f"{RATES} --margin 5": "--margin: '5'",
    f"{RATES} --hysteresis 1.5": "--hysteresis: '1.5'",
    f"{PLAN} -o no/x.json": "no folder 'no'",
    f"{PLAN} --picture .": "is a folder",
}


@pytest.mark.parametrize(("typed", "expected"), WRONG_USAGE.items())
def test_wrong_usage_exits_with_2_and_one_line(
    typed: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(typed.split()) == 2
    assert expected in (error_of(capsys) if typed else capsys.readouterr().out)


WRONG_DATA = {
    "no such file": (None, "there is no such file"),
    "empty": ("", "is empty"),
    "no header": ("chat,bert,100,100\n", "service"),
    "decimal comma": (f'{SERVICES}chat,bert,"12,5",100\n', "services.csv:2:11: rate_rps "),
    "negative": (f"{SERVICES}chat,bert,-1,100\n", "-1"),
    "not a number": (f"{SERVICES}chat,bert,many,100\n", "many"),
    "unknown model": (f"{SERVICES}chat,bort,1,100\n", "bert"),
    "twice": (f"{SERVICES}chat,bert,1,100\nchat,bert,1,100\n", "twice"),
}


@pytest.mark.parametrize("name", WRONG_DATA)
def test_wrong_data_exits_with_1_and_says_where(
    name: str, tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = WRONG_DATA[name]
    services = Path(tables[2])
    services.unlink()
    if text is not None:
        services.write_text(text, "utf-8")
    assert run(tables) == 1
    assert expected in error_of(capsys)


@pytest.mark.parametrize(
    "command",
    [
        *("place TABLE --nodes nodes.csv", "simulate TABLE", "plan --published S1 --near TABLE"),
        *("check TABLE", "diff TABLE TABLE", "export TABLE --to slurm -o out"),
        *("transition TABLE TABLE", "verify TABLE --against TABLE", "solve TABLE"),
    ],
)
def test_a_table_in_place_of_a_document_is_called_one_and_what_makes_a_plan_of_it_is_said(
    command: str,
    tables: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(command.replace("TABLE", tables[2]).split()) == 1
    said = error_of(capsys)
    assert f"{tables[2]}: this is a table, expected a JSON document; 'cms plan --services" in said


def test_points_of_another_gpu_alone_name_the_flag_and_the_gpu(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    points = Path(tables[-1])
    points.write_text(points.read_text("utf-8").replace("a100-80gb", "H100 PCIe"), "utf-8")
    assert run([*tables, "--gpu", "a100-80gb"]) == 1
    assert "only on h100-80gb; plan with these GPUs (--gpu h100-80gb, " in error_of(capsys)
    assert run([*tables, "--gpu", "h100-80gb"]) == 0


def test_a_plan_or_a_solution_to_solve_names_the_commands_that_are_meant(
    tables: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, solution = str(tmp_path / "plan.json"), str(tmp_path / "solution.json")
    assert run([*tables, "-q", "-o", plan]) == 0
    assert run(["solve", plan]) == 2
    assert f"to recheck it: cms check {plan}; to improve on it: cms plan" in error_of(capsys)
    assert run(["solve", problem, "-q", "-o", solution]) == 0
    assert run(["solve", solution]) == 2
    assert f"to improve on it: cms solve problem.json --start {solution}" in error_of(capsys)


def test_errors_are_json_where_json_is_wanted(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(tables[2]).write_text(f"{SERVICES}chat,bert,many,100\n", "utf-8")
    assert run([*tables, "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    document = json.loads(err)
    assert document["exit_code"] == 1
    assert document["error"]["kind"] == "FileError"
    assert (document["error"]["line"], document["error"]["path"]) == (2, tables[2])
    assert run(["plan", "--json", "--frob"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "UsageError"


def test_a_bug_is_one_line_and_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("the floor is lava")

    monkeypatch.setattr("cms.plugin.registry.algorithm_details", broken)
    assert run(["algorithms"]) == 1
    assert "RuntimeError: the floor is lava (this is a bug" in error_of(capsys)
    monkeypatch.setenv("CMS_TRACEBACK", "1")
    assert run(["algorithms"]) == 1
    assert "Traceback" in capsys.readouterr().err
