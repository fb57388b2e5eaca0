"""What is wrong with a schedule of mixes: all of it, by both checkers, and nothing else."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    Configuration,
    InvalidSchedule,
    MachineGroup,
    Mix,
    Problem,
    Schedule,
    TimeSharedJob,
    TimeSharedProblem,
    check,
)
from cms.files import lay_out, problem_to_json, schedule_from_json, schedule_to_json
from proofs_checks.checker import check_schedule, parse_document
from tests.references.mixes import random_schedule, serves, time_shared_toy
from tests.samples import refusal

PAIR = Configuration({"60": 1, "40": 1}, "machine")
PROBLEM = TimeSharedProblem(
    configurations=PAIR,
    jobs=[
        TimeSharedJob("a", 250, "0.044", {"60": [(8, "0.012"), (16, "0.02")]}),
        TimeSharedJob("b", 125, "0.052", {"60": [(4, "0.02")], "40": [(4, "0.026")]}),
        TimeSharedJob("c", 0, 10, {"60": [(1, 1)]}),
    ],
    max_jobs=2,
)
BOTH = Mix({"a": 8, "b": 4})


def both_say(problem: TimeSharedProblem | Problem, schedule: Schedule) -> list[str]:
    """The faults that the package finds; the second checker agrees that there are some, or none."""
    faults = [str(fault) for fault in check(problem, schedule)]
    documents = [lay_out(d) for d in (problem_to_json(problem), schedule_to_json(schedule))]
    theirs = check_schedule(*map(parse_document, documents))
    assert bool(theirs) is bool(faults)
    return faults


def given_to(content: Any, block: str = "60", count: int = 1, machines: int = 1) -> Schedule:
    return Schedule([MachineGroup(PAIR, {(block, content): count}, machines)])


def test_a_schedule_at_every_limit_is_valid() -> None:
    """The frame is 0.032: 0.032 + 0.012 = 0.044, 0.032 + 0.02 = 0.052; 8 and 4 / 0.032."""
    assert both_say(PROBLEM, given_to(BOTH)) == []


@pytest.mark.parametrize(
    ("schedule", "kinds"),
    [
        (given_to("a"), "content demand demand"),
        (given_to(Mix({"a": 8, "z": 4})), "content demand demand"),
        (given_to(Mix({"a": 9, "b": 4})), "point demand demand"),
        (given_to(BOTH, "40"), "point demand demand"),
        (given_to(Mix({"a": 8, "b": 4, "c": 1}), machines=50), "content frame frame"),
        (given_to(BOTH, "90"), "block blocks demand demand"),
        (given_to(BOTH, count=2), "blocks"),
        (given_to(BOTH, count=0), "count demand demand"),
        (given_to(BOTH, machines=0), "count demand demand"),
    ],
)
def test_what_is_wrong_is_named(schedule: Schedule, kinds: str) -> None:
    assert [fault.kind for fault in check(PROBLEM, schedule)] == kinds.split()
    assert both_say(PROBLEM, schedule)


@given(seed=st.integers(0, 10**9))
def test_both_checkers_agree_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    problem = time_shared_toy(rng)
    for _ in range(4):
        schedule = random_schedule(rng, problem)
        assert (not both_say(problem, schedule)) is serves(problem, schedule)


def test_counts_of_mixes_become_machines() -> None:
    schedule = Schedule.from_counts(PROBLEM, {PAIR: 10**12}, {("60", BOTH): 10**12 - 1})
    assert [(g.count, dict(g.assignment)) for g in schedule.groups] == [
        (10**12 - 1, {("60", BOTH): 1}),
        (1, {}),
    ]
    assert both_say(PROBLEM, schedule) == []
    assert schedule.excerpt(1).rows[0][2] == "60 -> a x 8 + b x 4"


@pytest.mark.parametrize(
    ("given_blocks", "message"),
    [
        ({("60", BOTH): 2}, "2 blocks '60' are given to jobs, the machines have 1"),
        ({("60", Mix({"z": 1})): 1}, "given has the mix 'z x 1' of the job 'z', which the problem"),
        ({("60", BOTH): 1, ("40", "b"): 1}, "given has mixes beside 'b'; expected mixes alone"),
        ({("90", BOTH): 1}, "given names the block '90', which the problem does not have"),
        ({("60", BOTH): -1}, "number of blocks '60' given to the mix 'a x 8 + b x 4' is -1"),
    ],
)
def test_counts_of_mixes_that_make_no_sense_are_refused(given_blocks: Any, message: str) -> None:
    said = refusal(InvalidSchedule, Schedule.from_counts, PROBLEM, {PAIR: 1}, given_blocks)
    assert said.startswith(message)


def test_an_entry_twice_is_refused_however_it_is_written() -> None:
    document = copy.deepcopy(schedule_to_json(given_to(BOTH)))
    document["groups"][0]["assignment"].append(["60", {"b": "4.0", "a": "16/2"}, 1])
    message = refusal(ValueError, schedule_from_json, document)
    assert "gives blocks '60' to the mix 'a x 8 + b x 4' a second time" in message
    problem = parse_document(lay_out(problem_to_json(PROBLEM)))
    assert check_schedule(problem, parse_document(json.dumps(document)))[0].endswith("twice")
