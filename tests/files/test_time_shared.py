"""Problems and schedules of mixes as documents: there and back, and what is no such document."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import FileError
from cms.files import (
    Node,
    certificate_from_json,
    lay_out,
    parse_json,
    problem_from_json,
    problem_to_json,
    schedule_from_json,
    schedule_to_json,
)
from cms.files.source import Source
from cms.referee.kinds import referee_of
from proofs_checks.checker import check_problem, parse_document, problem_sha256
from tests.files.test_schemas import require_valid
from tests.references.mixes import random_schedule, time_shared_toy

TEXT = """\
{
  "format": "cms-problem",
  "schema": 1,
  "time_sharing": {"rule": "collect_then_run", "max_jobs": 3},
  "machine_types": [
    {"name": "machine", "cost": 1, "limit": null}
  ],
  "blocks": ["100", "60", "40"],
  "configurations": [
    {"machine": "machine", "blocks": {"100": 1}},
    {"machine": "machine", "blocks": {"40": 1, "60": 1}}
  ],
  "jobs": [
    {"name": "resnet50", "demand": 250, "limit": "0.108", "points": {"40": [[8, "0.015"]], "60": [["1/3", "0.012"], [16, "0.02"]]}},
    {"name": "vgg16", "demand": "1/7", "limit": "0.142", "points": {}}
  ]
}
"""  # noqa: E501
DOCUMENT = json.loads(TEXT)

seeds = st.integers(0, 10**9)


def from_text(text: str) -> Any:
    source = Source("p.json", text)
    return problem_from_json(Node(parse_json(source), source))


@given(seed=seeds)
def test_problems_and_schedules_come_back_and_fit_their_schemas(seed: int) -> None:
    rng = random.Random(seed)
    problem = time_shared_toy(rng)
    document = json.loads(lay_out(problem_to_json(problem)))
    assert problem_from_json(document) == problem
    require_valid("problem", document)
    schedule = random_schedule(rng, problem)
    written = json.loads(lay_out(schedule_to_json(schedule)))
    assert schedule_from_json(written) == schedule
    certificate = referee_of(problem).first().certificate
    assert certificate_from_json(json.loads(json.dumps(certificate.to_json()))) == certificate


def mutated(rng: random.Random, value: Any) -> Any:
    """Change, drop or add one thing somewhere in a document."""
    value = copy.deepcopy(value)
    at = value
    while True:
        keys: list[Any] = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = rng.choice(keys)
        if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.85:
            at = at[key]
            continue
        kind = rng.random()
        if kind < 0.2:
            del at[key]
        elif kind < 0.3 and isinstance(at, list):
            at.append(copy.deepcopy(at[key]))
        else:
            junk = [0, 1, -1, "1/2", "", "60", None, True, [], {}, 10**30, "1e-9", [[1, 2]], "x"]
            at[key] = rng.choice(junk)
        return value


def verdicts(document: Any) -> tuple[bool, bool]:
    """Whether the package and the second checker take a document."""
    try:
        sha256 = problem_from_json(document).sha256
    except FileError:
        sha256 = ""
    faults = check_problem(parse_document(json.dumps(document)))
    if sha256 and not faults:
        assert problem_sha256(parse_document(json.dumps(document))) == sha256
    return bool(sha256), not faults


@pytest.mark.parametrize("seed", range(3))
def test_both_readers_take_the_same_mutants(seed: int) -> None:
    rng = random.Random(seed)
    taken = 0
    for _ in range(60):
        ours, theirs = verdicts(mutated(rng, DOCUMENT))
        assert ours is theirs
        taken += ours
    assert 0 < taken < 60
