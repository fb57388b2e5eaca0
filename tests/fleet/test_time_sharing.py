"""From services and points to a problem whose blocks services share in time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cms import Mix, SizeBoundedConfigurations, check
from cms.errors import CmsError, InvalidOption, InvalidProblem
from cms.fleet.serving import (
    Headroom,
    OperatingPoint,
    Service,
    SharedServing,
    TimeSharing,
    as_problem,
)
from cms.fleet.serving.time_sharing import slot_ms
from instances import published
from tests.fleet.mixes import POINTS, SERVICES, plan, serving, share
from tests.fleet.plans import A100


def lengths(point: OperatingPoint, **terms: Any) -> Fraction:
    posed: SharedServing = as_problem(
        [Service("s", "bert", 1, 1000)], [point], A100, sharing="time", **terms
    )
    ((only,),) = posed.problem.jobs[0].points.values()
    return 1000 * only.length


# -- what reaches the problem --------------------------------------------------------------------


def test_services_become_jobs_in_seconds_and_every_batch_a_point() -> None:
    problem = serving().problem
    assert [job.name for job in problem.jobs] == ["chat", "see"]
    assert (problem.job("chat").demand, problem.job("chat").limit) == (300, Fraction(60, 1000))
    assert [(int(p.amount), p.length) for p in problem.job("chat").points["mps:60"]] == [
        (4, Fraction(8, 1000)),
        (8, Fraction(12, 1000)),
    ]


def test_a_gpu_is_whole_or_a_pair_of_shares_unless_any_split_is_asked_for() -> None:
    assert [str(shape) for shape in serving().problem.configurations] == [
        "mps:100", "mps:40 + mps:60",
    ]  # fmt: skip
    (every,) = serving(splits="any").problem.configurations
    assert isinstance(every, SizeBoundedConfigurations)
    assert dict(every.sizes) == {"mps:40": 40, "mps:60": 60, "mps:100": 100}


def test_a_share_without_its_other_half_stays_alone_and_a_half_comes_twice() -> None:
    points = [share("bert", percent, 1, 5) for percent in (30, 50, 80)]
    shapes = as_problem(SERVICES[:1], points, A100, sharing="time").problem.configurations
    assert [str(shape) for shape in shapes] == ["mps:80", "2 x mps:50", "mps:30"]


def test_mig_instances_are_shared_too_and_all_their_processes_take_a_batch() -> None:
    points = [OperatingPoint("bert", A100, "3g.40gb", 3, 4, 1200, 10)]
    posed = as_problem(SERVICES[:1], points, sharing="time")
    ((point,),) = posed.problem.jobs[0].points.values()
    assert (point.amount, point.length) == (12, Fraction(1, 100))


def test_of_two_settings_that_take_as_much_the_quicker_one_counts() -> None:
    points = [
        OperatingPoint("bert", A100, "3g.40gb", 4, 2, 800, 10),
        OperatingPoint("bert", A100, "3g.40gb", 2, 4, 1000, 8),
    ]
    posed = as_problem(SERVICES[:1], points, sharing="time")
    assert posed.points["chat", "3g.40gb"] == (points[1],)


@pytest.mark.parametrize(
    ("latency", "length"), [(10, 10), ("10.1", 10), ("10.11", "10.11"), (8, 10), (30, 30)]
)
def test_a_batch_takes_what_its_throughput_says_or_its_latency_if_that_is_longer_by_1_percent(
    latency: int | str, length: int | str
) -> None:
    point = OperatingPoint("bert", A100, "mps:60", 1, 8, 800, latency)
    assert slot_ms(point) == lengths(point) == Fraction(length)


def test_latencies_that_differ_by_more_than_1_percent_are_warned_of() -> None:
    odd = OperatingPoint("bert", A100, "mps:60", 1, 8, 800, 12)
    (warning,) = as_problem(SERVICES[:1], [odd], sharing="time").warnings
    assert warning.startswith("1 of 1 operating points: the latency and processes x batch")
    assert not serving().warnings


def test_head_room_raises_rates_and_lengths_and_the_margin_comes_before_it() -> None:
    assert lengths(share("bert", 60, 8, 10), headroom="gpulet") == 11
    assert lengths(share("bert", 60, 8, 10), headroom=Headroom("gpulet", {8: 2})) == 13
    posed = serving(headroom="gpulet", rate_margin=1)
    assert [job.demand for job in posed.problem.jobs] == [660, 500 + 54]
    assert posed.planned_rps(SERVICES[0]) == 660


def test_a_service_that_no_batch_fits_is_named_with_the_limit_it_needs() -> None:
    late = Service("late", "vgg", 10, 15)
    posed = as_problem([*SERVICES, late], POINTS, sharing="time")
    assert dict(posed.unservable) == {
        "late": "late: no batch fits into 15 ms even alone, under the rule 'round_robin'; best: "
        "mps:100, 1 process, batch 8: 10 ms a batch, which needs a limit of 20 ms"
    }


def test_a_mix_is_read_as_what_each_service_gets() -> None:
    chat, see = serving().served(Mix({"see": 4, "chat": 8}), "mps:60")
    assert (chat.service, chat.point, chat.length_ms) == ("chat", POINTS[1], 12)
    assert (chat.rate_rps, chat.slack_ms) == (Fraction(8000, 22), 60 - 22 - 12)
    assert (see.service, see.rate_rps, see.slack_ms) == ("see", Fraction(4000, 22), 80 - 22 - 10)
    late = serving(rule="collect_then_run").served(Mix({"see": 4, "chat": 8}), "mps:60")
    assert [one.slack_ms for one in late] == [60 - 44, 80 - 44]


def test_the_plan_made_by_hand_is_valid_under_both_rules() -> None:
    for rule in ("round_robin", "collect_then_run"):
        made = plan(rule=rule)
        assert check(made.serving.problem, made.solution.schedule) == ()


# -- one service a block is the plain plan -------------------------------------------------------


@pytest.mark.parametrize("name", ["S1", "S2", "S3"])
def test_with_one_service_an_instance_as_many_blocks_serve_as_under_the_rule_half(
    name: str,
) -> None:
    scenario = getattr(published, name)
    terms = {"gpus": scenario.gpus, "max_processes": scenario.max_processes}
    given = scenario.services, scenario.operating_points
    shared = as_problem(*given, **terms, sharing="time", max_services=1)
    plain = as_problem(*given, **terms, rule="half")
    alone = shared.problem.unshared()
    assert alone.configurations == plain.problem.configurations
    for service in scenario.services:
        j = plain.problem.job_index(service.name)
        for i in range(len(plain.problem.blocks)):
            # a latency column of whole milliseconds makes some batches a little longer
            assert alone.rows.supply(j, i) <= plain.problem.rows.supply(j, i)


# -- what is refused -----------------------------------------------------------------------------

#: Arguments, and what the error says.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another kind of sharing": (
        {"sharing": "space"},
        r"sharing is 'space'; expected None .*'time'",
    ),
    "a rule without frames": (
        {"sharing": "time", "rule": "half"},
        r"the queueing rule 'half' knows no frames.*expected round_robin .*collect_then_run",
    ),
    "capacity with sharing": (
        {"sharing": "time", "rule": "capacity"},
        r"'capacity' knows no frames",
    ),
    "a rule that is none": (
        {"sharing": "time", "rule": "round_robbin"},
        r"no rule of frames 'round_robbin'; expected .*; nearest: 'round_robin'",
    ),
    "a number as rule": ({"sharing": "time", "rule": 3}, r"the queueing rule 3 knows no frames"),
    "a rule of frames without sharing": (
        {"rule": "collect_then_run"},
        r"'collect_then_run' is for instances that services share in time; add sharing='time'",
    ),
    "a cap of 0": ({"sharing": "time", "max_services": 0}, r"max_services, of one instance, is 0"),
    "half a service": ({"sharing": "time", "max_services": 1.5}, r"max_services, of one instance"),
    "other splits": (
        {"sharing": "time", "splits": "thirds"},
        r"splits is 'thirds'; expected 'pairs' .* or 'any'",
    ),
    "a cap without sharing": (
        {"max_services": 3},
        r"max_services is 3 and nothing is shared; leave it out, or share .*sharing='time'",
    ),
    "splits without sharing": ({"splits": "any"}, r"splits is 'any' and nothing is shared"),
    "head-room without sharing": ({"headroom": "gpulet"}, r"headroom is 'gpulet' and nothing"),
    "head-room that is none": (
        {"sharing": "time", "headroom": "gpulett"},
        r"no head-room 'gpulett'; expected gpulet \(.*nearest: 'gpulet'",
    ),
    "a number as head-room": (
        {"sharing": "time", "headroom": 1.1},
        r"the head-room is 1\.1; expected",
    ),
    "load curves": (
        {"sharing": "time", "load_curves": {}},
        r"load curves are given, which the rules of frames do not ask for",
    ),
    "a margin below 0": ({"sharing": "time", "rate_margin": -1}, r"the rate margin"),
    "no GPU": ({"sharing": "time", "gpus": []}, r"no GPU type to plan with"),
    "a limit of another GPU": (
        {"sharing": "time", "limits": {"h100-80gb": 1}},
        r"limit is given for the GPU 'h100-80gb', which is not in this fleet",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_options_that_cannot_be_meant_are_refused(case: str) -> None:
    arguments, message = BAD[case]
    with pytest.raises(InvalidOption, match=message):
        as_problem(SERVICES, POINTS, **arguments)


def test_an_overhead_is_asked_for_every_batch_and_must_be_a_number() -> None:
    with pytest.raises(InvalidOption, match=r"no overhead of a batch of 8, .* overheads of 4: add"):
        serving(headroom=Headroom("gpulet", {4: 1}))
    with pytest.raises(InvalidOption, match="a batch in the overheads"):
        Headroom("gpulet", {0: 1})
    with pytest.raises(InvalidOption, match="the overhead of a batch of 4"):
        Headroom("gpulet", {4: -1})


def test_services_that_cannot_be_shared_are_refused() -> None:
    with pytest.raises(InvalidProblem, match=r"'free' has no latency limit.*without sharing"):
        as_problem([Service("free", "bert", 5)], POINTS, sharing="time")
    with pytest.raises(InvalidProblem, match="two services are called 'chat'"):
        as_problem([SERVICES[0], SERVICES[0]], POINTS, sharing="time")
    with pytest.raises(InvalidProblem, match=r"runs the model 'brt'.*nearest: 'bert'"):
        as_problem([Service("a", "brt", 5, 100)], POINTS, sharing="time")


def test_wishes_about_random_arrivals_are_warned_of() -> None:
    own = Service("chat", "bert", 5, 100, late_share="0.01")
    (warning,) = as_problem([own], POINTS, sharing="time").warnings
    assert warning.startswith("late_share and queue have no effect where blocks are shared")


def test_terms_are_refused_like_the_options_of_as_problem() -> None:
    with pytest.raises(CmsError, match="splits is 'x'"):
        TimeSharing(splits="x")
    assert TimeSharing("collect_then_run", 3, "any", "gpulet") == TimeSharing(
        "collect_then_run", 3, "any", Headroom("gpulet")
    )
