"""What figures are made with, and how they count and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from bench.importers.gpulet import read_gpulet_table
from cms import Solution, TimeSharedProblem, solve
from cms.fleet.serving import OperatingPoint

#: Shares are measured on some GPU, whose name the table does not say.
GPU = "a100-80gb"


@dataclass(frozen=True, slots=True)
class Asked:
    """What figures are made with.

    Where there are no measured points, a made-up table stands in their place; other tables say what
    making up a batch takes, and what runs beside what. ``per_cent`` of the cases that a figure
    wants are tried, one at least; of each size of the larger mixes so many, for so many seconds.
    """

    points: Sequence[OperatingPoint] | None = None
    overheads: Path | None = None
    pairs: Path | None = None
    per_cent: int = 100
    seed: int = 0
    sizes: Sequence[int] = (20, 50)
    mixes: int = 1
    seconds: float = 60.0

    @classmethod
    def of(cls, named: Mapping[str, str], **more: Any) -> Asked:
        """Read the tables that environment variables name."""
        table, overheads, pairs = (
            Path(path) if (path := named.get(f"CMS_GPULET_{what}")) else None
            for what in ("TABLE", "OVERHEADS", "PAIRS")
        )
        points = None if table is None else read_gpulet_table(table, device=GPU)
        return cls(points, overheads, pairs, **more)

    def cases(self, wanted: int) -> range:
        """Return the seeds of so many cases, or of the part of them that is asked for."""
        return range(self.seed, self.seed + max(1, wanted * self.per_cent // 100))

    @property
    def tables(self) -> dict[str, dict[str, list[tuple[int, Fraction]]]] | None:
        """The measured points of each model: ``{model: {share: [(batch, seconds)]}}``."""
        if self.points is None:
            return None
        found: dict[str, dict[str, list[tuple[int, Fraction]]]] = {}
        for point in self.points:
            own = found.setdefault(point.model, {}).setdefault(point.profile, [])
            own.append((point.batch, point.computed_batch_ms / 1000))
        return found


class Timed(NamedTuple):
    """A solution, and the CPU seconds of this process that it took."""

    solution: Solution
    seconds: float


def timed(problem: TimeSharedProblem, **how: Any) -> Timed:
    """Solve a problem and count the CPU seconds: others on the machine do not matter much."""
    begun = time.process_time()
    solution = solve(problem, **how)
    return Timed(solution, time.process_time() - begun)


def listed(values: Iterable[object]) -> str:
    """Write values in a row."""
    return ", ".join(map(str, values))


def wrong_ones(cases: Sequence[int], check: Callable[[int], None]) -> list[str]:
    """Run a check on each case, and return what was wrong, under its number."""
    found = []
    for case in cases:
        try:
            check(case)
        except AssertionError as fault:
            found.append(f"{case}: {fault}")
    return found
