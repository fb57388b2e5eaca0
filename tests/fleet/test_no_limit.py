"""Services without a latency limit, from the table to the replay."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import solve
from cms.errors import FileError, InvalidOption, InvalidProblem
from cms.fleet import (
    OperatingPoint,
    Plan,
    Service,
    as_problem,
    plan_to_json,
    read_plan,
    read_services,
    simulate,
    write_plan,
)
from cms.fleet.report.figure import drawing
from cms.fleet.report.proofs import promised
from cms.fleet.report.simulations import simulation_page
from cms.fleet.serving import RULES, LoadCurve
from cms.fleet.serving.csv_input import read_operating_points
from cms.fleet.simulation import (
    Failure,
    read_simulation,
    simulation_from_json,
    simulation_to_json,
    write_simulation,
)
from tests.files.test_schemas import require_valid
from tests.fleet.plans import words_of

POINTS = (
    OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 8, 100, 80),
    OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 1, 50, 20),
    OperatingPoint("bert", "a30-24gb", "4g.24gb", 1, 8, 300, "26.7"),
)
FREE = Service("free", "bert", 150)
KEPT = Service("kept", "bert", 40, 400)
A100 = OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 8, 300, "26.7")


def plan_of(*services: Service, rule: str = "capacity", **options: object) -> Plan:
    serving = as_problem(services, POINTS, rule=rule, **options)  # type: ignore[call-overload]
    return Plan(serving, solve(serving.problem))


@pytest.mark.parametrize("rule", RULES)
def test_every_point_is_admissible_and_supplies_its_throughput(rule: str) -> None:
    for point in POINTS:
        assert RULES[rule].supply(FREE, point) == point.throughput_rps
    serving = as_problem([FREE], POINTS, rule=rule)
    assert serving.points["free", "1g.6gb"][0].batch == 8
    assert (serving.unservable, serving.warnings) == ({}, ())


@given(
    processes=st.integers(1, 4), batch=st.integers(1, 16),
    rate=st.fractions(1, 1000, max_denominator=100), slow=st.fractions(1, 3, max_denominator=10),
    limit=st.integers(1, 10**5),
)  # fmt: skip
def test_no_limit_admits_as_much_as_any_limit(
    processes: int, batch: int, rate: Fraction, slow: Fraction, limit: int
) -> None:
    latency = slow * 1000 * processes * batch / rate
    point = OperatingPoint("bert", "a30-24gb", "1g.6gb", processes, batch, rate, latency)
    limited = Service("kept", "bert", 1, limit, queue="process")
    for rule in RULES.values():
        assert rule.supply(FREE, point) >= rule.supply(limited, point)
        assert rule.supply(FREE, point) > 0


def test_a_load_curve_says_nothing_of_a_service_without_a_limit() -> None:
    key = ("bert", "a30-24gb", "1g.6gb", 1, 8)
    plan = plan_of(FREE, KEPT, load_curves={key: LoadCurve([20, 60], [100, 200])})
    points = {(each["service"], each["block"]): each for each in
              plan_to_json(plan)["operating_points"]}  # fmt: skip
    free, kept = points["free", "1g.6gb"], points["kept", "1g.6gb"]
    assert (free["supply_rps"], free["evidence"], free["load_curve"]) == (100, None, None)
    assert (kept["supply_rps"], kept["evidence"]) == (60, "measured")


@pytest.mark.parametrize("rule", RULES)
def test_a_plan_says_so_and_is_read_again(rule: str, tmp_path: Path) -> None:
    for services in ([FREE, KEPT], [FREE]):
        plan = plan_of(*services, rule=rule)
        write_plan(plan, tmp_path / "plan.json")
        assert read_plan(tmp_path / "plan.json") == plan
        document = plan_to_json(plan)
        assert document["services"][0]["latency_limit_ms"] is None
        (serves,) = {
            one["slack_ms"] for group in document["groups"] for each in group["instances"]
            for one in each["serves"] if one["service"] == "free"
        }  # fmt: skip
        assert serves is None
        wanted = RULES[rule].promise is not None and KEPT in services
        assert (document["promise"] is not None) == wanted
        require_valid("plan", document)


def test_a_promise_leaves_out_who_has_no_limit() -> None:
    both = promised(as_problem([FREE, KEPT], POINTS))
    assert "Not promised: any latency of the service without a limit, other arrivals" in both
    alone = promised(as_problem([FREE], POINTS))
    assert "promises nothing of latencies here: no service has a limit" in alone
    assert "limit" not in promised(as_problem([KEPT], POINTS)).partition("Not promised")[2]


def test_a_replay_gives_no_verdict_but_the_99th_percentile(tmp_path: Path) -> None:
    found = simulate(plan_of(FREE, KEPT), requests=3000)
    free = found.service("free")
    assert (free.verdict, free.limit_ns, free.late, free.p99_share) == ("no limit", None, 0, None)
    assert f"free: NO LIMIT: p99 is {free.p99_ns / 10**6:.4g} ms" in str(found)
    assert "1 of 1 limits kept" in found.sentence
    assert found.sentence.endswith("; 1 service without a limit")
    assert found.promised
    write_simulation(found, tmp_path / "s.json")
    assert read_simulation(tmp_path / "s.json") == found
    assert "free: no limit, " in words_of(drawing(simulation_page(found, "t")))
    document = simulation_to_json(found)
    require_valid("simulation", document)
    assert document["services"][0]["limit_ms"] is None
    document["services"][0]["limit_ms"] = 5
    with pytest.raises(FileError, match='null just where the verdict is "no limit"'):
        simulation_from_json(document)


def test_a_replay_of_services_without_limits_alone_promises_nothing() -> None:
    found = simulate(plan_of(FREE), requests=500, events=[Failure(1, gpu=0)], on_failure="lose")
    assert not found.promised
    assert found.sentence.startswith("0 of 0 limits kept")
    assert drawing(simulation_page(found, "t")).startswith("<svg")


def test_what_is_overloaded_is_said_to_be() -> None:
    found = simulate(plan_of(FREE), requests=3000, rate=3).service("free")
    assert (found.verdict, found.overloaded) == ("no limit", True)
    assert "work off 200 requests/s at most" in found.cause or "work off 300" in found.cause


# --- tables ---------------------------------------------------------------------------------------


def read(folder: Path, text: str) -> tuple[Service, ...]:
    (folder / "services.csv").write_text(text)
    return read_services(folder / "services.csv")


def test_the_column_and_the_cell_may_be_missing(tmp_path: Path) -> None:
    (free,) = read(tmp_path, "service,model,rate_rps\nfree,bert,150\n")
    assert free == FREE
    assert str(free) == "free (bert): 150 items/s without a latency limit"
    both = read(
        tmp_path, "service,model,rate_rps,Latency limit ms\nfree,bert,150,\nkept,bert,40,400\n"
    )
    assert both == (FREE, KEPT)


@pytest.mark.parametrize("name", ["latency_ms", "slo_ms", "SLA", "p99", "Limit", "deadline ms"])
def test_limits_under_another_name_are_not_left_aside_in_silence(name: str, tmp_path: Path) -> None:
    for more, cell in (("", ""), (",latency_limit_ms", ",400")):  # the second limit is one too
        with pytest.raises(FileError, match=r"services.csv:1: .*latency_limit_ms"):
            read(tmp_path, f"service,model,rate_rps,{name}{more}\nfree,bert,150,40{cell}\n")


def test_a_late_share_without_a_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="has a late share and no latency limit"):
        Service("free", "bert", 1, late_share="0.1")
    with pytest.raises(FileError, match=r"services.csv:2: service 'free' has a late share"):
        read(tmp_path, "service,model,rate_rps,late_share\nfree,bert,150,0.1\n")


# --- devices --------------------------------------------------------------------------------------


def test_the_device_of_all_points_is_planned_with() -> None:
    assert [gpu.key for gpu in as_problem([FREE], POINTS).gpus] == ["a30-24gb"]
    spelt = OperatingPoint("bert", "A100-SXM4-80GB", "7g.80gb", 1, 8, 300, "26.7")
    assert [gpu.key for gpu in as_problem([FREE], [A100, spelt]).gpus] == ["a100-80gb"]
    assert [gpu.key for gpu in as_problem([FREE], [A100, *POINTS], "a30-24gb").gpus] == ["a30-24gb"]


def test_where_there_are_several_devices_the_error_names_them() -> None:
    with pytest.raises(InvalidOption, match=r"on 2 GPUs: a100-80gb, a30-24gb; say which .*--gpu"):
        as_problem([FREE], iter([A100, *POINTS]))
    unknown = OperatingPoint("bert", "b999", "3g.40gb", 1, 8, 300, "26.7", origin="p.csv:2")
    with pytest.raises(InvalidProblem, match=r"^p.csv:2: .*'b999', which is not known"):
        as_problem([FREE], [unknown])


def test_the_command_line_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cms.cli.app import run

    services, points = tmp_path / "s.csv", tmp_path / "p.csv"
    services.write_text("service;model;rate rps\nfree;bert;1,5\n")
    header = "model;device;profile;processes;batch;throughput_rps;latency_ms\n"
    points.write_text(f"{header}bert;a30-24gb;1g.6gb;1;8;100;80\n")
    assert len(read_operating_points(points)) == 1
    command = ["plan", "-s", str(services), "-p", str(points)]
    assert run([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [device["key"] for device in document["devices"]] == ["a30-24gb"]
    assert Fraction(document["services"][0]["rate_rps"]) == Fraction(3, 2)
    assert run(command) == 0
    assert "no service has a latency limit" in capsys.readouterr().out
    with points.open("a") as file:
        file.write("bert;a100-80gb;3g.40gb;1;8;300;26,7\n")
    assert run(command) == 2
    assert "on 2 GPUs: a100-80gb, a30-24gb" in capsys.readouterr().err
