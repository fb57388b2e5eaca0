"""Certificates: proofs of lower bounds that anyone can recheck, in exact arithmetic.

A price on every block type, worth at most a machine's cost in every configuration, proves that no
schedule costs less than the jobs' cheapest options at these prices (weak duality, theory 6.3):
a schedule's machines cost at least what their blocks are worth, and each job's own blocks are worth
at least its cheapest option. Branching on an integer quantity splits a proof in two, whose leaves
carry prices of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from ..errors import InvalidCertificate
from ..knapsack.pricing import common_denominator, price_jobs
from ..problem.parts import Block, held_blocks
from ..values.frozen import FrozenMap
from ..values.names import checked_table
from ..values.numbers import Number, exact, json_number, whole
from .price_conditions import Condition, Worth, prices_of_jobs, refuse_breaches, refuse_misfits
from .quantity import Quantity

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem


#: Branches above one another: a deeper tree could be neither pickled nor written to a file.
LARGEST_DEPTH = 200
#: Leaves of a tree, a shared side counted as often as it stands: each may need a pass over all jobs
#: and takes its room in a file. Our own branching makes at most 5,000 nodes, half of them leaves.
LARGEST_LEAVES = 20_000


class ProvedBound(NamedTuple):
    """A lower bound, and whether there is no schedule at all."""

    value: Fraction
    infeasible: bool


class CheckStopped(Exception):
    """A check was given up."""


class Certificate(ABC):
    """A lower bound's proof: :class:`BlockPrices` (a :class:`Leaf`), or a :class:`Branch`."""

    __slots__ = ()

    def bound(self, problem: MachineProblem) -> Fraction:
        """Return the lower bound this certificate proves, exact and not rounded.

        No schedule costs less; of an infeasible problem any number is a lower bound. It may be
        slightly less than the prices could prove, never more, where a job's blocks tie so closely
        that looking for its cheapest option has to end early, and in large problems where more
        than a thousand rows need more than 62 bits. Raises InvalidCertificate, naming the breach,
        if the certificate does not hold for this problem.
        """
        return self._proved(problem).value

    def proves_infeasible(self, problem: MachineProblem) -> bool:
        """Whether this certificate proves that there is no schedule at all."""
        return self._proved(problem).infeasible

    def judged(
        self,
        problem: MachineProblem,
        *,
        stopped: Callable[[], bool] | None = None,
        undisturbed: int = 0,
    ) -> ProvedBound | None:
        """Return what this certificate proves; None if `stopped`, asked again and again, said so.

        Within a pass over the jobs it is asked after the effort `undisturbed` first.
        """
        try:
            return self._proved(problem, stopped, undisturbed)
        except CheckStopped:
            return None

    def _proved(
        self,
        problem: MachineProblem,
        stopped: Callable[[], bool] | None = None,
        undisturbed: int = 0,
    ) -> ProvedBound:
        proved = [one for *_, one in proved_leaves(problem, self, stopped, undisturbed)]
        possible = [one.value for one in proved if not one.infeasible]
        return ProvedBound(min(possible or [one.value for one in proved]), not possible)

    @abstractmethod
    def leaves(self) -> Iterator[Leaf]:
        """Iterate over the leaves, left to right."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain JSON values; see ``docs/reference/files.md``."""


def proved_leaves(
    problem: MachineProblem,
    certificate: Certificate,
    stopped: Callable[[], bool] | None = None,
    undisturbed: int = 0,
) -> Iterator[tuple[Leaf, tuple[Condition, ...], ProvedBound]]:
    """Iterate over the leaves of a certificate, what stands above each, and what it proves.

    Leaves with the same prices and the same branches of multipliers other than 0 are evaluated
    together, wherever in the tree they stand. Once it is ``stopped``, CheckStopped is raised.
    """
    evaluated: dict[Hashable, ProvedBound] = {}
    known: set[Quantity] = set()
    waiting: list[tuple[Certificate, tuple[Condition, ...]]] = [(certificate, ())]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, Leaf):
            if stopped is not None and stopped():
                raise CheckStopped
            refuse_misfits(problem, node, path)
            used = tuple(pair for pair in zip(path, node.multipliers, strict=True) if pair[1])
            key = type(node), node.numbers(), used
            if key not in evaluated:
                holds_at_no_cost = refuse_breaches(problem, node, path)
                worth = node.jobs_worth(problem, path, stopped, undisturbed)
                if worth is None:
                    raise CheckStopped
                limits = ((node.limit_prices.get(each.name), each) for each in problem.limits)
                value = worth.total - sum(price * each.reach for price, each in limits if price)
                value += sum(m * condition.sign * condition.value for condition, m in used)
                infeasible = worth.unservable or (holds_at_no_cost and value > 0)
                evaluated[key] = ProvedBound(value, infeasible)
            yield node, path, evaluated[key]
        elif not isinstance(node, Branch):
            raise InvalidCertificate(
                f"a certificate has the part {node!r}; expected leaves and branches"
            )
        else:
            if node.quantity not in known:
                node.quantity.refuse_unknown(problem)
                known.add(node.quantity)
            above = Condition(node.quantity, 1, node.at_most + 1)
            waiting.append((node.above, (*path, above)))
            waiting.append((node.below, (*path, Condition(node.quantity, -1, node.at_most))))


@dataclass(frozen=True, slots=True, init=False)
class Leaf(Certificate):
    """The leaf of a certificate: prices of blocks and limits, multipliers, and proper contents.

    A kind of problem derives its own leaf from it, as :class:`BlockPrices`, and says what the jobs
    pay at these prices.
    """

    prices: FrozenMap[Block, Fraction]
    limit_prices: FrozenMap[str, Fraction]
    multipliers: tuple[Fraction, ...]
    proper: FrozenMap[Block, int]

    def __init__(
        self,
        prices: Mapping[Block, Number] | None = None,
        limit_prices: Mapping[str, Number] | None = None,
        multipliers: Sequence[Number] = (),
        proper: Mapping[Block, int] | None = None,
    ) -> None:
        if isinstance(multipliers, str) or not isinstance(multipliers, Iterable):
            raise InvalidCertificate(f"multipliers is {multipliers!r}; expected a list of numbers")
        numbers = (
            _table(prices, "block", "price of", exact),
            _table(limit_prices, "limit", "price of", exact),
            tuple([exact(m, "multiplier", error=InvalidCertificate) for m in multipliers]),
            _table(proper, "block", "proper count of", partial(whole, least=0)),
        )
        for name, value in zip(Leaf.__slots__, numbers, strict=True):
            object.__setattr__(self, name, value)

    def numbers(self) -> Hashable:
        """Return all its numbers but the multipliers: equal ones prove the same below a path."""
        return self.prices, self.limit_prices, self.proper

    def leaves(self) -> Iterator[Leaf]:
        """Iterate over this one leaf."""
        yield self

    def to_json(self) -> dict[str, Any]:
        """Return the prices as plain JSON values."""
        return {
            "prices": {name: json_number(price) for name, price in self.prices.items()},
            "limit_prices": {name: json_number(price) for name, price in self.limit_prices.items()},
            "multipliers": [json_number(multiplier) for multiplier in self.multipliers],
            **({"proper": dict(self.proper)} if self.proper else {}),
        }

    @abstractmethod
    def jobs_worth(
        self,
        problem: Any,
        path: tuple[Condition, ...],
        stopped: Callable[[], bool] | None,
        undisturbed: int,
    ) -> Worth | None:
        """Return what all jobs pay at least for their blocks; None if it was stopped.

        Raises InvalidCertificate if a job would be paid for taking a block, below the branches of
        the path.
        """


def _table(
    given: object, what: str, number: str, checked: Callable[..., Any]
) -> FrozenMap[str, Any]:
    names = checked_table(
        {} if given is None else given, f"{number} every {what}", what, InvalidCertificate
    )
    return FrozenMap(
        {
            name: checked(value, f"{number} {what} {name!r}", error=InvalidCertificate)
            for name, value in names.items()
        }
    )


@dataclass(frozen=True, slots=True, init=False)
class BlockPrices(Leaf):
    """Prices that prove a lower bound; the leaf of a certificate.

    Parameters
    ----------
    prices : Mapping[str, number]
        Block price >= 0; blocks left out have price 0.
    limit_prices : Mapping[str, number]
        Price >= 0 of the limit of a machine type or group; 0 where there is no limit.
    multipliers : sequence of numbers
        One >= 0 for each branch above this leaf, from the root down.
    proper : Mapping[str, int]
        How many blocks of a type a machine of a size-bounded set is taken to have at most; as many
        as fit of blocks left out. No count may be smaller than what all jobs together can use.

    Notes
    -----
    They hold if every configuration of a machine type m is worth at most ``cost_m``, and ``weight *
    limit_price`` of each limit that counts it; a type's own limit counts it with weight 1. The
    bound is then the sum over jobs of the cheapest option, less ``at_most * limit_price`` over
    limits (theory 6.3 and 6.9): ``at_most`` is rounded down to a whole multiple of the weights'
    common step, as what machines count is one. If they hold even with all costs 0 and the bound is
    positive, there is no schedule at all.

    Machines of a size-bounded set need no idle block, and jobs no more blocks of a type than serve
    them by themselves; so some best schedule, if there is any, has only *proper* contents, with no
    more blocks of a type than these add up to, and its numbers are on some leaf below all branches
    (for cutting stock: Nitsche, Scheithauer, Terno, "Tighter relaxations for the cutting stock
    problem", European Journal of Operational Research 112, 1999).

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> problem = Problem(
    ...     configurations=[Configuration({"7g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "7g": 800}), Job("vgg", 100, {"7g": 500})],
    ... )
    >>> BlockPrices({"1g": "1/7", "7g": 1}).bound(problem)
    Fraction(19, 7)
    >>> BlockPrices({"1g": "1/6", "7g": 1}).bound(problem)
    Traceback (most recent call last):
        ...
    cms.errors.InvalidCertificate: configuration 7 x 1g is worth 7/6 at these prices, more than \
its machine's cost 1
    """

    def jobs_worth(
        self,
        problem: MachineProblem,
        path: tuple[Condition, ...],
        stopped: Callable[[], bool] | None,
        undisturbed: int,
    ) -> Worth | None:
        """Return what the jobs' cheapest options cost; None if it was stopped."""
        own = problem.one_job_a_block()
        job_prices, special = prices_of_jobs(own, self, path)
        scaled, unit = common_denominator(
            [*job_prices, *(price for vector in special.values() for price in vector)]
        )
        k = len(job_prices)
        at = {j: scaled[(number + 1) * k : (number + 2) * k] for number, j in enumerate(special)}
        found = price_all(own, scaled[:k], at, stopped, undisturbed)
        return None if found is None else Worth(Fraction(found[0], unit), found[1])


@singledispatch
def price_all(
    problem: Any,
    prices: Sequence[int],
    special: Mapping[int, Sequence[int]],
    stopped: Callable[[], bool] | None,
    undisturbed: int,
) -> tuple[int, bool] | None:
    """Return what all jobs pay at whole prices, and whether one has no option; None if stopped."""
    found = price_jobs(
        problem.rows, prices, special=special, stopped=stopped, undisturbed=undisturbed
    )
    return None if found is None else (found.total, bool(found.unservable))


@dataclass(frozen=True, slots=True, init=False)
class Branch(Certificate):
    """A proof in two parts: one for schedules with a small quantity, one for those with a large.

    Parameters
    ----------
    quantity : Quantity
        An integer that every schedule has.
    at_most : int
        ``below`` is about the schedules where it is at most this, ``above`` about the others.
    below, above : Certificate
        Each leaf below carries one multiplier for this branch. There are at most 200 branches above
        one another, and at most 20,000 leaves; a side that stands in several places counts in each.

    Attributes
    ----------
    depth : int
        Branches on the longest way to a leaf.
    leaf_count : int
        Leaves, as :meth:`leaves` lists them.

    Examples
    --------
    Two jobs that each need two of the three blocks of a machine: 4/3 machines by prices alone,
    which rounds up to 2 anyway; with costs of 3/2 a machine the branch proves that one machine is
    impossible and two are enough.

    >>> from cms import Configuration, Job, MachineType, MachinesOfType, Problem
    >>> problem = Problem(
    ...     configurations=Configuration({"b": 3}),
    ...     jobs=[Job("x", 2, {"b": 1}), Job("y", 2, {"b": 1})],
    ...     machine_types=[MachineType("machine", cost="3/2")],
    ... )
    >>> Branch(
    ...     MachinesOfType("machine"),
    ...     1,
    ...     below=BlockPrices({"b": 1}, multipliers=[3]),
    ...     above=BlockPrices(multipliers=["3/2"]),
    ... ).bound(problem)
    Fraction(3, 1)
    """

    quantity: Quantity
    at_most: int
    below: Certificate
    above: Certificate
    depth: int = field(repr=False, compare=False)
    leaf_count: int = field(repr=False, compare=False)

    def __init__(
        self, quantity: Quantity, at_most: int, below: Certificate, above: Certificate
    ) -> None:
        if type(quantity) not in get_args(Quantity):
            raise InvalidCertificate(
                f"a branch on {quantity!r}; expected MachinesOfType, MachinesOfConfiguration, "
                "MachinesWithBlocks, BlocksOfType or BlocksOfJob"
            )
        value = whole(at_most, "at_most", error=InvalidCertificate)
        for side in (below, above):
            if not isinstance(side, Certificate):
                raise InvalidCertificate(f"a branch holds {side!r}; expected a certificate")
        depth = 1 + max(getattr(side, "depth", 0) for side in (below, above))
        if depth > LARGEST_DEPTH:
            raise InvalidCertificate(
                f"a certificate has more than {LARGEST_DEPTH} branches above one another"
            )
        leaf_count = sum(getattr(side, "leaf_count", 1) for side in (below, above))
        if leaf_count > LARGEST_LEAVES:
            raise InvalidCertificate(
                f"a certificate has more than {LARGEST_LEAVES} leaves, a side that stands in "
                "several places counted in each"
            )
        values = quantity, value, below, above, depth, leaf_count
        for name, one in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, one)

    def leaves(self) -> Iterator[Leaf]:
        """Iterate over the leaves, those of ``below`` first."""
        yield from self.below.leaves()
        yield from self.above.leaves()

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain JSON values."""
        return {
            "branch": self.quantity.to_json(),
            "at_most": self.at_most,
            "below": self.below.to_json(),
            "above": self.above.to_json(),
        }


def round_up(bound: Fraction, step: Fraction) -> Fraction:
    """Round a lower bound up to the next whole multiple of the costs' common step."""
    return step * -(-bound // step) if step else bound


def next_below(cost: Fraction, step: Fraction) -> Fraction:
    """Return the most that an optimum below ``cost`` can be: a multiple of the costs' common step.

    A schedule need not cost one itself: it may have machines that no best one has.
    """
    return round_up(cost, step) - step


def first_certificate(problem: MachineProblem) -> BlockPrices:
    """Return what is certain before any work: prices of 0, and 1 on blocks no machine can have.

    It proves infeasibility where some job can only be served by such blocks, or by none.
    """
    found = set(held_blocks(problem.configurations))
    return BlockPrices({block: 1 for block in problem.blocks if block not in found})
