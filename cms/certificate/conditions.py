"""What prices must keep to, below the branches of a path, so that they prove a bound.

No machine may be worth more than its cost, and no job may be paid for taking a block (theory 6.3
and 6.9). A branch adds its multiplier to what it counts: blocks, machines of a type, machines of a
configuration, or one job's blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import InvalidCertificate
from ..knapsack.packing_extras import fullest_machine
from ..knapsack.pricing import common_denominator
from ..problem.parts import AnyConfiguration, Block, Configuration, MachineType
from ..values.names import nearest
from ..values.numbers import shown
from .quantity import BlocksOf, BlocksOfJob, MachinesOf, MachinesOfType, MachinesWith, Quantity

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


class Prices(Protocol):
    """A leaf, :class:`cms.certificate.certificate.Leaf`."""

    @property
    def prices(self) -> Mapping[Block, Fraction]:
        """Block prices; 0 for those left out."""

    @property
    def limit_prices(self) -> Mapping[str, Fraction]:
        """Prices of machine types' limits; 0 for those left out."""

    @property
    def multipliers(self) -> Sequence[Fraction]:
        """One for each condition of the path."""

    @property
    def proper(self) -> Mapping[Block, int]:
        """The most blocks of a type on a machine of a size-bounded set; none for those left out."""

    def numbers(self) -> Hashable:
        """Return all its numbers but the multipliers."""

    def jobs_worth(
        self,
        problem: Any,
        path: tuple[Condition, ...],
        stopped: Callable[[], bool] | None,
        undisturbed: int,
    ) -> Worth | None:
        """Return what the jobs pay at these prices; None if it was stopped."""


def refuse_misfits(problem: MachineProblem, leaf: Prices, path: tuple[Condition, ...]) -> None:
    """Raise InvalidCertificate if a leaf speaks of what the problem or the path does not have."""
    _refuse_names(leaf.prices, problem.blocks, "block")
    known = [machine.name for machine in problem.machine_types]
    _refuse_names(leaf.limit_prices, known, "machine type")
    for name, price in leaf.limit_prices.items():
        if price and problem.machine_type(name).limit is None:
            raise InvalidCertificate(
                f"limit price {shown(price)} on machine type {name!r}, which has no limit"
            )
    if len(leaf.multipliers) != len(path):
        raise InvalidCertificate(
            f"a leaf below {len(path)} branches has {len(leaf.multipliers)} multipliers; "
            "expected one for each branch"
        )
    _refuse_names(leaf.proper, problem.blocks, "block", "a proper count")
    if leaf.proper:
        useful = problem.useful_blocks()
        for block, count in leaf.proper.items():
            use = useful[problem.block_index[block]]
            if count < use:
                raise InvalidCertificate(
                    f"a proper count of {shown(count)} for the block {block!r}: all jobs together "
                    f"can use {shown(use)}, so that a machine may need more"
                )


def refuse_breaches(problem: MachineProblem, leaf: Prices, path: tuple[Condition, ...]) -> bool:
    """Raise InvalidCertificate if a machine is worth more than it costs.

    Returns
    -------
    bool
        Whether none would be worth more if all costs were 0.
    """
    worth = {block: leaf.prices.get(block, Fraction(0)) for block in problem.blocks}
    of_type: dict[str | None, Fraction] = {}
    of_shape: dict[AnyConfiguration, Fraction] = {}
    extras: list[tuple[Configuration, Fraction]] = []
    for condition, multiplier in zip(path, leaf.multipliers, strict=True):
        quantity, amount = condition.quantity, condition.sign * multiplier
        if isinstance(quantity, BlocksOf):
            worth[quantity.block] += amount
        elif isinstance(quantity, MachinesOfType):
            for name, times in quantity.weights.items():
                of_type[name] = of_type.get(name, Fraction(0)) + times * amount
        elif isinstance(quantity, MachinesOf):
            listed = problem.own(quantity.configuration)
            of_shape[listed] = of_shape.get(listed, Fraction(0)) + amount
        elif isinstance(quantity, MachinesWith) and amount:
            extras.append((problem.own(quantity.content), amount))
    named = sum(len(content.blocks) for content, _ in extras)
    if named > MOST_NAMED:
        raise InvalidCertificate(
            f"the branches on machines with some content name {named} blocks above a leaf whose "
            f"multipliers are not 0; expected {MOST_NAMED} at most"
        )
    also_at_no_cost = True
    scaled, denominator = common_denominator([*worth.values()])
    counted = dict(zip(worth, scaled, strict=True))
    limits: dict[str | None, tuple[int, int]] = {
        machine.name: _whole_limits(machine, leaf, of_type.get(machine.name), denominator)
        for machine in problem.machine_types
    }
    for shape in problem.configurations:
        plain = not extras and (not of_shape or shape not in of_shape)
        if plain and isinstance(shape, Configuration):
            # Integers tell of all but one that is worth more.
            number = sum([counted[block] * n for block, n in shape.blocks.items()])
            most, at_no_cost = limits[shape.machine]
            if number <= most:
                also_at_no_cost = also_at_no_cost and number <= at_no_cost
                continue
        machine = problem.machine_type(shape.machine)
        mine = [(c.blocks, amount) for c, amount in extras if c.machine == shape.machine]
        value = most_worth(shape, worth, leaf.proper, mine) + of_shape.get(shape, Fraction(0))
        value += of_type.get(shape.machine, Fraction(0))
        allowed = leaf.limit_prices.get(machine.name, Fraction(0))
        if value > machine.cost + allowed:
            plus = f" + limit price {shown(allowed)}" if allowed else ""
            raise InvalidCertificate(
                f"{_named(problem, shape)} is worth {shown(value)} at these prices, more than its "
                f"machine's cost {shown(machine.cost)}{plus}"
            )
        also_at_no_cost = also_at_no_cost and value <= allowed
    return also_at_no_cost


def _whole_limits(
    machine: MachineType, leaf: Prices, paid: Fraction | None, denominator: int
) -> tuple[int, int]:
    """Return what listed blocks may be worth over a denominator, and what if costs were 0."""
    allowed = leaf.limit_prices.get(machine.name, Fraction(0)) - (paid or 0)
    return floor((machine.cost + allowed) * denominator), floor(allowed * denominator)


def most_worth(
    shape: AnyConfiguration,
    worth: Mapping[Block, Fraction],
    proper: Mapping[Block, int] | None = None,
    extras: Sequence[tuple[Mapping[Block, int], Fraction]] = (),
) -> Fraction:
    """Return what the blocks of a machine are worth, at most; of a set those of proper contents.

    `extras` are what at least so many blocks of some types are worth more.
    """
    if isinstance(shape, Configuration):
        value = sum((worth[block] * n for block, n in shape.blocks.items()), Fraction(0))
        for least, amount in extras:
            if all(shape.blocks.get(block, 0) >= n for block, n in least.items()):
                value += amount
        return value
    blocks = list(shape.sizes)
    index = {block: at for at, block in enumerate(blocks)}
    possible = [(least, amount) for least, amount in extras if least.keys() <= index.keys()]
    most = [proper.get(block, shape.largest_count(block)) for block in blocks] if proper else None
    prices, sizes = [worth[block] for block in blocks], [shape.sizes[block] for block in blocks]
    room, slots = shape.capacity, shape.max_blocks
    numbered = [({index[b]: n for b, n in least.items()}, amount) for least, amount in possible]
    return fullest_machine(prices, sizes, room, slots, most, numbered).value


def _named(problem: MachineProblem, shape: AnyConfiguration) -> str:
    if isinstance(shape, Configuration):
        name = f"configuration {shape}"
    else:
        name = f"the fullest machine of capacity {shown(shape.capacity)}"
    return f"{name} on {shape.machine!r}" if len(problem.machine_types) > 1 else name


def prices_of_jobs(
    problem: MachineProblem, leaf: Prices, path: tuple[Condition, ...]
) -> tuple[list[Fraction], dict[int, list[Fraction]]]:
    """Return the prices every job pays, and those of jobs with a branch of their own.

    Raises
    ------
    InvalidCertificate
        If a job would be paid for taking a block.
    """
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


def _refuse_names(
    names: Mapping[str, Any], known: Sequence[str], what: str, number: str = "a price"
) -> None:
    for name in names:
        if name not in known:
            raise InvalidCertificate(
                f"{number} for the {what} {name!r}, which the problem does not have"
                + nearest(name, known)
            )
