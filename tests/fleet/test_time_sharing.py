"""Services that share blocks in time: from tables to a problem, and plans of them."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import pdtr

from bench.time_sharing.plain import OPTIMA, both_ways
from cms import BlockPrices, Mix, Proof, SizeBoundedConfigurations, check
from cms.errors import FileError, InvalidOption, InvalidProblem, UnsupportedProblem
from cms.fleet.deployment import desired_state
from cms.fleet.report.figure import drawing
from cms.fleet.report.plans import format_tightest, plan_page
from cms.fleet.serving import (
    Headroom,
    OperatingPoint,
    Service,
    SharedServing,
    build_problem,
    plan_from_json,
    plan_to_json,
    read_plan,
    write_plan,
)
from cms.fleet.serving.time_sharing import poisson_quantile, read_overheads, slot_ms
from tests.files.test_schemas import require_valid
from tests.fleet.plans import (
    A100,
    POINTS,
    SERVICES,
    colocate,
    mixed_plan,
    plan,
    printed,
    serving,
    set_at,
    words_of,
)
from tests.samples import few


def lengths(point: OperatingPoint, **terms: Any) -> Fraction:
    posed: SharedServing = build_problem(
        [Service("s", "bert", 1, 1000)], [point], A100, sharing="time", **terms
    )
    ((only,),) = posed.problem.jobs[0].points.values()
    return 1000 * only.length


def test_batches_are_points_and_mixes_say_what_each_service_gets() -> None:
    problem = serving().problem
    assert [job.name for job in problem.jobs] == ["chat", "see"]
    assert (problem.job("chat").demand, problem.job("chat").limit) == (300, Fraction(60, 1000))
    assert [(int(p.amount), p.length) for p in problem.job("chat").points["mps:60"]] == [
        (4, Fraction(8, 1000)),
        (8, Fraction(12, 1000)),
    ]
    chat, see = serving().served(Mix({"see": 4, "chat": 8}), "mps:60")
    assert (chat.service, chat.point, chat.length_ms) == ("chat", POINTS[1], 12)
    assert (chat.rate_rps, chat.slack_ms) == (Fraction(8000, 22), 60 - 22 - 12)
    assert (see.service, see.rate_rps, see.slack_ms) == ("see", Fraction(4000, 22), 80 - 22 - 10)
    late = serving(rule="collect_then_run").served(Mix({"see": 4, "chat": 8}), "mps:60")
    assert [one.slack_ms for one in late] == [60 - 44, 80 - 44]
    for rule in ("round_robin", "collect_then_run"):
        made = plan(rule=rule)
        assert check(made.serving.problem, made.solution.schedule) == ()


def test_shapes_and_settings_of_what_is_shared() -> None:
    assert [str(shape) for shape in serving().problem.configurations] == [
        "mps:100", "mps:40 + mps:60",
    ]  # fmt: skip
    (every,) = serving(splits="any").problem.configurations
    assert isinstance(every, SizeBoundedConfigurations)
    assert dict(every.sizes) == {"mps:40": 40, "mps:60": 60, "mps:100": 100}
    points = [colocate("bert", percent, 1, 5) for percent in (30, 50, 80)]
    shapes = build_problem(SERVICES[:1], points, A100, sharing="time").problem.configurations
    assert [str(shape) for shape in shapes] == ["mps:80", "2 x mps:50", "mps:30"]
    points = [OperatingPoint("bert", A100, "3g.40gb", 3, 4, 1200, 10)]
    posed = build_problem(SERVICES[:1], points, sharing="time")
    ((point,),) = posed.problem.jobs[0].points.values()
    assert (point.amount, point.length) == (12, Fraction(1, 100))
    points = [
        OperatingPoint("bert", A100, "3g.40gb", 4, 2, 800, 10),
        OperatingPoint("bert", A100, "3g.40gb", 2, 4, 1000, 8),
    ]
    posed = build_problem(SERVICES[:1], points, sharing="time")
    assert posed.points["chat", "3g.40gb"] == (points[1],)


@pytest.mark.parametrize(
    ("latency", "length"), [(10, 10), ("10.1", 10), ("10.11", "10.11"), (8, 10), (30, 30)]
)
def test_a_batch_takes_what_its_throughput_says_or_its_latency_if_that_is_longer_by_1_percent(
    latency: int | str, length: int | str
) -> None:
    point = OperatingPoint("bert", A100, "mps:60", 1, 8, 800, latency)
    assert slot_ms(point) == lengths(point) == Fraction(length)


def test_what_cannot_be_shared_is_refused_and_what_is_odd_warned_of() -> None:
    odd = OperatingPoint("bert", A100, "mps:60", 1, 8, 800, 12)
    (warning,) = build_problem(SERVICES[:1], [odd], sharing="time").warnings
    assert warning.startswith("1 of 1 operating points: the latency and processes x batch")
    assert not serving().warnings
    own = Service("chat", "bert", 5, 100, late_share="0.01")
    (warning,) = build_problem([own], POINTS, sharing="time").warnings
    assert warning.startswith("late_share and queue have no effect where blocks are shared")
    with pytest.raises(InvalidOption, match="a batch in the overheads"):
        Headroom("gpulet", {0: 1})
    with pytest.raises(InvalidOption, match="the overhead of a batch of 4"):
        Headroom("gpulet", {4: -1})
    with pytest.raises(InvalidProblem, match="two services are called 'chat'"):
        build_problem([SERVICES[0], SERVICES[0]], POINTS, sharing="time")
    with pytest.raises(InvalidProblem, match=r"runs the model 'brt'.*nearest: 'bert'"):
        build_problem([Service("a", "brt", 5, 100)], POINTS, sharing="time")
    late = Service("late", "vgg", 10, 15)
    posed = build_problem([*SERVICES, late], POINTS, sharing="time")
    assert dict(posed.unservable) == {
        "late": "late: no batch fits into 15 ms even alone, under the rule 'round_robin'; best: "
        "mps:100, 1 process, batch 8: 10 ms a batch, which needs a limit of 20 ms"
    }


def test_head_room_raises_rates_and_lengths_and_is_written() -> None:
    assert lengths(colocate("bert", 60, 8, 10), headroom="gpulet") == 11
    assert lengths(colocate("bert", 60, 8, 10), headroom=Headroom("gpulet", {8: 2})) == 13
    posed = serving(headroom="gpulet", rate_margin=1)
    assert [job.demand for job in posed.problem.jobs] == [660, 500 + 54]
    assert posed.planned_rps(SERVICES[0]) == 660
    document = plan_to_json(plan(headroom=Headroom("gpulet", {4: "0.5", 8: 1})))
    # the schedule is too small for the higher rates, which is another matter
    require_valid("plan", document)
    assert document["sharing"]["headroom"] == {
        "name": "gpulet", "overheads_ms": {"4": "0.5", "8": 1},
    }  # fmt: skip
    assert document["services"][0]["planned_rps"] == 342


@pytest.mark.parametrize("name", few(2, OPTIMA[0]))
@pytest.mark.parametrize("tighter", few(1, [1, 0]))
def test_one_service_an_instance_takes_as_many_gpus_as_plain(name: str, tighter: int) -> None:
    plain, mixed = both_ways(name, tighter)
    for found in (plain, mixed):
        assert (found.machine_count, found.lower_bound) == (OPTIMA[tighter][name],) * 2
        assert found.proof is Proof.CHECKED
        assert isinstance(found.certificate, BlockPrices)
    assert plain.certificate == mixed.certificate


_99 = Fraction(99, 100)


def test_the_published_rates_become_the_published_ones() -> None:
    more = Headroom("gpulet").planned_rps
    rates = {50: 68, 100: 125, 300: 342, 500: 554, 600: 660, 900: 990, 1200: 1320, 2400: 2640}
    assert {rate: more(Fraction(rate)) for rate in rates} == rates
    assert more(Fraction(0)) == 0
    assert more(Fraction(550)) == poisson_quantile(Fraction(550), _99) + 1
    assert more(Fraction(5501, 10)) == Fraction(5501, 10) * Fraction(11, 10)
    # e^-r = 0.99 to 50 digits: just below it the quantile is 0, just above it 1
    digits = 10050335853501441183548857558547706085515007674629
    edge = Fraction(digits, 10**51)
    assert [poisson_quantile(edge + Fraction(d, 10**45), _99) for d in (-1, 1)] == [0, 1]


@given(st.fractions(min_value=Fraction(1, 1000), max_value=550, max_denominator=1000))
def test_the_quantile_is_what_scipy_says_or_as_near_as_floats_tell(rate: Fraction) -> None:
    found = poisson_quantile(rate, _99)
    assert pdtr(found, float(rate)) >= 0.99 - 1e-12
    assert found == 0 or pdtr(found - 1, float(rate)) <= 0.99 + 1e-12


def test_overheads_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("batch,overhead_ms\n8,2.5\n1,0\n")
    assert read_overheads(path) == {8: Fraction(5, 2), 1: 0}
    path.write_text("batch,overhead_ms\n8,2.5\n8,3\n")
    with pytest.raises(FileError, match=r"o\.csv:3.*a second row for a batch of 8"):
        read_overheads(path)


SHARED = {"sharing": "time"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sharing": "space"}, r"sharing is 'space'; expected None .*'time'"),
        (SHARED | {"rule": 3}, r"the queueing rule 3 knows no duty cycles"),
        (SHARED | {"max_services": 0}, r"max_services, of one instance, is 0"),
        (SHARED | {"max_services": 1.5}, r"max_services, of one instance"),
        ({"max_services": 3}, r"max_services is 3 and nothing is shared; leave it out, or share"),
        ({"splits": "any"}, r"splits is 'any' and nothing is shared"),
        ({"headroom": "gpulet"}, r"headroom is 'gpulet' and nothing"),
        (SHARED | {"headroom": 1.1}, r"there is no head-room 1\.1; expected gpulet"),
        (SHARED | {"gpus": []}, r"no GPU type to plan with"),
        (SHARED | {"limits": {"h100-80gb": 1}}, r"limit .* GPU 'h100-80gb', which is not in this"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        build_problem(SERVICES, POINTS, **arguments)


TERMS: list[dict[str, Any]] = [
    {},
    {"rule": "collect_then_run", "max_services": 2},
    {"splits": "any", "rate_margin": "0.05"},
]


def test_a_plan_says_what_each_service_gets_and_is_no_deployment_yet() -> None:
    made = plan()
    chat, see = made.services
    assert [(use.block, use.count, use.duty_cycle_ms, use.length_ms) for use in chat.uses] == [
        ("mps:40", 1, 12, 12), ("mps:60", 1, 22, 12),
    ]  # fmt: skip
    assert chat.provided_rps == Fraction(4000, 12) + Fraction(8000, 22)
    assert (see.instances, see.provided_rps) == (2, Fraction(4000, 22) + 800)
    (whole,), cut = made.groups[1].instances, made.groups[0].instances
    assert whole.duty_cycle_ms == 10
    assert [str(each) for each in cut] == ["1 x mps:40 -> chat", "1 x mps:60 -> chat + see"]
    assert str(made).splitlines()[2] == (
        "chat: 23000/33 requests/s by 1 x mps:40, 1 x mps:60, wanted 300"
    )
    words = r"placing takes plans .* share instances in time; plan without"
    with pytest.raises(UnsupportedProblem, match=words):
        desired_state(plan())


@pytest.mark.parametrize("terms", TERMS)
def test_a_plan_is_read_back_as_it_was_and_keeps_its_schema(
    terms: dict[str, Any], tmp_path: Path
) -> None:
    made = plan(**terms)
    write_plan(made, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == made
    require_valid("plan", plan_to_json(made))


#: What is changed in a valid document, where, and what the error says of it.
INSTANCE = "groups.0.instances.1"
CONTRADICTIONS: list[tuple[str, Any, str]] = [
    ("sharing.rule", "collect_then_run", r"time_sharing\.rule is .round_robin., expected .col"),
    ("sharing.max_services", 1, r"max_jobs is null, expected 1, as the rest of the plan"),
    ("sharing.splits", "any", r"problem.configurations has 2 entries, expected 1"),
    ("sharing.splits", "x", r"sharing\.splits is \"x\""),
    ("sharing.kind", "space", r"sharing\.kind is \"space\""),
    (
        "sharing.headroom", {"name": "gpulet", "overheads_ms": None},
        r"jobs\[0\].demand .* is 300, expected 342, as the rest of the plan has",
    ),
    ("sharing.headroom", {"name": "x", "overheads_ms": None}, r"there is no head-room 'x'"),
    (
        "sharing.headroom", {"name": "gpulet", "overheads_ms": {"a": 1}},
        r"overheads_ms.a is the key 'a', expected a batch",
    ),
    ("sharing", None, r"services\[0\]|rule is null"),
    ("rule", {"name": "half"}, r"rule is .*expected null"),
    ("promise", {"late_share": "0.01"}, r"promise has no .arrivals"),
    ("services.0.planned_rps", 299, r"planned_rps .* is 299, expected 300, as problem"),
    ("services.0.rate_rps", 299, r"demand .* is 300, expected 299, as the rest of"),
    ("services.1.latency_limit_ms", 81, r"limit .* is .0.08., expected .0.081., as the"),
    ("services.1.latency_limit_ms", None, r"service 'see' has no latency limit"),
    ("operating_points.0.length_ms", 9, r"length_ms is 9, expected 12, by the rule"),
    (
        "operating_points.0.throughput_rps", 100,
        r"jobs\[0\].points.* is .0.012., expected .0.04., as the rest of the plan",
    ),
    ("operating_points.6.batch", 16, r"jobs\[1\].points.* is 8, expected 16, as the"),
    ("operating_points.0.supply_rps", 10, r"supply_rps is 10, expected null"),
    ("operating_points.0.model", "vgg", r"model is \"vgg\", expected \"bert\""),
    (f"{INSTANCE}.duty_cycle_ms", 21, r"duty_cycle_ms is 21, expected 22, as the solution has"),
    (f"{INSTANCE}.serves.0.length_ms", 11, r"serves\[0\]\.length_ms is 11, expected 12, as the s"),
    (f"{INSTANCE}.serves.0.slack_ms", 27, r"slack_ms is 27, expected 26, as the solution has"),
    ("services.0.provided_rps", 700, r"provided_rps .* is 700"),
    ("unservable.chat", "no", r"unservable.chat is about 'chat'"),
    ("problem.jobs.0.limit", "0.01", r"limit .* is .0.01., expected .0.06., as the rest of"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), CONTRADICTIONS)
def test_parts_that_contradict_each_other_are_refused(path: str, value: Any, message: str) -> None:
    document = json.loads(json.dumps(plan_to_json(plan())))
    set_at(document, path, value)
    with pytest.raises(FileError, match=message):
        plan_from_json(document)


def test_each_amount_of_the_problem_has_one_point() -> None:
    document = json.loads(json.dumps(plan_to_json(plan())))
    points = document["operating_points"]
    for wrong, message in (
        (points[:-1], r"points.mps:60 .* has 2 entries, expected 1"),
        (
            [*points, points[-1]],
            r"amount 8 stands twice among the points of job 'see'",
        ),
    ):
        with pytest.raises(FileError, match=message):
            plan_from_json(document | {"operating_points": wrong})


def test_a_bar_splits_a_share_by_the_slots_of_its_cycle() -> None:
    text = printed(plan_page(plan(), "two"))
    (slots,) = [line for line in text.splitlines() if "┊" in line and "│" in line]
    chat, see = slots.split("│")[1].split("┊")
    assert (chat.strip(), see.strip()) == ("1 chat b=8", "2 see b=4")
    assert len(chat) / (len(chat) + len(see) + 1) == pytest.approx(12 / 22, abs=0.02)
    assert "Tightest duty cycle: 22 ms on mps:60, 26 ms to spare within the 60 ms of chat" in text
    assert re.search(r"1 +chat .* 300 +342 ", printed(plan_page(plan(headroom="gpulet"), "two")))
    words = words_of(drawing(plan_page(plan(), "two <b>")))
    assert all(said in words for said in ("mps:60 duty cycle 22 ms", "1 chat b=8", "<b>"))
    assert format_tightest(mixed_plan()) == ""
