"""What it takes to recheck an answer from its files, beside what it took to find it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import median, quantile, values
from bench.row import RunRow
from bench.tables import Table, columns, grouped

from .summary import solves


def rechecking(rows: Sequence[RunRow]) -> Table | None:
    """Compare the second checker with the algorithm that it checks, a family a line."""
    rechecked = [
        row
        for row in solves(rows)
        if row.checker == "independent" and row.seconds and row.check_seconds is not None
    ]
    if not rechecked:
        return None
    caption = (
        "Seconds of proofs_checks.checker on the files of problem and solution, writing them and "
        "reading them included, over those of cms.solve, which has no files; both in one process "
        "with its modules loaded. The checker is plain Python of the standard library alone."
    )
    headings = "family:text | files | median:times | p95:times | worst:times | longest s:seconds"
    table = Table("second checker against solve", caption, columns(headings))
    groups = [*grouped(rechecked, lambda row: row.family).items(), ("all", rechecked)]
    for name, part in groups:
        spent, ours = values(part, "check_seconds"), values(part, "seconds")
        ratios = [theirs / own for theirs, own in zip(spent, ours, strict=True)]
        middle, high = median(ratios), quantile(ratios, 0.95)
        table.add(name, len(part), middle, high, max(ratios), max(spent))
    return table
