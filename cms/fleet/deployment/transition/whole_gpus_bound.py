"""How many spare GPUs are needed at least where whole GPUs are cut anew: proved by prices.

Theorem. Let a promise have no room on the GPUs in use as they are cut and on e empty ones. Then
every transition to it, with e empty GPUs to use at a time, cuts a GPU in use anew; look at the
first. Until it is done all the other GPUs are as they are cut, and do whatever is best; at most e
more are cut. Let every service have a price, an instance the worth of the best that it can do, and
a GPU the worth of its best layout. If the floors are worth more than all the other GPUs' instances
and e empty GPUs, some service is below its floor. So e must be larger; whichever GPU is the first.
∎

Any prices prove a bound. Those of a linear program are rounded, and all the rest is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil

from ..instance import Mode, State
from ..model import FleetGpu
from ..programs import Limits, Program
from .checking import most_gpus
from .whole_gpus_goal import Goal, Use

__all__ = ["least_spare"]

#: What prices are rounded to.
_DENOMINATOR = 10**6

Block = tuple[str, str]


def least_spare(goal: Goal) -> tuple[int, str]:
    """Return a number of spare GPUs below which there is no transition, and why in words.

    Claims nothing (0, "") where GPUs change what shares them, or their mode, or nothing in use has
    to be cut anew.
    """
    if any(card.mode is not Mode.MIG for card in (*goal.cards, *goal.ends)):
        return 0, ""
    bound = _Bound(goal)
    empty = most_gpus(goal.start, goal.target) - len(goal.start.used_gpus())
    needed = bound.needed(empty)
    if needed <= empty:
        return 0, ""
    unit = "node" if goal.by_node else "GPU"
    spare = needed - empty
    return spare, (
        f"whichever {unit} in use is the first to be cut anew, what the floors are worth exceeds "
        f"all that the others and {needed - 1} empty GPU{'s' * (needed != 2)} can supply meanwhile "
        f"({bound.words()})"
    )


class _Bound:
    """Prices of services, and what instances and GPUs are worth by them."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self.held = {
            n: Counter(self._usable(card)) for n, card in enumerate(goal.cards) if card.instances
        }
        self.fixed = [0] * len(goal.supplies.floor)
        for card in goal.cards:
            for each in card.pinned:
                use = goal.supplies.use(each.work if each.supply_rps else None)
                if use.supply:
                    self.fixed[use.service] += use.supply
        self.prices = self._prices()

    def _usable(self, card: FleetGpu) -> Iterator[Block]:
        for each in card.instances:
            if each.is_ours and each.state is not State.HOLLOW:
                yield card.gpu.key, each.profile

    def units(self) -> list[list[int]]:
        """Return GPUs in use that could be the first to be cut anew, with what stops with them."""
        if not self.goal.by_node:
            return [[n] for n in self.held]
        nodes: dict[str, list[int]] = {}
        for n in self.held:
            nodes.setdefault(self.goal.cards[n].node, []).append(n)
        return list(nodes.values())

    def needed(self, empty: int) -> int:
        """Return how many empty GPUs every transition needs, or `empty` if nothing shows it."""
        if not self.held or not self._is_full(empty):
            return empty
        owed = sum(
            (p * max(0, floor - fixed) for p, floor, fixed in zip(
                self.prices, self.goal.supplies.floor, self.fixed, strict=True
            )),
            Fraction(0),
        )  # fmt: skip
        total = sum((self._worth(held) for held in self.held.values()), Fraction(0))
        best = self._best_gpu()
        fewest: int | None = None
        for unit in self.units():
            rest = total - sum((self._worth(self.held[n]) for n in unit), Fraction(0))
            lack = owed - rest
            if lack <= 0:
                return empty
            if best:
                count = ceil(lack / best)
                fewest = count if fewest is None else min(fewest, count)
        while fewest is not None and fewest > empty and not self._is_full(fewest - 1):
            fewest -= 1  # with so many empty ones nothing in use has to be cut anew
        return empty if fewest is None else max(empty, fewest)

    def _is_full(self, empty: int) -> bool:
        """Whether what is promised has no room on GPUs as they are cut and on empty ones.

        Some profile lacks more instances than the empty GPUs can hold of it.
        """
        there = sum(self.held.values(), Counter[Block]())
        wanted: Counter[Block] = Counter(
            (card.gpu.key, each.profile)
            for card, each in self.goal.target.instances()
            if each.is_ours and each.work is not None
        )
        lacks = wanted - there
        for key in {key for key, _ in lacks}:
            mine = {profile: n for (own, profile), n in lacks.items() if own == key}
            if self._fewest(key, mine) > empty:
                return True
        return False

    def _fewest(self, key: str, counts: Mapping[str, int]) -> int:
        """Bound the GPUs that hold so many instances: by memory, compute, and of each profile."""
        gpu = self.goal.start.devices[key]
        memory = sum(gpu.profile(name).memory * n for name, n in counts.items())
        compute = sum(gpu.profile(name).compute * n for name, n in counts.items())
        single = max(-(-n // gpu.profile(name).max) for name, n in counts.items())
        return max(-(-memory // gpu.memory_slices), -(-compute // gpu.compute_slices), single)

    # --- prices -------------------------------------------------------------------------------

    def _prices(self) -> list[Fraction]:
        """Return prices at which the floors are worth most beside what instances can do."""
        program, terms = Program(), dict[int, int]()
        blocks = sum(self.held.values(), Counter[Block]())
        floors = self.goal.supplies.floor
        covered: list[dict[int, int]] = [{} for _ in floors]
        for block, number in blocks.items():
            rows = {}
            for use in self._uses(block):
                v = program.variable(number)
                rows[v] = 1
                covered[use.service][v] = use.supply
            if rows:
                program.at_most(rows, number)
        first = len(program.rows)
        share = program.variable(10**6)  # of all floors alike, in thousandths
        terms[share] = 1
        for service, floor in enumerate(floors):
            row = {v: 1000 * n for v, n in covered[service].items()}
            program.at_least(row | {share: -floor}, -1000 * self.fixed[service])
        duals = program.prices(terms, Limits())
        if duals is None:
            return [Fraction(0)] * len(floors)
        worth = [abs(dual) * floor for dual, floor in zip(duals[first:], floors, strict=True)]
        scale = max(worth, default=0)
        if not scale:
            return [Fraction(0)] * len(floors)
        return [
            Fraction(round(each / scale * _DENOMINATOR), _DENOMINATOR * floor)
            if floor else Fraction(0)
            for each, floor in zip(worth, floors, strict=True)
        ]  # fmt: skip

    def _uses(self, block: Block) -> list[Use]:
        return self.goal.covers.get(block, [])

    def _worth(self, held: Mapping[Block, int]) -> Fraction:
        return sum((n * self._of(block) for block, n in held.items()), Fraction(0))

    def _of(self, block: Block) -> Fraction:
        return max(
            (self.prices[use.service] * use.supply for use in self._uses(block)),
            default=Fraction(0),
        )

    def _best_gpu(self) -> Fraction:
        """Return the worth of the best layout of any type."""
        best = Fraction(0)
        for key, gpu in self.goal.start.devices.items():
            profiles = tuple(sorted({name for own, name in self.goal.covers if own == key}))
            if profiles:
                for layout in gpu.maximal_layouts_around((), profiles):
                    best = max(best, sum((self._of((key, p)) for p, _ in layout), Fraction(0)))
        return best

    def words(self) -> str:
        """Name the services whose prices count."""
        names = self.goal.supplies.names
        priced = [name for name, price in zip(names, self.prices, strict=True) if price]
        more = f" and {len(priced) - 4} more" if len(priced) > 4 else ""
        return f"the services that count: {', '.join(priced[:4])}{more}"
