"""Squishy bin packing and guided self-tuning, by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cms
from algorithms.gpulet.elastic import Shares, guided_requests
from algorithms.gpulet.sbp import Duty, SquishyBinPacking
from algorithms.time_sharing.hosting import Hosting
from cms import Configuration, Point, TimeSharedProblem
from tests.algorithms.gpulet.parts import serving, whole


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
        Fraction(16), {"x": Fraction(1, 2)}, {"x": Point(Fraction(8), Fraction(5))}
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


def test_more_demand_can_take_fewer_gpus() -> None:
    """x: 7 in 5. y, at 7/10: 6 in 2 or 7 in 5, the larger as it fills in 10, of 15 with its 5.

    At 3/4 x has a cycle of 28/3, in which y needs 6.53, so 7 in 5: 10 in all, too long. At 7/8 it
    is 8, in which y needs 5.6, so 6 in 2: 7 in all.
    """
    counts = []
    for demand in ("0.75", "0.875"):
        problem = whole((demand, 25, [(7, 5)]), ("0.7", 15, [(6, 2), (7, 5)]))
        counts.append(cms.solve(problem, "gpulet_sbp").machine_count)
    assert counts == [2, 1]


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
