"""Make the figures of co-location, or some: ``python -m bench.colocation_figures [FIGURE ...]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from rich.console import Console

from bench.expected import Line, show
from cms.fleet.published import MonitorTimes
from cms.fleet.simulation.colocation_loop import Diurnal

from . import day, errors, matching, predictor, running


class Sizes(NamedTuple):
    """How large the figures are made; the defaults are those that the figures are about."""

    instances: int = 500
    largest: int = 1_000_000
    draws: int = 30
    splits: int = 20
    size: int = 300
    lowests: int = 21
    times: MonitorTimes | None = None
    children: int = 200
    kills: int = 50
    gpus: int = 1_000
    measured_gpus: int = 988
    hours: int = 24
    activity: Diurnal = Diurnal()


FULL = Sizes()
SHORT = Sizes(
    instances=60, largest=20_000, draws=3, splits=2, size=100, lowests=3,
    times=MonitorTimes(dwell=12, base=8, cap=128, calm=160), children=20, kills=10, gpus=90,
    measured_gpus=104, hours=3, activity=Diurnal(swing=0),
)  # fmt: skip

#: What makes each figure; figures 6 and 7 are of the same splits.
FIGURES: Mapping[str, Callable[[Sizes], Iterator[Line]]] = MappingProxyType({
    "1": lambda sizes: matching.agreement_figure(sizes.instances),
    "2": lambda sizes: matching.size_figure(sizes.largest),
    "3": lambda sizes: matching.proof_figure(sizes.instances // 10),
    "4": lambda _: matching.parts_figure(),
    "5": lambda sizes: matching.bucket_figure(2 * sizes.size, min(sizes.draws, 4)),
    "6": lambda sizes: predictor.error_figures(sizes.splits),
    "7": lambda sizes: predictor.error_figures(sizes.splits),
    "8": lambda sizes: predictor.matching_figure(sizes.draws, sizes.size),
    "9": lambda sizes: running.share_figure(sizes.lowests),
    "10": lambda sizes: running.monitor_figure(sizes.times),
    "11": lambda sizes: errors.error_figure(sizes.children, sizes.kills, sizes.kills),
    "12": lambda sizes: chain(
        day.day_figure(sizes.gpus, sizes.hours, sizes.activity),
        day.measured_figure(sizes.measured_gpus, sizes.hours),
    ),
})  # fmt: skip


def figures(wanted: Sequence[str], sizes: Sizes) -> Iterator[Line]:
    """Make some figures, each once; 6 and 7 are made together."""
    said = Console(stderr=True)
    makers = dict.fromkeys("6" if each == "7" else each for each in wanted)
    for each in makers:
        said.print(f"figure {each} ...", style="dim", highlight=False)
        yield from FIGURES[each](sizes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 if one is not what it should be."""
    parser = argparse.ArgumentParser(prog="python -m bench.colocation_figures", description=__doc__)
    parser.add_argument(
        "figure",
        nargs="*",
        metavar="FIGURE",
        choices=[[], *FIGURES],
        help="1 to 12; all of them by default",
    )
    parser.add_argument("--short", action="store_true", help="smaller sizes: about a minute")
    parser.add_argument(
        "--gavel", type=Path, help="make the shipped pairs again from simulation_throughputs.json"
    )
    asked = parser.parse_args(arguments)
    if asked.gavel is not None:
        predictor.make_tables(asked.gavel)
        return 0
    found = figures(asked.figure or list(FIGURES), SHORT if asked.short else FULL)
    return show("Sharing", "Offline work beside online services.", found)


if __name__ == "__main__":
    raise SystemExit(main())
