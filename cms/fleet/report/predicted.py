"""Predictors for the terminal: how far off they are, and what they say of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count, decimal
from .text_table import table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..sharing.predictor import PredictedWeights, Predictor, Report
    from ..sharing.problem import SharingProblem
    from ..sharing.solution import SharingSolution

MOST_PAIRS = 40
"""Pairs of a plan that a report lists before it says how many more there are."""
_TARGETS = {"throughput": "throughput", "speed": "1 / slowdown"}


def trained_report(report: Report, predictor: Predictor) -> list[RenderableType]:
    """Say how well held-out measurements are predicted, for a person.

    Parameters
    ----------
    report : Report
    predictor : Predictor

    Returns
    -------
    list of renderable

    Examples
    --------
    >>> from fractions import Fraction
    >>> from rich.console import Console
    >>> from cms.fleet.sharing import MeasuredPair
    >>> from cms.fleet.sharing.predictor import evaluate, train_predictor
    >>> pairs = [
    ...     MeasuredPair(a, b, "a30", 50, Fraction(ord(a), 200), Fraction(200, ord(b)))
    ...     for a in "abcde"
    ...     for b in "abcde"
    ... ]
    >>> for part in trained_report(*(f(pairs, model="mean") for f in (evaluate, train_predictor))):
    ...     Console(width=90, color_system=None).print(part)
    mean on 10 features of 5 online and 5 offline models, seed 0
    ...
    """
    models = f"{len(predictor.online)} online and {count(len(predictor.offline), 'offline model')}"
    features = count(len(predictor.features), "feature")
    head = f"{report.model} on {features} of {models}, seed {report.seed}"
    rows = table(
        "predicted", "not seen before", ">samples", ">error", ">of the mean", ">rank",
        f">in {predictor.level:.0%} interval", ">half-width",
    )  # fmt: skip
    for split in report.splits:
        rows.add_row(
            _TARGETS[split.target], split.split, decimal(split.samples), f"{split.mae:.3f}",
            f"{split.constant:.3f}", f"{split.rank:.2f}", f"{split.coverage:.1%}",
            f"{split.half_width:.3f}",
        )  # fmt: skip
    return [Text(head, "bold"), Text(), rows]


def predicted_report(
    problem: SharingProblem, solution: SharingSolution, weights: PredictedWeights
) -> list[RenderableType]:
    """Say what is predicted of the pairs in a plan, for a person.

    Parameters
    ----------
    problem : SharingProblem
    solution : SharingSolution
    weights : PredictedWeights
        Those of the problem.

    Returns
    -------
    list of renderable
        Empty if nothing is shared.
    """
    if not solution.plan.placed:
        return []
    rows = table("online class", "runs", ">speed", ">at least", ">slowdown", ">at most")
    pairs = list(solution.plan)
    for pair in pairs[:MOST_PAIRS]:
        told = weights.pair(
            problem.online[problem.online_index[pair.online]],
            problem.offline[problem.offline_index[pair.offline]],
        )
        most = told.slowdown_high
        rows.add_row(
            text(pair.online), text(f"{decimal(pair.count)} x {pair.offline}"),
            f"{told.throughput:.2f}", f"{told.throughput_low:.2f}", f"{told.slowdown:.2f}",
            "any" if math.isinf(most) else f"{most:.2f}",
        )  # fmt: skip
    more = len(pairs) - MOST_PAIRS
    rest = [Text(f"... and {count(more, 'pair')} more of classes", "dim")] if more > 0 else []
    level = f"{weights.predictor.level:.0%}"
    return [Text(f"\npredicted, with the ends of {level} intervals:"), rows, *rest]
