"""Time-shared problems and their parts: what they take and refuse, frames, images, hashes."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    Configuration,
    FrameRule,
    InvalidCertificate,
    InvalidProblem,
    InvalidSchedule,
    Job,
    MachineType,
    Mix,
    Point,
    PriceFunction,
    Problem,
    TimeSharedJob,
    TimeSharedProblem,
)
from cms.files import lay_out, problem_to_json
from cms.mixes.functions import functions_table
from cms.mixes.model import undominated
from proofs_checks.checker import parse_document, problem_sha256
from tests.references.mixes import mixes_on, rates_on, time_shared_toy
from tests.samples import refusal

SHAPES = [Configuration({"100": 1}), Configuration({"60": 1, "40": 1})]
JOBS = [
    TimeSharedJob("resnet", 250, "0.108", {"60": [(8, "0.012"), (16, "0.02")], "40": [(8, 0.015)]}),
    TimeSharedJob("vgg", 100, "0.142", {"100": [(4, "0.014")], "60": [(4, "0.02")]}),
]
PROBLEM = TimeSharedProblem(configurations=SHAPES, jobs=JOBS)

toys = st.integers(0, 10**9).map(lambda seed: time_shared_toy(random.Random(seed)))
fractions = st.fractions(Fraction(1, 10), 30, max_denominator=12)
numbers = st.fractions(min_value=0, max_value=9, max_denominator=12)
above_0 = numbers.filter(bool)
functions = st.builds(PriceFunction, numbers, st.lists(st.tuples(above_0, numbers), max_size=4))


# -- jobs, mixes, price functions -------------------------------------------------------------


def test_points_and_mixes_are_exact_sorted_and_equal_however_they_are_written() -> None:
    job = TimeSharedJob("x", 0.5, "1/3", {"b": [(8, 0.1), ("1/2", "0.05")], "idle": []})
    half, eight = Point(Fraction(1, 2), Fraction(1, 20)), Point(Fraction(8), Fraction(1, 10))
    assert job.points == {"b": (half, eight)}
    assert (job.demand, job.limit) == (Fraction(1, 2), Fraction(1, 3))
    assert hash(job) == hash(TimeSharedJob("x", "1/2", "1/3", job.points))
    mix = Mix({"b": "4", "a": 0.5})
    assert {mix: 1}[Mix({"a": "1/2", "b": 4})] == 1
    assert (str(mix), repr(mix)) == ("a x 0.5 + b x 4", "Mix(a x 0.5 + b x 4)")
    assert pickle.loads(pickle.dumps((job, mix))) == (job, mix)


ON_B = "of job 'x' on block 'b'"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "job name is ''; expected a text that is not empty"),
        ({"demand": -1}, "demand of job 'x' is -1; expected a number >= 0"),
        ({"limit": 0}, "latency limit of job 'x' is 0; expected a number > 0"),
        ({"points": [(1, 1)]}, "points of job 'x' is [(1, 1)]; expected a mapping of blocks"),
        ({"points": {"": []}}, "block name is ''; expected a text that is not empty"),
        ({"points": {"b": 3}}, f"points {ON_B} is 3; expected a list of pairs"),
        ({"points": {"b": {8: "0.1"}}}, f"points {ON_B} is {{8: '0.1'}}; expected a"),
        ({"points": {"b": [{1, 2}]}}, f"a point {ON_B} is {{1, 2}}; expected a list"),
        ({"points": {"b": "ab"}}, f"points {ON_B} is 'ab'; expected a list of"),
        ({"points": {"b": ["ab"]}}, f"a point {ON_B} is 'ab'; expected a list"),
        ({"points": {"b": [7]}}, f"a point {ON_B} is 7; expected a list of pairs"),
        ({"points": {"b": [(1, 2, 3)]}}, f"a point {ON_B} is (1, 2, 3); expected"),
        ({"points": {"b": [(0, 1)]}}, f"amount of a point {ON_B} is 0; expected a"),
        ({"points": {"b": [(2, 0)]}}, f"length of the point {ON_B} with the amount 2 is 0; exp"),
        ({"points": {"b": [(1, 1), ("1.0", 2)]}}, "the amount 1 stands twice among the points of"),
    ],
)
def test_a_job_refuses_what_is_no_job(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"name": "x", "demand": 1, "limit": 1, "points": {}} | changed
    assert refusal(InvalidProblem, TimeSharedJob, **given).startswith(message)


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({}, "a mix has no jobs; leave the block idle instead"),
        ("ab", "a mix is 'ab'; expected a mapping of jobs to numbers"),
        ({"a": 0}, "amount of job 'a' in a mix is 0; expected a number > 0"),
        ({"a": True}, "amount of job 'a' in a mix is True; expected a finite number"),
        ({5: 1}, "job name is 5; expected a text that is not empty"),
    ],
)
def test_a_mix_refuses_what_is_no_mix(amounts: Any, message: str) -> None:
    assert refusal(InvalidSchedule, Mix, amounts).startswith(message)


@given(lengths=st.lists(fractions, min_size=1, max_size=4), limit=fractions)
def test_both_rules_agree_on_a_job_alone_and_collecting_is_no_easier(
    lengths: list[Fraction], limit: Fraction
) -> None:
    own, frame = lengths[0], sum(lengths, Fraction(0))
    robin, collect = FrameRule
    assert [rule.admits(own, own, limit) for rule in FrameRule] == [2 * own <= limit] * 2
    assert robin.admits(frame, own, limit) or not collect.admits(frame, own, limit)
    for rule in FrameRule:
        assert rule.admits(frame, own, limit) == (frame <= rule.longest(own, limit))


@given(st.lists(st.tuples(fractions, fractions), max_size=7, unique_by=lambda pair: pair[0]))
def test_a_point_is_dropped_if_and_only_if_another_is_as_good(
    pairs: list[tuple[Fraction, Fraction]],
) -> None:
    points = [Point(*pair) for pair in sorted(pairs)]
    assert list(undominated(points)) == [
        p
        for p in points
        if not any(q != p and q.amount >= p.amount and q.length <= p.length for q in points)
    ]


@given(functions, above_0, numbers, numbers)
def test_a_price_function_never_falls_and_is_subadditive(
    function: PriceFunction, demand: Fraction, one: Fraction, two: Fraction
) -> None:
    worth = [function.worth(rate, demand) for rate in (Fraction(0), one, two, one + two)]
    assert worth[0] == 0
    assert max(worth[1:3]) <= worth[3] <= worth[1] + worth[2]
    assert function.worth(demand + one, demand) == function.worth(demand, demand)
    assert function.scaled(two).worth(one, demand) == two * worth[1]


def test_steps_of_one_width_are_one_and_those_of_no_height_are_none() -> None:
    function = PriceFunction(0, [(2, "1/3"), (1, 0), ("4/2", "1/6")])
    assert function.steps == ((Fraction(2), Fraction(1, 2)),)
    assert not PriceFunction(0, [(1, 0)])
    assert functions_table(None) == {}
    assert list(functions_table({"x": PriceFunction("1e-9"), "y": PriceFunction()})) == ["x"]


@pytest.mark.parametrize(
    ("given_to", "message"),
    [
        ((-1,), "slope of a price function is -1; expected a number >= 0"),
        ((0, [(0, 1)]), "times of a price function's step is 0; expected a number > 0"),
        ((0, [("-1/2", 1)]), "times of a price function's step is -0.5; expected a number >= 0"),
        ((0, [(1, -1)]), "height of a price function's step is -1; expected a number >= 0"),
        ((0, [(1, 2, 3)]), "a step of a price function is (1, 2, 3); expected a pair"),
        ((0, [5]), "a step of a price function is 5; expected a pair (times, height)"),
        (
            (0, [(1, Fraction(1, 10**4299 + odd)) for odd in (1, 3)]),
            "the sum of the heights of a price function's steps of one width has more than 4300",
        ),
        ((0, [{1, 2}]), "a step of a price function is {1, 2}; expected a pair (times, height)"),
        ((0, [(1, 1)] * 1001), "a price function has 1001 steps; expected 1000 at most"),
        ((0, 5), "steps of a price function is 5; expected a list of pairs (times, height)"),
    ],
)
def test_what_is_no_price_function_is_refused(given_to: Any, message: str) -> None:
    assert refusal(InvalidCertificate, PriceFunction, *given_to).startswith(message)


def test_what_is_no_table_of_price_functions_is_refused() -> None:
    for table, message in (
        ([1], "the price functions are [1]; expected a mapping of jobs to PriceFunction"),
        ({"x": 1}, "the price function of job 'x' is 1; expected a PriceFunction"),
    ):
        assert refusal(InvalidCertificate, functions_table, table) == message


# -- the problem ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rule": "half"}, "rule is 'half'; expected 'round_robin' or 'collect_then_run'"),
        ({"max_jobs": 0}, "max_jobs of a mix is 0; expected a whole number >= 1"),
        ({"max_jobs": 1.5}, "max_jobs of a mix is 1.5; expected a whole number >= 1"),
        ({"jobs": [Job("x", 1, {})]}, "jobs contains Job(name='x'"),
        ({"jobs": [JOBS[0], JOBS[0]]}, "two jobs are called 'resnet'; every job needs a name"),
        (
            {"jobs": [TimeSharedJob("x", 1, 1, {"6O": [(1, 1)]})]},
            "job 'x' has points on the block '6O', which is in no configuration",
        ),
        ({"blocks": ["100"]}, "configuration Configuration(40 + 60 on machine) has the block '40'"),
        (
            {"jobs": [TimeSharedJob("x", 1, 10**4000 + 1, {"60": [(Fraction(1, 10**4000 + 1),
              Fraction(10**4000 + 1, 2))]})]},
            "the numbers of job 'x' have more than 4300 digits over their common",
        ),
    ],
)  # fmt: skip
def test_it_refuses_what_makes_no_sense(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"configurations": SHAPES, "jobs": JOBS} | changed
    assert refusal(InvalidProblem, TimeSharedProblem, **given).startswith(message)
    with pytest.raises(AttributeError, match="TimeSharedProblem is immutable"):
        PROBLEM.rule = FrameRule.COLLECT_THEN_RUN


@pytest.mark.parametrize(
    ("block", "mix", "message"),
    [
        ("6", Mix({"vgg": 4}), "the problem does not have the block '6'; nearest: '60'"),
        ("60", Mix({"vg": 4}), "a mix has the job 'vg', which the problem does not have; nearest"),
        ("60", Mix({"vgg": 3}), "a mix takes 3 of job 'vgg' on block '60'; measured there: 4"),
        ("40", Mix({"vgg": 4}), "a mix takes 4 of job 'vgg' on block '40'; measured there: none"),
        ("60", {}, "a mix has no jobs"),
    ],
)
def test_what_has_no_frame_is_refused_by_name(block: str, mix: Any, message: str) -> None:
    assert refusal(InvalidSchedule, PROBLEM.frame, block, mix).startswith(message)


@given(problem=toys)
def test_frames_are_those_of_the_definition_and_mixes_have_rivals_of_usable_points(
    problem: TimeSharedProblem,
) -> None:
    for block in problem.blocks:
        usable = problem.usable_points(block)
        for mix, rates in mixes_on(problem, block):
            assert problem.frame(block, mix).rates == rates
            better = {}
            for name, amount in mix.items():
                point = problem.job(name).point(block, amount)
                assert point is not None
                fits = (p for p in usable[name] if p.length <= point.length)
                better[name] = next(p.amount for p in fits if p.amount >= amount)
            rival = problem.frame(block, better)
            assert rival.admitted
            assert all(rival.rates[name] >= rate for name, rate in rates.items())
        for job in problem.jobs:
            for point in job.points.get(block, ()):
                alone = Mix({job.name: point.amount})
                admitted = rates_on(problem, block, alone) is not None
                assert problem.frame(block, alone).admitted is admitted


@given(problem=toys)
def test_without_sharing_a_block_gives_the_best_rate_of_a_job_alone(
    problem: TimeSharedProblem,
) -> None:
    plain = problem.unshared()
    assert (plain.blocks, plain.configurations) == (problem.blocks, problem.configurations)
    for job in plain.jobs:
        for block in plain.blocks:
            rates = [r[job.name] for mix, r in mixes_on(problem, block) if list(mix) == [job.name]]
            assert job.demand_function(block) == max(rates, default=0)
    assert problem.serving_blocks().tolist() == plain.serving_blocks().tolist()
    assert problem.useful_blocks() == plain.useful_blocks()
    assert problem.cost_step == plain.cost_step


@given(problem=toys)
def test_copies_are_equal_and_both_programs_hash_alike(problem: TimeSharedProblem) -> None:
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem.replace() == problem
    assert problem.compute_sha256() == problem.sha256
    document = parse_document(lay_out(problem_to_json(problem)))
    assert problem_sha256(document) == problem.sha256


def test_the_hash_is_what_the_documentation_says() -> None:
    problem = TimeSharedProblem(
        configurations=Configuration({"b": 1}),
        jobs=[TimeSharedJob("x", "1/2", 9, {"b": [(2, 3), (1, 2)]})],
        machine_types=[MachineType("machine")],
        max_jobs=2,
    )
    head = {
        "blocks": ["b"],
        "configurations": [{"blocks": {"b": 1}, "machine": "machine"}],
        "machine_types": [{"cost": "1", "limit": None, "name": "machine"}],
        "max_jobs": 2,
        "rule": "round_robin",
    }
    job = {"demand": "1/2", "limit": "9", "points": {"b": [["1", "2"], ["2", "3"]]}}
    lines = [json.dumps(each, separators=(",", ":"), sort_keys=True) for each in (head, job)]
    text = f"cms-time-shared-problem-1\n{lines[0]}\nx\n\n{lines[1]}\n"
    assert problem.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert Problem(configurations=Configuration({"b": 1})).sha256 != problem.sha256
