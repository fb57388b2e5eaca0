"""Certificates against their definition: all machines, all options of a job, in rationals."""

from __future__ import annotations

import copy
import json
import pickle
import random
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from cms import BlockPrices, MachineType, Problem, solve
from cms.files import certificate_from_json, problem_to_json
from tests.property.certificates import random_certificate
from tests.property.definition import INVALID
from tests.property.problems import problems
from tests.property.verdicts import judge_certificate


@given(problems(), st.integers(0, 10**9), st.integers(-1, 3), st.booleans())
def test_a_tree_proves_what_the_definition_and_the_second_checker_say(
    problem: Problem, seed: int, hairs: int, near_the_best: bool
) -> None:
    best = solve(problem, threads=1).certificate if near_the_best else None
    near = best.prices if isinstance(best, BlockPrices) and any(best.prices.values()) else None
    document = random_certificate(random.Random(seed), problem, near=near).to_json()
    verdict = judge_certificate(problem_to_json(problem), document, wrong=False)
    event(verdict)
    assert verdict != INVALID
    # As it was drawn, it holds; with costs that differ by a hair it may not.
    machines = [
        MachineType(m.name, max(Fraction(0), m.cost + Fraction(hairs, 100)), m.limit)
        for m in problem.machine_types
    ]
    other = problem.replace(machine_types=machines)
    judge_certificate(problem_to_json(other), document, wrong=False)


@given(problems(), st.integers(0, 10**9))
def test_a_certificate_survives_json_pickle_and_copies(problem: Problem, seed: int) -> None:
    certificate = random_certificate(random.Random(seed), problem)
    text = json.dumps(certificate.to_json())
    for twin in (
        certificate_from_json(json.loads(text)),
        pickle.loads(pickle.dumps(certificate)),
        copy.deepcopy(certificate),
    ):
        assert twin == certificate
        assert hash(twin) == hash(certificate)
        assert twin.to_json() == certificate.to_json()
