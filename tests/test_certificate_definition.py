"""Certificates against their definition: all machines, all options of a job, in rationals."""

from __future__ import annotations

import copy
import json
import pickle
import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cms import InvalidCertificate, Problem
from cms.files import certificate_from_json
from tests.property.certificates import random_certificate
from tests.property.definition import INFEASIBLE, INVALID, evaluate
from tests.property.problems import problems
from tests.samples import refusal


@given(problems(), st.integers(0, 10**9), st.integers(-1, 3))
def test_a_tree_proves_what_the_definition_says(problem: Problem, seed: int, hairs: int) -> None:
    rng = random.Random(seed)
    certificate = random_certificate(rng, problem)
    # As it was drawn, it holds; with limits or costs that differ by a hair it may not.
    machines = [
        type(m)(m.name, max(Fraction(0), m.cost + Fraction(hairs, 100)), m.limit)
        for m in problem.machine_types
    ]
    other = problem.replace(machine_types=machines)
    for about in (problem, other):
        expected = evaluate(about, certificate)
        if expected == INVALID:
            assert refusal(InvalidCertificate, certificate.bound, about)
            assert refusal(InvalidCertificate, certificate.proves_infeasible, about)
        else:
            assert certificate.proves_infeasible(about) == (expected == INFEASIBLE)
            assert expected in (INFEASIBLE, certificate.bound(about))
    assert evaluate(problem, certificate) != INVALID


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
