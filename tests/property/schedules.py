"""Random valid schedules, and mutants of them as documents.

A mutant says whether it is invalid by construction; where that depends on numbers, they are counted
here, from the documents, in fractions.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from cms import Configuration, Problem, Schedule
from cms.files import problem_to_json, schedule_to_json
from tests.oracle import given, limit_rows, options
from tests.property.definition import machines_of

Document = dict[str, Any]
ZERO = Fraction(0)


class Mutant(NamedTuple):
    """A problem and a schedule or a certificate, as documents; ``wrong`` if certainly invalid."""

    name: str
    problem: Document
    part: Document
    wrong: bool


def random_schedule(rng: random.Random, problem: Problem) -> Schedule | None:
    """Random options for all jobs on random machines; None where that does not come out."""
    names = [machine.name for machine in problem.machine_types]
    kinds = [machine for machine in machines_of(problem) if any(machine.held)]
    available = [any(machine.held[i] for machine in kinds) for i in range(len(problem.blocks))]
    need: Counter[int] = Counter()
    taken: dict[tuple[str, str], int] = {}
    for job in problem.jobs:
        supply = [
            given(job, block) if there else Fraction(0)
            for block, there in zip(problem.blocks, available, strict=True)
        ]
        choices = list(options(supply, job.demand))
        if not choices:
            return None
        for i, count in enumerate(rng.choice(choices)):
            if count:
                need[i] += count
                taken[problem.blocks[i], job.name] = count
    machines: Counter[Configuration] = Counter()
    used: Counter[int] = Counter()
    for _ in range(400):
        short = [i for i, count in need.items() if count > 0]
        if not short and rng.random() < 0.7:
            return Schedule.from_counts(problem, machines, taken)
        useful = [
            machine
            for machine in kinds
            if any(machine.held[i] for i in short) or not short
            if _has_room(problem, used, machine.type)
        ]
        if not useful:
            return Schedule.from_counts(problem, machines, taken) if not short else None
        machine = rng.choice(useful)
        used[machine.type] += 1
        need.subtract({i: count for i, count in enumerate(machine.held) if count})
        blocks = dict(zip(problem.blocks, machine.held, strict=True))
        machines[Configuration(blocks, names[machine.type])] += 1
    return None


def _has_room(problem: Problem, used: Counter[int], machine: int) -> bool:
    more = used + Counter([machine])
    return all(
        sum(weight * more[at] for at, weight in enumerate(row.weights)) <= row.most
        for row in limit_rows(problem).values()
    )


def covered(problem: Document, schedule: Document) -> dict[str, Fraction]:
    """How much of each job's demand a schedule's document serves."""
    table = {job["name"]: job["demand_function"] for job in problem["jobs"]}
    found = dict.fromkeys(table, Fraction(0))
    for group in schedule["groups"]:
        for block, job, count in group["assignment"]:
            found[job] += Fraction(table[job].get(block, 0)) * count * group["count"]
    return found


def short(problem: Document, schedule: Document) -> bool:
    """Whether some job's demand is not served in full."""
    served = covered(problem, schedule)
    return any(served[job["name"]] < Fraction(job["demand"]) for job in problem["jobs"])


class Case:
    """What a mutation works on: copies of both documents, and where to cut."""

    def __init__(self, rng: random.Random, problem: Problem, schedule: Schedule) -> None:
        self.rng, self.original = rng, problem
        self.problem = problem_to_json(problem)
        self.schedule = copy.deepcopy(schedule_to_json(schedule))
        self.groups: list[Document] = self.schedule["groups"]

    def group(self) -> Document:
        return self.rng.choice(self.groups)

    def serving(self) -> Document:
        return self.rng.choice([group for group in self.groups if group["assignment"]])

    def entry(self) -> list[Any]:
        entry: list[Any] = self.rng.choice(self.serving()["assignment"])
        return entry

    @property
    def short(self) -> bool:
        return short(self.problem, self.schedule)

    def machines(self, name: str) -> int:
        return sum(group["count"] for group in self.groups if group["machine"] == name)

    def breaks_limit(self) -> bool:
        types = ((m["limit"], {m["name"]: 1}) for m in self.problem["machine_types"])
        groups = ((g["at_most"], g["weights"]) for g in self.problem.get("group_limits", ()))
        return any(
            sum(Fraction(n) * self.machines(m) for m, n in weights.items()) > Fraction(most)
            for most, weights in (*types, *groups)
            if most is not None
        )


_OF_A_CASE = {"case": "Case", "return": "bool"}


# Each returns whether the mutant is invalid for certain; LookupError where it does not apply.
Mutation = Callable[[Case], bool]


def fewer_blocks(case: Case) -> bool:
    """An entry, a block, a group or a machine less, or no machine at all."""
    kind = case.rng.randrange(5)
    if kind == 0:
        assignment = case.serving()["assignment"]
        assignment.remove(case.rng.choice(assignment))
    elif kind == 1:
        entry = case.entry()
        entry[2] -= 1
        return entry[2] < 1 or case.short
    elif kind == 2:
        case.groups.remove(case.group())
    elif kind == 3:
        group = case.group()
        group["count"] -= 1
        return group["count"] < 1 or case.short
    else:
        case.groups.clear()
    return case.short


def one_block_more(case: Case) -> bool:
    group = case.serving()
    block, _, _ = entry = case.rng.choice(group["assignment"])
    entry[2] += 1
    used = sum(int(n) for b, _, n in group["assignment"] if b == block)
    return used > int(group["configuration"][block])


def one_group_twice(case: Case) -> bool:
    case.groups.append(copy.deepcopy(case.group()))
    return case.breaks_limit()


def split_a_group(case: Case) -> bool:
    group = case.group()
    if group["count"] > 1:
        case.groups.append(copy.deepcopy(group))
        case.groups[-1]["count"] = case.rng.randint(1, group["count"] - 1)
        group["count"] -= case.groups[-1]["count"]
    case.rng.shuffle(case.groups)
    return False


def a_huge_count(case: Case) -> bool:
    case.group()["count"] = case.rng.choice([2**31, 2**63, 10**30])
    return case.breaks_limit() or case.short


def another_block_or_job(case: Case) -> bool:
    jobs = [job["name"] for job in case.problem["jobs"]]
    at, names = case.rng.choice([(0, case.problem["blocks"]), (1, jobs)])
    case.entry()[at] = case.rng.choice(names)
    return case.short


def the_same_entry_twice(case: Case) -> bool:
    assignment = case.serving()["assignment"]
    assignment.append(list(case.rng.choice(assignment)))
    return True


def an_unknown_name(case: Case) -> bool:
    where = case.rng.randrange(5)
    name = case.rng.choice(["nobody", "", "b0 ", "B0"])
    if where < 2:
        case.entry()[where] = name
    elif where == 2:
        case.group()["machine"] = name
    elif where == 3:
        case.group()["configuration"][name] = 1
    else:
        case.serving()["assignment"].append([name, case.problem["jobs"][0]["name"], 1])
    return True


def another_configuration(case: Case) -> bool:
    group = case.group()
    blocks = group["configuration"]
    for _ in range(case.rng.randint(1, 3)):
        block = case.rng.choice(case.problem["blocks"])
        blocks[block] = max(0, blocks.get(block, 0) + case.rng.choice([-1, 1, 1, 50]))
    wanted = tuple(blocks.get(block, 0) for block in case.original.blocks)
    names = [machine.name for machine in case.original.machine_types]
    return not any(
        wanted == machine.held and names[machine.type] == group["machine"]
        for machine in machines_of(case.original)
        if any(machine.held)
    )


def another_machine_type(case: Case) -> bool:
    case.group()["machine"] = case.rng.choice(
        [*(machine["name"] for machine in case.problem["machine_types"]), None]
    )
    return case.breaks_limit()


def a_count_below_one(case: Case) -> bool:
    count = case.rng.choice([0, -1, -(10**20)])
    if case.rng.random() < 0.5:
        case.group()["count"] = count
    else:
        case.entry()[2] = count
    return True


def no_whole_number(case: Case) -> bool:
    count = case.rng.choice([1.5, "1", True, None, [1], "1/3"])
    where = case.rng.randrange(3)
    if where == 0:
        case.group()["count"] = count
    elif where == 1:
        case.entry()[2] = count
    else:
        blocks = case.group()["configuration"]
        blocks[case.rng.choice(sorted(blocks))] = count
    return True


def more_machines_than_there_are(case: Case) -> bool:
    limits = {m["name"]: m["limit"] for m in case.problem["machine_types"]}
    group = case.rng.choice([g for g in case.groups if limits[g["machine"]] is not None])
    group["count"] += limits[group["machine"]] - case.machines(group["machine"]) + 1
    return True


def fewer_machines_than_in_use(case: Case) -> bool:
    machine = case.rng.choice(case.problem["machine_types"])
    used = case.machines(machine["name"])
    machine["limit"] = max(0, used + case.rng.choice([-1, 0, 1]))
    return used > int(machine["limit"])


def another_limit_of_a_group(case: Case) -> bool:
    group = case.rng.choice(case.problem.get("group_limits", ()))
    name = case.rng.choice(sorted(group["weights"]))
    if case.rng.random() < 0.5:
        used = sum((Fraction(n) * case.machines(m) for m, n in group["weights"].items()), ZERO)
        group["at_most"] = str(max(Fraction(0), used + Fraction(case.rng.choice([-1, 0, 9]), 9)))
    else:
        group["weights"][name] = str(Fraction(group["weights"][name]) * 2)
    return case.breaks_limit()


def a_higher_demand(case: Case) -> bool:
    job = case.rng.choice(case.problem["jobs"])
    job["demand"] = str(covered(case.problem, case.schedule)[job["name"]] + Fraction(1, 10**30))
    return True


def exactly_the_demand_served(case: Case) -> bool:
    served = covered(case.problem, case.schedule)
    for job in case.problem["jobs"]:
        job["demand"] = str(served[job["name"]])
    return False


def a_lower_supply(case: Case) -> bool:
    job = case.rng.choice(case.problem["jobs"])
    block = case.rng.choice(sorted(job["demand_function"]))
    supply = Fraction(job["demand_function"][block])
    job["demand_function"][block] = str(
        supply * case.rng.choice([1 - Fraction(1, 10**30), Fraction(0)])
    )
    return case.short


def a_smaller_set(case: Case) -> bool:
    shape = case.rng.choice([c for c in case.problem["configurations"] if "sizes" in c])
    if case.rng.random() < 0.5:
        shape["max_blocks"] = case.rng.randint(1, 3)
    else:
        shape["capacity"] = str(Fraction(shape["capacity"]) / case.rng.choice([1, 2]))
    return False


def an_empty_machine(case: Case) -> bool:
    case.groups.append({**case.group(), "configuration": {}, "assignment": []})
    return True


MUTATIONS: tuple[Mutation, ...] = (fewer_blocks,) * 4 + tuple(
    thing
    for thing in list(globals().values())
    if getattr(thing, "__annotations__", {}) == _OF_A_CASE
)


def mutant(
    rng: random.Random, problem: Problem, schedule: Schedule, *mutations: Mutation
) -> Mutant | None:
    """One mutant, or None where a mutation does not apply (any more)."""
    case = Case(rng, problem, schedule)
    wrong = False
    try:
        for mutation in mutations:
            wrong = mutation(case)
    except (LookupError, TypeError, ValueError):
        return None
    name = " and ".join(mutation.__name__ for mutation in mutations)
    # Of several mutations the last may mend what the first broke.
    return Mutant(name, case.problem, case.schedule, wrong and len(mutations) == 1)
