"""Plans of sharing for the terminal: what runs where, what is left over, what one more is worth."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from rich.text import Text

from ...values.words import count, decimal, percent
from ..sharing.classes import FULL_WEIGHT, misfit
from ..sharing.problem import FORBIDDEN
from .text_table import table, text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from ..sharing.classes import OfflineClass, OnlineClass
    from ..sharing.problem import SharingProblem
    from ..sharing.solution import SharingSolution
    from ..sharing.weights import Slowdown

MOST_CLASSES = 40
"""Classes of either side that a report lists before it says how many more there are."""


class Reasons(Protocol):
    """Why pairs of classes are forbidden."""

    def why(self, online: OnlineClass, offline: OfflineClass) -> str:
        """Say why a pair has no weight; an empty text if it is not known, or has one."""
        ...


class PairFacts(Protocol):
    """What is known of pairs of classes beside their weights."""

    def slowdown(self, online: OnlineClass, offline: OfflineClass) -> Slowdown | None:
        """Return what is expected of the online side, and what is compared with its limit."""
        ...


def sharing_report(
    problem: SharingProblem,
    solution: SharingSolution,
    known: PairFacts | None = None,
    bucketing: str = "",
    reasons: Reasons | None = None,
) -> list[RenderableType]:
    """Describe who shares a GPU with whom, for a person.

    Parameters
    ----------
    problem : SharingProblem
    solution : SharingSolution
        Of this problem.
    known : PairFacts, optional
        What else is known of pairs, such as :class:`cms.fleet.sharing.TableWeights`.
    bucketing : str
        What rounding activities costs, in words: :func:`bucketing_words`.
    reasons : Reasons, optional
        Why pairs are forbidden, such as :class:`cms.fleet.sharing.PredictedWeights` knows.

    Returns
    -------
    list of renderable
        To be printed one after the other with :class:`rich.console.Console`.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem = posed([2], [5, 1], [[640_000, 550_000]])
    >>> for part in sharing_report(problem, share(problem)):
    ...     Console(width=90, color_system=None).print(part)
    2 of 6 offline workloads on 2 GPUs, 1.28 of at most 1.28 GPU-equivalents: optimal, proof
    checked
    <BLANKLINE>
    online class  GPUs  activity  share  taken  one more GPU
    ────────────────────────────────────────────────────────
    g0               2       0 %   90 %      2        + 0.64
    <BLANKLINE>
    online class  runs  GPUs  speed
    ───────────────────────────────
    g0            w0       2   0.64
    ...
    """
    style = "bold green" if solution.proof == "checked" else "bold yellow"
    report: list[RenderableType] = [Text(headline(problem, solution), style), Text()]
    if problem.online:
        report += [
            _online(problem, solution),
            *_more(len(problem.online), "online classes"),
            Text(),
        ]
    if solution.plan.counts:
        pairs = len(solution.plan.counts)
        report += [_pairs(problem, solution, known), *_more(pairs, "pairs of classes"), Text()]
    if problem.offline:
        report += [_offline(problem, solution), *_more(len(problem.offline), "offline classes")]
    if found := forbidden_by(problem, reasons):
        parts = ", ".join(f"{decimal(n)} {why}" for why, n in found.items())
        report.append(Text(f"\nforbidden pairs of classes: {parts}"))
    if bucketing:
        report.append(Text(f"\n{bucketing}"))
    why = solution.stop_reason.replace("_", " ")
    report.append(Text(f"({solution.method}, {solution.seconds:.2f} s, ended: {why})", "dim"))
    return report


def headline(problem: SharingProblem, solution: SharingSolution) -> str:
    """Say in a line how many workloads are placed, what that is worth, and what is possible."""
    wanted, gpus = sum(f.count for f in problem.offline), sum(o.count for o in problem.online)
    value = decimal(Fraction(solution.value, FULL_WEIGHT), rounding=math.floor)
    bound = decimal(Fraction(solution.upper_bound, FULL_WEIGHT), rounding=math.ceil)
    if not solution.gap:  # rounded apart they would not look the same
        bound = value
    proof = ", proof checked" if solution.proof == "checked" else ""
    return (
        f"{decimal(solution.plan.placed)} of {count(wanted, 'offline workload')} on "
        f"{count(gpus, 'GPU')}, {value} of at most {bound} GPU-equivalents: "
        f"{solution.status}{proof}"
    )


def bucketing_words(value: int, upper_bound: int) -> str:
    """Say what it costs at most to round activities up to whole per cent.

    Parameters
    ----------
    value : int
        Of the plan, with activities rounded up.
    upper_bound : int
        What no plan exceeds with activities as they are.

    Examples
    --------
    >>> bucketing_words(277_000_000, 278_100_000)
    'price of bucketing: with activities as they are at most 278.1 could be had, 0.4 % more'
    >>> bucketing_words(277_000_000, 277_000_000)
    'price of bucketing: none; with activities as they are no plan is worth more'
    """
    if upper_bound <= value:
        return "price of bucketing: none; with activities as they are no plan is worth more"
    bound = decimal(Fraction(upper_bound, FULL_WEIGHT), rounding=math.ceil)
    more = f", {percent(Fraction(upper_bound - value, value), up=True)} more" if value else ""
    return f"price of bucketing: with activities as they are at most {bound} could be had{more}"


def forbidden_by(problem: SharingProblem, reasons: Reasons | None = None) -> dict[str, int]:
    """Return how many pairs of classes are forbidden, by the reason.

    Examples
    --------
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> forbidden_by(posed([2], [5, 1], [[640_000, -1]]))
    {'by their weights': 1}
    """
    found: dict[str, int] = {}
    for gpus, share, row in zip(problem.online, problem.shares, problem.weights, strict=True):
        for work, weight in zip(problem.offline, row.tolist(), strict=True):
            if weight == FORBIDDEN:
                why = "by their weights"
                if not share:
                    why = "for want of a share"
                elif misfit(gpus, work):
                    why = "for want of memory"
                elif reasons is not None:
                    why = reasons.why(gpus, work) or why
                found[why] = found.get(why, 0) + 1
    return found


def _online(problem: SharingProblem, solution: SharingSolution) -> Table:
    rows = table("online class", ">GPUs", ">activity", ">share", ">taken", ">one more GPU")
    taken: dict[str, int] = {}
    for pair in solution.plan:
        taken[pair.online] = taken.get(pair.online, 0) + pair.count
    for gpus, share in list(zip(problem.online, problem.shares, strict=True))[:MOST_CLASSES]:
        rows.add_row(
            text(gpus.name),
            decimal(gpus.count),
            f"{decimal(gpus.sm_activity)} %",
            f"{share} %" if share else "-",
            decimal(taken.get(gpus.name, 0)),
            _each(solution.certificate.online.get(gpus.name, 0)),
        )
    return rows


def _pairs(problem: SharingProblem, solution: SharingSolution, known: PairFacts | None) -> Table:
    """What runs where, how fast, and what that does to the online side."""
    more = () if known is None else (">slowdown", ">at most")
    rows = table("online class", "runs", ">GPUs", ">speed", *more)
    places = problem.online_index
    ordered = sorted(
        solution.plan, key=lambda pair: (places[pair.online], -pair.count, pair.offline)
    )
    for pair in ordered[:MOST_CLASSES]:
        gpus = problem.online[places[pair.online]]
        work = problem.offline[problem.offline_index[pair.offline]]
        weight = problem.weight(gpus.name, work.name) or 0
        cells = [decimal(Fraction(weight, FULL_WEIGHT) / work.priority, rounding=math.floor)]
        if known is not None:
            slower = known.slowdown(gpus, work)
            ends = (None, None) if slower is None else slower
            cells += ["-" if end is None else decimal(end, rounding=math.ceil) for end in ends]
        rows.add_row(text(pair.online), text(pair.offline), decimal(pair.count), *cells)
    return rows


def _offline(problem: SharingProblem, solution: SharingSolution) -> Table:
    rows = table("offline class", ">workloads", ">placed", ">left over", ">one more workload")
    placed: dict[str, int] = {}
    for pair in solution.plan:
        placed[pair.offline] = placed.get(pair.offline, 0) + pair.count
    for work in problem.offline[:MOST_CLASSES]:
        here = placed.get(work.name, 0)
        rows.add_row(
            text(work.name),
            decimal(work.count),
            decimal(here),
            decimal(work.count - here),
            _each(solution.certificate.offline.get(work.name, 0)),
        )
    return rows


def _each(price: int) -> str:
    """What one more of a class is worth at most, in GPU-equivalents."""
    return f"+ {decimal(Fraction(price, FULL_WEIGHT), rounding=math.ceil)}" if price else "nothing"


def _more(rows: int, of: str) -> list[Text]:
    more = rows - MOST_CLASSES
    return [Text(f"... and {decimal(more)} more {of}")] if more > 0 else []
