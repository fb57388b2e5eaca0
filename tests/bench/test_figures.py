"""The figures of co-location and time sharing: lines that hold, and one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from bench.colocation_figures.__main__ import FIGURES, FULL, main
from bench.colocation_figures.predictor import matched, table, unseen_pairs
from bench.expected import Line
from bench.time_sharing import command, planted
from bench.time_sharing.asked import Asked
from bench.time_sharing.linear import linear_bound
from cms import solve
from cms.fleet.colocation.predictor import Prediction
from instances.families.time_sharing import scenario_3


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


@pytest.mark.parametrize("rule", ["round_robin", "collect_then_run"])
def test_the_linear_bound_is_below_the_optimum_and_as_it_was(rule: str) -> None:
    pytest.importorskip("scipy")
    problem = scenario_3(2400, rule=rule)
    bound = linear_bound(problem)
    assert bound == Fraction("1.313")
    assert bound <= (solve(problem).cost or 0)


def test_every_figure_is_there_and_a_part_of_its_cases_holds() -> None:
    """But for what is seconds, and what wants a table that nobody may ship."""
    pytest.importorskip("scipy")
    asked = Asked(per_cent=1, sizes=())
    made = command.makers(asked)
    assert [*made] == [*range(1, 13)]
    for figure in (2, 5, 6, 8):
        lines = list(made[figure](asked))
        assert {line.figure for line in lines} == {str(figure)}
        assert lines
        if figure != 8:  # of two mixes the totals need not lie in order
            assert all(line.holds for line in lines), lines
    assert list(made[3](asked)) == list(made[9](asked)) == []


@pytest.mark.long
@pytest.mark.parametrize("figure", [1, 4, 7, 8, 10, 11])
def test_the_other_figures_hold_whatever_their_seconds(figure: int) -> None:
    asked = Asked(per_cent=10, sizes=(20,))
    for line in command.makers(asked)[figure](asked):
        assert line.holds or "CPU s" in line.expected + line.of, line


def test_planted_faults_are_found_by_both_checkers() -> None:
    lines = list(planted.faults(Asked()))
    assert len(lines) == 7
    assert all(line.holds for line in lines), lines


def test_a_figure_that_is_not_as_it_should_be_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = []

    def wrong(_: Asked, figures: list[int]) -> Iterator[Line]:
        chosen.extend(figures)
        yield Line("1", "GPUs", "3", "4", holds=False)

    monkeypatch.setattr(command, "figures", wrong)
    monkeypatch.delenv("CMS_GPULET_TABLE", raising=False)
    assert command.main(["--figures", "1,8-9,3"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert chosen == [1, 8, 9, 3]
    assert "not as expected" in out
    assert "no figure 3 (CMS_GPULET_TABLE, CMS_GPULET_OVERHEADS) and 9" in out
