"""Columns that are called otherwise in the user's tables: ``--map`` and ``[tables] map``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms.cli.app import run

SERVICES = "service,net,qps,slo_ms\nchat,bert,19,6434\n"
POINTS = (
    "net,device,profile,processes,batch,throughput_rps,latency_ms\n"
    "bert,a100-80gb,1g.10gb,2,1,104.84,19\n"
)
MAPPED = ["--map", "qps=rate_rps", "--map", "slo_ms=latency_limit_ms", "--map", "net=model"]


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text(SERVICES)
    Path("p.csv").write_text(POINTS)
    return ["plan", "-s", "s.csv", "-p", "p.csv", "-o"]


def test_map_names_columns_on_the_command_line_and_in_the_settings(given: list[str]) -> None:
    assert run([*given, "own.json", "-q", *MAPPED]) == 0
    renamed = SERVICES.replace("net,qps,slo_ms", "model,rate_rps,latency_limit_ms")
    Path("s.csv").write_text(renamed)
    Path("p.csv").write_text(POINTS.replace("net", "model"))
    assert run([*given, "plain.json", "-q"]) == 0
    Path("s.csv").write_text(SERVICES)
    Path("p.csv").write_text(POINTS)
    Path("fleet.toml").write_text(
        '[tables]\nmap = { qps = "rate_rps", slo_ms = "latency_limit_ms", net = "model" }\n'
    )
    assert run([*given, "settled.json", "-q"]) == 0
    plans = [Path(f"{name}.json").read_text() for name in ("own", "plain", "settled")]
    services = [text[text.index('"services"') : text.index('"problem"')] for text in plans]
    assert services[0] == services[1] == services[2]
    assert "6434" in services[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "s.csv:1: there is no column 'model'"),
        (MAPPED[2:], "s.csv:1: there is no column 'rate_rps'"),
        (MAPPED[:2] + MAPPED[4:], "'slo_ms' is not known"),
        (["--map", "qps=rate"], "'rate' is no column; nearest: 'rate_rps'"),
        (["--map", "qps"], "--map"),
    ],
)
def test_map_refuses_what_no_column_is(
    given: list[str], options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*given, "plan.json", *options]) in (1, 2)
    assert said in capsys.readouterr().err
    assert not Path("plan.json").exists()
