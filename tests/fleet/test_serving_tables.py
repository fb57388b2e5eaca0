"""The two CSV tables: what is read, and what each kind of slip is told."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from cms.errors import FileError, InvalidProblem
from cms.fleet import OperatingPoint, Service, as_problem, read_operating_points, read_services

SERVICES = "service,model,rate_rps,latency_limit_ms"
POINTS = "model,device,profile,processes,batch,throughput_rps,latency_ms"
GOOD_POINT = "bert,a100-80gb,3g.40gb,1,1,100,10"


def write(folder: Path, *lines: str, end: str = "\n") -> Path:
    path = folder / "table.csv"
    path.write_bytes((end.join(lines)).encode())
    return path


def test_services_are_read_exactly_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, SERVICES, "chat,bert,19,418.5", "search,bert,1/3,1e2", "free,bert,1,")
    chat, search, free = read_services(path)
    assert chat == Service("chat", "bert", 19, "418.5")
    assert (search.rate_rps, search.latency_limit_ms) == (Fraction(1, 3), Fraction(100))
    assert free == Service("free", "bert", 1)
    assert read_services(write(tmp_path, SERVICES[:22], "free,bert,1")) == (free,)


def test_allowed_profiles_have_blanks_or_semicolons_between_them(tmp_path: Path) -> None:
    rows = ("a,m,1,1,1g.10gb+me 3g.40gb", "b,m,1,1,3g.40gb; mps:40;", "c,m,1,1,", "d,m,1,1,-")
    services = read_services(write(tmp_path, SERVICES + ",allowed_profiles", *rows))
    assert [service.allowed_profiles for service in services] == [
        ("1g.10gb+me", "3g.40gb"),
        ("3g.40gb", "mps:40"),
        None,
        None,
    ]


def test_other_columns_are_kept_as_they_were_written(tmp_path: Path) -> None:
    (service,) = read_services(write(tmp_path, SERVICES + ",team", "chat,bert,1,1,search"))
    assert dict(service.extra) == {"team": "search"}
    (point,) = read_operating_points(write(tmp_path, POINTS + ",source", GOOD_POINT + ",run 7"))
    assert dict(point.extra) == {"source": "run 7"}


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


@pytest.mark.parametrize(
    "column",
    [
        *("owner", "comment", "team", "tier", "items", "slot_count", "channel_id", "rooms"),
        *("last_seen", "spreadsheet", "speed", "upper", "params_b", "usd_per_hour", "queue_name"),
        *("power_limit_w", "max_tokens", "instance_type", "response_tokens", "error_rate"),
        *("weight_gb", "cache_hit_rate", "max_model_len"),
    ],
)
def test_a_column_that_asks_for_nothing_is_a_note(tmp_path: Path, column: str) -> None:
    (service,) = read_services(write(tmp_path, f"{SERVICES},{column},limit_owner", "a,b,1,1,7,us"))
    assert dict(service.extra) == {column: "7", "limit_owner": "us"}


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


def test_operating_points_are_read_whatever_the_line_ends(tmp_path: Path) -> None:
    for end in ("\n", "\r\n"):
        path = write(tmp_path, POINTS, "bert,A100-SXM4-80GB,1g.10gb,2,4,104.84,19", "", end=end)
        assert read_operating_points(path) == (
            OperatingPoint("bert", "A100-SXM4-80GB", "1g.10gb", 2, 4, "104.84", 19),
        )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((SERVICES, 'chat,bert,"12,5",40'), ':2:11: rate_rps is "12,5", expected a number >= 0; '),
        ((SERVICES, "chat,bert,-1,40"), ":2:11: rate_rps is"),
        ((SERVICES, "chat,bert,10 rps,40"), "without the unit 'rps'"),
        ((SERVICES, "chat,bert,1,0"), ":2:13: latency_limit_ms is"),
        ((SERVICES, "chat,,1,1"), ":2:6: model is empty, expected a name"),
        ((SERVICES, "chat,bert,1,1", "chat,vgg,1,1"), ':3:1: service "chat" is there twice, first'),
        ((SERVICES, "chat,bert,1"), ":2: this row has 3 cells, expected 4"),
        ((SERVICES,), "the table has no row"),
        ((SERVICES.replace("rate_rps", "rate"), "a,b,1,1"), ":1: there is no column 'rate_rps'"),
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
        as_problem(read_services(services), read_operating_points(points))
    assert message in str(caught.value)
