"""Plans whose services share instances in time: read back, contradicted, reported, drawn."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.errors import FileError, UnsupportedProblem
from cms.fleet.deployment import wanted_of
from cms.fleet.report.figure import drawing
from cms.fleet.report.plans import plan_page, tightest_line
from cms.fleet.serving import Headroom, plan_from_json, plan_to_json, read_plan, write_plan
from tests.files.test_schemas import require_valid
from tests.fleet.mixes import plan
from tests.fleet.plans import mixed_plan, printed, set_at, words_of

TERMS: list[dict[str, Any]] = [
    {},
    {"rule": "collect_then_run", "max_services": 2},
    {"splits": "any", "rate_margin": "0.05"},
]


# -- what a plan says ----------------------------------------------------------------------------


def test_a_plan_says_what_each_service_gets_of_which_frames() -> None:
    made = plan()
    chat, see = made.services
    assert [(use.block, use.count, use.frame_ms, use.length_ms) for use in chat.uses] == [
        ("mps:40", 1, 12, 12), ("mps:60", 1, 22, 12),
    ]  # fmt: skip
    assert chat.provided_rps == Fraction(4000, 12) + Fraction(8000, 22)
    assert (see.instances, see.provided_rps) == (2, Fraction(4000, 22) + 800)
    (whole,), cut = made.groups[1].instances, made.groups[0].instances
    assert whole.frame_ms == 10
    assert [str(each) for each in cut] == ["1 x mps:40 -> chat", "1 x mps:60 -> chat + see"]
    assert str(made).splitlines()[2] == (
        "chat: 23000/33 items/s by 1 x mps:40, 1 x mps:60, wanted 300"
    )


def test_a_plan_of_mixes_is_no_deployment_yet() -> None:
    words = r"placing takes plans .* share instances in time; .*reorganise brings"
    with pytest.raises(UnsupportedProblem, match=words):
        wanted_of(plan())


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", TERMS)
def test_a_plan_is_read_back_as_it_was_and_keeps_its_schema(
    terms: dict[str, Any], tmp_path: Path
) -> None:
    made = plan(**terms)
    write_plan(made, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == made
    require_valid("plan", plan_to_json(made))


def test_head_room_with_its_overheads_is_written() -> None:
    document = plan_to_json(plan(headroom=Headroom("gpulet", {4: "0.5", 8: 1})))
    # the schedule is too small for the higher rates, which is another matter
    require_valid("plan", document)
    assert document["sharing"]["headroom"] == {
        "name": "gpulet", "overheads_ms": {"4": "0.5", "8": 1},
    }  # fmt: skip
    assert document["services"][0]["planned_rps"] == 342


def test_the_document_says_frames_lengths_and_planned_rates() -> None:
    document = json.loads(json.dumps(plan_to_json(plan())))
    assert document["rule"] is None
    assert document["sharing"] == {
        "kind": "time", "rule": "round_robin", "max_services": None, "splits": "pairs",
        "headroom": None,
    }  # fmt: skip
    (cut, whole) = document["groups"]
    assert cut["instances"][1] == {
        "block": "mps:60", "profile": "mps:60", "count": 1, "frame_ms": 22,
        "serves": [
            {"service": "chat", "processes": 1, "batch": 8, "length_ms": 12,
             "rate_rps": "4000/11", "slack_ms": 26},
            {"service": "see", "processes": 1, "batch": 4, "length_ms": 10,
             "rate_rps": "2000/11", "slack_ms": 48},
        ],
    }  # fmt: skip
    assert {point["supply_rps"] for point in document["operating_points"]} == {None}
    assert whole["instances"][0]["frame_ms"] == 10


#: What is changed in a valid document, where, and what the error says of it.
INSTANCE = "groups.0.instances.1"
CONTRADICTIONS: list[tuple[str, Any, str]] = [
    ("sharing.rule", "collect_then_run", r"sharing\.rule is .*round_robin.*, as in the problem"),
    ("sharing.max_services", 1, r"max_services is 1, expected null, as in the problem"),
    ("sharing.splits", "any", r"what the device a100-80gb allows"),
    ("sharing.splits", "x", r"sharing\.splits is \"x\""),
    ("sharing.kind", "space", r"sharing\.kind is \"space\""),
    (
        "sharing.headroom", {"name": "gpulet", "overheads_ms": None},
        r"planned_rps .* is 300, expected 342, by the margin and the head-room",
    ),
    ("sharing.headroom", {"name": "x", "overheads_ms": None}, r"there is no head-room 'x'"),
    (
        "sharing.headroom", {"name": "gpulet", "overheads_ms": {"a": 1}},
        r"overheads_ms.a is the key 'a', expected a batch",
    ),
    ("sharing", None, r"services\[0\]|rule is null"),
    ("rule", {"name": "half"}, r"rule is .*expected null"),
    ("promise", {"late_share": "0.01"}, r"promise has no .arrivals"),
    ("services.0.planned_rps", 299, r"planned_rps .* is 299, expected 300, as in the problem"),
    ("services.0.rate_rps", 299, r"planned_rps .* is 300, expected 299, by the margin"),
    ("services.1.latency_limit_ms", 81, r"limit_ms .* is 81, expected 80, as in the problem"),
    ("services.1.latency_limit_ms", None, r"latency_limit_ms .* is null, expected 80"),
    ("operating_points.0.length_ms", 9, r"length_ms is 9, expected .*, as in the problem"),
    (
        "operating_points.0.throughput_rps", 100,
        r"length_ms is 12, expected 40, by throughput, latency and head-room",
    ),
    ("operating_points.6.batch", 16, r"has no point of 'see' on mps:\d+ that takes 16"),
    ("operating_points.0.supply_rps", 10, r"supply_rps is 10, expected null"),
    ("operating_points.0.model", "vgg", r"model is \"vgg\", expected \"bert\""),
    (f"{INSTANCE}.frame_ms", 21, r"frame_ms is 21, expected 22, as the solution has"),
    (f"{INSTANCE}.serves.0.length_ms", 11, r"serves\[0\]\.length_ms is 11, expected 12, as the s"),
    (f"{INSTANCE}.serves.0.slack_ms", 27, r"slack_ms is 27, expected 26, as the solution has"),
    ("services.0.provided_rps", 700, r"provided_rps .* is 700"),
    ("unservable.chat", "no", r"unservable.chat is about 'chat'"),
    ("problem.jobs.0.limit", "0.01", r"limit_ms .* is 60, expected 10, as in the problem"),
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
        (points[:-1], r"there is no point of service 'see' on mps:\d+ that takes \d requests"),
        (
            [*points, points[-1]],
            r"takes \d requests at a time, after one of \d .*one point an",
        ),
    ):
        with pytest.raises(FileError, match=message):
            plan_from_json(document | {"operating_points": wrong})


# -- reports and pictures ------------------------------------------------------------------------


def test_a_report_splits_a_share_by_the_slots_of_its_frame() -> None:
    text = printed(plan_page(plan(), "two"))
    lines = text.splitlines()
    assert "2 services on a100-80gb, blocks shared in time, round_robin: a frame and its" in text
    assert re.search(r"│ mps:60 frame 22 ms +│ mps:40 p=1 b=4", text)
    (slots,) = [line for line in lines if "┊" in line and "│" in line]
    chat, see = slots.split("│")[1].split("┊")
    assert chat.strip() == "1 chat b=8"
    assert see.strip() == "2 see b=4"
    assert len(chat) / (len(chat) + len(see) + 1) == pytest.approx(12 / 22, abs=0.02)
    wide = printed(plan_page(plan(), "two"), 130)
    assert "1 x mps:60 (b=8 of a 22 ms frame, 363.6/s, 26 ms to spare)" in wide
    assert "1 x mps:40 (b=4 alone, 12 ms, 333.3/s, 36 ms to spare)" in wide
    assert "Tightest frame: 22 ms on mps:60, 26 ms to spare within the 60 ms of chat" in text
    assert "Kept under the rule round_robin: every limit" in text
    assert max(map(len, lines)) <= 100


def test_a_report_with_head_room_has_stated_and_planned_rates() -> None:
    text = printed(plan_page(plan(headroom="gpulet"), "two"))
    assert re.search(r"wanted/s +planned/s +served/s", text)
    assert re.search(r"1 +chat .* 300 +342 ", text)


def test_a_picture_draws_each_slot_in_its_services_colour() -> None:
    picture = drawing(plan_page(plan(), "two <b>"))
    words = words_of(picture)
    for said in ("mps:60 frame 22 ms", "1 chat b=8", "2 see b=4", "ightest frame: 22 ms", "<b>"):
        assert said in words
    assert tightest_line(mixed_plan()) == ""
