"""How often an answer is proved, over all families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from math import floor

from bench.plots import Plot, gap_over_time, proof_rate
from bench.row import RunRow
from bench.tables import Table, grouped
from bench.task import Task

from .agreement import agreement
from .rechecking import rechecking
from .suite import Settings, Suite
from .summary import by_contestant, solves, summary


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield the families' own list of instances; every so many of a family go to peers too."""
    for seed in range(settings.seeds):
        drawn = import_module(settings.module).suite(settings.instances, settings.largest, seed)
        seen: dict[str, int] = {}
        for family, arguments in drawn:
            source = settings.source(family, **arguments)
            yield from settings.solves("proof", source)
            # of every 1/share instances of a family the middle one
            number = seen.get(family, 0)
            seen[family] = number + 1
            share = settings.peer_share
            if floor((number + 1) * share + 0.5) > floor(number * share + 0.5):
                yield from settings.asks("proof", source, settings.peer_limit)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each family's proofs, the agreement with peers, and what rechecking takes."""
    title = f"proof rate (at most {settings.largest:,} jobs, {settings.time_limit:g} s a run)"
    found = [summary(title, rows, lambda row: row.family, settings), *agreement(rows)]
    return [*found, *filter(None, [rechecking(rows)])]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the proof rates over the sizes, and how the gaps fall."""
    mine = grouped(solves(rows), lambda row: row.algorithm)
    everybody = by_contestant(rows, settings.methods)
    return [
        proof_rate("proof_rate", "Proof rate over the number of jobs", everybody),
        gap_over_time("proof_gaps", "Gap over time, all families", mine),
    ]


SUITE = Suite(
    "proof",
    "how often an answer is proved, over all families; agreement with peers",
    Settings(
        time_limit=10.0,
        instances=2_000,
        peers=("highs", "scip", "cp_sat"),
        peer_limit=10.0,
        peer_share=0.1,
    ),
    tasks,
    tables,
    plots,
)
