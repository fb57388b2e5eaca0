"""The two CSV tables: what is read, each kind of slip, and services without a latency limit."""

from __future__ import annotations

import re
from dataclasses import replace
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
    build_problem,
    get_gpu,
    plan_to_json,
    read_operating_points,
    read_plan,
    read_services,
    simulate,
    write_plan,
)
from cms.fleet.report.figure import drawing
from cms.fleet.report.proofs import describe_promise
from cms.fleet.report.simulations import simulation_page
from cms.fleet.serving import RULES, LoadCurve
from cms.fleet.simulation import (
    Failure,
    read_simulation,
    simulation_from_json,
    simulation_to_json,
    write_simulation,
)
from tests.files.test_schemas import require_valid
from tests.fleet.plans import words_of

SERVICES = "service,model,rate_rps,latency_limit_ms"
POINTS = "model,device,profile,processes,batch,throughput_rps,latency_ms"
GOOD_POINT = "bert,a100-80gb,3g.40gb,1,1,100,10"


def write(folder: Path, *lines: str, end: str = "\n") -> Path:
    path = folder / "table.csv"
    path.write_bytes((end.join(lines)).encode())
    return path


def test_tables_are_read_exactly_with_lists_and_other_columns(tmp_path: Path) -> None:
    path = write(tmp_path, SERVICES, "chat,bert,19,418.5", "search,bert,1/3,1e2", "free,bert,1,")
    chat, search, free = read_services(path)
    assert chat == Service("chat", "bert", 19, "418.5")
    assert (search.rate_rps, search.latency_limit_ms) == (Fraction(1, 3), Fraction(100))
    assert free == Service("free", "bert", 1)
    assert read_services(write(tmp_path, SERVICES[:22], "free,bert,1")) == (free,)
    rows = ("a,m,1,1,1g.10gb+me 3g.40gb", "b,m,1,1,3g.40gb; mps:40;", "c,m,1,1,", "d,m,1,1,-")
    services = read_services(write(tmp_path, SERVICES + ",allowed_profiles", *rows))
    assert [service.allowed_profiles for service in services] == [
        ("1g.10gb+me", "3g.40gb"),
        ("3g.40gb", "mps:40"),
        None,
        None,
    ]
    (service,) = read_services(write(tmp_path, SERVICES + ",team", "chat,bert,1,1,search"))
    assert dict(service.extra) == {"team": "search"}
    (point,) = read_operating_points(write(tmp_path, POINTS + ",source", GOOD_POINT + ",run 7"))
    assert dict(point.extra) == {"source": "run 7"}
    for end in ("\n", "\r\n"):
        path = write(tmp_path, POINTS, "bert,A100-SXM4-80GB,1g.10gb,2,4,104.84,19", "", end=end)
        assert read_operating_points(path) == (
            OperatingPoint("bert", "A100-SXM4-80GB", "1g.10gb", 2, 4, "104.84", 19),
        )


ASKING = (
    *("ttft_ms", "target_ms", "latency (ms)", "latency_ms", "slo", "SLA", "p99", "P99Ms", "Limit"),
    *("maxLatency", "deadline_s", "TPOT", "timeout", "wait_us", "e2e", "qps", "rps", "Rate"),
    *("peakRps", "requests", "min_replica", "replicas", "priority", "max_per_gpu", "Weight"),
    *("copies", "profile", "spred", "time_to_first_token", "TimePerOutputToken", "turnaround"),
    *("95th", "arrivals", "calls", "requests_per_min", "tokens_per_s", "tok/s", "calls per day"),
    *("req/h", "users", "peak"),
)


@pytest.mark.parametrize("column", ASKING)
def test_a_limit_a_rate_or_a_wish_under_another_name_is_never_dropped(
    tmp_path: Path, column: str
) -> None:
    for header, row in ((SERVICES, "chat,bert,1,1"), (SERVICES[:22], "chat,bert,1")):
        with pytest.raises(FileError, match=f":1: the column '{re.escape(column)}' is not known"):
            read_services(write(tmp_path, f"{header},{column}", f"{row},80"))


def test_a_column_that_asks_for_nothing_is_a_note(tmp_path: Path) -> None:
    for column in (
        *("owner", "comment", "team", "tier", "items", "slot_count", "channel_id", "rooms"),
        *("last_seen", "spreadsheet", "speed", "upper", "params_b", "usd_per_hour", "queue_name"),
        *("power_limit_w", "max_tokens", "instance_type", "response_tokens", "error_rate"),
        *("weight_gb", "cache_hit_rate", "max_model_len"),
    ):
        path = write(tmp_path, f"{SERVICES},{column},limit_owner", "a,b,1,1,7,us")
        assert dict(read_services(path)[0].extra) == {column: "7", "limit_owner": "us"}


def test_a_known_column_is_known_however_its_words_are_joined(tmp_path: Path) -> None:
    header = "\ufeffService,MODEL,Rate (rps),LatencyLimitMs,Min Replicas,late-share"
    (service,) = read_services(write(tmp_path, header, "chat,bert,1,80,2,5%"))
    assert service == Service("chat", "bert", 1, 80, None, {"min_replicas": "2"}, "", "0.05")
    (point,) = read_operating_points(write(tmp_path, POINTS + ",Cold Start [s]", GOOD_POINT + ",9"))
    assert dict(point.extra) == {"cold_start_s": "9"}
    for wrong in ("cold_start_ms", "latency_limit_ms"):
        with pytest.raises(FileError, match=f"'{wrong}' is not known"):
            read_operating_points(write(tmp_path, f"{POINTS},{wrong}", GOOD_POINT + ",9"))
    measured = write(tmp_path, POINTS + ",p99_ms", GOOD_POINT + ",9")  # more than is asked for
    assert len(read_operating_points(measured)) == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((SERVICES, "chat,bert,10 rps,40"), "without the unit 'rps'"),
        ((SERVICES, "chat,bert,1,0"), ":2:13: latency_limit_ms is"),
        ((SERVICES, "chat,,1,1"), ":2:6: model is empty, expected a name"),
        ((SERVICES, "chat,bert,1"), ":2: this row has 3 cells, expected 4"),
        ((SERVICES,), "the table has no row"),
        ((SERVICES + ",allowed_profile", "a,b,1,1,3g.40gb"), "nearest: 'allowed_profiles'"),
        ((SERVICES.replace(",", ";"), "a;b;1,234;1"), ':2:5: rate_rps has "1,234", which is 1234 '),
        ((SERVICES + ",Rate RPS", "a,b,1,1,2"), "are called 'rate_rps' and 'Rate RPS'"),
        ((SERVICES[:22] + ",late_share", "a,b,1,0.1"), ":2: service 'a' has a late share"),
        ((POINTS, "bert,a100-80gb,3g.40gb,0,1,100,10"), ":2:24: processes is"),
        ((POINTS, "bert,a100-80gb,3g.40gb,1,1.5,100,10"), ":2:26: batch is"),
        ((POINTS, "bert,a100-80gb,3g.40gb,1,1,0,10"), ":2:28: throughput_rps is"),
        ((POINTS, "bert,a100-80gb,3g.40gb,1,1,100,"), ":2:32: latency_ms is"),
        ((POINTS, GOOD_POINT, "", GOOD_POINT), ":4: a second row for bert on a100-80gb, 3g.40gb"),
        ((POINTS, "bert,a100-80gb,mps:0,1,1,100,10"), ":2: the profile 'mps:0' is no share"),
        ((POINTS, "bert,a100-80gb,mps:40,2,1,100,10"), ":2: an operating point of 'bert' on mps"),
        ((POINTS.replace("latency_ms", "latency_us"), GOOD_POINT), "nearest: 'latency_us'"),
    ],
)
def test_a_slip_is_named_with_its_place(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    path = write(tmp_path, *lines)
    read = read_services if lines[0].startswith("service") else read_operating_points
    with pytest.raises(FileError) as caught:
        read(path)
    assert message in str(caught.value).replace(str(path), "")


@pytest.mark.parametrize(
    ("service", "point", "message"),
    [
        ("chat,brt,1,100,", GOOD_POINT, "services.csv:2: service 'chat' runs the model 'brt'"),
        ("chat,bert,1,100,3g.40g", GOOD_POINT, "services.csv:2: service 'chat' allows the prof"),
        ("chat,bert,1,100,", "bert,a100,3g.40gb,1,1,1,1", "points.csv:3: operating points were"),
        ("chat,bert,1,100,", "bert,a100-80gb,3g.20gb,1,1,1,1", "points.csv:3: an operating point"),
    ],
)
def test_what_does_not_fit_together_is_named_with_its_line(
    tmp_path: Path, service: str, point: str, message: str
) -> None:
    services, points = tmp_path / "services.csv", tmp_path / "points.csv"
    services.write_text(f"{SERVICES},allowed_profiles\n{service}\n")
    points.write_text(f"{POINTS}\nbert,a100-80gb,7g.80gb,1,1,1,1\n{point}\n")
    with pytest.raises(InvalidProblem) as caught:
        build_problem(read_services(services), read_operating_points(points))
    assert message in str(caught.value)


MEASURED = (
    OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 8, 100, 80),
    OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 1, 50, 20),
    OperatingPoint("bert", "a30-24gb", "4g.24gb", 1, 8, 300, "26.7"),
)
FREE = Service("free", "bert", 150)
KEPT = Service("kept", "bert", 40, 400)
A100 = OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 8, 300, "26.7")


def plan_of(*services: Service, rule: str = "capacity", **options: object) -> Plan:
    serving = build_problem(services, MEASURED, rule=rule, **options)  # type: ignore[call-overload]
    return Plan(serving, solve(serving.problem))


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
        assert 0 < rule.supply(FREE, point) >= rule.supply(limited, point)
        assert slow > 1 or rule.supply(FREE, point) == rate


def test_curves_and_promises_leave_out_who_has_no_limit() -> None:
    key = ("bert", "a30-24gb", "1g.6gb", 1, 8)
    plan = plan_of(FREE, KEPT, load_curves={key: LoadCurve([20, 60], [100, 200])})
    points = {(each["service"], each["block"]): each for each in
              plan_to_json(plan)["operating_points"]}  # fmt: skip
    free, kept = points["free", "1g.6gb"], points["kept", "1g.6gb"]
    assert (free["supply_rps"], free["evidence"], free["load_curve"]) == (100, None, None)
    assert (kept["supply_rps"], kept["evidence"]) == (60, "measured")
    both = describe_promise(build_problem([FREE, KEPT], MEASURED))
    assert "Not promised: any latency of the service without a limit, other arrivals" in both
    alone = describe_promise(build_problem([FREE], MEASURED))
    assert "promises no latency here: no service has a limit" in alone
    kept = describe_promise(build_problem([KEPT], MEASURED))
    assert "limit" not in kept.partition("Not promised")[2]


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


def test_a_replay_gives_no_verdict_but_the_99th_percentile(tmp_path: Path) -> None:
    found = simulate(plan_of(FREE, KEPT), requests=3000)
    free = found.service("free")
    assert (free.verdict, free.limit_ns, free.late, free.p99_share) == ("no limit", None, 0, None)
    assert f"free: NO LIMIT: p99 is {free.p99_ns / 10**6:.4g} ms" in str(found)
    assert "1 of 1 limits met" in found.sentence
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
    found = simulate(plan_of(FREE), requests=500, events=[Failure(1, gpu=0)], on_failure="lose")
    assert not found.promised
    assert found.sentence.startswith("0 of 0 limits met")
    assert drawing(simulation_page(found, "t")).startswith("<svg")
    over = simulate(plan_of(FREE), requests=3000, rate=3).service("free")
    assert (over.verdict, over.overloaded) == ("no limit", True)
    assert "work off 200 requests/s at most" in over.cause or "work off 300" in over.cause


def test_devices_are_told_by_the_points_and_late_shares_need_limits() -> None:
    with pytest.raises(InvalidProblem, match="has a late share and no latency limit"):
        Service("free", "bert", 1, late_share="0.1")
    assert [gpu.key for gpu in build_problem([FREE], MEASURED).gpus] == ["a30-24gb"]
    spelt = OperatingPoint("bert", "A100-SXM4-80GB", "7g.80gb", 1, 8, 300, "26.7")
    assert [gpu.key for gpu in build_problem([FREE], [A100, spelt]).gpus] == ["a100-80gb"]
    assert [gpu.key for gpu in build_problem([FREE], [A100, *MEASURED], "a30-24gb").gpus] == [
        "a30-24gb"
    ]
    with pytest.raises(InvalidOption, match=r"on 2 GPUs: a100-80gb, a30-24gb; say which .*--gpu"):
        build_problem([FREE], iter([A100, *MEASURED]))
    own = replace(get_gpu("a100-80gb"), aliases=())  # a file that leaves the product names out
    assert set(build_problem([FREE], [spelt], own).points) == {("free", "7g.80gb")}
    unknown = OperatingPoint("bert", "b999", "3g.40gb", 1, 8, 300, "26.7", origin="p.csv:2")
    with pytest.raises(InvalidProblem, match=r"^p.csv:2: .*'b999', which is not known"):
        build_problem([FREE], [unknown])
