"""The figures of the predictor: a split in the short run, all of them in the long one."""

from __future__ import annotations

import numpy as np
import pytest

from bench import predictor_figures
from bench.predictor_figures import matched, table, unseen_pairs
from cms.fleet.sharing.predictor import Prediction


def test_unseen_pairs_of_the_shipped_table_are_predicted_well() -> None:
    pytest.importorskip("sklearn")
    score = unseen_pairs(table(), 0)
    assert score.mae <= 0.045
    assert score.rank >= 0.93
    assert score.constant > 3 * score.mae
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


@pytest.mark.long
def test_every_figure_is_what_it_should_be() -> None:
    pytest.importorskip("sklearn")
    wrong = [line for line in predictor_figures.figures(20, 30, 300) if not line.holds]
    assert not wrong
