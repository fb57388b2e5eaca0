"""Plans of sharing for the terminal: what runs where, what is left over, what one more is worth."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.text import Text

from ..sharing.classes import FULL_WEIGHT, misfit
from ..sharing.problem import FORBIDDEN
from .text_table import table, text
from .words import count, decimal

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from ..sharing.problem import SharingProblem
    from ..sharing.solution import SharingSolution

MOST_CLASSES = 40
"""Classes of either side that a report lists before it says how many more there are."""


def sharing_report(problem: SharingProblem, solution: SharingSolution) -> list[RenderableType]:
    """Describe who shares a GPU with whom, for a person.

    Parameters
    ----------
    problem : SharingProblem
    solution : SharingSolution
        Of this problem.

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
    online class  GPUs  share  taken   worth  runs
    ────────────────────────────────────────────────
    g0               2   90 %      2  0.64 a  2 x w0
    ...
    """
    style = "bold green" if solution.proof == "checked" else "bold yellow"
    report: list[RenderableType] = [Text(headline(problem, solution), style), Text()]
    if problem.online:
        report += [_online(problem, solution), *_more(len(problem.online), "online"), Text()]
    if problem.offline:
        report += [_offline(problem, solution), *_more(len(problem.offline), "offline")]
    if reasons := forbidden_by(problem):
        parts = ", ".join(f"{decimal(n)} {why}" for why, n in reasons.items())
        report.append(Text(f"\nforbidden pairs of classes: {parts}"))
    why = solution.stop_reason.replace("_", " ")
    report.append(Text(f"({solution.method}, {solution.seconds:.2f} s, ended: {why})", "dim"))
    return report


def headline(problem: SharingProblem, solution: SharingSolution) -> str:
    """Say in a line how many workloads are placed, what that is worth, and what is possible."""
    wanted, gpus = sum(f.count for f in problem.offline), sum(o.count for o in problem.online)
    value = decimal(Fraction(solution.value, FULL_WEIGHT), rounding=math.floor)
    bound = decimal(Fraction(solution.upper_bound, FULL_WEIGHT), rounding=math.ceil)
    proof = ", proof checked" if solution.proof == "checked" else ""
    return (
        f"{decimal(solution.plan.placed)} of {count(wanted, 'offline workload')} on "
        f"{count(gpus, 'GPU')}, {value} of at most {bound} GPU-equivalents: "
        f"{solution.status}{proof}"
    )


def forbidden_by(problem: SharingProblem) -> dict[str, int]:
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
                found[why] = found.get(why, 0) + 1
    return found


def _online(problem: SharingProblem, solution: SharingSolution) -> Table:
    rows = table("online class", ">GPUs", ">share", ">taken", ">worth", "runs")
    runs: dict[str, list[tuple[int, str]]] = {}
    for pair in solution.plan:
        runs.setdefault(pair.online, []).append((pair.count, pair.offline))
    for gpus, share in list(zip(problem.online, problem.shares, strict=True))[:MOST_CLASSES]:
        own = sorted(runs.get(gpus.name, []), reverse=True)
        rows.add_row(
            text(gpus.name),
            decimal(gpus.count),
            f"{share} %" if share else "-",
            decimal(sum(n for n, _ in own)),
            _each(solution.certificate.online.get(gpus.name, 0)),
            text(", ".join(f"{decimal(n)} x {name}" for n, name in own) or "-"),
        )
    return rows


def _offline(problem: SharingProblem, solution: SharingSolution) -> Table:
    rows = table("offline class", ">workloads", ">placed", ">left over", ">worth")
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
    """What one more of a class is worth at most."""
    return f"{decimal(Fraction(price, FULL_WEIGHT), rounding=math.ceil)} a" if price else "-"


def _more(classes: int, side: str) -> list[Text]:
    more = classes - MOST_CLASSES
    return [Text(f"... and {decimal(more)} more {side} classes")] if more > 0 else []
