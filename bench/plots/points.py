"""Figures of single runs: ratios next to what is proved, times over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from bench.figures import growth
from bench.row import Outcome, RunRow

from .plot import Plot, figure, finish, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def observed_and_proved(
    name: str,
    title: str,
    observed: Mapping[str, Sequence[float]],
    proved: Mapping[str, Sequence[float]],
) -> Plot:
    """Show each method's ratios to the optimum as dots, and what is proved of it as a mark."""
    methods = [method for method, found in observed.items() if found]

    def fill(axes: Axes) -> None:
        spread = np.random.default_rng(0)
        for at, method in enumerate(methods):
            found = np.array(observed[method])
            height = at + spread.uniform(-0.28, 0.28, len(found))
            axes.plot(found, height, ".", color="#0072B2", alpha=0.25, markersize=4)
            axes.plot([found.mean()] * 2, [at - 0.38, at + 0.38], color="#000000", linewidth=1.5)
            axes.plot([found.max()], [at], "o", markerfacecolor="none", color="#0072B2")
            if proved.get(method):
                middle = median(proved[method])
                axes.plot([middle], [at], "D", color="#D55E00", markersize=7)
                axes.plot(
                    [min(proved[method]), max(proved[method])], [at, at],
                    color="#D55E00", linewidth=1, alpha=0.7,
                )  # fmt: skip
        axes.set_xscale("log")
        highest = max(
            [*(max(observed[m]) for m in methods), *(max(p) for p in proved.values() if p), 1.1]
        )
        ticks = ticks_up_to(highest)
        lowest = min([1.0, *(min(observed[method]) for method in methods)])
        axes.set_xlim(0.97 * lowest, 1.1 * highest)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(len(methods) - 0.4, -0.6)
        axes.set_xlabel("cost / optimum")
        axes.grid(axis="x", alpha=0.3)

    return Plot(
        name,
        title,
        "Blue dots: cost / optimum of each run (spread up and down so that they can be seen); the "
        "circle is the worst, the black bar the mean. Orange: what the guarantee allows at the "
        "optimum, divided by it: the diamond is the median over the instances, the line goes from "
        "the least to the largest. A dot to the right of its own instance's value would be a "
        "breach. Logarithmic axis.",
        fill,
        height=1.2 + 0.36 * len(methods),
    )


def ticks_up_to(highest: float) -> list[float]:
    """Return round ratios from 1 on, far enough apart on a logarithmic axis to be read."""
    apart = highest ** (1 / 14)
    ticks: list[float] = [1]
    for tick in (1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 50, 100, 1000, 10_000):
        if tick <= highest and tick >= apart * ticks[-1]:
            ticks.append(tick)
    return ticks


@figure(
    "Seconds of cms.solve (exact checks included) over the number of jobs, both axes "
    "logarithmic: dots are runs, lines go through the medians, and the exponent is that of a "
    "power law fitted by least squares to all runs, those that end at the limit included. A "
    "straight line of slope 1 is time "
    "proportional to the jobs."
)
def times_over_n(axes: Axes, series: Mapping[str, Sequence[RunRow]]) -> None:
    """Show seconds over the number of jobs, both logarithmic, with fitted exponents."""
    for label, look in looks(list(series)).items():
        runs = [
            (row.n, row.seconds)
            for row in series[label]
            if row.outcome is Outcome.ANSWERED and row.n and row.seconds
        ]
        if not runs:
            continue
        sizes, took = ([float(value) for value in column] for column in zip(*runs, strict=True))
        fitted = growth(sizes, took)
        words = label if fitted is None else f"{label}: n^{fitted.exponent:.2f}"
        axes.plot(sizes, took, ".", color=look["color"], alpha=0.5)
        distinct = sorted(set(sizes))
        middles = [
            median(t for n, t in zip(sizes, took, strict=True) if n == size) for size in distinct
        ]
        axes.plot(distinct, middles, label=words, marker="o", markersize=4, **look)
    axes.set_yscale("log")
    finish(axes, "jobs", "seconds")
