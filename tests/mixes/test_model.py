"""Jobs with points, mixes and frame rules: what they take, and what they refuse by name."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import FrameRule, InvalidProblem, InvalidSchedule, Mix, Point, TimeSharedJob
from cms.mixes.model import undominated
from tests.samples import refusal


def test_points_are_exact_and_sorted_by_amount() -> None:
    job = TimeSharedJob("x", 0.5, "1/3", {"b": [(8, 0.1), ("1/2", "0.05")], "idle": []})
    assert job.points == {
        "b": (Point(Fraction(1, 2), Fraction(1, 20)), Point(Fraction(8), Fraction(1, 10)))
    }
    assert (job.demand, job.limit) == (Fraction(1, 2), Fraction(1, 3))
    assert pickle.loads(pickle.dumps(job)) == job
    assert hash(job) == hash(TimeSharedJob("x", "1/2", "1/3", job.points))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "job name is ''; expected a text that is not empty"),
        ({"demand": -1}, "demand of job 'x' is -1; expected a number >= 0"),
        ({"demand": "many"}, "demand of job 'x': 'many' is not a number"),
        ({"limit": 0}, "latency limit of job 'x' is 0; expected a number > 0"),
        ({"limit": float("nan")}, "latency limit of job 'x' is nan; expected a finite number"),
        ({"points": [(1, 1)]}, "points of job 'x' is [(1, 1)]; expected a mapping of blocks"),
        ({"points": {"": []}}, "block name is ''; expected a text that is not empty"),
        ({"points": {"b": 3}}, "points of job 'x' on block 'b' is 3; expected a list of pairs"),
        ({"points": {"b": {8: "0.1"}}}, "points of job 'x' on block 'b' is {8: '0.1'}; expected a"),
        ({"points": {"b": [{1, 2}]}}, "a point of job 'x' on block 'b' is {1, 2}; expected a list"),
        ({"points": {"b": "ab"}}, "points of job 'x' on block 'b' is 'ab'; expected a list of"),
        ({"points": {"b": ["ab"]}}, "a point of job 'x' on block 'b' is 'ab'; expected a list"),
        ({"points": {"b": [7]}}, "a point of job 'x' on block 'b' is 7; expected a list of pairs"),
        ({"points": {"b": [(1, 2, 3)]}}, "a point of job 'x' on block 'b' is (1, 2, 3); expected"),
        ({"points": {"b": [(0, 1)]}}, "amount of a point of job 'x' on block 'b' is 0; expected a"),
        (
            {"points": {"b": [(2, 0)]}},
            "length of the point of job 'x' on block 'b' with the amount 2 is 0; expected a number",
        ),
        (
            {"points": {"b": [(1, 1), ("1.0", 2)]}},
            "the amount 1 stands twice among the points of job 'x' on block 'b'; an amount has one",
        ),
    ],
)
def test_a_job_refuses_what_is_no_job(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"name": "x", "demand": 1, "limit": 1, "points": {}} | changed
    assert refusal(InvalidProblem, TimeSharedJob, **given).startswith(message)


def test_equal_mixes_are_one_key_however_they_are_written() -> None:
    mix = Mix({"b": "4", "a": 0.5})
    assert {mix: 1}[Mix({"a": "1/2", "b": 4})] == 1
    assert list(mix) == ["a", "b"]
    assert (str(mix), repr(mix)) == ("a x 0.5 + b x 4", "Mix(a x 0.5 + b x 4)")
    assert pickle.loads(pickle.dumps(mix)) == mix
    with pytest.raises(AttributeError):
        mix.amounts = {}


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({}, "a mix has no jobs; leave the block idle instead"),
        ("ab", "a mix is 'ab'; expected a mapping of jobs to"),
        ({"a": 0}, "amount of job 'a' in a mix is 0; expected a number > 0"),
        ({"a": -1}, "amount of job 'a' in a mix is -1; expected a number >= 0"),
        ({"a": True}, "amount of job 'a' in a mix is True; expected a finite number"),
        ({5: 1}, "job name is 5; expected a text that is not empty"),
    ],
)
def test_a_mix_refuses_what_is_no_mix(amounts: Any, message: str) -> None:
    assert refusal(InvalidSchedule, Mix, amounts).startswith(message)


fractions = st.fractions(Fraction(1, 10), 30, max_denominator=12)


@given(lengths=st.lists(fractions, min_size=1, max_size=4), limit=fractions)
def test_both_rules_agree_on_a_job_alone_and_collecting_is_no_easier(
    lengths: list[Fraction], limit: Fraction
) -> None:
    own, frame = lengths[0], sum(lengths, Fraction(0))
    robin, collect = FrameRule
    alone = [rule.admits(own, own, limit) for rule in FrameRule]
    assert alone == [2 * own <= limit] * 2
    assert robin.admits(frame, own, limit) or not collect.admits(frame, own, limit)
    assert all(alone) or not robin.admits(frame, own, limit)


@given(st.lists(st.tuples(fractions, fractions), max_size=7, unique_by=lambda pair: pair[0]))
def test_a_point_is_dropped_if_and_only_if_another_is_as_good(
    pairs: list[tuple[Fraction, Fraction]],
) -> None:
    points = [Point(*pair) for pair in sorted(pairs)]
    kept = undominated(points)
    assert list(kept) == [
        p
        for p in points
        if not any(q != p and q.amount >= p.amount and q.length <= p.length for q in points)
    ]
