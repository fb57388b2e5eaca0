"""From documents to the words that the proved program reads: names become numbers, in their order.

The words of a plan are one line. Counts stand before lists; ``-`` stands for what is not there:

    problem: machine types (cost, limit), number of block types, configurations (``listed``, type,
    counts; or ``bounded``, type, sizes, capacity, max_blocks), jobs (demand, supply of each block);
    ``schedule``: groups (type, counts, machines, assignment of block, job, number); or ``nothing``;
    a tree: ``leaf``, prices, limit prices, multipliers, proper counts; or ``branch``, quantity,
    number, below, above.

Nothing is computed here: fractions pass as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from proofs_checks.checker.certificate import leaves_of, read_leaf, read_quantity
from proofs_checks.checker.problem import Listed, Problem
from proofs_checks.checker.reading import Fault, as_a, show
from proofs_checks.checker.schedule import Group

ABSENT = "-"


def plan_words(problem: Problem, groups: Sequence[Group] | None, tree: object) -> str:
    """Write a problem, a schedule (None if there is none) and a tree of prices as one line.

    A Fault if the problem has limits of groups, its blocks are shared in time, a job has a rule, or
    a name is none of the problem's.
    """
    for name in problem.groups:
        raise Fault(
            f"group {show(name)} limits several machine types together (group_limits); the proved "
            "checker knows limits of one machine type"
        )
    if problem.sharing is not None:
        raise Fault("blocks are shared in time; the proved checker knows blocks that serve one job")
    for name, job in problem.jobs.items():
        if job.row.rule is not None:
            raise Fault(f"job {show(name)} has replicas or equal routing, unknown to this checker")
    return " ".join(
        [
            *_problem_words(problem),
            *(["nothing"] if groups is None else _schedule_words(problem, groups)),
            *_tree_words(problem, tree),
        ]
    )


def _number(value: Fraction | int) -> str:
    return str(value)


def _maybe(value: int | None) -> str:
    return ABSENT if value is None else str(value)


def _many(words: Iterable[str]) -> list[str]:
    found = list(words)
    return [str(len(found)), *found]


def _over(names: Iterable[str], table: Mapping[str, Any]) -> list[str]:
    return _many(_number(table.get(name, 0)) for name in names)


def _places(names: Iterable[str]) -> dict[str, str]:
    return {name: str(at) for at, name in enumerate(names)}


def _problem_words(problem: Problem) -> Iterator[str]:
    types = _places(problem.machine_types)
    yield "problem"
    yield str(len(types))
    for machine in problem.machine_types.values():
        yield _number(machine.cost)
        yield _maybe(machine.limit)
    yield str(len(problem.blocks))
    yield str(len(problem.configurations))
    for c in problem.configurations:
        if isinstance(c, Listed):
            yield from ("listed", types[c.machine], *_over(problem.blocks, c.blocks))
        else:
            yield from ("bounded", types[c.machine], *_over(problem.blocks, c.sizes))
            yield from (_number(c.capacity), _maybe(c.max_blocks))
    yield str(len(problem.jobs))
    for job in problem.jobs.values():
        scale, _, supply, _ = job.row
        yield _number(job.demand)
        yield from _many(str(f if scale == 1 else Fraction(f, scale)) for f in supply)


def _place(places: Mapping[str, str], name: object, what: str) -> str:
    if not isinstance(name, str) or name not in places:
        raise Fault(f"{what} of the schedule is {show(name)}, which the problem does not have")
    return places[name]


def _schedule_words(problem: Problem, groups: Sequence[Group]) -> Iterator[str]:
    types = _places(problem.machine_types)
    blocks, jobs = _places(problem.blocks), _places(problem.jobs)
    yield from ("schedule", str(len(groups)))
    for group in groups:
        for block in group.configuration:
            _place(blocks, block, "a block")
        pairs = {(block, content) for block, content, _ in group.assignment}
        if len(pairs) < len(group.assignment):
            raise Fault("a group of the schedule assigns the same block and job twice")
        yield _place(types, group.machine, "a machine type")
        yield from _over(problem.blocks, group.configuration)
        yield str(group.count)
        yield str(len(group.assignment))
        for block, job, number in group.assignment:
            yield _place(blocks, block, "a block")
            yield _place(jobs, job, "a job")
            yield str(number)


def _tree_words(problem: Problem, tree: object) -> list[str]:
    leaves = iter(list(leaves_of(tree, problem)))
    blocks, jobs = _places(problem.blocks), _places(problem.jobs)
    types = _places(problem.machine_types)

    def quantity(value: object) -> list[str]:
        kind, what = read_quantity(value, problem)
        if kind == "machines_of_type":
            return ["types", *_over(types, dict(what))]
        if kind == "blocks_of":
            return ["blocks", blocks[what]]
        if kind == "blocks_of_job":
            return ["job", blocks[what[0]], jobs[what[1]]]
        machine, counts = what
        word = "with" if kind == "machines_with" else "of"
        return [word, types[machine], *_over(problem.blocks, dict(counts))]

    def node(value: object) -> Iterator[str]:
        table = as_a(dict, value, "a node of the certificate")
        if "branch" in table:
            yield from ("branch", *quantity(table["branch"]), str(int(table["at_most"])))
            yield from node(table["below"])
            yield from node(table["above"])
            return
        leaf = read_leaf(*next(leaves), problem)
        if leaf.functions is not None:
            raise Fault("a leaf has price functions; the proved checker knows prices alone")
        yield from ("leaf", *_over(problem.blocks, leaf.price))
        yield from _over(types, leaf.limit_price)
        yield from _many(_number(w * side.sign) for side, w in leaf.weighted)
        yield from _many(_maybe(leaf.proper.get(i)) for i in problem.blocks)

    return list(node(tree))
