"""How good the answers are: ratios to checked bounds and to optima, next to what is proved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from bench.figures import median, middle, quantile, values
from bench.plots import Plot, observed_and_proved
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped

from .summary import failures_of

#: What the columns of :func:`quality` are, for a caption.
LEGEND = (
    "runs: instances; refused: problems the method does not take; nothing: runs that end without a "
    "schedule. Ratios are mean and worst of cost / bound, the largest checked lower bound that any "
    "run found for the instance, and of cost / optimum, where some run proved the optimum. "
    "guarantee: the median of what it allows, divided by the optimum (one against a smaller value "
    "promises more). breached: runs below the checked bound or the optimum, above the "
    "guarantee, or called optimal or infeasible where another run has a better schedule."
)


class Known(NamedTuple):
    """What all runs together tell of an instance.

    The largest checked lower bound, the least cost that some run calls optimal, and the least cost
    of a checked schedule.
    """

    bound: Fraction | None
    optimum: Fraction | None
    best: Fraction | None


def known_values(rows: Sequence[RunRow]) -> dict[str, Known]:
    """Return what is known of each instance.

    The bound is checked exactly; an optimum may rest on a solver's word.
    """
    found = {}
    for instance, part in grouped(rows, lambda row: row.instance).items():
        answered = [row for row in part if row.outcome is Outcome.ANSWERED]
        bounds = values(answered, "lower_bound")
        costs = [(row.cost, row.status) for row in answered if row.cost is not None]
        optima = [cost for cost, status in costs if status == "optimal"]
        best = min((cost for cost, _ in costs), default=None)
        found[instance] = Known(max(bounds, default=None), min(optima, default=None), best)
    return found


def quality(
    title: str, rows: Sequence[RunRow], known: Mapping[str, Known], note: str = ""
) -> Table | None:
    """Show each method with its options in a line."""
    headings = columns(
        "algorithm:text | runs | refused | nothing | proved:percent | / bound:ratio",
        "worst / bound:ratio | / optimum:ratio | worst / optimum:ratio | guarantee:ratio",
        "breached | median s:seconds | p95 s:seconds",
    )
    table = Table(title, f"{LEGEND} {note}".strip(), headings)
    for name, part in grouped(rows, label).items():
        tried = [row for row in part if row.outcome is not Outcome.UNSUPPORTED]
        if not tried:
            continue
        breached = sum(is_breached(row, known.get(row.instance)) for row in part)
        answered = [row for row in part if row.outcome is Outcome.ANSWERED]
        took = values(answered, "seconds")
        nothing = sum(row.cost is None and row.status != "infeasible" for row in tried)
        proved = sum(row.proved for row in answered) / len(tried)
        to_bound = mean_and_worst(ratios(answered, known, "bound"))
        to_optimum = mean_and_worst(ratios(answered, known, "optimum"))
        times = middle(took), quantile(took, 0.95) if took else None
        counts = len(part), len(part) - len(tried), nothing, proved
        guarantee = median_guarantee(answered, known)
        red = breached + failures_of(part) > 0
        table.add(name, *counts, *to_bound, *to_optimum, guarantee, breached, *times, red=red)
    return table if table.rows else None


def label(row: RunRow) -> str:
    """Return the method with its options in words."""
    options = ", ".join(
        name if value is True else f"{value}" for name, value in dict(row.options).items()
    )
    return f"{row.algorithm} ({options})" if options else row.algorithm


def ratios(rows: Iterable[RunRow], known: Mapping[str, Known], to: str) -> list[Fraction]:
    """Return cost / bound, or cost / optimum, of the runs where both are known."""
    found = []
    for row in rows:
        value = getattr(known.get(row.instance, Known(None, None, None)), to)
        if row.cost is not None and value:
            found.append(row.cost / value)
    return found


def proved_ratio(row: RunRow, known: Known | None) -> Fraction | None:
    """Return what the guarantee allows at the optimum, divided by it; None if unknown."""
    if known is None or not known.optimum:
        return None
    allowed = _allowed(row, known.optimum)
    return None if allowed is None else allowed / known.optimum


def proved_ratios(rows: Iterable[RunRow], known: Mapping[str, Known]) -> list[Fraction]:
    """Return what guarantees allow at the optimum, of the runs where that is known."""
    found = [proved_ratio(row, known.get(row.instance)) for row in rows]
    return [value for value in found if value is not None]


def median_guarantee(rows: Iterable[RunRow], known: Mapping[str, Known]) -> float | None:
    """Return the median of what guarantees allow at the optimum."""
    found = proved_ratios(rows, known)
    return float(median(found)) if found else None


def is_breached(row: RunRow, known: Known | None) -> bool:
    """Whether a run contradicts bound <= optimum <= cost <= guarantee, or a better schedule."""
    if row.outcome is not Outcome.ANSWERED:
        return False
    if row.guarantee.get("verdict") == "breached":
        return True
    if known is None:
        return False
    if row.status == "infeasible" and known.best is not None:
        return True
    if row.cost is None:
        return False
    if row.status == "optimal" and known.best is not None and known.best < row.cost:
        return True
    if known.bound is not None and row.cost < known.bound:
        return True
    if known.optimum is None:
        return False
    allowed = _allowed(row, known.optimum)
    low = row.lower_bound is not None and row.lower_bound > known.optimum
    finished = row.stop_reason in ("finished", "proved")
    above = finished and allowed is not None and row.cost > allowed
    return low or row.cost < known.optimum or above


def ratio_plots(name: str, title: str, rows: Sequence[RunRow]) -> list[Plot]:
    """Show the ratios next to what is proved; nothing without optima."""
    known = known_values(rows)
    answered = [row for row in rows if row.outcome is Outcome.ANSWERED]
    observed, proved = {}, {}
    for method, part in grouped(answered, label).items():
        observed[method] = [*map(float, ratios(part, known, "optimum"))]
        proved[method] = [*map(float, proved_ratios(part, known))]
    if not any(observed.values()):
        return []
    return [observed_and_proved(name, title, observed, proved)]


def _allowed(row: RunRow, optimum: Fraction) -> Fraction | None:
    """Return what the guarantee allows if its reference were the optimum."""
    if not row.guarantee:
        return None
    return Fraction(row.guarantee["factor"]) * optimum + Fraction(row.guarantee["additive"])


def mean_and_worst(found: Sequence[Fraction]) -> tuple[float | None, float | None]:
    """Return the mean and the largest of some ratios; None and None without any."""
    if not found:
        return None, None
    return float(sum(found) / len(found)), float(max(found))
