"""Random certificates that are valid by construction: leaves are scaled into their region exactly.

The conditions on machines are linear in prices and multipliers together, so any leaf becomes valid
by a factor; a limit price takes up what a limited machine is worth too much, and where that goes
for all machines the leaf is a ray: it proves that its side of the branches is empty.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction

from cms import BlockPrices, Branch, Certificate, Configuration, Problem
from cms.certificate.quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
    Quantity,
)
from tests.oracle import limit_rows, useful
from tests.property.definition import Side, is_proper, job_prices, knows, machines_of, worth

#: A little more than 1, to leave prices that are tight.
NEAR = Fraction(21, 20)
ONE = Fraction(1)


def random_certificate(
    rng: random.Random,
    problem: Problem,
    path: tuple[Side, ...] = (),
    *,
    near: Mapping[str, Fraction] | None = None,
) -> Certificate:
    """A tree of up to three branches above one another, with prices like those of ``near``."""
    quantity = random_quantity(rng, problem)
    if quantity is None or rng.random() < (0.35, 0.5, 0.7, 1.0)[len(path)]:
        return random_leaf(rng, problem, path, near)
    at_most = rng.choice([-1, 0, 0, 1, 1, 2, 3, 10**20])
    return Branch(
        quantity,
        at_most,
        random_certificate(rng, problem, (*path, Side(quantity, -1, at_most)), near=near),
        random_certificate(rng, problem, (*path, Side(quantity, 1, at_most + 1)), near=near),
    )


def random_quantity(rng: random.Random, problem: Problem) -> Quantity | None:
    """An integer a certificate for this problem may branch on."""
    names = [machine.name for machine in problem.machine_types]
    some = rng.sample(names, rng.randint(1, len(names)))
    known: list[Quantity] = [
        MachinesOfType(rng.choice(names)),
        MachinesOfType({name: rng.choice([1, 1, 2, 3, 10**20]) for name in some}),
    ]
    if problem.blocks:
        known.append(BlocksOfType(rng.choice(problem.blocks)))
        least = {rng.choice(problem.blocks): rng.randint(1, 3) for _ in range(rng.randint(1, 2))}
        known += [MachinesWithBlocks(Configuration(least, rng.choice(names)))] * 2
        if problem.n_jobs:
            known.append(BlocksOfJob(rng.choice(problem.blocks), rng.choice(problem.jobs).name))
    if problem.listed_configurations:
        known.append(MachinesOfConfiguration(rng.choice(problem.listed_configurations)))
    quantity = rng.choice(known)
    return quantity if knows(problem, quantity) else None


def random_leaf(
    rng: random.Random,
    problem: Problem,
    path: tuple[Side, ...],
    near: Mapping[str, Fraction] | None,
) -> BlockPrices:
    """Prices, limit prices and multipliers that hold below the sides of a path."""
    prices = [
        _number(rng)
        if near is None
        else near.get(block, Fraction(0)) * rng.choice([ONE, ONE, ONE, NEAR])
        for block in problem.blocks
    ]
    weighted = [(side, _number(rng) if rng.random() < 0.8 else Fraction(0)) for side in path]
    if near is not None:
        weighted = [(side, multiplier / 20) for side, multiplier in weighted]
    for job in problem.jobs:
        mine = job_prices(problem, job.name, prices, weighted)
        # No job may be paid for a block: make it as much dearer for everybody.
        prices = [p + max(Fraction(0), -own) for p, own in zip(prices, mine, strict=True)]
    types = problem.machine_types
    limits = limit_rows(problem)
    limited = {name: Fraction(0) if rng.random() < 0.3 else _number(rng) for name in limits}
    proper = {
        block: useful(problem, block) + rng.choice([0, 0, 0, 1, 10**20])
        for block in problem.blocks
        if rng.random() < 0.6
    }
    most = [Fraction(0)] * len(types)
    for machine in machines_of(problem):
        if not is_proper(problem, machine, proper):
            continue
        value = worth(problem, machine, prices, weighted)
        most[machine.type] = max(most[machine.type], value)
    if rng.random() < 0.4:  # a ray, if no unlimited machine is worth anything
        for name, row in limits.items():
            pairs = zip(most, row.weights, strict=True)
            limited[name] = max(value / weight for value, weight in pairs if weight)
    limit_prices = [
        sum((row.weights[at] * limited[name] for name, row in limits.items()), Fraction(0))
        for at in range(len(types))
    ]
    scales = [
        machine.cost / (value - price)
        for machine, price, value in zip(types, limit_prices, most, strict=True)
        if value > price
    ]
    scale = min(scales, default=_number(rng)) * rng.choice([ONE, ONE, ONE, Fraction(2, 3)])
    named = {
        block: price * scale for block, price in zip(problem.blocks, prices, strict=True) if price
    }
    limited = {name: price * scale for name, price in limited.items() if price}
    multipliers = [multiplier * scale for _, multiplier in weighted]
    return BlockPrices(named, limited, multipliers, proper)


def _number(rng: random.Random) -> Fraction:
    return Fraction(rng.randint(0, 12), rng.choice([1, 1, 2, 3, 7, 10]))
