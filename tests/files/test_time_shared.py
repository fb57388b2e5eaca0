"""Problems and schedules of mixes as documents: there and back, and what is no such document."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.checker.kinds import checker_for
from cms.errors import FileError
from cms.files import (
    certificate_from_json,
    lay_out,
    problem_from_json,
    problem_to_json,
    schedule_from_json,
    schedule_to_json,
)
from tests.files.test_schemas import require_valid
from tests.references.mixes import random_schedule, time_shared_toy

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
    certificate = checker_for(problem).first().certificate
    assert certificate_from_json(json.loads(json.dumps(certificate.to_json()))) == certificate


def test_an_amount_has_one_length() -> None:
    document = problem_to_json(time_shared_toy(random.Random(0)))
    given_points = next(each for job in document["jobs"] for each in job["points"].values() if each)
    given_points.append(given_points[0])
    with pytest.raises(FileError, match=r"^<document>: jobs.*\[0\] .* two points of the amount"):
        problem_from_json(document)
