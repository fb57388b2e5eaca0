"""Two checkers, and the definition, on thousands of wrong and right schedules and certificates.

Every schedule and certificate starts valid by construction; a mutation then breaks it, or may. On
every one of them ``cms`` and ``proofs_checks.checker`` must say the same, what is invalid by
construction must be refused, and no bound that is accepted may exceed the optimum that enumeration
finds. Both sides read the same texts, as files would hold them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from cms import BlockPrices, Certificate, Problem, check, solve
from cms.errors import FileError
from cms.files import problem_from_json, problem_to_json, schedule_from_json, schedule_to_json
from proofs_checks.checker import check_schedule, parse_document
from tests.families import FAMILIES, instance
from tests.property import certificate_mutants, schedules
from tests.property.certificates import random_certificate
from tests.property.definition import INVALID
from tests.property.schedules import Mutant, random_schedule
from tests.property.verdicts import judge_certificate, read
from tests.samples import spread

FEW, MANY = 2, 45


def generator(*seed: object) -> random.Random:
    return random.Random(" ".join(map(str, seed)))


def valid_twice(problem: Any, schedule: Any) -> tuple[bool, bool]:
    """Whether each side accepts a schedule."""
    try:
        mine = not check(problem_from_json(read(problem)), schedule_from_json(read(schedule)))
    except FileError:
        mine = False
    documents = parse_document(json.dumps(problem)), parse_document(json.dumps(schedule))
    return mine, not check_schedule(*documents)


def schedule_mutants(problem: Problem, rng: random.Random) -> Iterator[Mutant]:
    """Each mutation of a random valid schedule, and as many pairs of mutations."""
    schedule = random_schedule(rng, problem)
    if schedule is None:
        return
    documents = problem_to_json(problem), schedule_to_json(schedule)
    assert valid_twice(*documents) == (True, True)
    for mutation in schedules.MUTATIONS:
        for mutations in ([mutation], [mutation, rng.choice(schedules.MUTATIONS)]):
            mutant = schedules.mutant(rng, problem, schedule, *mutations)
            if mutant is not None:
                yield mutant


def judge_schedules(family: str, numbers: range) -> int:
    """Compare both sides on all mutants; return their number."""
    found = 0
    for number in numbers:
        rng = generator("schedule", family, number)
        for mutant in schedule_mutants(instance(family, number), rng):
            mine, theirs = valid_twice(mutant.problem, mutant.part)
            assert mine == theirs, (family, number, mutant)
            assert not (mine and mutant.wrong), (family, number, mutant)
            found += 1
    return found


@pytest.mark.parametrize("family", spread(5, FAMILIES))
def test_both_checkers_say_the_same_of_every_mutant_of_a_schedule(family: str) -> None:
    judge_schedules(family, range(FEW // 2))


def valid_certificates(problem: Problem, rng: random.Random) -> Iterator[Certificate]:
    """Random ones, one with the reference's prices, and trees with prices near these."""
    yield random_certificate(rng, problem)
    best = solve(problem, "cp_sat", threads=1).certificate
    yield best
    if isinstance(best, BlockPrices) and any(best.prices.values()):
        yield random_certificate(rng, problem, near=best.prices)


def judge_certificates(family: str, numbers: range) -> int:
    """Judge valid certificates and their mutants; return their number."""
    found = 0
    for number in numbers:
        rng, problem = generator("certificate", family, number), instance(family, number)
        for certificate in valid_certificates(problem, rng):
            documents = problem_to_json(problem), certificate.to_json()
            original = Mutant("valid by construction", *documents, False)
            mutants = (
                certificate_mutants.mutant(rng, problem, certificate, mutation)
                for mutation in certificate_mutants.MUTATIONS
            )
            for mutant in (original, *mutants):
                if mutant is None:
                    continue
                try:
                    verdict = judge_certificate(mutant.problem, mutant.part, wrong=mutant.wrong)
                except AssertionError as fault:
                    raise AssertionError(f"{family} {number}: {mutant}: {fault}") from fault
                assert mutant is not original or verdict != INVALID
                found += 1
    return found


@pytest.mark.parametrize("family", spread(3, FAMILIES))
def test_both_checkers_say_the_same_of_every_mutant_of_a_certificate(family: str) -> None:
    judge_certificates(family, range(FEW // 2))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["schedules", "certificates"])
def test_both_checkers_say_the_same_of_twenty_thousand_mutants(kind: str) -> None:
    judge = judge_schedules if kind == "schedules" else judge_certificates
    assert sum(judge(family, range(FEW, FEW + MANY)) for family in FAMILIES) > 20_000
