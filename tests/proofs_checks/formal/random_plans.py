"""Random problems, schedules and trees as documents, half tampered with; what is said of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from cms import Problem, Replicas, Schedule, Solution, solve
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
from tests.property import certificate_mutants, schedules
from tests.property.certificates import random_certificate


class Plan(NamedTuple):
    """A problem document, groups of a schedule if there is one, and a tree."""

    problem: Document
    groups: list[Document] | None
    tree: Document


def random_problem(
    rng: random.Random, families: Sequence[str] = tuple(FAMILIES), replicas: float = 0
) -> Problem:
    """A problem of one of these families, whose jobs are called j0, j1 and so on.

    So large a part of the problems have jobs with replicas.
    """
    drawn = instance(rng.choice(families), rng.randrange(10**6))
    problem = drawn.replace(job_names=[f"j{j}" for j in range(drawn.n_jobs)])
    if rng.random() >= replicas:
        return problem
    shares = [None, 0, "1/6", "1/2", 1]
    return Problem(
        configurations=problem.configurations,
        jobs=[
            replace(job, replicas=Replicas(rng.randint(1, 3), rng.choice(shares)))
            for job in problem.jobs
        ],
        machine_types=problem.machine_types,
        group_limits=problem.group_limits,
    )


@cache
def solved(problem: Problem) -> Solution:
    return solve(problem, threads=1, time_limit=None)


def random_tree(rng: random.Random, problem: Problem) -> Document:
    """The tree of a certificate that holds, the best one perhaps, or of one that may not."""
    best = rng.random() < 0.4
    certificate = solved(problem).certificate if best else random_certificate(rng, problem)
    mutant = None
    if rng.random() < 0.4:
        mutation = rng.choice(certificate_mutants.MUTATIONS)
        mutant = certificate_mutants.mutant(rng, problem, certificate, mutation)
    return certificate.to_json() if mutant is None else mutant.part


def random_groups(
    rng: random.Random, problem: Problem, *, tampered: float = 0.4
) -> list[Document] | None:
    """The groups of a schedule that is valid, or may not be; None if there is none."""
    schedule: Schedule | None = schedules.random_schedule(rng, problem)
    if schedule is None:
        return None
    if rng.random() < 0.5:
        schedule = solved(problem).schedule
    mutant = None
    if rng.random() < tampered:
        mutant = schedules.mutant(rng, problem, schedule, rng.choice(schedules.MUTATIONS))
    groups: list[Document] = (schedule_to_json(schedule) if mutant is None else mutant.part)[
        "groups"
    ]
    return groups


def random_plans(
    seed: int, number: int, families: Sequence[str] = tuple(FAMILIES), replicas: float = 0.2
) -> Iterator[Plan]:
    for at in range(number):
        rng = random.Random(f"{seed} {at}")
        problem = random_problem(rng, families, replicas)
        groups = random_groups(rng, problem) if rng.random() < 0.5 else None
        yield Plan(problem_to_json(problem), groups, random_tree(rng, problem))


def second_verdict(problem: ReadProblem, groups: list[Document] | None, tree: Any) -> str:
    """What the second checker says."""
    try:
        bound = tree_bound(tree, problem)
        if bound is None:
            return "Infeasible"
        least = round_up(problem, bound)
        if groups is None:
            return f"AtLeast {least}"
        found = read_schedule({"groups": groups}, problem)
        if schedule_faults(problem, found):
            return "Rejected"
    except Fault:
        return "Rejected"
    cost = sum((problem.machine_types[g.machine].cost * g.count for g in found), ZERO)
    return f"Optimal {cost}" if cost <= least else f"Between {least} {cost}"


def both_say(of: Document, groups: Any, tree: Any) -> tuple[str, str | None]:
    """What the second checker says, and the words for the proved one; None if they are refused."""
    try:
        problem = read_problem(read(of))
        groups, tree = read(groups), read(tree)
    except Fault:
        return "Rejected", None
    said = second_verdict(problem, groups, tree)
    try:
        found = None if groups is None else read_schedule({"groups": groups}, problem)
        line = plan_words(problem, found, tree)
    except Fault:
        line = None
    return said, line
