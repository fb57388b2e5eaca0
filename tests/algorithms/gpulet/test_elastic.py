"""gpulet's elastic partitioning, step by step, on tables small enough for a hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

import cms
from algorithms.gpulet.elastic import Request
from cms import Configuration, MachineType, TimeSharedProblem, UnsupportedProblem
from cms.errors import AlgorithmError
from tests.algorithms.gpulet.parts import elastic, placed, serving, whole
from tests.samples import refusal

ALL = (20, 40, 50, 60, 80, 100)


# --- the knee -------------------------------------------------------------------------------------


def test_the_knee_is_the_top_of_the_steepest_step() -> None:
    """100 in 20 per cent, then 200, 120 and 30 more in 20, 20 and 40."""
    problem = serving(("x", 1, {20: 100, 40: 300, 60: 420, 100: 450}))
    assert elastic(problem).knee("x") == 40


def test_a_step_that_gains_less_than_a_twentieth_does_not_count() -> None:
    """The step from 49 to 50 per cent is the steepest, and counts if it gains 5 %."""
    for rate, knee in (("1.049", 49), ("1.05", 50)):
        problem = serving(("x", 1, {49: 1, 50: rate, 51: rate}), shares=(49, 50, 51))
        assert elastic(problem).knee("x") == knee


def test_of_equal_steps_the_lowest_is_taken() -> None:
    problem = serving(("x", 1, {20: 2, 40: 4, 60: 6, 80: 8, 100: 10}))
    assert elastic(problem).knee("x") == 20


def test_the_published_scan_stops_before_the_whole_gpu() -> None:
    rates = {20: 1, 80: 8, 100: 90}
    assert elastic(serving(("x", 1, rates))).knee("x") == 100
    assert elastic(serving(("x", 1, rates)), short_scan=True).knee("x") == 80
    alone = serving(("x", 1, {100: 90}))
    assert elastic(alone, short_scan=True).knee("x") == 100


# --- what is asked for ----------------------------------------------------------------------------


def test_saturated_shares_of_the_knee_are_asked_for_and_a_small_one_for_the_rest() -> None:
    """1,000 are three times 300 at the knee, and 100, for which a share of 20 is enough."""
    problem = serving(("x", 1000, {20: 100, 40: 300, 60: 420, 80: 430, 100: 450}))
    assert elastic(problem).requests == [
        *[Request("x", 40, Fraction(300))] * 3,
        Request("x", 20, Fraction(100)),
    ]


def test_jobs_come_by_rising_rate_times_limit_and_of_equal_ones_the_last_first() -> None:
    rates = {60: 9, 40: 6}
    problem = serving(("a", 3, rates), ("b", 1, rates), ("c", 1, rates), ("idle", 0, rates))
    assert [request.job for request in elastic(problem).requests] == ["c", "b", "a"]


# --- placing --------------------------------------------------------------------------------------


def test_a_gpu_is_cut_into_what_is_asked_for_and_the_rest_serves_the_next() -> None:
    problem = serving(("x", 6, {40: 6, 60: 9}), ("y", 9, {40: 6, 60: 9}))
    assert placed(elastic(problem), 1) == [{40: {"x": 6}, 60: {"y": 9}}]


def test_a_free_share_comes_before_an_uncut_gpu_unless_told_otherwise() -> None:
    problem = serving(("x", 6, {40: 6, 60: 9}), ("y", 6, {40: 6, 60: 9}))
    assert placed(elastic(problem), 2) == [{40: {"y": 6}, 60: {"x": 6}}]
    assert placed(elastic(problem, uncut_first=True), 2) == [
        {40: {"y": 6}, 60: {}},
        {40: {"x": 6}, 60: {}},
    ]
    assert placed(elastic(problem, uncut_first=True), 1) == [{40: {"y": 6}, 60: {"x": 6}}]


def test_a_larger_share_that_is_slower_does_not_do() -> None:
    """The share of 60 that is free serves x more slowly than that of 40 which it asks for."""
    rates = {40: 6, 60: 5}
    problem = serving(("y", 3, rates), ("x", 6, rates))
    assert placed(elastic(problem), 1) == [{40: {"y": 3, "x": 1}, 60: {"x": 5}}]
    problem = serving(("y", "3.1", rates), ("x", 6, rates))
    assert placed(elastic(problem), 1) is None
    assert placed(elastic(problem), 2) == [
        {40: {"y": Fraction("3.1")}, 60: {}},
        {40: {"x": 6}, 60: {}},
    ]


def test_what_no_free_share_can_take_is_spread_and_the_rest_shares_in_time() -> None:
    """y wants 240 of a whole GPU. On one, it gets 150 of the share of 60, and 90 of that of 40.

    There x takes one item in 1/100 and y nine in 9/100: 10 and 90 in a frame of 1/10.
    """
    many = {"mps:40": [(1, "0.01"), (9, "0.09")], "mps:60": [(3, "0.02")], "mps:100": [(3, "0.01")]}
    problem = TimeSharedProblem(
        configurations=[Configuration({"mps:100": 1}), Configuration({"mps:60": 1, "mps:40": 1})],
        jobs=[cms.TimeSharedJob("x", 10, 9, many), cms.TimeSharedJob("y", 240, 9, many)],
    )
    packing = elastic(problem)
    assert packing.requests == [Request("x", 40, Fraction(10)), Request("y", 100, Fraction(240))]
    assert placed(packing, 1) == [{40: {"x": 10, "y": 90}, 60: {"y": 150}}]
    solution = cms.solve(problem, "gpulet")
    assert solution.machine_count == 1
    (group,) = solution.schedule.groups
    assert {(block, str(content)) for block, content in group.assignment} == {
        ("mps:40", "x x 1 + y x 9"),
        ("mps:60", "y x 3"),
    }


def test_time_is_shared_on_the_smallest_share_that_can() -> None:
    """y and x have a share each; z fits beside either, and goes to that of 40."""
    problem = serving(("z", 3, {40: 6, 60: 9}), ("x", 2, {40: 6}), ("y", 1, {60: 9}))
    assert placed(elastic(problem), 1) == [{40: {"x": 2, "z": 3}, 60: {"y": 1}}]
    problem = serving(("z", 4, {40: 6, 60: 9}), ("x", 3, {40: 6}), ("y", 1, {60: 9}))
    assert placed(elastic(problem), 1) == [{40: {"x": 3}, 60: {"y": 1, "z": 4}}]


def test_the_number_of_gpus_is_searched_upwards_until_it_succeeds() -> None:
    problem = serving(*((name, 6, {40: 6, 60: 6}) for name in "abcde"))
    assert [placed(elastic(problem), number) is None for number in (1, 2, 3)] == [True, True, False]
    solution = cms.solve(problem, "gpulet")
    assert solution.machine_count == 3
    assert solution.history[-1].source == "gpulet: elastic partitioning of 3 GPUs"


# --- published deviations -------------------------------------------------------------------------


def test_a_dropped_rate_is_refused_by_the_driver() -> None:
    problem = serving(("x", 15, {100: 40}), ("y", 16, {100: 40}))
    assert cms.solve(problem, "gpulet").machine_count == 1
    with pytest.raises(AlgorithmError, match=r"gpulet.*job 'x'.* 0 of its demand"):
        cms.solve(problem, "gpulet", options={"dropped_rate": 15})


def test_slack_on_limits_is_refused_where_it_is_used() -> None:
    """2 x 4 is 8 of 7.9; a twentieth more would do."""
    problem = whole((1, "7.9", [(4, 4), (1, 1)]))
    assert cms.solve(problem, "gpulet").machine_count == 1  # one by one
    slow = whole((1, "7.9", [(4, 4), (1, 2)]))
    assert cms.solve(slow, "gpulet").machine_count == 2
    with pytest.raises(AlgorithmError, match="limit 7.9, which is 0.1 less"):
        cms.solve(slow, "gpulet", options={"limit_slack": "0.05"})


def test_a_batch_between_measured_ones_is_refused() -> None:
    """Three in 3 would give 1; measured are one in 2 and five in 4, which is too late."""
    problem = whole((1, "6.1", [(1, 2), (5, 4)]))
    assert cms.solve(problem, "gpulet").machine_count == 2
    with pytest.raises(AlgorithmError, match="an amount that was measured there: 1, 5"):
        cms.solve(problem, "gpulet", options={"interpolate": True})


def test_batches_without_end_between_measured_ones_are_refused() -> None:
    problem = whole(("1", 10**14, [(1, 1), (10**12, 10**13)]))
    said = refusal(UnsupportedProblem, cms.solve, problem, "gpulet", options={"interpolate": True})
    assert "batches of 1 and 1000000000000 were measured" in said


def test_a_batch_can_be_left_out() -> None:
    problem = whole((8, 9, [(32, 4), (16, 4)]))
    assert cms.solve(problem, "gpulet").machine_count == 1
    assert cms.solve(problem, "gpulet", options={"skipped_amount": 32}).machine_count == 2


def test_a_job_may_be_served_in_part_as_published() -> None:
    """Of 10 the share of 100 gives 9: the rest of 1 is no reason for another GPU."""
    problem = serving(("x", 10, {100: 9}))
    assert placed(elastic(problem), 1) is None
    assert placed(elastic(problem, enough="0.9"), 1) == [{100: {"x": 9}}]
    assert placed(elastic(problem, enough="0.91"), 1) is None


# --- what it takes --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gpulet", "gpulet_sbp", "gpulet_guided"])
def test_other_machines_are_refused_with_the_reason(method: str) -> None:
    def refused(configurations: object, **more: object) -> str:
        problem = TimeSharedProblem(configurations=configurations, **more)  # type: ignore[arg-type]
        return refusal(UnsupportedProblem, cms.solve, problem, method)

    assert "GPU is cut into 10 + 10 + 80" in refused(Configuration({"80": 1, "10": 2}))
    assert "GPU is cut into 60;" in refused(Configuration({"mps:60": 1}))
    assert "'3g.40gb' is no share" in refused(Configuration({"3g.40gb": 2}))
    assert "'50' and 'mps:50' are the same share" in refused(Configuration({"50": 1, "mps:50": 1}))
    limited = [MachineType("gpu", limit=3)]
    assert "limit of 3 machines" in refused(Configuration({"100": 1}, "gpu"), machine_types=limited)
    several = [MachineType("a"), MachineType("b")]
    shapes = [Configuration({"100": 1}, name) for name in "ab"]
    assert "several machine types (a, b)" in refused(shapes, machine_types=several)
    bounded = cms.SizeBoundedConfigurations({"50": 50}, 100)
    assert "size-bounded set" in refused(bounded)


def test_thousands_of_shares_are_refused() -> None:
    problem = serving(("x", 10**9, {100: 1}))
    assert "at most 2000" in refusal(UnsupportedProblem, cms.solve, problem, "gpulet")
