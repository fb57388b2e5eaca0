"""Rows of a results file as a page for ``cms show``: tables, proofs over time, every run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cms.errors import FileError
from cms.files import read_source
from cms.fleet.report.charts import DASHES, legend_beside, legend_name, make_axes
from cms.fleet.report.colours import TONES
from cms.fleet.report.page import Bullets, Fact, Page, Part, Picture, Section
from cms.fleet.report.tables import Cell, Column, Grid
from cms.schedule.faults import Violation

from .figures import middle, quantile, values
from .row import Outcome, RunRow
from .suites import SUITES
from .tables import AtLeast, Table, columns, failures, grouped, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_RATIO = Fraction(10**300)
"""As a float has it; a cost may be of any length."""
MOST_LINES = 8
"""Algorithms whose proofs are drawn over time: those that proved most."""
_MOST_STEPS = 2000
_SOONEST = 1e-3  # seconds; quicker proofs are drawn here


def page(path: Path, title: str) -> tuple[Page, list[Violation]]:
    """Put the rows of a results file on a page."""
    rows = read_rows(path)
    faults = [fault for number, row in enumerate(rows, 1) for fault in row_faults(row, number)]
    sections = [Section("algorithms", "Algorithms", list(_algorithms(rows)))]
    for name, own in grouped(rows, lambda row: row.suite).items():
        sections += _suite(path, name, own)
    sections.append(Section("runs", "Every run", [_runs(rows)]))
    sections.append(_recheck(path))
    suites = ", ".join(sorted({row.suite for row in rows})) or "no suite"
    lead = f"{len(rows):,} runs of {suites}"
    return Page(title, lead, list(_facts(rows)), sections, str(path)), faults


def read_rows(path: Path) -> list[RunRow]:
    """Read a results file."""
    rows = []
    text = read_source(path, holds="rows of a benchmark").text or ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(RunRow.from_line(line))
        except (ValueError, TypeError, KeyError) as fault:
            raise FileError(
                path, f"this is no row of a benchmark ({fault})", line=number,
                fix="python -m bench writes them; cut off a last line that a kill left unfinished",
            ) from None  # fmt: skip
    return rows


def row_faults(row: RunRow, number: int) -> Iterator[Violation]:
    """List what contradicts itself in a row; that the run went so, only another run shows."""
    where, cost, bound = f"row {number} ({row.algorithm})", row.cost, row.lower_bound
    if cost is None:
        return
    if bound is not None and bound > cost:
        yield Violation("bound", where, f"a lower bound of {bound}", f"at most {cost}, its cost")
    bounds = [each for each in (bound, row.claimed_bound) if each is not None]
    if row.gap is not None and bounds and row.gap not in [cost - each for each in bounds]:
        yield Violation("gap", where, f"a gap of {row.gap}", f"its cost {cost} less its bound")
    if row.status == "optimal" and row.proof == "checked" and bound != cost:
        yield Violation(
            "proof", where, f"a bound of {bound}", f"{cost}, its cost, since it is optimal"
        )


def _facts(rows: Sequence[RunRow]) -> Iterator[Fact]:
    answered = sum(row.outcome is Outcome.ANSWERED for row in rows)
    failed = sum(row.outcome is Outcome.FAILED for row in rows)
    yield Fact("Runs", plain(len(rows)), f"{answered:,} answered")
    proved = [row for row in rows if row.proved]
    checked = sum(row.proof == "checked" for row in proved)
    yield Fact("Proved in time", plain(len(proved)), f"{checked:,} by a checked certificate")
    yield Fact("Failed", plain(failed), "crashed, did not stop, or said what does not hold",
               "bad" if failed else "good")  # fmt: skip
    instances = {row.instance_sha256 or row.instance for row in rows}
    yield Fact("Instances", plain(len(instances)), "each named by its SHA-256 in the rows")


def _algorithms(rows: Sequence[RunRow]) -> Iterator[Part]:
    yield (
        "Mean ratio: of the costs found to the best bound that any run of the file proved of the "
        "same instance. Median seconds: of the runs that were answered."
    )
    best: dict[str, Fraction] = {}
    for row in rows:
        if row.instance_sha256 and row.lower_bound is not None and row.lower_bound > 0:
            known = best.get(row.instance_sha256, row.lower_bound)
            best[row.instance_sha256] = max(known, row.lower_bound)
    table = Table(
        "Algorithms",
        "",
        columns(
            "algorithm:text | runs | answered | proved | mean ratio:ratio | worst:ratio",
            "median seconds:seconds | 95 %:seconds",
        ),
    )
    proofs = []
    for name, own in grouped(rows, lambda row: row.algorithm).items():
        answered = [row for row in own if row.outcome is Outcome.ANSWERED]
        times = values(answered, "seconds")
        ratios = [
            float(min(row.cost / best[row.instance_sha256], _MOST_RATIO))
            for row in answered
            if row.cost is not None and row.instance_sha256 in best
        ]
        proved = sorted(row.seconds for row in own if row.proved and row.seconds is not None)
        proofs.append((name, proved))
        mean = statistics.fmean(ratios) if ratios else None
        took = middle(times), quantile(times, 0.95) if times else None
        counts = len(own), len(answered), len(proved)
        table.add(name, *counts, mean, max(ratios, default=None), *took)
    yield _grid(table)
    drawn = sorted(proofs, key=lambda each: -len(each[1]))[:MOST_LINES]
    if any(times for _, times in drawn):
        yield counts_picture(drawn, "runs that had ended with a proof, over seconds")


def counts_picture(series: Sequence[tuple[str, Sequence[float]]], head: str) -> Picture:
    """Draw numbers of events over time, a line each; at least one happened."""
    every = [max(at, _SOONEST) for _, times in series for at in times]
    last = max(10 ** math.ceil(math.log10(max(every))), 10 * min(every))

    def draw(sheet: Figure) -> None:
        axes = make_axes(sheet, "seconds", right=0.7)
        axes.set_title(head)
        for (name, times), dash in zip(series, DASHES, strict=False):
            own = list(enumerate((max(at, _SOONEST) for at in sorted(times)), 1))
            points = [(at, n) for n, at in [*own[: -1 : 1 + len(own) // _MOST_STEPS], *own[-1:]]]
            x, y = [*(at for at, _ in points), last], [n for _, n in points]
            look: dict[str, Any] = {"label": legend_name(name), "color": TONES["ink"], "ls": dash}
            if y:
                axes.step(x, [*y, y[-1]], where="post", lw=1.8, **look)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_ylim(bottom=0)
        legend_beside(axes)

    said = "; ".join(f"{name}: {len(times):,}" for name, times in series)
    return Picture(f"{head}: {said}", draw)


def _suite(path: Path, name: str, rows: Sequence[RunRow]) -> Iterator[Section]:
    """The tables that the suite itself makes, of its default settings."""
    if name not in SUITES:
        return
    suite = SUITES[name]
    try:
        tables = [*suite.tables(rows, suite.defaults)]
        [table.texts() for table in tables]
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError) as fault:
        raise FileError(
            path, f"the rows of suite {name} do not hold what it measures ({fault!r})",
            fix="python -m bench writes them",
        ) from None  # fmt: skip
    failed = failures(rows)
    parts: list[Part] = []
    for table in [*tables, *([failed] if failed else [])]:
        parts += [f"{table.title}. {table.caption}".strip(), _grid(table)]
    if parts:
        yield Section(f"suite-{name}", f"Suite {name}: {suite.summary}", parts)


def _grid(table: Table) -> Grid:
    shown = [Column(each.name, number=not each.left) for each in table.columns]
    rows = [
        [
            Cell(text, _order(value, column.number), tone="bad" if number in table.red else "")
            for text, value, column in zip(texts, cells, shown, strict=True)
        ]
        for number, (texts, cells) in enumerate(zip(table.texts(), table.rows, strict=True))
    ]
    return Grid(table.title, shown, rows)


def _order(value: object, number: bool) -> Fraction | float | str | None:
    if isinstance(value, AtLeast):
        value = value.figure
    if not number:
        return None
    return value if isinstance(value, int | float | Fraction) else math.nan


def _runs(rows: Sequence[RunRow]) -> Grid:
    headings = columns(
        "instance:text | algorithm:text | seed | outcome:text | status:text | cost:exact",
        "bound:exact | gap:exact | seconds:seconds | limit:seconds | checked by:text",
    )
    table = Table("Every run", "", headings)
    for row in rows:
        outcome = row.outcome.replace("_", " ") + (f"\n{row.error}" if row.error else "")
        named = f"{row.suite}: {row.instance}", row.algorithm, row.seed, outcome, _status(row)
        figures = row.cost, row.lower_bound, row.gap, row.seconds, row.time_limit, row.checker
        table.add(*named, *figures, red=row.outcome is Outcome.FAILED)
    grid = _grid(table)
    return replace(grid, columns=[Column("instance", long=True), *grid.columns[1:]])


def _status(row: RunRow) -> str:
    if row.status is None:
        return "-"
    proof = {"checked": ", checked", "solver": ", a solver's word"}.get(row.proof or "", "")
    return row.status.replace("_", " ") + proof


def _recheck(path: Path) -> Section:
    return Section(
        "proof", "What this shows",
        [
            "Every answer was rechecked when it was run, by the checker that its row names; the "
            "rows hold what came of it, not the schedules. That no row contradicts itself (bounds, "
            "gaps, proofs) was rechecked before this page was made. To see it again:",
            Bullets([("python -m bench --suite NAME", "runs the suite anew, on this machine")]),
        ],
    )  # fmt: skip
