"""Random problems, schedules and trees as documents, half tampered with; what is said of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from cms import Problem, Schedule, Solution, solve
from cms.files import problem_to_json, schedule_to_json
from proofs_checks.checker.certificate import tree_bound
from proofs_checks.checker.problem import Problem as ReadProblem
from proofs_checks.checker.problem import read_problem
from proofs_checks.checker.reading import ZERO, Fault
from proofs_checks.checker.schedule import read_schedule, schedule_faults
from proofs_checks.checker.usable import round_up
from proofs_checks.formal.words import plan_words
from tests.families import FAMILIES, instance
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import Document
from tests.property.certificates import random_certificate
from tests.property.mutation import mutant, pool_of
from tests.property.schedules import random_schedule

#: Families of problems that the proved checker knows.
PROVED = [name for name in FAMILIES if name != "groups"]


class Plan(NamedTuple):
    """A problem document, groups of a schedule if there is one, and a tree."""

    problem: Document
    groups: list[Document] | None
    tree: Document


def random_problem(rng: random.Random) -> Problem:
    """A problem of any family, whose jobs are called j0, j1 and so on."""
    problem = instance(rng.choice(PROVED), rng.randrange(10**6))
    return problem.replace(job_names=[f"j{j}" for j in range(problem.n_jobs)])


@cache
def solved(problem: Problem) -> Solution:
    return solve(problem, threads=1, time_limit=None)


def random_tree(rng: random.Random, problem: Problem) -> Document:
    """The tree of a certificate that holds, the best one perhaps, or of one that may not."""
    best = rng.random() < 0.4
    tree = (solved(problem).certificate if best else random_certificate(rng, problem)).to_json()
    other = random_certificate(rng, problem).to_json()
    return mutant(rng, tree, pool_of(tree, other)) if rng.random() < 0.4 else tree


def random_groups(
    rng: random.Random, problem: Problem, *, tampered: float = 0.4
) -> list[Document] | None:
    """The groups of a schedule that is valid, or may not be; None if there is none."""
    schedule: Schedule | None = random_schedule(rng, problem)
    if schedule is None:
        return None
    if rng.random() < 0.5:
        schedule = solved(problem).schedule
    groups: list[Document] = schedule_to_json(schedule)["groups"]
    return mutant(rng, groups, pool_of(groups)) if rng.random() < tampered else groups


def random_plans(seed: int, number: int) -> Iterator[Plan]:
    for at in range(number):
        rng = random.Random(f"{seed} {at}")
        problem = random_problem(rng)
        groups = random_groups(rng, problem) if rng.random() < 0.5 else None
        yield Plan(problem_to_json(problem), groups, random_tree(rng, problem))


def second_verdict(problem: ReadProblem, groups: list[Document] | None, tree: Any) -> str:
    """What the second checker says."""
    try:
        bound = tree_bound(tree, problem)
        if bound is None:
            return "infeasible"
        least = round_up(problem, bound)
        if groups is None:
            return f"at least {least}"
        found = read_schedule({"groups": groups}, problem)
        if schedule_faults(problem, found):
            return "rejected"
    except Fault:
        return "rejected"
    cost = sum((problem.machine_types[g.machine].cost * g.count for g in found), ZERO)
    return f"optimal {cost}" if cost <= least else f"between {least} {cost}"


def both_say(of: Document, groups: Any, tree: Any) -> tuple[str, str | None]:
    """What the second checker says, and the words for the proved one; None if they are refused."""
    try:
        problem = read_problem(read(of))
        groups, tree = read(groups), read(tree)
    except Fault:
        return "rejected", None
    said = second_verdict(problem, groups, tree)
    try:
        found = None if groups is None else read_schedule({"groups": groups}, problem)
        line = plan_words(problem, found, tree)
    except Fault:
        line = None
    return said, line
