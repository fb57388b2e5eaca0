"""``cms init``: two tables on which ``cms plan`` works at once, and that are never written over."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet import read_operating_points, read_services
from cms.fleet.hardware import gpus
from cms.fleet.serving.csv_input import POINT_COLUMNS
from cms.fleet.serving.templates import points_template, services_template
from tests.cli.shared import error_of

KEYS = [gpu.key for gpu in gpus()]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("key", KEYS)
def test_a_plan_is_made_of_them_at_once_and_without_a_warning(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--device", key, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["device"] == key
    program, *command = shlex.split(said["next"])
    assert program == "cms"
    assert run([*command, "--json", "--no-spread"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["solution"]["status"] == "optimal"
    assert plan["warnings"] == []
    assert [device["key"] for device in plan["devices"]] == [key]
    limits = [service["latency_limit_ms"] for service in plan["services"]]
    assert None in limits
    assert any(limits)


def test_what_to_do_next_is_printed_and_can_be_typed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "my fleet").mkdir()
    assert run(["init", "my fleet/east"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("made the folder my fleet/east\nwrote my fleet/east/services.csv")
    (line,) = (line for line in out.splitlines() if line.startswith("    cms plan"))
    assert run([*shlex.split(line)[1:], "-q"]) == 0
    assert sorted(path.name for path in (here / "my fleet/east").iterdir()) == [
        "operating_points.csv", "services.csv",
    ]  # fmt: skip
    assert run(["init", "other", "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert run(["init", "my fleet/east", "--force"]) == 0
    assert "made the folder" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["services.csv", "operating_points.csv"])
def test_a_file_that_is_there_is_not_written_over(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / name).write_text("mine")
    assert run(["init"]) == 2
    said = error_of(capsys)
    assert f"error: {name} is there already; --force writes over" in said
    assert [path.name for path in here.iterdir()] == [name]
    assert (here / name).read_text() == "mine"
    assert run(["init", "--force"]) == 0
    assert (here / name).read_text().startswith("# What")


def test_a_folder_that_cannot_be_and_a_device_that_is_not_known_are_named(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    for arguments, says in (
        (["file"], "DIR: 'file' is a file; expected a folder"),
        (["file/below"], "DIR: the folder 'file/below' cannot be made"),
        (["--device", "h100"], "--device: unknown GPU 'h100'"),
        (["--device", "none.yaml"], "none.yaml: there is no such file"),
    ):
        assert run(["init", *arguments]) in (1, 2)
        assert says in error_of(capsys)
    assert [path.name for path in here.iterdir()] == ["file"]


def test_a_folder_in_one_that_is_not_there_is_not_made(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "no/such one/dir"]) == 2
    said = error_of(capsys)
    assert "DIR: there is no folder 'no/such one' to make 'dir' in" in said
    assert "create it first: mkdir -p 'no/such one'" in said
    assert list(here.iterdir()) == []


def test_a_device_file_of_ones_own_is_named_in_the_next_command(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).parents[2] / "cms/fleet/hardware/devices/a30-24gb.json"
    text = source.read_text().replace('"key": "a30-24gb"', '"key": "mine-24gb"')
    (here / "mine.json").write_text(text)
    assert run(["init", "--device", "mine.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["next"].endswith("--gpu mine.json")
    assert run([*shlex.split(said["next"])[1:], "-q", "--no-spread"]) == 0


def test_every_column_is_explained(here: Path) -> None:
    comments = services_template()
    for name in ("service", "model", "rate_rps", "latency_limit_ms", "allowed_profiles",
                 "late_share", "queue"):  # fmt: skip
        assert f"\n# {name} " in comments
    for gpu in gpus():
        text = points_template(gpu)
        assert all(f"\n# {name} " in text for name in POINT_COLUMNS)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_spreadsheet_of_another_country_may_save_them(here: Path, delimiter: str) -> None:
    """Opened, and saved as that country has it: the comments lose nothing, the numbers neither."""
    assert run(["init", "-q"]) == 0
    services, points = Path("services.csv"), Path("operating_points.csv")
    before = read_services(services), read_operating_points(points)
    for path in (services, points):
        lines = [
            line + delimiter * 3
            if line.startswith("#")
            else line.replace(",", delimiter).replace(".", ",").replace("g,", "g.")
            for line in path.read_text().splitlines()
        ]
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, delimiter * 5]).encode())
    assert (read_services(services), read_operating_points(points)) == before
