"""The figures of time sharing: lines that hold, one that does not, and the linear bound."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from bench.expected import Line
from bench.time_sharing import command, planted
from bench.time_sharing.asked import Asked
from bench.time_sharing.linear import linear_bound
from cms import solve
from instances.families.time_sharing import scenario_3


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
