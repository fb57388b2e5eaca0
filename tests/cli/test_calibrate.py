"""``cms calibrate``: load curves, and plans that are made with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.fleet import read_load_curves, read_operating_points, read_plan
from cms.fleet.serving.document_parts import curves_to_json
from tests.cli.shared import POINTS, SERVICES, Cms


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """A service that half a GPU can serve, and points of one and of three processes."""
    (tmp_path / "s.csv").write_text(f"{SERVICES}chat,bert,300,60\n", "utf-8")
    (tmp_path / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,1,8,320,25\nbert,a100-80gb,3g.40gb,1,1,100,10\n"
        "bert,a100-80gb,3g.40gb,3,8,900,27\n",
        "utf-8",
    )
    (tmp_path / "one.csv").write_text(f"{POINTS}bert,a100-80gb,3g.40gb,1,1,100,10\n", "utf-8")


def test_load_curves_are_made_once_and_planned_with(tmp_path: Path, cms: Cms) -> None:
    quick = "--requests 1000 --max-processes 1"
    assert cms("calibrate p.csv -o curves.csv", quick).out == ""  # progress is beside it
    found = read_load_curves("curves.csv")
    assert [key[3:] for key in found] == [(1, 8), (1, 1)]
    cms("plan -s s.csv -p p.csv --max-processes 1 --load-curves curves.csv -o plan.json")
    made = read_plan("plan.json")
    ((point,),) = made.serving.points.values()
    entry = json.loads((tmp_path / "plan.json").read_text("utf-8"))["operating_points"][0]
    assert entry["evidence"] == "simulated"
    assert entry["fill_ms"] == {"1": 10, "8": 25}
    curve = found["bert", "a100-80gb", "3g.40gb", 1, 8]
    (use,) = made.services[0].uses
    assert use.point == point == read_operating_points("p.csv")[0]
    limit = made.serving.services[0].latency_limit_ms
    assert limit is not None
    assert 0 <= curve.sustained(limit) - use.supply_rps < 1


def test_load_curves_go_to_stdout_as_a_table_or_as_json(tmp_path: Path, cms: Cms) -> None:
    quick = "calibrate one.csv --requests 1000 --late-share 5%"
    (tmp_path / "curves.csv").write_text(cms(quick).out, "utf-8")
    curves = cms(quick, "--json").json["load_curves"]
    assert curves == curves_to_json(read_load_curves("curves.csv"))
    assert [curves[0][key] for key in ("model", "batch", "evidence")] == ["bert", 1, "simulated"]
    cms("calibrate one.csv --requests 1000 --late-share 99.99% -q")  # its requests tell so much
    (tmp_path / "fleet.toml").write_text('[tables]\noperating_points = "one.csv"\n', "utf-8")
    assert cms(quick.replace(" one.csv", "")).out == (tmp_path / "curves.csv").read_text("utf-8")
