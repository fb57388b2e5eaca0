"""Plans on shares that slow one another: whether limits hold beside neighbours, and bounds for all.

Two shares make up a GPU. A batch on one takes as much longer than alone as the slowest of what
takes turns on the other makes it: the largest of the factors of pairs. Whether a *schedule* keeps
its limits and meets its demands so is computed here from the pairs and from how long batches take
alone, whatever blocks are called.

What any schedule costs is bounded by another problem, the outer one. *Kinds*, a model in batches of
some size, have classes, and a block's name may say the classes on it and beside it: ``mps:60 (2
beside 1)``. The bound holds for every schedule if each can be put into the outer problem: a mix of
class i, that of its highest kind, beside one of class j, on the block ``(i beside j)``. So that
block has to be there with its counterpart on one machine; it has to take every kind of a class up
to i; and as the mix beside has a kind of class j, which slows no less than the least that one of
this class does, a batch may take no longer there than alone times this least factor.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .mixes import Mix, Sharing
from .problem import Listed, Problem, read_problem
from .reading import ZERO, Fault, as_a, integer, number, record, show
from .schedule import Content, Group, read_schedule
from .solution import examine

_CLASSES = re.compile(r" \(([0-9]+) beside ([0-9]+)\)")
_SHARE = re.compile(r"(.*:)?mps:[0-9]+")
_PAIR = "model device profile batch beside_model beside_batch slowdown"

#: A model and a batch.
Kind = tuple[str, int]
#: What a share holds: its block, without classes, and its mix.
Held = tuple[str, Mix]


@dataclass(frozen=True)
class Told:
    """What a plan tells of its batches: whose they are, what slows them, and their classes."""

    kinds: dict[tuple[str, str, Fraction], Kind]  # of service, block and amount
    factors: dict[tuple[str, str, Kind, Kind], Fraction]  # of GPU, profile, own and other kind
    classes: dict[tuple[str, Kind], int]

    def kind(self, service: str, block: str, amount: Fraction) -> Kind:
        """The kind of a batch."""
        found = self.kinds.get((service, block, amount))
        if found is None:
            raise Fault(
                f"the plan has no operating point of {show(service)} on {show(block)} that takes "
                f"{show(amount)}"
            )
        return found

    def factor(self, gpu: str, block: str, own: Kind, other: Kind) -> Fraction:
        """How many times as long a kind takes on a block, beside another one: at least once."""
        profile = block.removeprefix(f"{gpu}:")
        found = self.factors.get((gpu, profile, own, other))
        if found is None:
            raise Fault(
                f"the plan has no slowdown of {own[0]}, batch {own[1]}, on {show(block)} of "
                f"{show(gpu)} beside {other[0]}, batch {other[1]}"
            )
        return max(found, Fraction(1))

    def rank(self, gpu: str, kind: Kind) -> int:
        """The class of a kind."""
        found = self.classes.get((gpu, kind))
        if found is None:
            raise Fault(f"{kind[0]}, batch {kind[1]}, has no class on {show(gpu)}")
        return found


def examine_beside(plan: Mapping[str, Any], problem: Problem) -> tuple[list[str], str]:
    """List what does not hold of a plan under interference, beyond its problem and solution."""
    terms = record(plan["sharing"]["interference"], "the interference", "classes kinds pairs outer")
    told = _told(plan, terms)
    _refuse_more_than_two(problem)
    groups = read_schedule(plan["solution"]["schedule"], problem)
    is_planned = plan["solution"]["cost"] is not None
    faults = list(_schedule_faults(problem, told, groups)) if is_planned else []
    within = record(terms["outer"], "the outer problem of the interference", "problem solution")
    outer = read_problem(within["problem"])
    faults += _outer_faults(problem, outer, told)
    if faults or within["solution"] is None:
        return faults, "beside its neighbours as well; nothing is proved of what all cost"
    wrong, words = examine(outer, within["solution"])
    bounded = f"beside its neighbours as well; of the problem that bounds all plans: {words}"
    return [f"of the outer problem: {sentence}" for sentence in wrong], bounded


def _told(plan: Mapping[str, Any], terms: Mapping[str, Any]) -> Told:
    kinds: dict[tuple[str, str, Fraction], Kind] = {}
    for row in as_a(list, plan["operating_points"], "operating_points"):
        point = as_a(dict, row, "an operating point")
        batch = integer(point.get("batch"), "a batch", least=1)
        amount = Fraction(batch * integer(point.get("processes"), "processes", least=1))
        where = str(point.get("service")), str(point.get("block")), amount
        if kinds.setdefault(where, (str(point.get("model")), batch)) != (point["model"], batch):
            raise Fault(f"there are two operating points of {show(where[0])} that take {amount}")
    factors = {}
    for row in as_a(list, terms["pairs"], "the pairs"):
        pair = record(row, "a pair", _PAIR)
        own = str(pair["model"]), integer(pair["batch"], "the batch of a pair", least=1)
        beside = str(pair["beside_model"]), integer(pair["beside_batch"], "a batch beside", least=1)
        at = str(pair["device"]), str(pair["profile"]), own, beside
        if at in factors:
            raise Fault(f"the pair {show(at)} is there twice")
        factors[at] = number(pair["slowdown"], "a slowdown")
    classes = {}
    for row in as_a(list, terms["kinds"], "the kinds"):
        each = record(row, "a kind", "gpu model batch class")
        key = str(each["gpu"]), (str(each["model"]), integer(each["batch"], "a batch", least=1))
        if key in classes:
            raise Fault(f"the kind {show(key)} has two classes")
        classes[key] = integer(each["class"], "a class", least=1)
    return Told(kinds, factors, classes)


def plain(block: str) -> str:
    """The block without what its name says of classes."""
    return _CLASSES.sub("", block)


def _shares(blocks: Mapping[str, int]) -> list[str]:
    """The two shares that a machine is cut into, without classes; empty if these are none."""
    found = [plain(block) for block, count in blocks.items() for _ in range(min(count, 3))]
    return found if len(found) == 2 and all(map(_SHARE.fullmatch, found)) else []


def _refuse_more_than_two(problem: Problem) -> None:
    """Refuse machines on which a share has more than one other beside it: nothing is known then."""
    for shape in problem.configurations:
        if isinstance(shape, Listed):
            most = sum(n for i, n in shape.blocks.items() if _SHARE.fullmatch(plain(i)))
        else:
            most = 3 * any(_SHARE.fullmatch(plain(i)) for i in shape.sizes)
        if most > 2:
            raise Fault(f"{show(shape)} has shares that are beside more than one other")


def _sharing(problem: Problem) -> Sharing:
    if problem.sharing is None:
        raise Fault("the plan tells of interference, and its blocks serve one job each")
    return problem.sharing


# -- the schedule, from pairs alone ----------------------------------------------------------------


def _schedule_faults(problem: Problem, told: Told, groups: list[Group]) -> Iterator[str]:
    sharing = _sharing(problem)
    covered = dict.fromkeys(problem.jobs, ZERO)
    for index, group in enumerate(groups):
        held = [
            (plain(block), _mix(content))
            for block, content, amount in group.assignment
            for _ in range(min(amount, 3) if _shares(group.configuration) else 1)
        ]
        if not _shares(group.configuration):
            counts = [amount for _, _, amount in group.assignment]
            others: list[Held | None] = [None] * len(held)
        elif len(held) <= 2:
            counts = [1] * len(held)
            others = [held[1], held[0]] if len(held) == 2 else [None]
        else:
            raise Fault(f"groups[{index}] has more than two shares on a machine in two")
        for (block, mix), other, count in zip(held, others, counts, strict=True):
            lengths = {
                name: _slowed(sharing, told, group.machine, block, (name, amount), other)
                for name, amount in mix.items()
            }
            cycle = sum(lengths.values(), ZERO)
            for name, amount in mix.items():
                covered[name] += group.count * count * amount / cycle
                takes = sharing.takes(cycle, lengths[name])
                if takes > sharing.jobs[name].limit:
                    yield (
                        f"groups[{index}]: beside its neighbour {show(name)} takes {show(takes)} "
                        f"on {show(block)}, {show(takes - sharing.jobs[name].limit)} more than its "
                        "limit"
                    )
    for name, job in problem.jobs.items():
        if covered[name] < job.demand:
            yield (
                f"beside its neighbours job {show(name)} has {show(covered[name])} of its demand "
                f"{show(job.demand)} covered"
            )


def _mix(content: Content) -> Mix:
    if isinstance(content, str):
        raise Fault(f"a block serves {show(content)} by its name, not a mix")
    return dict(content)


def _slowed(
    sharing: Sharing,
    told: Told,
    gpu: str,
    block: str,
    batch: tuple[str, Fraction],
    other: Held | None,
) -> Fraction:
    """How long a batch takes beside what is on the other share."""
    length = sharing.length(block, *batch)
    if other is None:
        return length
    own = told.kind(batch[0], block, batch[1])
    there, mix = other
    return length * max(
        told.factor(gpu, block, own, told.kind(name, there, amount)) for name, amount in mix.items()
    )


# -- the bound: every schedule fits into the outer problem -----------------------------------------


def _outer_faults(problem: Problem, outer: Problem, told: Told) -> Iterator[str]:
    mine, other = _sharing(problem), _sharing(outer)
    same = (
        ("rule or cap", (mine.rule, mine.max_jobs), (other.rule, other.max_jobs)),
        ("machine types", problem.machine_types, outer.machine_types),
        ("demands", _demands(problem), _demands(outer)),
        ("limits", _limits(mine), _limits(other)),
    )
    for what, own, theirs in same:
        if own != theirs:
            yield f"the outer problem has other {what} than the plan's"
            return
    there = {
        (c.machine, *sorted(c.blocks.items()))
        for c in outer.configurations
        if isinstance(c, Listed)
    }
    for shape in problem.configurations:
        pair = _shares(shape.blocks) if isinstance(shape, Listed) else []
        if not isinstance(shape, Listed) or not pair:
            if shape not in outer.configurations:
                yield f"the outer problem lacks the configuration {show(shape)}"
            continue
        for one, facing in (pair, pair[::-1]):
            needed = [{one: 1}]
            for i, j in _classes(mine, told, shape.machine, one, facing):
                here, beside = f"{one} ({i} beside {j})", f"{facing} ({j} beside {i})"
                needed.append(Counter([here, beside]))
                yield from _short(mine, other, told, shape.machine, (one, facing), (i, j))
            for blocks in needed:
                if (shape.machine, *sorted(blocks.items())) not in there:
                    yield f"the outer problem lacks the configuration {show(dict(blocks))}"
    for name, job in mine.jobs.items():
        for block, lengths in job.lengths.items():
            if not _CLASSES.search(block):
                for amount, length in lengths.items():
                    yield from _too_long(other, name, block, amount, length)


def _demands(problem: Problem) -> dict[str, Fraction]:
    return {name: job.demand for name, job in problem.jobs.items()}


def _limits(sharing: Sharing) -> dict[str, Fraction]:
    return {name: job.limit for name, job in sharing.jobs.items()}


def _batches(sharing: Sharing, block: str) -> Iterator[tuple[str, Fraction, Fraction]]:
    """Job, amount and length of what some mix on a block may have: it meets its limit alone."""
    for name, job in sharing.jobs.items():
        for amount, length in job.lengths.get(block, {}).items():
            if 2 * length <= job.limit:
                yield name, amount, length


def _kinds(sharing: Sharing, told: Told, block: str) -> set[Kind]:
    return {told.kind(name, block, amount) for name, amount, _ in _batches(sharing, block)}


def _classes(
    sharing: Sharing, told: Told, gpu: str, one: str, facing: str
) -> list[tuple[int, int]]:
    """The pairs of classes that mixes on two shares can have."""
    here, there = (
        sorted({told.rank(gpu, kind) for kind in _kinds(sharing, told, block)})
        for block in (one, facing)
    )
    return [(i, j) for i in here for j in there]


def _short(
    mine: Sharing,
    outer: Sharing,
    told: Told,
    gpu: str,
    shares: tuple[str, str],
    classes: tuple[int, int],
) -> Iterator[str]:
    """What takes too long on a block of the outer problem, or is not there."""
    one, facing = shares
    near = [k for k in _kinds(mine, told, facing) if told.rank(gpu, k) == classes[1]]
    for name, amount, length in _batches(mine, one):
        own = told.kind(name, one, amount)
        if told.rank(gpu, own) <= classes[0]:
            least = min(told.factor(gpu, one, own, kind) for kind in near)
            block = f"{one} ({classes[0]} beside {classes[1]})"
            yield from _too_long(outer, name, block, amount, least * length)


def _too_long(
    outer: Sharing, name: str, block: str, amount: Fraction, most: Fraction
) -> Iterator[str]:
    length = outer.jobs[name].lengths.get(block, {}).get(amount)
    if length is None:
        yield f"the outer problem has no {show(amount)} of {show(name)} on {show(block)}"
    elif length > most:
        yield (
            f"in the outer problem {show(amount)} of {show(name)} take {show(length)} on "
            f"{show(block)}, and may take {show(most)} in a plan"
        )


def refuse_classes(problem: Problem) -> None:
    """Refuse the problem of a plan without interference whose blocks tell what is beside them."""
    for block in problem.blocks:
        if _CLASSES.search(block):
            raise Fault(
                f"the block {show(block)} is beside another, and the plan tells of no interference "
                "that its limits could be held against"
            )


def is_beside(plan: Mapping[str, Any]) -> bool:
    """Whether a plan tells of interference."""
    sharing = plan.get("sharing")
    return isinstance(sharing, dict) and sharing.get("interference") is not None
