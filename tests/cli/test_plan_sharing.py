"""``cms plan --sharing time``: what reaches the plan, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet.serving import SharedServing, read_plan
from tests.fleet.mixes import POINTS, SERVICES


@pytest.fixture
def made(tmp_path: Path) -> list[str]:
    """The arguments of a plan of two services that share a GPU."""
    services, points = tmp_path / "two.csv", tmp_path / "points.csv"
    rows = [f"{s.name},{s.model},{s.rate_rps},{s.latency_limit_ms}" for s in SERVICES]
    services.write_text("\n".join(["service,model,rate_rps,latency_limit_ms", *rows]) + "\n")
    rows = [
        f"{p.model},{p.device},{p.profile},1,{p.batch},{float(p.throughput_rps)},{p.latency_ms}"
        for p in POINTS
    ]
    head = "model,device,profile,processes,batch,throughput_rps,latency_ms"
    points.write_text("\n".join([head, *rows]) + "\n")
    first = ["plan", "-s", str(services), "-p", str(points), "-m", "mix_first_fit"]
    return [*first, "--option", "orders=5"]


def test_a_plan_that_shares_is_printed_drawn_written_and_rechecked(
    made: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
    options = ["--rule", "collect_then_run", "--max-services", "2", "--headroom", "gpulet"]
    files = ["-o", str(plan), "--picture", str(picture)]
    assert run([*made, "--sharing", "time", *options, *files]) == 0
    out = capsys.readouterr().out
    assert "blocks shared in time, collect_then_run" in out
    assert "planned/s" in out
    serving = read_plan(plan).serving
    assert isinstance(serving, SharedServing)
    assert (serving.sharing.rule.value, serving.sharing.max_services) == ("collect_then_run", 2)
    assert [job.demand for job in serving.problem.jobs] == [342, 289]
    assert picture.read_text("utf-8").startswith("<svg")
    assert run(["check", str(plan)]) == 0
    assert capsys.readouterr().out.startswith("valid: ")


def test_overheads_come_from_a_table(
    made: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "o.csv"
    table.write_text("batch,overhead_ms\n4,1\n8,2\n")
    more = ["--headroom", "gpulet", "--batching-overheads", str(table), "--splits", "any"]
    assert run([*made, "--sharing", "time", *more, "--json"]) == 0
    sharing = json.loads(capsys.readouterr().out)["sharing"]
    assert sharing["headroom"] == {"name": "gpulet", "overheads_ms": {"4": 1, "8": 2}}
    assert sharing["splits"] == "any"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--sharing", "space"], 2, "--sharing: 'space': expected time"),
        (["--max-services", "2"], 2, "--max-services: it goes with --sharing time"),
        (["--splits", "any"], 2, "--splits: it goes with --sharing time"),
        (["--headroom", "gpulet"], 2, "--headroom: it goes with --sharing time"),
        (["--sharing", "time", "--splits", "an"], 2, "--splits: 'an': expected any or pairs"),
        (["--sharing", "time", "--headroom", "g"], 2, "--headroom: 'g': expected gpulet"),
        (
            ["--sharing", "time", "--batching-overheads", "o.csv"],
            2,
            "--batching-overheads: it goes with --headroom",
        ),
        (["--sharing", "time", "--load-curves", "c.csv"], 2, "--load-curves: it is for instances"),
        (["--sharing", "time", "--near", "now.json"], 2, "--near: it is for instances"),
        (["--sharing", "time", "--rule", "half"], 2, "the queueing rule 'half' knows no frames"),
        (["--rule", "round_robin"], 2, "is for instances that services share in time"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    made: list[str], options: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*made, *options]) == code
    assert message in capsys.readouterr().err
