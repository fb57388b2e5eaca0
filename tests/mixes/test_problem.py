"""The time-shared problem: its parts, its frames, its image without sharing, its hash."""

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
    InvalidProblem,
    InvalidSchedule,
    Job,
    MachineType,
    Mix,
    Problem,
    TimeSharedJob,
    TimeSharedProblem,
)
from cms.files import lay_out, problem_to_json
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


def test_it_has_its_parts_and_stays_as_it_is() -> None:
    assert PROBLEM.blocks == ("100", "40", "60")
    assert (PROBLEM.rule, PROBLEM.max_jobs) == (FrameRule.ROUND_ROBIN, None)
    assert PROBLEM.job("vgg").demand == 100
    assert repr(PROBLEM).startswith("TimeSharedProblem(2 jobs, 3 blocks, 2 configurations")
    with pytest.raises(AttributeError, match="TimeSharedProblem is immutable"):
        PROBLEM.rule = FrameRule.COLLECT_THEN_RUN


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rule": "half"}, "rule is 'half'; expected 'round_robin' or 'collect_then_run'"),
        ({"rule": None}, "rule is None; expected 'round_robin' or 'collect_then_run'"),
        ({"max_jobs": 0}, "max_jobs of a mix is 0; expected a whole number >= 1"),
        ({"max_jobs": 1.5}, "max_jobs of a mix is 1.5; expected a whole number >= 1"),
        ({"jobs": [Job("x", 1, {})]}, "jobs contains Job(name='x'"),
        ({"jobs": [JOBS[0], JOBS[0]]}, "two jobs are called 'resnet'; every job needs a name"),
        (
            {"jobs": [TimeSharedJob("x", 1, 1, {"6O": [(1, 1)]})]},
            "job 'x' has points on the block '6O', which is in no configuration",
        ),
        ({"blocks": ["100"]}, "configuration Configuration(40 + 60 on machine) has the block '40'"),
    ],
)
def test_it_refuses_what_makes_no_sense(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"configurations": SHAPES, "jobs": JOBS} | changed
    assert refusal(InvalidProblem, TimeSharedProblem, **given).startswith(message)


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
def test_frames_are_those_of_the_definition(problem: TimeSharedProblem) -> None:
    for block in problem.blocks:
        for mix, rates in mixes_on(problem, block):
            frame = problem.frame(block, mix)
            assert frame.admitted
            assert frame.rates == rates
        for job in problem.jobs:
            for point in job.points.get(block, ()):
                alone = Mix({job.name: point.amount})
                admitted = rates_on(problem, block, alone) is not None
                assert problem.frame(block, alone).admitted is admitted


@given(problem=toys)
def test_every_mix_has_a_rival_of_usable_points(problem: TimeSharedProblem) -> None:
    for block in problem.blocks:
        usable = problem.usable_points(block)
        for mix, rates in mixes_on(problem, block):
            better = {}
            for name, amount in mix.items():
                point = problem.job(name).point(block, amount)
                assert point is not None
                better[name] = next(
                    p.amount
                    for p in usable[name]
                    if p.amount >= amount and p.length <= point.length
                )
            rival = problem.frame(block, better)
            assert rival.admitted
            assert all(rival.rates[name] >= rate for name, rate in rates.items())


@given(problem=toys)
def test_without_sharing_a_block_gives_the_best_rate_of_a_job_alone(
    problem: TimeSharedProblem,
) -> None:
    plain = problem.unshared()
    assert plain.blocks == problem.blocks
    assert plain.configurations == problem.configurations
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


def test_every_part_is_in_the_hash() -> None:
    point = {"b": [(1, 2), (2, 3)]}
    shape = Configuration({"b": 1})

    first = TimeSharedJob("x", 1, 9, point)

    def made(job: TimeSharedJob = first, limit: int | None = None, **more: Any) -> str:
        return TimeSharedProblem(
            configurations=shape,
            jobs=[job],
            machine_types=[MachineType("machine", limit=limit)],
            **more,
        ).sha256

    hashes = [
        made(),
        made(rule="collect_then_run"),
        made(max_jobs=1),
        made(limit=4),
        made(TimeSharedJob("y", 1, 9, point)),
        made(TimeSharedJob("x", 2, 9, point)),
        made(TimeSharedJob("x", 1, 8, point)),
        made(TimeSharedJob("x", 1, 9, {"b": [(1, 2), (2, "3.5")]})),
        made(TimeSharedJob("x", 1, 9, {"b": [(1, 2), (3, 3)]})),
        made(TimeSharedJob("x", 1, 9, {"b": [(1, 2)]})),
        Problem(configurations=shape, jobs=[Job("x", 1, {"b": 1})]).sha256,
    ]
    assert len(set(hashes)) == len(hashes)
    assert made(TimeSharedJob("x", "1.0", "18/2", {"b": [(2, 3), ("2/2", 2)]})) == hashes[0]


def test_the_hash_is_what_the_documentation_says() -> None:
    problem = TimeSharedProblem(
        configurations=Configuration({"b": 1}),
        jobs=[TimeSharedJob("x", "1/2", 9, {"b": [(2, 3), (1, 2)]})],
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


def test_rates_that_are_too_long_are_refused_at_once() -> None:
    huge = 10**4000 + 1
    job = TimeSharedJob("x", 1, huge, {"b": [(Fraction(1, huge), Fraction(huge, 2))]})
    shape = Configuration({"b": 1})
    message = refusal(InvalidProblem, TimeSharedProblem, configurations=shape, jobs=[job])
    assert message.startswith("the numbers of job 'x' have more than 4300 digits over their common")
