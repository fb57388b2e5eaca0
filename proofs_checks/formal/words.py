"""From documents to the words that the proved program reads: names become numbers, in their order.

Nothing is computed here: fractions pass as they are. The problem of some words can be written as a
document again, to have its digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from proofs_checks.checker import problem as checker
from proofs_checks.checker.certificate import Side, leaves_of, read_leaf, read_quantity
from proofs_checks.checker.reading import ZERO, Fault, as_a, show
from proofs_checks.checker.schedule import Group

from . import forms


def plan_words(problem: checker.Problem, groups: Sequence[Group] | None, tree: object) -> str:
    """Write a problem, a schedule (None if there is none) and a tree of prices as one line.

    A Fault if its blocks are shared in time, a job has equal routing, or a name is none of the
    problem's.
    """
    if problem.sharing is not None:
        raise Fault("blocks are shared in time; the proved checker knows blocks that serve one job")
    for name, job in problem.jobs.items():
        if job.row.rule is not None and job.row.rule.routing != "weighted":
            raise Fault(f"job {show(name)} has equal routing; the proved checker knows weighted")
    numbers = _Numbers(problem)
    schedule = None if groups is None else [numbers.group(group) for group in groups]
    return " ".join(forms.write_words(forms.Plan(numbers.of(), schedule, numbers.tree(tree))))


def _over(names: Iterable[str], table: Mapping[str, Any]) -> list[Any]:
    return [table.get(name, 0) for name in names]


def _places(names: Iterable[str]) -> dict[str, forms.Natural]:
    return {name: forms.Natural(at) for at, name in enumerate(names)}


def _place(places: Mapping[str, forms.Natural], name: object, what: str) -> forms.Natural:
    if not isinstance(name, str) or name not in places:
        raise Fault(f"{what} of the schedule is {show(name)}, which the problem does not have")
    return places[name]


class _Numbers:
    """A problem and what belongs to it, with numbers in the place of names."""

    def __init__(self, problem: checker.Problem) -> None:
        self._problem = problem
        self._types = _places(problem.machine_types)
        self._blocks, self._jobs = _places(problem.blocks), _places(problem.jobs)

    def of(self) -> forms.Problem:
        """The problem itself."""
        of = self._problem
        return forms.Problem(
            [forms.MachineType(m.cost, m.limit) for m in of.machine_types.values()],
            forms.Natural(len(of.blocks)),
            [self._configuration(c) for c in of.configurations],
            [_job(job) for job in of.jobs.values()],
            [
                forms.GroupLimit(_over(self._types, g.weights), g.at_most)
                for g in of.groups.values()
            ],
        )

    def _configuration(self, c: checker.Listed | checker.Bounded) -> Any:
        machine = self._types[c.machine]
        if isinstance(c, checker.Listed):
            return forms.Listed(machine, _over(self._blocks, c.blocks))
        return forms.SizeBounded(machine, _over(self._blocks, c.sizes), c.capacity, c.max_blocks)

    def group(self, group: Group) -> forms.Group:
        """A group of the schedule."""
        for block in group.configuration:
            _place(self._blocks, block, "a block")
        if len({(i, j) for i, j, _ in group.assignment}) < len(group.assignment):
            raise Fault("a group of the schedule assigns the same block and job twice")
        return forms.Group(
            _place(self._types, group.machine, "a machine type"),
            _over(self._blocks, group.configuration),
            group.count,
            [
                (_place(self._blocks, i, "a block"), _place(self._jobs, j, "a job"), n)
                for i, j, n in group.assignment
            ],
        )

    def tree(self, tree: object) -> forms.Tree:
        """A tree of prices."""
        return self._node(tree, iter(list(leaves_of(tree, self._problem))))

    def _node(self, value: object, leaves: Iterator[tuple[object, tuple[Side, ...]]]) -> forms.Tree:
        table = as_a(dict, value, "a node of the certificate")
        if "branch" in table:
            what, at_most = self._quantity(table["branch"]), int(table["at_most"])
            below = self._node(table["below"], leaves)
            return forms.QBranch(what, at_most, below, self._node(table["above"], leaves))
        leaf = read_leaf(*next(leaves), self._problem)
        if leaf.functions is not None:
            raise Fault("a leaf has price functions; the proved checker knows prices alone")
        return forms.QLeaf(
            forms.Leaf(
                _over(self._blocks, leaf.price),
                _over(self._problem.limits, leaf.limit_price),
                [w * side.sign for side, w in leaf.weighted],
                [leaf.proper.get(i) for i in self._blocks],
            )
        )

    def _quantity(self, value: object) -> forms.Quantity:
        kind, what = read_quantity(value, self._problem)
        if kind == "machines_of_type":
            return forms.MachinesOfType(_over(self._types, dict(what)))
        if kind == "blocks_of":
            return forms.BlocksOfType(self._blocks[what])
        if kind == "blocks_of_job":
            return forms.BlocksOfJob(self._blocks[what[0]], self._jobs[what[1]])
        with_ = kind == "machines_with"
        content = forms.MachinesWithBlocks if with_ else forms.MachinesOfConfiguration
        return content(self._types[what[0]], _over(self._blocks, dict(what[1])))


def _job(job: checker.Job) -> forms.Job:
    scale, _, supply, rule = job.row
    exact: list[Any] = [f if scale == 1 else Fraction(f, scale) for f in supply]
    return forms.Job(job.demand, exact, *((0, ZERO) if rule is None else (rule.number, rule.share)))


def problem_document(form: forms.Problem, names: checker.Problem) -> dict[str, Any]:
    """Write the problem of some words as a document again, with the names of a problem."""
    types, blocks = list(names.machine_types), names.blocks

    def over(names: Sequence[str], values: Sequence[Fraction | int]) -> dict[str, Any]:
        return {name: v for name, v in zip(names, values, strict=True) if v}

    def configuration(c: forms.Listed | forms.SizeBounded) -> dict[str, Any]:
        if isinstance(c, forms.Listed):
            return {"machine": types[c.machine], "blocks": over(blocks, c.counts)}
        sizes = {"sizes": over(blocks, c.sizes), "capacity": c.capacity}
        return {"machine": types[c.machine], **sizes, "max_blocks": c.max_blocks}

    if form.block_types != len(blocks):
        raise ValueError(f"there are {form.block_types} types of blocks, and {len(blocks)} names")
    return {
        "format": "cms-problem",
        "schema": 2,
        "machine_types": [
            {"name": name, "cost": machine.cost_of, "limit": machine.limit_of}
            for name, machine in zip(types, form.machine_types, strict=True)
        ],
        "group_limits": [
            {"name": name, "weights": over(types, group.weights), "at_most": group.greatest}
            for name, group in zip(names.groups, form.group_limits, strict=True)
        ],
        "blocks": blocks,
        "configurations": [configuration(c) for c in form.configurations],
        "jobs": [
            {
                "name": name,
                "demand": job.demand,
                "demand_function": over(blocks, job.supply),
                **(
                    {"replicas": {"count": job.replicas, "share": job.share}}
                    if job.replicas
                    else {}
                ),
            }
            for name, job in zip(names.jobs, form.jobs, strict=True)
        ],
    }
