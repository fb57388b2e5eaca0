"""``cms init``: tables and settings on which ``cms plan`` works at once; never written over."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cms.errors import FileError
from cms.fleet.hardware import list_gpus
from cms.fleet.serving.csv_input import POINT_COLUMNS, points_template, services_template
from tests.cli.shared import ROOT, Cms

KEYS = [gpu.key for gpu in list_gpus()]
FILES = ["fleet.toml", "operating_points.csv", "services.csv"]


@pytest.mark.parametrize("key", KEYS)
def test_plan_is_made_of_them_at_once_and_without_a_warning(key: str, cms: Cms) -> None:
    said = cms("init --gpu", key, "--json").json
    assert said["device"] == key
    program, *command = shlex.split(said["next"])
    assert program == "cms"
    plan = cms(command, "--json --no-balance").json
    assert plan["solution"]["status"] == "optimal"
    assert plan["warnings"] == []
    assert [device["key"] for device in plan["devices"]] == [key]
    limits = [service["latency_limit_ms"] for service in plan["services"]]
    assert None in limits
    assert any(limits)


def test_what_to_do_next_is_printed_and_can_be_typed(tmp_path: Path, cms: Cms) -> None:
    (tmp_path / "my fleet").mkdir()
    east = Path("my fleet/east")
    out = cms("init", east).out
    assert out.startswith("made the folder my fleet/east\nwrote my fleet/east/services.csv")
    (line,) = (line for line in out.splitlines() if line.startswith("    cms plan"))
    cms(shlex.split(line)[1:], "-q")
    assert sorted(path.name for path in east.iterdir()) == FILES
    assert cms("init other -q").out == ""
    assert "made the folder" not in cms("init", east, "--force").out


@pytest.mark.parametrize("name", FILES)
def test_file_that_is_there_is_not_written_over(tmp_path: Path, name: str, cms: Cms) -> None:
    (tmp_path / name).write_text("mine")
    said = cms("init", code=2).error
    assert f"error: {name} is there already; --force writes over" in said
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"
    cms("init --force")
    assert (tmp_path / name).read_text().startswith("# ")


def test_device_file_of_ones_own_is_named_in_the_settings(tmp_path: Path, cms: Cms) -> None:
    source = ROOT / "cms/fleet/hardware/devices/a30-24gb.json"
    text = source.read_text().replace('"key": "a30-24gb"', '"key": "mine-24gb"')
    (tmp_path / "mine.json").write_text(text)
    for folder in (".", "below"):
        said = cms("init", folder, "--gpu mine.json --json").json
        (device,) = cms(shlex.split(said["next"])[1:], "--json --no-balance").json["devices"]
        assert device["key"] == "mine-24gb"


def test_every_column_is_explained() -> None:
    comments = services_template()
    for name in ("service", "model", "rate_rps", "latency_limit_ms", "allowed_profiles",
                 "late_share", "queue"):  # fmt: skip
        assert f"\n# {name} " in comments
    for gpu in list_gpus():
        text = points_template(gpu)
        assert all(f"\n# {name} " in text for name in POINT_COLUMNS)


def test_init_that_fails_leaves_nothing(
    tmp_path: Path, cms: Cms, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(data: bytes, path: Path) -> None:
        if path.name != "services.csv":
            raise FileError(str(path), "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr("cms.cli.init.write_bytes", write)
    cms("init new", code=1)
    assert not (tmp_path / "new").exists()
