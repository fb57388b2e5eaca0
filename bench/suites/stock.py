"""Machines cut at will: bin packing, cutting stock, shares of GPUs, and a cluster's fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.figures import median, values
from bench.peers.arc_flow import MOST_NODES, MOST_VARIABLES
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped
from bench.task import Kind, Task
from cms.values.frozen import FrozenMap

from .agreement import agreement
from .suite import Settings, Suite
from .summary import (
    by_contestant,
    failures_of,
    how_measured,
    is_checked,
    is_worse,
    relative_gaps,
    solves,
)

#: What the answers are held against.
RULE, PEER = "best_fit", "highs_arc_flow"


@dataclass(frozen=True, slots=True)
class Drawn:
    """Instances of a family that are one line of the table.

    Sizes are taken in turn, and variants too, moved on by one after every size once, so that each
    meets every size.
    """

    family: str
    sizes: tuple[int, ...]
    variants: tuple[Mapping[str, Any], ...] = ({},)
    always: Mapping[str, Any] = field(default_factory=FrozenMap)

    def arguments(self, number: int, largest: int) -> dict[str, Any] | None:
        """Return the arguments of an instance; None if all sizes are too large."""
        sizes = [n for n in self.sizes if n <= largest]
        if not sizes:
            return None
        turn, at = divmod(number, len(sizes))
        variant = self.variants[(turn + at) % len(self.variants)]
        return {"n": sizes[at], "seed": number, **self.always, **variant}


_RANGES = (("0.01", "0.25"), ("0.05", "0.5"), ("0.1", "0.75"), ("0.2", "0.7"))
LINES = (
    Drawn("stock-triplets", (60, 120, 249, 501)),
    Drawn("stock-uniform", (120, 250, 500, 1_000)),
    Drawn(
        "stock-cutgen",
        (20, 50, 100, 200),
        tuple(
            {"low": low, "high": high, "demand": demand}
            for (low, high), demand in zip(_RANGES, (10, 50, 100, 10), strict=True)
        ),
    ),
    Drawn(
        "stock-residual",
        (20, 50, 100, 200),
        tuple({"low": low, "high": high} for low, high in _RANGES),
    ),
    Drawn("stock-divisible", (20, 50, 100, 200), ({"miss": 0}, {"miss": 1}, {"miss": 3})),
    Drawn("measured-shares", (20, 100, 300, 1_000), ({"m": 5}, {"m": 1}), {"step": "2.5"}),
    Drawn("measured-shares", (20, 100, 300, 1_000), ({"m": 5}, {"m": 1}), {"step": 1}),
    Drawn(
        "memory-shares",
        (20, 100, 300, 1_000),
        ({"compute": 5}, {"compute": 2}, {"compute": 1, "memory": 10}),
    ),
    *(
        Drawn(
            "cluster-fleet",
            (14_000,),
            tuple(
                {"kinds": kinds, "types": types, "serving": serving}
                for kinds, types in ((70, 7), (60, 5), (80, 6))
                for serving in ("pods", "rates")
            ),
            {"limits": limits},
        )
        for limits in ("none", "tight")
    ),
)
#: What a line is told apart by, beside its family.
_MARKS = ("step", "limits")


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield, of every instance, each algorithm, the peers, and best fit decreasing."""
    for line in LINES:
        for number in range(settings.seeds):
            arguments = line.arguments(number, settings.largest)
            if arguments is None:
                continue
            source = settings.source(line.family, **arguments)
            yield from settings.solves("stock", source)
            yield from settings.asks("stock", source, settings.time_limit)
            yield from settings.rules("stock", source, [RULE])


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each family in a line, beside the peers and best fit decreasing; and who agrees."""
    caption = (
        "checked: optimal within the limit, with a certificate that a checker accepts; nothing: "
        "runs without a schedule; gaps are to the checked bound, the first two relative to the "
        f"cost. worse: runs that end above {RULE}, which must not be, of those fitted, for it "
        "refuses limits. median s: to proof, a run without one counting as its limit. Of each peer "
        "how many instances it calls optimal within the limit, and how many have a program that is "
        f"too large to be built (arc-flow: {MOST_NODES:,} nodes a set, {MOST_VARIABLES:,} "
        f"variables). Red: no schedule, a worse one, or a failed run. {how_measured(settings)}"
    )
    headings = columns(
        "family:text | algorithm:text | runs | checked | nothing | mean gap:percent",
        "worst:percent | worst gap:exact | worse | fitted | median s:seconds",
        *(f"{group} optimal | {group} too large" for group in settings.peers),
    )
    table = Table("machines cut at will", caption, headings)
    for (name, algorithm), part in grouped(
        solves(rows), lambda row: (_name(row), row.algorithm)
    ).items():
        beside = [row for row in rows if _name(row) == name]
        fitted = {row.instance: row.cost for row in beside if row.algorithm == RULE}
        nothing = sum(row.cost is None and row.status != "infeasible" for row in part)
        worse = sum(is_worse(row.cost, fitted.get(row.instance)) for row in part)
        relative = relative_gaps(part)
        theirs = by_contestant([row for row in beside if row.kind == Kind.PEER])
        mean, most = (sum(relative) / len(relative), max(relative)) if relative else (None, None)
        gap, median_s = max(values(part, "gap"), default=None), values(part, "seconds_to_proof")
        n_fitted = sum(cost is not None for cost in fitted.values())
        counts = len(part), sum(map(is_checked, part)), nothing
        asked: list[int] = []  # of each peer what it proves, and what it cannot be given
        for group in settings.peers:
            runs = theirs.get(f"{group} (peer)", [])
            asked.append(sum(row.proved for row in runs))
            asked.append(sum(row.outcome is Outcome.UNSUPPORTED for row in runs))
        rest = worse, n_fitted, median(median_s), *asked
        red = nothing + worse + failures_of(part) > 0
        table.add(name, algorithm, *counts, mean, most, gap, *rest, red=red)
    return [table, *agreement(rows)]


def _name(row: RunRow) -> str:
    """Say which line a run belongs to."""
    marks = (f"{mark}={row.arguments[mark]}" for mark in _MARKS if mark in row.arguments)
    return " ".join([row.family, *marks])


SUITE = Suite(
    "stock",
    "machines cut at will: bin packing, cutting stock, shares and fleets, beside arc-flow",
    Settings(seeds=20, time_limit=20.0, largest=14_000, peers=(PEER,)),
    tasks,
    tables,
)
