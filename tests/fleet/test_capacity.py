"""The capacity rules: tables, load curves, what plans say of them, and the published counts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.loads import BATCHES, LATE_SHARES, RATIOS, largest_load
from cms import find_growth, solve
from cms.errors import FileError, InvalidProblem
from cms.fleet import (
    RULES,
    CapacityRule,
    FillTimes,
    LoadCurve,
    OperatingPoint,
    Plan,
    Service,
    build_problem,
    plan_from_json,
    plan_to_json,
    read_load_curves,
    read_services,
)
from cms.fleet.serving.capacity import _FOLDER, digest, sustainable_load
from cms.fleet.serving.load_curve import key_of
from cms.fleet.simulation.load_curves import LOADS, load_curves, run_lengths
from instances import published
from tests.fleet.plans import set_at
from tests.samples import few

A100 = "a100-80gb"
CENT = Fraction(1, 100)


def point(batch: int = 8, rate: Any = 320, processes: int = 1, latency: Any = 25) -> OperatingPoint:
    return OperatingPoint("bert", A100, "1g.10gb", processes, batch, rate, latency)


def chat(limit: Any = 60, **more: Any) -> Service:
    return Service("chat", "bert", 100, limit, **more)


KEY = ("bert", A100, "1g.10gb", 1, 8)


@pytest.mark.parametrize(("name", "processes"), [("certified", 1), ("simulated", 6)])
def test_the_file_of_a_table_is_what_it_says(name: str, processes: int) -> None:
    document = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    assert document["sha256"] == digest(document)
    assert document.get("requests", 10**7) >= 10**7
    assert [Fraction(each) for each in document["ratios"]] == list(RATIOS)
    assert [Fraction(each) for each in document["late_shares"]] == list(LATE_SHARES)
    figures = np.array(document["thousandths"])
    assert figures.shape == (3, processes, 57, 9)
    assert (figures.min() > 0, figures.max() < 1000) == (True, True)
    for axis in (0, 2):  # loads grow with the late share and the ratio
        assert (np.diff(figures, axis=axis) >= 0).all()


def test_queues_of_an_instance_allow_more_and_what_is_certified_is_a_queue_a_process() -> None:
    for c, b, load in ((2, 1, "0.36"), (4, 8, "0.8"), (5, 1, "0.66"), (7, 1, "0.66")):
        several = sustainable_load(c, b, Fraction(2), CENT, queue="instance")
        # the table's c processes of an instance's
        shown = Fraction(load) * (5 if c == 7 else c) / c
        assert several == max(shown, sustainable_load(c, b, Fraction(2), CENT))
    rule, two = RULES["capacity_certified"], point(processes=2, rate=640)
    assert rule.supply(chat(), two) == 2 * rule.supply(chat(), point())
    assert rule.supply(chat(queue="instance"), two) == 0
    assert "proved for a queue a process" in rule.refusal(chat(queue="instance"), two)
    assert rule.promise is not None
    assert rule.promise.queue == "process"


@pytest.mark.parametrize(
    "entry", few(3, [(1, 3, 3), (0, 0, 0), (2, 20, 5), (1, 56, 8), (0, 40, 7), (2, 5, 1)])
)
def test_an_entry_of_the_table_is_found_again(entry: tuple[int, int, int]) -> None:
    share, ratio, batch = LATE_SHARES[entry[0]], RATIOS[entry[1]], BATCHES[entry[2]]
    assert largest_load(batch, ratio, share) == sustainable_load(1, batch, ratio, share)


@given(
    st.integers(1, 5), st.integers(1, 600), st.fractions(0, 30, max_denominator=40),
    st.sampled_from([Fraction(1, 2000), *LATE_SHARES, Fraction(1, 8)]), st.data(),
)  # fmt: skip
def test_more_room_never_lowers_the_rate(
    processes: int, batch: int, ratio: Fraction, share: Fraction, data: st.DataObject
) -> None:
    load = sustainable_load(processes, batch, ratio, share)
    assert 0 <= load < 1
    assert (load == 0) == (ratio < 2 or share < LATE_SHARES[0])
    larger = batch + data.draw(st.integers(0, 20))
    assert sustainable_load(processes, larger, ratio, share) * larger >= load * batch
    assert sustainable_load(processes, batch, ratio + Fraction(1, 7), share) >= load
    assert sustainable_load(processes, batch, ratio, share * 2) >= load


def test_the_table_or_a_load_curve_is_entered_with_the_limit() -> None:
    rule, b8 = RULES["capacity"], point()
    assert rule.supply(chat(50), b8) == 320 * Fraction(506, 1000) // CENT * CENT
    assert rule.supply(chat("49.999"), b8) == 0
    assert rule.refusal(chat("49.999"), b8) == (
        "25 ms a batch is 1.99 times within 49.999 ms; the rule needs 2: a limit of 50 ms would do"
    )
    stricter = rule.supply(chat(50, late_share="0.001"), b8)
    assert stricter == 320 * Fraction(340, 1000)
    assert rule.supply(chat(50, late_share="0.0001"), b8) == 0
    assert "a late share of 0.0001 is below 0.001" in rule.refusal(
        chat(50, late_share="0.0001"), b8
    )
    slow = point(latency=30)
    assert (point().batch_ms, point(latency="26.2").batch_ms, slow.batch_ms) == (25, 25, 30)
    serving = build_problem([chat(limit=60)], [slow])
    assert serving.supply("chat", "1g.10gb") == Fraction("134.933")
    assert "a batch takes longer than processes x batch / throughput" in serving.warnings[0]
    assert not build_problem([chat()], [slow], rule="half").warnings
    curve = LoadCurve([100, 200, 310], ["30.5", 45, 90])
    serving = build_problem([chat()], [point()], load_curves={KEY: curve})
    assert serving.supply("chat", "1g.10gb") == 200  # nothing is known of a third of the way on
    assert RULES["capacity"].supply(chat(), point()) != serving.supply("chat", "1g.10gb")
    rule = serving.rule
    # a stricter service is beyond the curve, a laxer one is not
    assert rule.supply(chat(late_share="0.001"), point()) < 200
    assert rule.supply(chat(late_share="0.1"), point()) == rule.supply(chat(), point())
    assert rule.refusal(chat(limit=30), point()) == (
        "its load curve has 30.5 ms at 100 requests/s, its lowest rate, which is not within 30 ms; "
        "a limit of 30.5 ms would do"
    )
    assert rule.supply(chat(limit=30), point()) == 0
    assert rule.supply(chat(limit=91), point()) == 310


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoadCurve([], []), "has 0 rates and 0 latencies"),
        (lambda: LoadCurve([1, 2], [1]), "has 2 rates and 1 latencies"),
        (lambda: LoadCurve([2, 1], [1, 1]), "not > 0 and ascending"),
        (lambda: LoadCurve([0, 1], [1, 1]), "not > 0 and ascending"),
        (lambda: LoadCurve([1], [1], evidence="hope"), "expected measured or simulated"),
        (lambda: LoadCurve([1], [1], late_share=1), "expected a number > 0 and < 1"),
        (lambda: LoadCurve([1], [1], batches_sha256="0" * 64), "that was measured"),
        (lambda: LoadCurve([1], [1], evidence="simulated", batches_sha256="0"), "64 hexadecimal"),
        (lambda: FillTimes({}), "expected ascending"),
        (lambda: FillTimes({2: Fraction(1), 1: Fraction(2)}), "expected ascending"),
        (lambda: FillTimes({1: Fraction(2), 2: Fraction(1)}), "never fall"),
        (lambda: chat(queue="server"), "expected instance or process"),
        (lambda: chat(late_share=0), "expected a number > 0 and < 1"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        make()


def test_curves_and_wishes_are_read_from_tables(tmp_path: Path) -> None:
    curves = tmp_path / "curves.csv"
    head = "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
    row = "bert,a100-80gb,1g.10gb,1,8,0.01,simulated,100 200,60;75\n"
    curves.write_text(head + row, "utf-8")
    assert read_load_curves(curves) == {KEY: LoadCurve([100, 200], [60, 75], CENT, "simulated")}
    for wrong, message in (
        (row + row, "3: a second row for bert, a100-80gb"),
        (row.replace("200", "50"), "not > 0 and ascending"),
        (row.replace("75", "soon"), "latencies_ms"),
    ):
        curves.write_text(head + wrong, "utf-8")
        with pytest.raises(FileError, match=message):
            read_load_curves(curves)
    services = tmp_path / "services.csv"
    head = "service,model,rate_rps,latency_limit_ms,late_share,queue\n"
    services.write_text(f"{head}a,bert,1,50,0.05,process\nb,bert,1,50,,\n", "utf-8")
    first, second = read_services(services)
    assert (first.late_share, first.queue) == (Fraction(1, 20), "process")
    assert (second.late_share, second.queue, second.extra) == (None, None, {})
    assert build_problem([first], [point(2, 320, latency=6)]).warnings == ()
    services.write_text(f"{head}a,bert,1,50,2,process\n", "utf-8")
    with pytest.raises(FileError, match="late share of service 'a' is 2"):
        read_services(services)


def planned(rule: str | CapacityRule = "capacity", **more: Any) -> Plan:
    points = [point(1, 100, latency=10), point(4, 200, latency=20), point()]
    services = [chat(late_share="0.05"), Service("other", "bert", 50, 100)]
    serving = build_problem(services, points, rule=rule, **more)
    return Plan(serving, solve(serving.problem))


CURVES = {KEY: LoadCurve([100, 200, 310], ["30.5", 45, 90], CENT, "simulated", "a" * 64)}


@pytest.mark.parametrize(
    ("rule", "more", "evidence"),
    [
        ("capacity", {}, "table"),
        ("capacity", {"load_curves": CURVES, "rate_margin": "0.1"}, "simulated"),
        ("capacity_certified", {"rate_margin": "1/3"}, "certified"),
        (CapacityRule("mine", Fraction(1, 50), "process"), {}, "table"),
        ("parvagpu", {"rate_margin": "0.5"}, None),
    ],
)
def test_a_plan_says_what_it_promises_and_comes_back(
    rule: Any, more: dict[str, Any], evidence: str | None
) -> None:
    plan = planned(rule, **more)
    document = json.loads(json.dumps(plan_to_json(plan)))
    entry = document["operating_points"][0]
    assert (entry["evidence"], entry["batch_ms"]) == (evidence, 25)
    assert entry["fill_ms"] == {"1": 10, "4": 20, "8": 25}
    assert (document["promise"] is None) == (rule == "parvagpu")
    back = plan_from_json(document)
    assert back == plan
    assert plan_to_json(back) == plan_to_json(plan)
    margin = Fraction(more.get("rate_margin", 0))
    assert back.serving.problem.jobs[0].demand == 100 * (1 + margin)
    if back.serving.promise is not None:
        assert back.serving.promise.rate_margin == margin
        assert document["promise"]["queue"] == plan.serving.promise.queue  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("operating_points.0.supply_rps", 201, "supply_rps is 201, expected 200, by the rule"),
        ("operating_points.0.batch_ms", 24, "batch_ms is 24, expected 25"),
        ("operating_points.0.fill_ms.8", 24, r"fill_ms.8 is 24, expected 25, as batch_ms"),
        ("operating_points.0.fill_ms.4", 26, "times that never fall"),
        ("operating_points.0.fill_ms.0", 1, "times of 1 or more requests"),
        ("operating_points.0.fill_ms.08", 1, "is the key '08'"),
        ("operating_points.0.fill_ms", {}, "times of 1 or more requests, the last of 8"),
        ("operating_points.0.evidence", "measured", 'evidence is "measured", expected "simulated"'),
        ("operating_points.0.load_curve", None, "load_curve is null, expected an object"),
        ("operating_points.0.load_curve.rates_rps.1", 210, "second load curve"),
        ("operating_points.0.load_curve.latencies_ms.1", -1, "expected a number >= 0"),
        ("operating_points.0.load_curve.evidence", "measured", "a load curve that was measured"),
        ("operating_points.0.load_curve.batches_sha256", "b" * 64, "second load curve"),
        ("promise.late_share", "0.02", r"late_share is \"0.02\", expected "),
        ("promise", None, "promise"),
        ("rate_margin", "0.2", "demand .* is 110, expected 120, as the rest of"),
        ("rule.late_share", "0.02", "which is what 'capacity' means"),
        ("rule.certified", True, "which is what 'capacity' means"),
        ("rule.queue", "server", "expected"),
        ("services.0.late_share", "0.001", r"demand_function.* is 200, expected .172.8., as the"),
        ("services.0.queue", "any", "expected"),
    ],
)
def test_an_edited_plan_is_refused(path: str, value: Any, message: str) -> None:
    plan = planned(load_curves=CURVES, rate_margin="0.1")
    document = json.loads(json.dumps(plan_to_json(plan)))
    set_at(document, path, value)
    with pytest.raises(FileError, match=message):
        plan_from_json(document)


@given(
    st.dictionaries(st.integers(1, 60), st.fractions(0, 50, max_denominator=30), min_size=1),
    st.sampled_from([1, 7, 10**6]),
)
def test_times_in_integers_are_the_exact_ones_rounded_up(
    drawn: dict[int, Fraction], unit: int
) -> None:
    numbers, times = sorted(drawn), sorted(drawn.values())
    exactly = [times[0]] * numbers[0]
    for (low, start), (high, end) in pairwise(zip(numbers, times, strict=True)):
        exactly += [start + (end - start) * Fraction(n + 1, high - low) for n in range(high - low)]
    found = FillTimes(dict(zip(numbers, times, strict=True))).rounded_up(unit)
    assert found == [math.ceil(time * unit) for time in exactly]


COUNTS = {
    "parvagpu": (2, 3, 5, 7, 12, 15),
    "capacity_certified": (2, 3, 5, 7, 14, 16),
    "capacity": (2, 3, 5, 7, 13, 16),
    "capacity with load curves": (2, 3, 5, 7, 13, 15),
}
GROWTH = (1.989, 1.240, 1.166, 1.162, 1.043, 1.004)


@pytest.mark.parametrize("rule", COUNTS)
@pytest.mark.parametrize("number", few(1, [0, 4, 1, 2, 3, 5]))
def test_a_scenario_with_up_to_five_processes_needs_its_known_gpus(rule: str, number: int) -> None:
    scenario = published.scenario(f"S{number + 1}")
    name, _, curves = rule.partition(" ")
    serving = build_problem(
        scenario.services,
        scenario.operating_points,
        rule=name,
        load_curves=published.load_curves() if curves else None,
    )
    solution = solve(serving.problem)
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert solution.machine_count == COUNTS[rule][number]
    if curves:
        grown = find_growth(serving.problem, solution.schedule, certificate=solution.certificate)
        assert grown.share == pytest.approx(GROWTH[number], abs=0.02)
        assert grown.proof == "checked"
        terms: dict[str, Any] = {"load_curves": published.load_curves(), "max_processes": 3}
        fewer = build_problem(scenario.services, scenario.operating_points, rule=name, **terms)
        assert solve(fewer.problem).machine_count == COUNTS[rule][number]


def test_simulated_curves_are_near_the_table_and_go_to_rules_that_ask() -> None:
    assert published.S1.build_problem().rule.name == "parvagpu"
    assert published.S1.curves_for("half") is published.S1.curves_for("capacity_certified") is None
    curves = published.S1.curves_for("capacity")
    assert set(curves or ()) == {key_of(point) for point in published.S1.operating_points}
    wanted = point()
    curve = load_curves([wanted], requests=3000, seed=3)[KEY]
    assert (curve.evidence, curve.late_share) == ("simulated", CENT)
    # 25 times as many requests tell up to a load of 0.9
    assert len(curve.rates_rps) == len(run_lengths(3000)) == LOADS.index(Fraction(9, 10)) + 1
    for limit in (75, 100):
        proved = RULES["capacity"].supply(chat(limit), wanted)
        # few requests make the interval wide, so that a curve says less
        assert Fraction(6, 10) * proved < curve.sustained(Fraction(limit)) < Fraction(11, 10) * 320
    short, full = point(1, 400, latency="2.5"), point()
    padded, measured = (
        load_curves([full], points, requests=2000)[KEY] for points in ([full], [short, full])
    )
    assert measured.latencies_ms[0] < padded.latencies_ms[0]
    assert load_curves([full], [short, full], requests=2000)[KEY] == measured
