"""Two checkers, and the definition, on thousands of right and wrong documents.

Every schedule and certificate starts valid by construction, every solution true; then something in
it is changed. ``cms`` and ``proofs_checks.checker`` must say the same of all of them, and of
schedules and certificates what the definition says; no bound that is accepted may exceed the
optimum that enumeration finds. All read the same texts, as files would hold them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import pytest

from cms import BlockPrices, FileError, Problem, SizeBoundedConfigurations, solve
from cms.cli.app import run
from cms.files import (
    number_to_json,
    problem_from_json,
    problem_to_json,
    schedule_to_json,
    solution_to_json,
)
from proofs_checks.checker.__main__ import main as second_checker
from tests.families import FAMILIES, instance
from tests.property.certificates import random_certificate
from tests.property.definition import INVALID
from tests.property.mutation import mutant, pool_of
from tests.property.schedules import random_schedule
from tests.property.verdicts import judge_certificate, judge_schedule, read
from tests.samples import spread

Document = dict[str, Any]


def schedules(problem: Problem, rng: random.Random) -> Iterator[Document]:
    schedule = random_schedule(rng, problem)
    if schedule is not None:
        yield schedule_to_json(schedule)


def certificates(problem: Problem, rng: random.Random) -> Iterator[Document]:
    """Random ones, one with the reference's prices, and trees with prices near these."""
    yield random_certificate(rng, problem).to_json()
    best = solve(problem, "cp_sat", threads=1).certificate
    yield best.to_json()
    if isinstance(best, BlockPrices) and any(best.prices.values()):
        yield random_certificate(rng, problem, near=best.prices).to_json()


def is_tiny(document: Document) -> bool:
    """Whether the definition, which lists everything, comes to an end."""
    try:
        problem = problem_from_json(read(document))
    except FileError:
        return True
    assert isinstance(problem, Problem)
    rows = [problem.rows.row(job) for job in range(problem.n_jobs)]
    ways = [prod(row.demand // f + 2 for f in row.supply if f) for row in rows]
    ways += [prod(s.largest_count(b) + 1 for b in s.sizes) for s in problem.configurations
             if isinstance(s, SizeBoundedConfigurations)]  # fmt: skip
    return max(ways, default=0) < 3_000


def judge(kind: str, family: str, numbers: range, mutants: int) -> Counter[object]:
    """Compare all sides on documents and their mutants, and count the verdicts."""
    make, decide = KINDS[kind]
    found = Counter[object]()
    for number in numbers:
        rng, problem = random.Random(f"{kind} {family} {number}"), instance(family, number)
        of = problem_to_json(problem)
        for part in make(problem, rng):
            assert decide(of, part) not in (False, INVALID), (family, number)
            pool = pool_of(of, part, *(random_certificate(rng, problem).to_json() for _ in "abc"))
            for _ in range(mutants):
                changes = rng.choice([1, 1, 2])
                about, other = of, mutant(rng, part, pool, changes)
                if rng.random() < 0.2 and is_tiny(changed := mutant(rng, of, pool)):
                    about, other = changed, part
                try:
                    found[decide(about, other)] += 1
                except AssertionError as fault:
                    raise AssertionError(f"{family} {number}: {about} {other}: {fault}") from fault
    return found


KINDS: dict[str, tuple[Callable[..., Iterator[Document]], Callable[..., object]]] = {
    "schedules": (schedules, judge_schedule),
    "certificates": (certificates, judge_certificate),
}


@pytest.mark.parametrize("family", spread(5, FAMILIES))
@pytest.mark.parametrize("kind", KINDS)
def test_both_checkers_say_what_the_definition_says_of_every_mutant(kind: str, family: str) -> None:
    judge(kind, family, range(1), 40)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_both_checkers_say_the_same_of_twenty_thousand_mutants(kind: str) -> None:
    found = sum((judge(kind, f, range(2, 47), 40) for f in FAMILIES), Counter[object]())
    assert found.total() > 20_000
    assert min(found[True] + found["bound"], found[False] + found[INVALID]) > 2_000


#: What a solution may say instead, whatever it is.
WORDS: Document = {
    "status": ["optimal", "feasible", "infeasible", "no_schedule", "best"],
    "proof": ["checked", "solver", "none", "sure"],
    "stop_reason": ["proved", "finished", "gap", "time_limit", "interrupted", "bored"],
    "problem_sha256": ["0" * 64, ""],
    "schedule": [{"groups": []}],
    "tree": [{"prices": {}}],
    "guarantee": [
        {"factor": f, "additive": 1, "against": of, "theorem": "T-2", "verdict": verdict}
        for f in (1, "1/2") for of in ("OPT", "optimum") for verdict in ("verified", "open")
    ],
}  # fmt: skip


def solutions(family: str, numbers: range, mutants: int = 6) -> Iterator[tuple[Document, Document]]:
    """A true solution of each problem, then mutants of it by one change or by two."""
    rng = random.Random(f"solutions {family} {numbers}")
    for number in numbers:
        problem = instance(family, number)
        of, made = problem_to_json(problem), solution_to_json(solve(problem, "cp_sat", threads=1))
        yield of, made
        for _ in range(mutants):
            changed = mutant(rng, made, WORDS, rng.choice([1, 2]))
            if rng.random() < 0.5:  # the gap goes with cost and bound, as a careful liar has it
                try:
                    gap = Fraction(changed["cost"]) - Fraction(changed["lower_bound"])
                    changed["gap"] = number_to_json(gap)
                except (LookupError, TypeError, ValueError, ZeroDivisionError):
                    pass
            yield of, changed


def judge_solutions(family: str, numbers: range, folder: Path) -> Counter[bool]:
    """Compare both commands; count the files that pass and those that do not."""
    files = folder / "problem.json", folder / "solution.json"
    found = Counter[bool]()
    for documents in solutions(family, numbers):
        for path, document in zip(files, documents, strict=True):
            path.write_text(json.dumps(document), "utf-8")
        mine = run(["check", *map(str, files), "--quiet"]) == 0
        assert mine == (second_checker([*map(str, files)]) == 0), (family, documents)
        assert mine or found, (family, documents)
        found[mine] += 1
    return found


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_both_commands_say_the_same_of_a_solution(family: str, tmp_path: Path) -> None:
    assert judge_solutions(family, range(1), tmp_path)[True]


@pytest.mark.long
def test_both_commands_say_the_same_of_thousands_of_solutions(tmp_path: Path) -> None:
    found = (judge_solutions(family, range(1, 121), tmp_path) for family in FAMILIES)
    assert sum(found, Counter[bool]()).total() > 10_000
