"""Figures of shares of runs: performance profiles, gaps over time, proof rates over sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from bench.row import RunRow

from .plot import figure, finish, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@figure(
    "Of the instances that any contestant proved, the share that each proved within so many "
    "times the seconds of the fastest one on the same instance; at the left edge: how often it "
    "was the fastest; where a curve ends: how often it proved anything within the limit. "
    "Higher is better."
)
def performance_profile(axes: Axes, seconds: Mapping[str, Mapping[str, float | None]]) -> None:
    """Show, for each contestant, the share of instances it proves within a factor of the fastest.

    References
    ----------
    E. D. Dolan, J. J. More: Benchmarking optimization software with performance profiles,
    Mathematical Programming 91 (2002), doi:10.1007/s101070100263.
    """
    factors = profile(seconds)
    last = max([f for found in factors.values() for f in found if f < inf], default=1.0)
    for contestant, look in looks(list(factors)).items():
        found = sorted(factors[contestant])
        within = [f for f in found if f < inf]
        share = np.arange(1, len(within) + 1) / max(1, len(found))
        x = [1.0, *within, 1.3 * last]
        y = [0.0, *share, share[-1] if len(share) else 0.0]
        axes.step(x, y, where="post", label=contestant, **look)
    axes.set_xlim(0.98, 1.3 * last)
    axes.set_ylim(-0.02, 1.02)
    finish(axes, "factor of the fastest contestant's seconds", "share of instances proved")


def profile(seconds: Mapping[str, Mapping[str, float | None]]) -> dict[str, list[float]]:
    """Return each contestant's factors of the fastest, infinite without a proof.

    Instances without any proof are left out.
    """
    best: dict[str, float] = {}
    for found in seconds.values():
        for instance, value in found.items():
            if value is not None:
                best[instance] = min(value, best.get(instance, inf))
    return {
        contestant: [
            value / best[instance] if value is not None else inf
            for instance, value in found.items()
            if instance in best
        ]
        for contestant, found in seconds.items()
    }


@figure(
    "(cost - checked bound) / cost of what an algorithm has at a moment, 100 % before its "
    "first schedule, averaged over its runs (without those proved infeasible); after its end a "
    "run keeps its last value. An "
    "algorithm that proves no bound of its own keeps the gap to the trivial one. Time is "
    "logarithmic; the gap is linear below 0.1 %, logarithmic above."
)
def gap_over_time(axes: Axes, runs: Mapping[str, Sequence[RunRow]]) -> None:
    """Show how the relative gap falls as an algorithm runs, on average over its runs."""
    moments = [
        max(1e-3, entry[0]) for part in runs.values() for row in part for entry in row.history
    ]
    low, high = min(moments, default=1e-3), max(moments, default=1.0)
    times = np.geomspace(low, max(1.01 * low, high), 200)
    for algorithm, look in looks(list(runs)).items():
        part = [row for row in runs[algorithm] if row.history and row.status != "infeasible"]
        if not part:
            continue
        gaps = np.mean([gaps_at(row, times) for row in part], axis=0)
        axes.plot(times, 100 * gaps, label=f"{algorithm} ({len(part)} runs)", **look)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(0, 110)
    axes.set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    finish(axes, "seconds since the start", "mean gap, per cent of the cost")


def gaps_at(row: RunRow, times: Iterable[float]) -> list[float]:
    """Return the relative gap at each of several increasing moments; 1 without a schedule."""
    found, at, gap = [], 0, 1.0
    for moment in times:
        while at < len(row.history) and row.history[at][0] <= moment:
            _, cost, bound, _ = row.history[at]
            if cost is not None:
                value = Fraction(str(cost))
                gap = max(0.0, float(1 - Fraction(str(bound)) / value)) if value else 0.0
            at += 1
        found.append(gap)
    return found


@figure(
    "The share of instances whose answer is proved within the limit, in classes of sizes (a "
    "dot stands at the middle of its class, on a logarithmic axis). The algorithm's proofs are "
    "checked certificates but for a few on a solver's word; a peer's are its own word. In "
    "brackets: instances. Peers are asked on some of the instances only."
)
def proof_rate(axes: Axes, runs: Mapping[str, Sequence[RunRow]]) -> None:
    """Show the share of instances proved over the number of jobs."""
    sizes = [row.n for part in runs.values() for row in part if row.n]
    top = max(sizes, default=1)
    edges = np.unique(np.rint(np.geomspace(1, top + 1, 9)).astype(int))
    for contestant, look in looks(list(runs)).items():
        x, y = [], []
        for low, high in pairwise(edges.tolist()):
            part = [row for row in runs[contestant] if row.n and low <= row.n < high]
            if part:
                x.append(float(np.sqrt(low * max(low, high - 1))))
                y.append(100 * sum(row.proved for row in part) / len(part))
        axes.plot(x, y, marker="o", label=f"{contestant} ({len(runs[contestant])})", **look)
    axes.set_ylim(-2, 103)
    finish(axes, "jobs", "proved within the limit, per cent")
