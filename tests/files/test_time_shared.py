"""Problems and schedules of mixes as documents: there and back, and what is no such document."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import (
    certificate_from_json,
    lay_out,
    problem_from_json,
    problem_to_json,
    schedule_from_json,
    schedule_to_json,
)
from cms.referee.kinds import referee_of
from tests.files.documents import parsed
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

seeds = st.integers(0, 10**9)


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


def test_an_amount_has_one_length() -> None:
    with pytest.raises(
        FileError, match=r"^p.json:14:\d+: .*\.60\[1\]\[0\] .* of the amount 16, exp"
    ):
        problem_from_json(parsed(TEXT.replace('["1/3", "0.012"]', '[16, "0.012"]')))
