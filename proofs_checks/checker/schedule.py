"""The schedule: groups of equal machines, and every way in which they can break the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .bundles import bundle_faults
from .mixes import read_content
from .problem import Listed, Problem, multiset, read_problem
from .reading import ZERO, Fault, as_a, integer, record, sentences, show

#: What a block serves: a job, or the amounts of a mix.
Content = str | tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True)
class Group:
    """``count`` machines, equal in their configuration and in what their blocks serve."""

    machine: str
    configuration: dict[str, int]
    count: int
    assignment: list[tuple[str, Content, int]]  # block, content, how many of these on one machine


def read_schedule(value: object, problem: Problem) -> list[Group]:
    """Read the ``schedule`` of a solution document."""
    table = record(value, "the schedule", "groups")
    groups = []
    for index, row in enumerate(as_a(list, table["groups"], "the schedule's groups")):
        what = f"groups[{index}]"
        fields = record(row, what, "machine configuration count assignment")
        assignment = []
        for entry in as_a(list, fields["assignment"], f"the assignment of {what}"):
            if not isinstance(entry, list) or len(entry) != 3:
                raise Fault(f"{what} assigns {show(entry)}, not [block, job or mix, count]")
            block = as_a(str, entry[0], f"a name in {what}")
            content = read_content(entry[1], what)
            amount = integer(
                entry[2], f"the blocks {show(block)} for {_shown(content)} in {what}", least=None
            )
            assignment.append((block, content, amount))
        groups.append(read_machines(fields, assignment, what, problem))
    return groups


def read_machines(
    fields: Mapping[str, Any],
    assignment: list[tuple[str, Content, int]],
    what: str,
    problem: Problem,
) -> Group:
    """Read what machines are cut into and how many there are."""
    return Group(
        as_a(str, problem.machine_or_only(fields["machine"]), f"the machine type of {what}"),
        multiset(fields["configuration"], f"the configuration of {what}"),
        integer(fields["count"], f"the count of {what}", least=None),
        assignment,
    )


def _shown(content: Content) -> str:
    if isinstance(content, str):
        return show(content)
    return " + ".join(f"{show(name)} x {show(amount)}" for name, amount in content)


def _given(
    problem: Problem, block: str, place: int, content: Content
) -> tuple[list[str], dict[str, Fraction | int]]:
    """What is wrong with a content of a block, and what it gives each job."""
    sharing = problem.sharing
    if isinstance(content, str):
        if content not in problem.jobs:
            return [f"serves {show(content)}, which is not a job of the problem"], {}
        if sharing is not None:
            return [f"serves {show(content)} by its name; a block of the problem serves a mix"], {}
        return [], {content: problem.jobs[content].row.supply[place]}
    mix = dict(content)
    if sharing is None:
        return [f"serves the mix {_shown(content)}; a block of the problem serves one job"], {}
    try:
        wrong = [
            f"has a mix that {words}: {_shown(content)}" for words in sharing.faults(block, mix)
        ]
    except Fault as fault:
        return [f"has the mix {_shown(content)}: {fault}"], {}
    return wrong, dict(sharing.rates(block, mix))


def machine_faults(problem: Problem, groups: Sequence[Group], called: str = "groups") -> list[str]:
    """List what is wrong with machines, whatever they serve."""
    faults = []
    machines: Counter[str] = Counter()
    listed = {
        (c.machine, *sorted(c.blocks.items()))
        for c in problem.configurations
        if isinstance(c, Listed)
    }
    for index, group in enumerate(groups):
        what = f"{called}[{index}] of the schedule"
        machines[group.machine] += group.count
        if group.count < 1:
            faults.append(f"{what} has {show(group.count)} machines; it needs at least 1")
        if (group.machine, *sorted(group.configuration.items())) not in listed and not any(
            c.machine == group.machine and c.allows(group.configuration)
            for c in problem.size_bounded
        ):
            faults.append(
                f"{what} has the configuration {show(group.configuration)} on the machine type "
                f"{show(group.machine)}, which the problem does not allow"
            )
    for name, limit in problem.limits.items():
        number = sum((weight * machines[m] for m, weight in limit.weights.items()), ZERO)
        if number > limit.at_most:
            of = "type" if name in problem.machine_types else "group"
            faults.append(
                f"the schedule has {show(number)} machines of {of} {show(name)}, by their weights; "
                f"its limit is {show(limit.at_most)}"
            )
    return faults


def schedule_faults(problem: Problem, groups: Sequence[Group]) -> list[str]:
    """List every way in which a schedule breaks the definition."""
    faults = machine_faults(problem, groups)
    # In the integers of the jobs' rows where a block serves one job, else in the jobs' own unit.
    covered: dict[str, Fraction | int] = dict.fromkeys(problem.jobs, 0)
    bundles = {name: Counter[int]() for name, job in problem.jobs.items() if job.row.rule}
    place = {block: at for at, block in enumerate(problem.blocks)}
    for index, group in enumerate(groups):
        what = f"groups[{index}] of the schedule"
        used: Counter[str] = Counter()
        pairs = [(block, content) for block, content, _ in group.assignment]
        if len(set(pairs)) < len(pairs):
            faults.append(f"{what} assigns the same block and job twice")
        for block, content, amount in group.assignment:
            wrong: list[str] = []
            gives: dict[str, Fraction | int] = {}
            if block not in place:
                wrong = [f"assigns {show(block)}, which is not a block of the problem"]
            elif amount < 1:
                wrong = [f"gives {_shown(content)} {show(amount)} blocks {show(block)}, not >= 1"]
            else:
                wrong, gives = _given(problem, block, place[block], content)
                used[block] += amount
            faults += [f"{what} {words}" for words in wrong]
            for job, each in gives.items():
                covered[job] += each * amount * group.count
                if job in bundles:
                    bundles[job][place[block]] += amount * group.count
        for block, amount in used.items():
            has = group.configuration.get(block, 0)
            if amount > has:
                faults.append(
                    f"{what} assigns {show(amount)} blocks {show(block)} on a machine that has "
                    f"{show(has)}"
                )
    for name, wants in problem.jobs.items():
        alone = problem.sharing is None
        scale, demand, supply, rule = wants.row
        if rule is not None:
            faults += bundle_faults(name, rule, demand, supply, scale, bundles[name])
        elif covered[name] < (wants.row.demand if alone else wants.demand):
            part = Fraction(covered[name]) / (wants.row.scale if alone else 1)
            faults.append(uncovered(name, part, wants.demand))
    return faults


def uncovered(name: str, part: Fraction, demand: Fraction) -> str:
    """Say that a job has too little."""
    return f"job {show(name)} has {show(part)} of its demand {show(demand)} covered"


def check_schedule(problem_doc: Any, schedule_doc: Any) -> list[str]:
    """Check the ``schedule`` of a solution document by the definition; return sentences."""

    def faults() -> list[str]:
        problem = read_problem(problem_doc)
        return schedule_faults(problem, read_schedule(schedule_doc, problem))

    return sentences(faults)
