"""What certificates prove and schedules keep, straight from the definition, all of it listed.

Every machine a problem allows, every option of every job: no knapsacks, no common code with
``cms.certificate.certificate`` or with the second checker, and fit for tiny problems only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from operator import ge, mul
from typing import NamedTuple, TypeAlias

from cms import BlockPrices, Branch, Certificate, Configuration, Problem, Schedule
from cms.certificate.quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
    Quantity,
)
from tests.oracle import Vector, given, limit_rows, multisets, options, useful

INVALID, INFEASIBLE = "invalid", "infeasible"
#: A certificate's bound, or one of the two words.
Verdict: TypeAlias = "Fraction | str"


class Side(NamedTuple):
    """A side of a branch: sign * quantity >= sign * limit."""

    quantity: Quantity
    sign: int
    limit: int


class Machine(NamedTuple):
    """One content of one machine; ``listed`` if it is a configuration of its own."""

    type: int
    held: Vector
    listed: bool


def machines_of(problem: Problem) -> list[Machine]:
    """Every content a machine can have, that of the empty machine of a size-bounded set as well."""
    names = [machine.name for machine in problem.machine_types]
    found = []
    for shape in problem.configurations:
        at = names.index(shape.machine or "")
        if isinstance(shape, Configuration):
            held = tuple(shape.blocks.get(block, 0) for block in problem.blocks)
            found.append(Machine(at, held, True))
        else:
            found += [Machine(at, held, False) for held in multisets(shape, problem.blocks)]
    return found


def worth(
    problem: Problem,
    machine: Machine,
    prices: Sequence[Fraction],
    weighted: list[tuple[Side, Fraction]],
) -> Fraction:
    """The prices of a machine's blocks, and the multiplier of every side it counts for."""
    total = sum((p * n for p, n in zip(prices, machine.held, strict=True)), Fraction(0))
    for side, multiplier in weighted:
        quantity, counted = side.quantity, 0
        if isinstance(quantity, MachinesOfType):
            counted = quantity.weights.get(problem.machine_types[machine.type].name, 0)
        elif isinstance(quantity, BlocksOfType):
            counted = machine.held[problem.blocks.index(quantity.block)]
        elif isinstance(quantity, MachinesOfConfiguration) and machine.listed:
            counted = listed(problem, quantity.configuration) == (machine.type, machine.held)
        elif isinstance(quantity, MachinesWithBlocks):
            kind, least = listed(problem, quantity.content)
            counted = kind == machine.type and all(map(ge, machine.held, least))
        total += side.sign * multiplier * counted
    return total


def listed(problem: Problem, configuration: Configuration) -> tuple[int, Vector]:
    """A configuration as machine type and blocks, by position."""
    names = [machine.name for machine in problem.machine_types]
    name = names[0] if configuration.machine is None and len(names) == 1 else configuration.machine
    counts = tuple(configuration.blocks.get(block, 0) for block in problem.blocks)
    return (names.index(name) if name in names else -1), counts


def job_prices(
    problem: Problem, job: str, prices: Sequence[Fraction], weighted: list[tuple[Side, Fraction]]
) -> list[Fraction]:
    """What one job pays for a block of each type."""
    mine = list(prices)
    for side, multiplier in weighted:
        if isinstance(side.quantity, BlocksOfJob) and side.quantity.job == job:
            mine[problem.blocks.index(side.quantity.block)] -= side.sign * multiplier
    return mine


def evaluate(problem: Problem, certificate: Certificate) -> Verdict:
    """The verdict on a certificate, by the definition."""
    verdicts = [evaluate_leaf(problem, leaf, path) for leaf, path in leaves(certificate)]
    if INVALID in verdicts:
        return INVALID
    bounds = [verdict for verdict in verdicts if isinstance(verdict, Fraction)]
    return min(bounds, default=INFEASIBLE)


def leaves(
    tree: Certificate, path: tuple[Side, ...] = ()
) -> Iterator[tuple[BlockPrices, tuple[Side, ...]]]:
    """Each leaf with the sides of the branches above it."""
    if isinstance(tree, Branch):
        yield from leaves(tree.below, (*path, Side(tree.quantity, -1, tree.at_most)))
        yield from leaves(tree.above, (*path, Side(tree.quantity, 1, tree.at_most + 1)))
    elif isinstance(tree, BlockPrices):
        yield tree, path


def evaluate_leaf(problem: Problem, leaf: BlockPrices, path: tuple[Side, ...]) -> Verdict:
    """What one leaf proves on its sides of the branches."""
    limits, types = limit_rows(problem), [machine.name for machine in problem.machine_types]
    names_fit = (
        set(leaf.prices) <= set(problem.blocks)
        and set(leaf.limit_prices) <= {*types, *limits}
        and all(name in limits for name, price in leaf.limit_prices.items() if price)
        and len(leaf.multipliers) == len(path)
        and set(leaf.proper) <= set(problem.blocks)
        and all(count >= useful(problem, block) for block, count in leaf.proper.items())
        and all(knows(problem, side.quantity) for side in path)
    )
    if not names_fit:
        return INVALID
    weighted = list(zip(path, leaf.multipliers, strict=True))
    prices = [leaf.prices.get(block, Fraction(0)) for block in problem.blocks]
    value = sum((side.sign * m * side.limit for side, m in weighted), Fraction(0))
    priced = [(row, leaf.limit_prices.get(name, Fraction(0))) for name, row in limits.items()]
    value -= sum((price * row.reach for row, price in priced), Fraction(0))
    nobody_can = False
    for job in problem.jobs:
        mine = job_prices(problem, job.name, prices, weighted)
        if min(mine, default=Fraction(0)) < 0:
            return INVALID
        supply = [given(job, block) for block in problem.blocks]
        costs = [
            sum((p * n for p, n in zip(mine, option, strict=True)), Fraction(0))
            for option in options(supply, job.demand)
        ]
        nobody_can |= not costs
        value += min(costs, default=Fraction(0))
    free = True
    for machine in machines_of(problem):
        if not is_proper(problem, machine, leaf.proper):
            continue
        machine_type = problem.machine_types[machine.type]
        beyond = worth(problem, machine, prices, weighted)
        beyond -= sum((price * row.weights[machine.type] for row, price in priced), Fraction(0))
        if beyond > machine_type.cost:
            return INVALID
        free &= beyond <= 0
    return INFEASIBLE if nobody_can or (free and value > 0) else value


def is_proper(problem: Problem, machine: Machine, proper: Mapping[str, int]) -> bool:
    """Whether a leaf that counts on so many blocks at most speaks of such a machine."""
    held = zip(problem.blocks, machine.held, strict=True)
    return machine.listed or all(n <= proper.get(block, n) for block, n in held)


def knows(problem: Problem, quantity: Quantity) -> bool:
    """Whether the problem has what a quantity counts, and counts it without doubt."""
    if isinstance(quantity, MachinesOfType):
        return set(quantity.weights) <= {machine.name for machine in problem.machine_types}
    if isinstance(quantity, BlocksOfType):
        return quantity.block in problem.blocks
    if isinstance(quantity, BlocksOfJob):
        jobs = [job.name for job in problem.jobs]
        return quantity.block in problem.blocks and quantity.job in jobs
    if isinstance(quantity, MachinesWithBlocks):
        content = quantity.content
        return listed(problem, content)[0] >= 0 and set(content.blocks) <= set(problem.blocks)
    wanted = listed(problem, quantity.configuration)
    if not set(quantity.configuration.blocks) <= set(problem.blocks):
        return False
    same = [m.listed for m in machines_of(problem) if (m.type, m.held) == wanted]
    return bool(same) and all(same)


def is_valid(problem: Problem, schedule: Schedule) -> bool:
    """Whether a schedule has configurations, blocks, jobs and machines that the problem has."""
    jobs, blocks = {job.name: job for job in problem.jobs}, set(problem.blocks)
    there = {(machine.type, machine.held) for machine in machines_of(problem) if any(machine.held)}
    served, used = dict.fromkeys(jobs, Fraction(0)), [0] * len(problem.machine_types)
    for shape, assignment, count in schedule.groups:
        kind = listed(problem, shape)
        if count < 1 or kind not in there or not {*shape.blocks} <= blocks:
            return False
        used[kind[0]] += count
        taken = dict.fromkeys(blocks, 0)
        for (block, job), number in assignment.items():
            if number < 1 or block not in blocks or job not in jobs:
                return False
            taken[block] += number
            served[job] += given(jobs[job], block) * number * count
        if any(number > shape.blocks.get(block, 0) for block, number in taken.items()):
            return False
    return all(served[name] >= job.demand for name, job in jobs.items()) and all(
        sum(map(mul, row.weights, used), Fraction(0)) <= row.most
        for row in limit_rows(problem).values()
    )
