"""Bounds on kept instances that prices prove, exactly.

Whatever the prices, as long as none is negative, the bounds hold (Lagrange): once the rows that tie
GPUs together are priced, one choice is left for each GPU, and those are listed. Prices come from a
linear program and are rounded first; nothing here is a float but them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import cast

from ...errors import InvalidCertificate
from .gpu_group import GpuGroup
from .placement_model import Demand
from .program import DENOMINATORS, Limits, Program

__all__ = [
    "Label", "Prices", "Relaxation", "best_prices", "find_worth", "most_kept", "round_prices",
]  # fmt: skip

Block = tuple[str, str]
#: A row of the relaxation: "kind", "block" or "gpu", and of what.
Label = tuple[str, object]


@dataclass(frozen=True)
class Prices:
    """What instances and GPUs count for; InvalidCertificate if a price is negative."""

    kinds: Mapping[int, Fraction]  # an instance kept, by the number of its kind
    blocks: Mapping[Block, Fraction]  # an instance of a profile of a GPU
    gpus: Mapping[str, Fraction]  # a GPU of a type

    def __post_init__(self) -> None:
        for prices in (self.kinds, self.blocks, self.gpus):
            for name, price in prices.items():
                if price < 0:
                    raise InvalidCertificate(
                        f"the price of {name} is {price}; expected no negative price"
                    )


class Relaxation:
    """The linear program of layouts alone: rows tie kept kinds, profiles and GPUs to them.

    `counted`: The rows of GPUs that a group is in, with factors; by default that of its type.
    """

    def __init__(
        self,
        groups: Iterable[GpuGroup],
        counted: Callable[[GpuGroup], Mapping[str, int]] = lambda group: {group.gpu.key: 1},
    ) -> None:
        self.program = Program()
        self.rows: dict[Label, dict[int, int]] = {}  # each at most 0, or what `find` is told
        for group in groups:
            key, own = group.gpu.key, []
            for option in group.options:
                y = self.program.variable(len(group.members))
                own.append(y)
                for kind, n in option.keeps:
                    self.add("kind", kind, y, -n)
                for profile, n in option.counts:
                    self.add("block", (key, profile), y, -n)
                for what, n in counted(group).items():
                    self.add("gpu", what, y, n)
            self.program.choose(own, len(group.members))

    @property
    def kinds(self) -> list[int]:
        """The numbers of the kinds that can be kept."""
        return [cast("int", what) for name, what in self.rows if name == "kind"]

    def add(self, name: str, what: object, variable: int, factor: int) -> None:
        """Add a variable to a row."""
        row = self.rows.setdefault((name, what), {})
        row[variable] = row.get(variable, 0) + factor

    def find(
        self, terms: Mapping[int, int], highs: Mapping[Label, int], limits: Limits
    ) -> dict[Label, float] | None:
        """Return the prices of rows at the most of some terms; None if time is up."""
        at = {}
        for label, row in self.rows.items():
            at[label] = len(self.program.rows)
            self.program.at_most(row, highs.get(label, 0))
        duals = self.program.find_prices(terms, limits)
        return None if duals is None else {label: max(0.0, duals[r]) for label, r in at.items()}


def round_prices(duals: Mapping[Label, float], unit: int) -> Prices:
    """Return prices in parts of a unit."""
    parts: dict[str, dict[object, Fraction]] = {"kind": {}, "block": {}, "gpu": {}}
    for (name, what), price in duals.items():
        parts[name][what] = Fraction(round(price * unit), unit)
    return Prices(parts["kind"], parts["block"], parts["gpu"])  # type: ignore[arg-type]


def most_kept(groups: Iterable[GpuGroup], demand: Demand, prices: Prices) -> int:
    """Return a number of instances that no deployment of the demand can keep more than.

    With α the prices of kinds, π of blocks and λ of GPUs, n the counts wanted and N the most GPUs
    that may be used (a type without a price has no limit): kept <= Σ n max(0, 1 - α) - Σ π n +
    Σ λ N + Σ over GPUs of max(0, max over options of (α keeps + π counts - λ)).
    """
    total = Fraction(0)
    for number, (kind, count) in enumerate(zip(demand.kinds, demand.counts, strict=True)):
        total += count * max(Fraction(0), 1 - prices.kinds.get(number, Fraction(0)))
        total -= count * prices.blocks.get((kind.gpu, kind.profile), Fraction(0))
    total += sum((price * demand.gpus[key] for key, price in prices.gpus.items()), Fraction(0))
    for group in groups:
        own = prices.gpus.get(group.gpu.key, Fraction(0))
        total += len(group.members) * find_worth(group, prices, own)
    return floor(total)


def find_worth(group: GpuGroup, prices: Prices, gpu: Fraction) -> Fraction:
    """Return what the best option of one GPU is worth, less what the GPU costs."""
    key, best = group.gpu.key, gpu
    for option in group.options:
        value = Fraction(0)
        for kind, n in option.keeps:
            value += prices.kinds.get(kind, 0) * n
        for profile, n in option.counts:
            value += prices.blocks.get((key, profile), 0) * n
        best = max(best, value)
    return best - gpu


def best_prices(
    groups: Sequence[GpuGroup], demand: Demand, limits: Limits
) -> tuple[Prices, int] | None:
    """Find prices for the best bound on kept instances, and that bound; None if time is up."""
    relaxation = Relaxation(groups)
    highs: dict[Label, int] = {}
    for block in {(kind.gpu, kind.profile): None for kind in demand.kinds}:
        relaxation.rows.setdefault(("block", block), {})
        highs["block", block] = -demand.on(*block)
    highs |= {("gpu", group.gpu.key): demand.gpus[group.gpu.key] for group in groups}
    kept = {what: relaxation.program.variable(demand.counts[what]) for what in relaxation.kinds}
    for kind, k in kept.items():
        relaxation.add("kind", kind, k, 1)
    duals = relaxation.find(dict.fromkeys(kept.values(), 1), highs, limits)
    if duals is None:
        return None
    # of what does not run nothing can be kept, and keeping it costs no GPU anything
    absent = {at: Fraction(1) for at in range(len(demand.kinds)) if at not in kept}
    found = [
        Prices(absent | dict(prices.kinds), prices.blocks, prices.gpus)
        for prices in (round_prices(duals, unit) for unit in DENOMINATORS)
    ]
    return min(((each, most_kept(groups, demand, each)) for each in found), key=lambda one: one[1])
