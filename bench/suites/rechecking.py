"""What it takes to recheck an answer from its files, beside what it took to find it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import median, quantile
from bench.row import RunRow
from bench.tables import Column, Table, grouped, seconds, times

from .summary import solves


def rechecking(rows: Sequence[RunRow]) -> Table | None:
    """Compare the second checker with the algorithm that it checks, a family a line."""
    rechecked = [
        (row, row.check_seconds, row.seconds)
        for row in solves(rows)
        if row.checker == "independent" and row.seconds and row.check_seconds is not None
    ]
    if not rechecked:
        return None
    took = {row.key: (theirs, theirs / ours) for row, theirs, ours in rechecked}
    groups = [*grouped([row for row, *_ in rechecked], lambda row: row.family).items()]
    lines = []
    for name, part in [*groups, ("all", [row for row, *_ in rechecked])]:
        spent, ratios = zip(*(took[row.key] for row in part), strict=True)
        lines.append(
            (name, len(part), median(ratios), quantile(ratios, 0.95), max(ratios), max(spent))
        )
    caption = (
        "Seconds of proofs_checks.checker on the files of problem and solution, writing them and "
        "reading them included, over those of cms.solve, which has no files; both in one process "
        "with its modules loaded. The checker is plain Python of the standard library alone."
    )
    columns = (
        Column("family", left=True),
        Column("files"),
        Column("median", times),
        Column("p95", times),
        Column("worst", times),
        Column("longest s", seconds),
    )
    return Table("second checker against solve", caption, columns, tuple(lines))
