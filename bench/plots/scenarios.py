"""GPUs of every scheduler on the published scenarios, in groups of bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from .plot import COLOURS, Plot, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def gpus_by_scenario(
    name: str,
    title: str,
    gpus: Mapping[str, Mapping[str, Fraction]],
    scenarios: Sequence[str],
    proved: Sequence[str],
) -> Plot:
    """Show the GPUs of each scheduler on each scenario; ``proved`` are all proved optimal."""
    schedulers = [scheduler for scheduler, found in gpus.items() if found]

    def fill(axes: Axes) -> None:
        width = 0.86 / max(1, len(schedulers))
        for at, scheduler in enumerate(schedulers):
            found = gpus[scheduler]
            places = [
                number - 0.43 + width * (at + 0.5)
                for number, scenario in enumerate(scenarios)
                if scenario in found
            ]
            heights = [float(found[scenario]) for scenario in scenarios if scenario in found]
            bars = axes.bar(
                places, heights, 0.92 * width, label=scheduler, color=COLOURS[at % len(COLOURS)],
                hatch="//" if at >= len(COLOURS) else None, edgecolor="white", linewidth=0,
            )  # fmt: skip
            axes.bar_label(bars, fmt="{:.0f}", fontsize=7, padding=1)
        axes.set_xticks(range(len(scenarios)), list(scenarios))
        axes.set_ylabel("GPUs")
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        legend(axes, ncols=2)

    return Plot(
        name,
        title,
        "GPUs (A100-80GB) that each scheduler needs for the scenarios S1 to S6 of the ParvaGPU "
        "paper, the same measurements and latency rule for all, at most 3 processes in an "
        "instance; every schedule checked exactly. Lower is better. Proved optimal throughout, "
        f"with checked certificates: {', '.join(proved) or 'none'}.",
        fill,
    )
