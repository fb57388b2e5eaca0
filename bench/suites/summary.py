"""The table most suites begin with: of each kind of instances, how many are proved, how fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from bench.figures import middle, quantile, values
from bench.peers import GROUPS
from bench.plots import Plot, times_over_n
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped
from bench.task import Kind

from .suite import Settings


def how_measured(settings: Settings) -> str:
    """Say what an algorithm's seconds are, for a caption."""
    words = "Seconds are those of cms.solve, exact checks included"
    if settings.warm_up:
        return (
            f"{words}; before its first run a process solves a problem of 5 and one of 5,000 "
            "jobs, unmeasured, so that loading compiled code is not in them."
        )
    return f"{words}, and loading compiled code where it is a process's first run."


def solves(rows: Sequence[RunRow]) -> list[RunRow]:
    """Return the rows of algorithms, without those of peers."""
    return [row for row in rows if row.kind == Kind.SOLVE]


def by_contestant(rows: Sequence[RunRow], methods: Sequence[str] = ()) -> dict[str, list[RunRow]]:
    """Return the runs of each algorithm, and of each group of peers the best run an instance."""
    mine = grouped(solves(rows), lambda row: row.algorithm)
    order = sorted(mine, key=lambda name: [*methods, name].index(name))
    found: dict[str, list[RunRow]] = {name: mine[name] for name in order}
    for group, peers in GROUPS.items():
        theirs = [row for row in rows if row.kind == Kind.PEER and row.algorithm in peers]
        if theirs:
            alike = grouped(theirs, lambda row: row.instance).values()
            found[f"{group} (peer)"] = [best_of(runs) for runs in alike]
    return found


def best_of(runs: Sequence[RunRow]) -> RunRow:
    """Of several settings on one instance, the one that proves first, or ends with the best gap."""
    return min(
        runs,
        key=lambda row: (
            row.seconds_to_proof,
            not row.proved,
            row.gap is None,
            row.gap if row.gap is not None else 0,
        ),
    )


def times_by_load(name: str, rows: Sequence[RunRow]) -> Plot:
    """Plot the seconds of algorithms over the number of jobs, a line for each load ``m``."""
    done = sorted(solves(rows), key=lambda row: (row.arguments["m"], row.arguments["n"]))
    series = grouped(done, lambda row: f"{row.algorithm}, m = {row.arguments['m']}")
    return times_over_n(name, "Time over the number of jobs", series)


def is_checked(row: RunRow) -> bool:
    """Whether a run proved its answer by a certificate that the checkers accept."""
    return row.proved and row.proof == "checked" and row.checker is not None


def summary(
    title: str,
    rows: Sequence[RunRow],
    label: Callable[[RunRow], str],
    settings: Settings,
    *,
    heading: str = "family",
) -> Table:
    """Summarise the runs of algorithms by a label of their instances, and all of them."""
    mine = solves(rows)
    caption = (
        "checked: optimal or infeasible within the limit, with a certificate that the independent "
        "checker (up to 2,000 jobs) or an exact recheck accepts; solver: on a solver's word alone. "
        f"Gaps are to the checked bound, in units of cost. {how_measured(settings)}"
    )
    headings = columns(
        f"{heading}:text | algorithm:text | runs | checked | share:percent | solver | failed",
        "worst gap:exact | relative:percent | median s:seconds | p95 s:seconds",
    )
    table = Table(title, caption, headings)
    groups = list(grouped(mine, lambda row: (row.algorithm, label(row))).items())
    for algorithm, whole in grouped(mine, lambda row: row.algorithm).items():
        if len({label(row) for row in whole}) > 1:
            groups.append(((algorithm, "all"), whole))
    for (algorithm, name), part in groups:
        checked, failed = sum(map(is_checked, part)), failures_of(part)
        took, relative = values(part, "seconds"), relative_gaps(part)
        solver = sum(row.proved and row.proof == "solver" for row in part)
        counts = len(part), checked, checked / len(part), solver, failed
        gaps = max(values(part, "gap"), default=None), max(relative, default=None)
        times = middle(took), quantile(took, 0.95) if took else None
        table.add(name, algorithm, *counts, *gaps, *times, red=failed > 0)
    return table


def failures_of(rows: Sequence[RunRow]) -> int:
    """Count the failed runs."""
    return sum(row.outcome is Outcome.FAILED for row in rows)


def is_worse(cost: Fraction | None, other: Fraction | None) -> bool:
    """Whether a run ends above another's cost, or without a schedule where that has one."""
    return other is not None and (cost is None or cost > other)


def relative_gaps(rows: Sequence[RunRow]) -> list[float]:
    """Return the gaps as parts of the costs."""
    return [float(row.gap / row.cost) for row in rows if row.gap is not None and row.cost]
