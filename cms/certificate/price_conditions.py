"""What prices must keep to, below the branches of a path, so that they prove a bound.

No machine may be worth more than its cost, and no job may be paid for taking a block (theory 6.3
and 6.9). A branch adds its multiplier to what it counts: blocks, machines of a type, machines of a
configuration, or one job's blocks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, lcm
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidCertificate
from ..problem.parts import AnyConfiguration, Block, Configuration
from ..values.numbers import in_parts, shown
from .quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
    Quantity,
    refuse_unknown,
)

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem


#: How many blocks the branches on machines with some content may name on a leaf's path, those of
#: multiplier 0 left out, a block as often as it is named: each may take twice the work to check.
MOST_NAMED = 12


class Condition(NamedTuple):
    """What one branch adds on the way to a leaf: ``sign * quantity >= sign * value``."""

    quantity: Quantity
    sign: int
    value: int


class Worth(NamedTuple):
    """What all jobs together pay at least, and whether some job cannot be served at all."""

    total: Fraction
    unservable: bool


def refuse_misfits(problem: MachineProblem, leaf: Any, path: tuple[Condition, ...]) -> None:
    """Raise InvalidCertificate if a leaf speaks of what the problem or the path does not have."""
    refuse_unknown(leaf.prices, problem.blocks, "block", "a price for")
    limited = {limit.name: None for limit in problem.limits}
    known = dict.fromkeys(machine.name for machine in problem.machine_types) | limited
    refuse_unknown(leaf.limit_prices, known, "machine type or group", "a price for")
    for name, price in leaf.limit_prices.items():
        if price and name not in limited:
            raise InvalidCertificate(
                f"limit price {shown(price)} on machine type {name!r}, which has no limit"
            )
    if len(leaf.multipliers) != len(path):
        raise InvalidCertificate(
            f"a leaf below {len(path)} branches has {len(leaf.multipliers)} multipliers; "
            "expected one for each branch"
        )
    refuse_unknown(leaf.proper, problem.blocks, "block", "a proper count for")
    if leaf.proper:
        useful = problem.useful_blocks()
        for block, count in leaf.proper.items():
            use = useful[problem.block_index[block]]
            if count < use:
                raise InvalidCertificate(
                    f"a proper count of {shown(count)} for the block {block!r}: all jobs together "
                    f"can use {shown(use)}, so that a machine may need more"
                )


def refuse_breaches(problem: MachineProblem, leaf: Any, path: tuple[Condition, ...]) -> bool:
    """Raise InvalidCertificate if a machine is worth more than it costs.

    Returns whether none would be worth more if all costs were 0.
    """
    worth = {block: leaf.prices.get(block, Fraction(0)) for block in problem.blocks}
    of_type: dict[str | None, Fraction] = defaultdict(Fraction)
    of_shape: dict[AnyConfiguration, Fraction] = defaultdict(Fraction)
    extras: list[tuple[Configuration, Fraction]] = []
    for condition, multiplier in zip(path, leaf.multipliers, strict=True):
        quantity, amount = condition.quantity, condition.sign * multiplier
        if isinstance(quantity, BlocksOfType):
            worth[quantity.block] += amount
        elif isinstance(quantity, MachinesOfType):
            for counted, times in quantity.weights.items():
                of_type[counted] += times * amount
        elif isinstance(quantity, MachinesOfConfiguration):
            of_shape[problem.own(quantity.configuration)] += amount
        elif isinstance(quantity, MachinesWithBlocks) and amount:
            extras.append((problem.own(quantity.content), amount))
    named = sum(len(content.blocks) for content, _ in extras)
    if named > MOST_NAMED:
        raise InvalidCertificate(
            f"the branches on machines with some content name {named} blocks above a leaf whose "
            f"multipliers are not 0; expected {MOST_NAMED} at most"
        )
    # Over one denominator all are integers, and so are the most that machines may be worth.
    unit = lcm(*(f.denominator for f in (*worth.values(), *of_shape.values())))
    unit = lcm(unit, *(amount.denominator for _, amount in extras))
    whole_worth = {block: in_parts(price, unit) for block, price in worth.items()}
    priced: dict[str | None, Fraction] = {
        name: sum((n * leaf.limit_prices.get(g, 0) for g, n in weights.items()), Fraction(0))
        for name, weights in problem.weights.items()
    }
    at_no_cost = {name: floor((price - of_type[name]) * unit) for name, price in priced.items()}
    most: dict[str | None, int] = {
        each.name: floor((each.cost + priced[each.name] - of_type[each.name]) * unit)
        for each in problem.machine_types
    }
    also_at_no_cost = True
    for shape in problem.configurations:
        name = shape.machine
        if isinstance(shape, Configuration) and not extras:
            value = sum([whole_worth[block] * n for block, n in shape.blocks.items()])
        else:
            mine = [(c.blocks, in_parts(a, unit)) for c, a in extras if c.machine == name]
            value = most_worth(shape, whole_worth, leaf.proper, mine)
        if of_shape:
            value += in_parts(of_shape.get(shape, Fraction(0)), unit)
        if value > most[name]:
            machine = problem.machine_type(name)
            cost, allowed = machine.cost, priced[name]
            plus = f" + limit price {shown(allowed)}" if allowed else ""
            raise InvalidCertificate(
                f"{_named(problem, shape)} is worth {shown(Fraction(value, unit) + of_type[name])} "
                f"at these prices, more than its machine's cost {shown(cost)}{plus}"
            )
        also_at_no_cost = also_at_no_cost and value <= at_no_cost[name]
    return also_at_no_cost


def most_worth(
    shape: AnyConfiguration,
    worth: Mapping[Block, Any],
    proper: Mapping[Block, int] | None = None,
    extras: Sequence[tuple[Mapping[Block, int], Any]] = (),
) -> Any:
    """Return what the blocks of a machine are worth, at most; of a set those of proper contents.

    `extras` are what a minimum of blocks of some types adds to the worth. All are integers, or
    Fractions, and so is the result.
    """
    if isinstance(shape, Configuration):
        value: Any = sum([worth[block] * n for block, n in shape.blocks.items()])
        for least, amount in extras:
            if all(shape.blocks.get(block, 0) >= n for block, n in least.items()):
                value += amount
        return value
    blocks = list(shape.sizes)
    index = {block: at for at, block in enumerate(blocks)}
    most = [proper.get(block, shape.largest_count(block)) for block in blocks] if proper else None
    prices, sizes = [worth[block] for block in blocks], [shape.sizes[block] for block in blocks]
    room, slots = shape.capacity, shape.max_blocks
    possible = [(least, amount) for least, amount in extras if least.keys() <= index.keys()]
    numbered = [({index[b]: n for b, n in least.items()}, amount) for least, amount in possible]
    from ..knapsack.packing import fullest_machine

    return fullest_machine(prices, sizes, room, slots, most, numbered).value


def _named(problem: MachineProblem, shape: AnyConfiguration) -> str:
    if isinstance(shape, Configuration):
        name = f"configuration {shape}"
    else:
        name = f"the fullest machine of capacity {shown(shape.capacity)}"
    return f"{name} on {shape.machine!r}" if len(problem.machine_types) > 1 else name


def prices_of_jobs(
    problem: MachineProblem, leaf: Any, path: tuple[Condition, ...]
) -> tuple[list[Fraction], dict[int, list[Fraction]]]:
    """Return the prices every job pays, and those of jobs with a branch of their own."""
    general = [leaf.prices.get(block, Fraction(0)) for block in problem.blocks]
    special: dict[int, list[Fraction]] = {}
    for condition, multiplier in zip(path, leaf.multipliers, strict=True):
        quantity = condition.quantity
        if isinstance(quantity, BlocksOfJob):
            j = problem.job_index(quantity.job)
            vector = special.setdefault(j, list(general))
            vector[problem.block_index[quantity.block]] -= condition.sign * multiplier
    for j, vector in special.items():
        for block, price in zip(problem.blocks, vector, strict=True):
            if price < 0:
                raise InvalidCertificate(
                    f"job {problem.job_names[j]!r} would pay {shown(price)} for the "
                    f"block {block!r}: multipliers must leave every price >= 0"
                )
    return general, special
