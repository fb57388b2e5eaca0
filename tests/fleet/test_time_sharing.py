"""From services and points to a problem whose blocks services share in time; head-room."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import pdtr

from bench.time_sharing.plain import OPTIMA, both_ways
from cms import BlockPrices, Mix, Proof, SizeBoundedConfigurations, check
from cms.errors import FileError, InvalidOption, InvalidProblem
from cms.fleet.serving import Headroom, OperatingPoint, Service, SharedServing, as_problem
from cms.fleet.serving.headroom import poisson_quantile, read_overheads
from cms.fleet.serving.time_sharing import slot_ms
from tests.fleet.mixes import POINTS, SERVICES, plan, serving, share
from tests.fleet.plans import A100
from tests.samples import few


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


# -- one service a block is the plain plan of the rule half ----------------------------------------


@pytest.mark.parametrize("name", few(2, OPTIMA[0]))
@pytest.mark.parametrize("tighter", few(1, [1, 0]))
def test_one_service_an_instance_takes_as_many_gpus_as_plain(name: str, tighter: int) -> None:
    plain, mixed = both_ways(name, tighter)
    for found in (plain, mixed):
        assert (found.machine_count, found.lower_bound) == (OPTIMA[tighter][name],) * 2
        assert found.proof is Proof.CHECKED
        assert isinstance(found.certificate, BlockPrices)
    assert plain.certificate == mixed.certificate


# -- head-room: the quantile of a Poisson count, exactly, and tables of overheads ------------------

_99 = Fraction(99, 100)


def test_the_published_rates_become_the_published_ones() -> None:
    more = Headroom("gpulet").planned_rps
    rates = {50: 68, 100: 125, 300: 342, 500: 554, 600: 660, 900: 990, 1200: 1320, 2400: 2640}
    assert {rate: more(Fraction(rate)) for rate in rates} == rates
    assert more(Fraction(0)) == 0
    assert more(Fraction(550)) == poisson_quantile(Fraction(550), _99) + 1
    assert more(Fraction(5501, 10)) == Fraction(5501, 10) * Fraction(11, 10)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=550, max_denominator=1000))
def test_the_quantile_is_what_scipy_says_or_as_near_as_floats_tell(rate: Fraction) -> None:
    found = poisson_quantile(rate, _99)
    assert pdtr(found, float(rate)) >= 0.99 - 1e-12
    assert found == 0 or pdtr(found - 1, float(rate)) <= 0.99 + 1e-12


def test_a_rate_that_floats_cannot_tell_from_the_threshold_is_told() -> None:
    # e^-r = 0.99 to 50 digits: just below it the quantile is 0, just above it 1
    digits = 10050335853501441183548857558547706085515007674629
    edge = Fraction(digits, 10**51)
    assert [poisson_quantile(edge + Fraction(d, 10**45), _99) for d in (-1, 1)] == [0, 1]


def test_overheads_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("batch,overhead_ms\n8,2.5\n1,0\n")
    assert read_overheads(path) == {8: Fraction(5, 2), 1: 0}
    path.write_text("batch,overhead_ms\n8,2.5\n8,3\n")
    with pytest.raises(FileError, match=r"o\.csv:3.*a batch of 8 is there twice"):
        read_overheads(path)
    path.write_text("batch,overhead_ms\n0,2.5\n")
    with pytest.raises(FileError, match='batch is "0", expected a whole number >= 1'):
        read_overheads(path)


# -- what is refused -----------------------------------------------------------------------------

SHARED = {"sharing": "time"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sharing": "space"}, r"sharing is 'space'; expected None .*'time'"),
        (SHARED | {"rule": "half"}, r"the queueing rule 'half' knows no frames.*round_robin"),
        (SHARED | {"rule": "round_robbin"}, r"no rule of frames .*; nearest: 'round_robin'"),
        (SHARED | {"rule": 3}, r"the queueing rule 3 knows no frames"),
        ({"rule": "collect_then_run"}, r"services share in time; add sharing='time'"),
        (SHARED | {"max_services": 0}, r"max_services, of one instance, is 0"),
        (SHARED | {"max_services": 1.5}, r"max_services, of one instance"),
        (SHARED | {"splits": "thirds"}, r"splits is 'thirds'; expected 'pairs' .* or 'any'"),
        ({"max_services": 3}, r"max_services is 3 and nothing is shared; leave it out, or share"),
        ({"splits": "any"}, r"splits is 'any' and nothing is shared"),
        ({"headroom": "gpulet"}, r"headroom is 'gpulet' and nothing"),
        (SHARED | {"headroom": "gpulett"}, r"no head-room 'gpulett'; .*nearest: 'gpulet'"),
        (SHARED | {"headroom": 1.1}, r"the head-room is 1\.1; expected"),
        (SHARED | {"load_curves": {}}, r"load curves are given, which the rules of frames"),
        (SHARED | {"rate_margin": -1}, r"the rate margin"),
        (SHARED | {"gpus": []}, r"no GPU type to plan with"),
        (SHARED | {"limits": {"h100-80gb": 1}}, r"limit .* GPU 'h100-80gb', which is not in this"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: dict[str, Any], message: str) -> None:
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
