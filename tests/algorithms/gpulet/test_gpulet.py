"""gpulet's elastic partitioning, its baselines and its third scenario, step by step and by hand."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

import cms
from algorithms.gpulet import GpuletOptions
from algorithms.gpulet.elastic import Elastic, Request, Shares, guided_requests
from algorithms.gpulet.sbp import Duty, SquishyBinPacking
from algorithms.time_sharing.hosting import Hosting
from cms import BatchPoint, Configuration, DutyCycleRule, TimeSharedJob, TimeSharedProblem
from cms.errors import AlgorithmError
from instances.families import time_sharing
from instances.families.time_sharing import pairs
from tests.samples import few

#: Longer than any cycle of these tables.
LATE = 1000


def serving(*jobs: tuple[str, Any, Mapping[int, Any]], **more: Any) -> TimeSharedProblem:
    """Jobs as (name, demand, {share: items per unit of time}), of which items run one by one."""
    named = {share for _, _, rates in jobs for share in rates}
    used = named | {100 - share for share in named if share < 100}
    return TimeSharedProblem(
        configurations=pairs(tuple(sorted(used))),
        jobs=[
            TimeSharedJob(
                name,
                demand,
                LATE,
                {f"mps:{share}": [(1, 1 / Fraction(rate))] for share, rate in rates.items()},
            )
            for name, demand, rates in jobs
        ],
        **more,
    )


def whole(*jobs: tuple[Any, Any, list[tuple[int, Any]]], **more: Any) -> TimeSharedProblem:
    """Jobs as (demand, limit, points on a whole GPU), called x, y and z."""
    return TimeSharedProblem(
        configurations=Configuration({"100": 1}),
        jobs=[
            TimeSharedJob(name, demand, limit, {"100": points})
            for name, (demand, limit, points) in zip("xyz", jobs, strict=False)
        ],
        **more,
    )


def elastic(problem: TimeSharedProblem, **options: Any) -> Elastic:
    return Elastic(Hosting(problem), Shares.of(problem), GpuletOptions(**options))


def placed(packing: Elastic, number: int) -> list[dict[int, dict[str, Fraction]]] | None:
    """What each of so many GPUs carries, share by share; None if it fails."""
    machines = packing.place(number, lambda: False)
    if machines is None:
        return None
    return [
        {int(loaded.block.removeprefix("mps:")): loaded.rates for loaded in machine.blocks}
        for machine in machines
    ]


@pytest.mark.parametrize(
    ("rates", "options", "knee"),
    [
        # 100 in 20 per cent, then 200, 120 and 30 more in 20, 20 and 40.
        ({20: 100, 40: 300, 60: 420, 100: 450}, {}, 40),
        # A step that gains less than a twentieth does not count, however steep; equal ones: the
        # lowest.
        ({49: 1, 50: "1.049", 51: "1.049"}, {}, 49),
        ({49: 1, 50: "1.05", 51: "1.05"}, {}, 50),
        ({20: 2, 40: 4, 60: 6, 80: 8, 100: 10}, {}, 20),
        # The published scan stops before the whole GPU, if anything else serves.
        ({20: 1, 80: 8, 100: 90}, {}, 100),
        ({20: 1, 80: 8, 100: 90}, {"short_scan": True}, 80),
        ({100: 90}, {"short_scan": True}, 100),
    ],
)
def test_the_knee_is_the_top_of_the_steepest_step(
    rates: Mapping[int, Any], options: dict[str, Any], knee: int
) -> None:
    assert elastic(serving(("x", 1, rates)), **options).knee("x") == knee


def test_saturated_shares_of_the_knee_are_asked_for_and_a_small_one_for_the_rest() -> None:
    """1,000 are three times 300 at the knee, and 100, for which a share of 20 is enough."""
    problem = serving(("x", 1000, {20: 100, 40: 300, 60: 420, 80: 430, 100: 450}))
    assert elastic(problem).requests == [
        *[Request("x", 40, Fraction(300))] * 3,
        Request("x", 20, Fraction(100)),
    ]
    # By rising rate times limit, of equal ones the last first.
    rates = {60: 9, 40: 6}
    problem = serving(("a", 3, rates), ("b", 1, rates), ("c", 1, rates), ("idle", 0, rates))
    assert [request.job for request in elastic(problem).requests] == ["c", "b", "a"]


def test_a_free_share_comes_before_an_uncut_gpu_unless_told_otherwise() -> None:
    problem = serving(("x", 6, {40: 6, 60: 9}), ("y", 6, {40: 6, 60: 9}))
    both, apart = [{40: {"y": 6}, 60: {"x": 6}}], [{40: {"y": 6}, 60: {}}, {40: {"x": 6}, 60: {}}]
    assert placed(elastic(problem), 2) == both
    assert placed(elastic(problem, uncut_first=True), 2) == apart
    assert placed(elastic(problem, uncut_first=True), 1) == both
    # A GPU is cut into 50 and 50 though one such share is free: the new one serves.
    halves = serving(("x", 6, {50: 6}), ("y", 6, {50: 6}))
    assert placed(elastic(halves, uncut_first=True), 2) == [{50: {"y": 6}}, {50: {"x": 6}}]


def test_a_larger_share_that_is_slower_does_not_do() -> None:
    """The share of 60 that is free serves x more slowly than that of 40 which it asks for."""
    rates = {40: 6, 60: 5}
    assert placed(elastic(serving(("y", 3, rates), ("x", 6, rates))), 1) == [
        {40: {"y": 3, "x": 1}, 60: {"x": 5}}
    ]
    assert placed(elastic(serving(("y", "3.1", rates), ("x", 6, rates))), 1) is None


def test_what_no_free_share_can_take_is_spread_and_the_rest_shares_in_time() -> None:
    """y wants 240 of a whole GPU. On one, it gets 150 of the share of 60, and 90 of that of 40.

    There x takes one item in 1/100 and y nine in 9/100: 10 and 90 in a cycle of 1/10.
    """
    many = {"mps:40": [(1, "0.01"), (9, "0.09")], "mps:60": [(3, "0.02")], "mps:100": [(3, "0.01")]}
    problem = TimeSharedProblem(
        configurations=[Configuration({"mps:100": 1}), Configuration({"mps:60": 1, "mps:40": 1})],
        jobs=[cms.TimeSharedJob("x", 10, 9, many), cms.TimeSharedJob("y", 240, 9, many)],
    )
    packing = elastic(problem)
    assert packing.requests == [Request("x", 40, Fraction(10)), Request("y", 100, Fraction(240))]
    assert placed(packing, 1) == [{40: {"x": 10, "y": 90}, 60: {"y": 150}}]
    (group,) = cms.solve(problem, "gpulet").schedule.groups
    assert {(block, str(content)) for block, content in group.assignment} == {
        ("mps:40", "x x 1 + y x 9"),
        ("mps:60", "y x 3"),
    }


def test_gpus_are_added_until_all_fits_and_the_largest_free_share_is_taken_first() -> None:
    problem = serving(*((name, 6, {40: 6, 60: 6}) for name in "abcde"))
    assert [placed(elastic(problem), number) is None for number in (1, 2, 3)] == [True, True, False]
    assert cms.solve(problem, "gpulet").machine_count == 3
    rates = {20: 30, 60: 150, 80: 155, 100: 300}
    problem = serving(("a", 1, {40: 5}), ("b", 1, {80: 5}), ("y", 160, rates))
    both = [{20: {"y": 10}, 80: {"b": 1}}, {40: {"a": 1}, 60: {"y": 150}}]
    assert placed(elastic(problem), 2) == both


def test_time_is_shared_on_the_smallest_share_that_can() -> None:
    """y and x have a share each; z fits beside either, and goes to that of 40."""
    problem = serving(("z", 3, {40: 6, 60: 9}), ("x", 2, {40: 6}), ("y", 1, {60: 9}))
    assert placed(elastic(problem), 1) == [{40: {"x": 2, "z": 3}, 60: {"y": 1}}]
    problem = serving(("z", 4, {40: 6, 60: 9}), ("x", 3, {40: 6}), ("y", 1, {60: 9}))
    assert placed(elastic(problem), 1) == [{40: {"x": 3}, 60: {"y": 1, "z": 4}}]


@pytest.mark.parametrize(
    ("problem", "options", "fault"),
    [
        (
            serving(("x", 15, {100: 40}), ("y", 16, {100: 40})),
            {"dropped_rate": 15},
            r"gpulet.*job 'x'.* 0 of its demand",
        ),
        # 2 x 4 is 8 of 7.9; a twentieth more would do.
        (whole((1, "7.9", [(4, 4), (1, 2)])), {"limit_slack": "0.05"}, "7.9, which is 0.1 less"),
        # Three in 3 would give 1; measured are one in 2 and five in 4, which is too late.
        (whole((1, "6.1", [(1, 2), (5, 4)])), {"interpolate": True}, "was measured there: 1, 5"),
    ],
)
def test_what_the_published_programs_overlook_is_refused_by_the_driver(
    problem: TimeSharedProblem, options: dict[str, Any], fault: str
) -> None:
    assert cms.solve(problem, "gpulet").machine_count
    with pytest.raises(AlgorithmError, match=fault):
        cms.solve(problem, "gpulet", options=options)


def test_a_batch_can_be_left_out_and_a_rest_be_dropped() -> None:
    problem = whole((8, 9, [(32, 4), (16, 4)]))
    assert cms.solve(problem, "gpulet").machine_count == 1
    assert cms.solve(problem, "gpulet", options={"skipped_amount": 32}).machine_count == 2
    short = serving(("x", 10, {100: 9}))
    assert placed(elastic(short, enough="0.9"), 1) == [{100: {"x": 9}}]
    assert placed(elastic(short, enough="0.91"), 1) is None


def packing(problem: TimeSharedProblem) -> SquishyBinPacking:
    return SquishyBinPacking(Hosting(problem), Configuration({"100": 1}))


def mixes(problem: TimeSharedProblem, method: str) -> dict[str, int]:
    """What the GPUs of a method's schedule carry, and how many there are of each."""
    found: dict[str, int] = {}
    for group in cms.solve(problem, method).schedule.groups:
        carried = ", ".join(f"{block}: {content}" for block, content in group.assignment)
        found[carried] = found.get(carried, 0) + group.count
    return found


def test_the_largest_batch_that_fills_and_runs_within_the_limit_is_taken() -> None:
    """At 1/2 a batch of 8 fills in 16 and runs for 5, of 21; one of 9 would need 18 + 4."""
    points: list[tuple[int, Any]] = [(2, 1), (8, 5), (9, "5.5")]
    problem = whole((Fraction(1, 2), 21, points))
    assert packing(problem).residual("x", Fraction(1, 2)) == Duty(
        Fraction(16), {"x": Fraction(1, 2)}, {"x": BatchPoint(Fraction(8), Fraction(5))}
    )
    gathered = whole((Fraction(1, 2), 21, points), rule="collect_then_run")
    duty = packing(gathered).residual("x", Fraction(1, 2))
    assert (duty.cycle, duty.points["x"].amount) == (4, 2)


def test_a_batch_that_would_never_fill_in_time_runs_unfilled() -> None:
    """At 1/100 even one item takes 100 to come; 19 is as long as a cycle may be, of 20."""
    problem = whole((Fraction(1, 100), 20, [(1, 1), (4, 3)]))
    duty = packing(problem).residual("x", Fraction(1, 100))
    assert (duty.cycle, duty.points["x"].length, duty.occupancy) == (19, 1, Fraction(1, 19))


def test_full_gpus_come_first_and_the_rests_share_one() -> None:
    """x and y fill one GPU each at 2, and 1/4 and 1/8 are left: 8 in 4 every 32, 8 in 4 every 64.

    Merged, a cycle of 32: x takes 8, y its 4 in 3; 7 of 32.
    """
    points = [(4, 3), (8, 4)]
    problem = whole(("2.25", 70, points), ("2.125", 70, points))
    merged = packing(problem).merged(
        packing(problem).residual("x", Fraction(1, 4)),
        packing(problem).residual("y", Fraction(1, 8)),
    )
    assert merged is not None
    assert (merged.cycle, merged.occupancy) == (32, Fraction(7, 32))
    assert mixes(problem, "gpulet_sbp") == {
        "100: x x 8": 1,
        "100: y x 8": 1,
        "100: x x 8 + y x 4": 1,
    }


def test_a_merge_must_leave_time_and_keep_every_limit() -> None:
    sets = whole((Fraction(1, 2), 20, [(4, 4)]), (Fraction(1, 2), 20, [(4, 4)]))
    duties = [packing(sets).residual(job, Fraction(1, 2)) for job in "xy"]
    assert [duty.cycle for duty in duties] == [8, 8]
    merged = packing(sets).merged(*duties)
    assert merged is not None
    assert merged.occupancy == 1  # exactly
    more = [packing(sets).residual(job, Fraction(1, 2) + Fraction(1, 10**9)) for job in "xy"]
    assert packing(sets).merged(*more) is None
    tight = whole((Fraction(1, 2), 11, [(4, 4), (1, 1)]), (Fraction(1, 2), 20, [(4, 4)]))
    x = packing(tight).residual("x", Fraction(1, 2))
    assert (x.cycle, x.occupancy) == (2, Fraction(1, 2))  # 8 + 4 is more than 11
    assert packing(tight).merged(x, packing(tight).residual("y", Fraction(1, 2))) is None


def test_shares_as_large_as_the_rate_asks_for_are_packed_by_size() -> None:
    """x takes all of two GPUs at 10 and 4 are left: 60 per cent; y takes 40 of the same GPU."""
    rates = {40: 3, 60: 5, 100: 10}
    problem = serving(("x", 24, rates), ("y", 3, rates))
    requests = guided_requests(Hosting(problem), Shares.of(problem))
    assert [(one.job, one.share, one.rate) for one in requests] == [
        ("x", 100, 10),
        ("x", 100, 10),
        ("x", 60, 4),
        ("y", 40, 3),
    ]
    assert mixes(problem, "gpulet_guided") == {
        "mps:100: x x 1": 2,
        "mps:40: y x 1, mps:60: x x 1": 1,
    }


RATES = (50, 100, 300, 500, 600, 900, 1200, 2400, 5000)
MADE_UP = {
    "gpulet": (1, 1, 1, 1, 1, 1, 1, 2, 4),
    "gpulet_sbp": (1, 1, 1, 1, 1, 1, 1, 2, 4),
    "gpulet_guided": (2, 2, 2, 2, 2, 2, 2, 2, 4),
    "mix_first_fit": (1, 1, 1, 1, 1, 1, 1, 2, 3),
}


def gpus(problem: cms.TimeSharedProblem, method: str) -> int | None:
    options: dict[str, Any] = {"orders": 100} if method == "mix_first_fit" else {}
    return cms.solve(problem, method, options=options, time_limit=None).machine_count


@pytest.mark.parametrize("rule", few(1, DutyCycleRule))
@pytest.mark.parametrize("method", MADE_UP)
def test_the_made_up_table_gives_the_known_numbers(method: str, rule: DutyCycleRule) -> None:
    problems = [time_sharing.scenario_3(rate, rule=rule) for rate in RATES]
    assert tuple(gpus(problem, method) for problem in problems) == MADE_UP[method]
