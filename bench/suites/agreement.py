"""Whether peers that finish agree with the checked answers."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers import GROUPS
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped
from bench.task import Kind

from .summary import solves


def contradiction(ours: RunRow, theirs: RunRow) -> str | None:
    """Say how two answers to one instance contradict each other; None if they do not.

    A peer's schedule was checked, and so were our schedule and our bound, so that at most one
    thing is only claimed: what the peer says is optimal, or infeasible.
    """
    if theirs.cost is not None and ours.lower_bound is not None:
        if ours.status == "infeasible":
            return f"{theirs.algorithm} has a schedule of a problem said to be infeasible"
        if theirs.cost < ours.lower_bound:
            return (
                f"{theirs.algorithm} has a schedule of cost {theirs.cost}, below the bound "
                f"{ours.lower_bound}"
            )
    if not theirs.proved or ours.cost is None:
        return None
    if theirs.status == "infeasible":
        return f"{theirs.algorithm} says infeasible; there is a schedule of cost {ours.cost}"
    if theirs.cost is not None and ours.cost < theirs.cost:
        return f"{theirs.algorithm} says {theirs.cost} is optimal; {ours.cost} is enough"
    return None


def agreement(rows: Sequence[RunRow]) -> list[Table]:
    """Compare every answer of an algorithm with those of the peers on the same instance."""
    asked = [row for row in rows if row.kind == Kind.PEER]
    if not asked:
        return []
    answers = grouped(
        [row for row in solves(rows) if row.outcome is Outcome.ANSWERED], lambda row: row.instance
    )
    caption = (
        "finished: proved within the peer's limit; agree: the same optimum, or both infeasible; "
        "undecided: not proved by the algorithm, and its bounds hold the peer's answer. A peer's "
        "schedule is checked exactly; that it is optimal is the peer's word."
    )
    headings = columns("peer:text | asked | finished | agree | undecided | contradict")
    table, wrong = Table("agreement with peers", caption, headings), []
    for group, peers in GROUPS.items():
        theirs = grouped([row for row in asked if row.algorithm in peers], lambda row: row.instance)
        if not theirs:
            continue
        finished = agree = undecided = contradict = 0
        for instance, runs in theirs.items():
            runs = [run for run in runs if run.outcome is Outcome.ANSWERED]
            done = any(run.proved for run in runs)
            finished += done
            for ours in answers.get(instance, []):
                said = [text for run in runs if (text := contradiction(ours, run))]
                wrong += [(instance, ours.algorithm, text) for text in said]
                contradict += bool(said)
                if done and not said:
                    agree += ours.proved
                    undecided += not ours.proved
        counts = finished, agree, undecided, contradict
        table.add(group, len(theirs), *counts, red=contradict > 0)
    if not wrong:
        return [table]
    headings = columns("instance:text | algorithm:text | what:text")
    caption = "At least one of the two is wrong."
    return [table, Table("contradictions", caption, headings, wrong, range(len(wrong)))]
