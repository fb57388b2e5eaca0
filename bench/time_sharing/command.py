"""The command: figures as a table, or the table of head-room."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console

import bench.time_sharing
from bench.expected import Line, show

from . import interference, kernels, larger, plain, planted, random_mixes, scenario
from .asked import Asked
from .headroom import headroom_table

_Maker = Callable[[Asked], Iterator[Line]]


def makers(asked: Asked) -> Mapping[int, _Maker]:
    """Return what makes each figure."""
    solved = random_mixes.mixes(asked)
    return {
        1: scenario.optima,
        2: scenario.linear_bounds,
        3: scenario.inflated,
        4: plain.one_service,
        5: plain.linear,
        6: kernels.kernels,
        7: lambda _: random_mixes.proved(solved),
        8: lambda _: random_mixes.beside_heuristics(solved),
        9: interference.neighbours,
        10: larger.gaps,
        11: larger.rechecked,
        12: planted.faults,
    }


def figures(asked: Asked, chosen: Sequence[int]) -> Iterator[Line]:
    """Make the chosen figures, as far as the tables at hand allow."""
    made = makers(asked)
    return (line for number in chosen for line in made[number](asked))


def _figures(text: str) -> list[int]:
    """Read ``1,2,7-9``."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        try:
            found += range(int(low), int(high if dash else low) + 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r}; expected 1 or 7-9") from None
    if wrong := [number for number in found if number not in range(1, 13)]:
        raise argparse.ArgumentTypeError(f"there is no figure {wrong[0]}; expected 1 to 12")
    return list(dict.fromkeys(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures, or the table of head-room; 1 if a figure is not what it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.time_sharing", description=bench.time_sharing.__doc__
    )
    parser.add_argument(
        "--figures", type=_figures, default=_figures("1-12"), metavar="1,7-9", help="which"
    )
    parser.add_argument(
        "--cases", type=int, default=100, metavar="PER_CENT",
        help="of the random cases that figures 5 to 8 want",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the first random case")
    parser.add_argument("--largest", type=int, default=50, help="services of figures 10 and 11")
    parser.add_argument("--mixes", type=int, default=1, help="of each size, there")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of each, there")
    parser.add_argument("--headroom", action="store_true", help="the table of head-room instead")
    parser.add_argument("--plans", type=int, default=10, help="of the table of head-room")
    parser.add_argument("--requests", type=int, default=20_000, help="of each service, there")
    given = parser.parse_args(arguments)
    if given.headroom:
        Console().print(headroom_table(given.plans, given.requests).rich())
        return 0
    asked = Asked.of(
        os.environ,
        per_cent=given.cases,
        seed=given.seed,
        sizes=[size for size in (20, 50) if size <= given.largest],
        mixes=given.mixes,
        seconds=given.time_limit,
    )
    measured = "made up" if asked.points is None else "measured"
    caption = (
        f"The tables of batches of figures 1, 2, 7 and 8 are {measured}."
        f"{_left_out(asked, given.figures)}"
    )
    return show("Time sharing", caption, figures(asked, given.figures))


def _left_out(asked: Asked, chosen: Sequence[int]) -> str:
    """Say which of the chosen figures want a table that is not at hand."""
    wanted = {3: ("CMS_GPULET_OVERHEADS", asked.overheads), 9: ("CMS_GPULET_PAIRS", asked.pairs)}
    missing = [
        f"{number} (CMS_GPULET_TABLE, {variable})"
        for number, (variable, at_hand) in wanted.items()
        if number in chosen and (asked.points is None or at_hand is None)
    ]
    return f" For want of tables: no figure {' and '.join(missing)}." if missing else ""
