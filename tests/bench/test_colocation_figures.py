"""The figures of co-location: a few in the short run, all of them in the long one."""

from __future__ import annotations

import numpy as np
import pytest

from bench.colocation_figures.__main__ import FIGURES, FULL, main
from bench.colocation_figures.predictor import matched, table, unseen_pairs
from cms.fleet.colocation.predictor import Prediction


def test_unseen_pairs_of_the_shipped_table_are_predicted_by_a_line_better_than_by_the_mean() -> (
    None
):
    """Trees do it three times as well, in the long run."""
    score = unseen_pairs(table(), 0, "ridge")
    assert score.mae <= 0.12 < 0.13 < score.constant
    assert score.rank >= 0.5
    assert 0.9 <= score.coverage <= 1


def test_matching_on_the_truth_is_the_best_and_on_a_constant_no_better_than_greedy() -> None:
    samples = table()
    speeds = samples.throughput, samples.speed
    truth = Prediction(speeds[0], *speeds[:1] * 2, speeds[1], speeds[1])
    by_truth = matched(samples, truth, 100, 0)
    assert by_truth.predicted == by_truth.kept == by_truth.limited == 1
    assert by_truth.random < by_truth.greedy <= 1
    blind = np.full(len(samples.places), 0.5)
    assert matched(samples, Prediction(*[blind] * 5), 100, 0).predicted < 0.9


def test_some_figures_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--short", "9", "3"]) == 0
    told = capsys.readouterr()
    assert told.err == "figure 9 ...\nfigure 3 ...\n"
    figures = [line.split()[0] for line in told.out.splitlines() if line[2:3].isdigit()]
    assert figures == ["9", "3", "3"]
    assert "Red: not as expected." in " ".join(told.out.split())
    with pytest.raises(SystemExit):
        main(["13"])
    assert "invalid choice: '13'" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_what_it_should_be(figure: str) -> None:
    if figure in ("6", "7", "8", "12"):
        pytest.importorskip("sklearn")
    lines = list(FIGURES[figure](FULL))
    assert lines
    assert not [line for line in lines if not line.holds]
