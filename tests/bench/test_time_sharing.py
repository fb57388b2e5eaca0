"""The figures of time sharing: the linear bound, and lines that say what they should be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bench import time_sharing
from cms import solve
from instances.families.time_sharing import scenario_3


@pytest.mark.parametrize("rule", ["round_robin", "collect_then_run"])
def test_the_linear_bound_is_below_the_optimum_and_as_it_was(rule: str) -> None:
    pytest.importorskip("scipy")
    problem = scenario_3(2400, rule=rule)
    bound = time_sharing.linear_bound(problem)
    assert bound == Fraction("1.313")
    assert bound <= (solve(problem).cost or 0)


def test_the_table_of_head_room_is_made_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert time_sharing.main(["--headroom", "--plans", "1", "--requests", "50"]) == 0
    out = capsys.readouterr().out
    assert all(said in out for said, _, _ in time_sharing.HEADROOMS)


def test_a_figure_that_is_not_as_it_should_be_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = time_sharing.Line("1", "GPUs", "3", "4", holds=False)
    monkeypatch.setattr(time_sharing, "figures", lambda *_: iter([wrong]))
    assert time_sharing.main([]) == 1
    assert "not as expected" in capsys.readouterr().out
