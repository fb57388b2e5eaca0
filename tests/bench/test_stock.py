"""The suite about machines cut at will: its tasks, and what its table makes of rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from bench.row import Outcome, RunRow
from bench.suites import SUITES
from bench.task import Source
from tests.bench.conftest import run_row

SUITE = SUITES["stock"]


def row(method: str, seed: int, cost: Any = None, bound: Any = None, **found: Any) -> RunRow:
    source = Source(family="measured-shares", arguments={"n": 20, "seed": seed, "step": 1})
    facts: dict[str, Any] = {"status": "no_schedule", "seconds": 2.0}
    if cost is not None:
        facts |= {"status": "feasible", "cost": Fraction(cost)}
    if bound is not None:
        facts |= {"lower_bound": Fraction(bound), "gap": Fraction(cost) - Fraction(bound)}
    if cost is not None and cost == bound:
        facts |= {"status": "optimal", "proof": "checked", "checker": "independent"}
    return run_row(method, source, **{**facts, **found})


def line(rows: list[RunRow]) -> tuple[dict[str, Any], bool]:
    """The only line of the table, and whether it is red."""
    table, *_ = SUITE.tables(rows, SUITE.defaults)
    (found,) = table.to_json()["rows"]
    return found, table.red == {0}


ROWS = [
    row("auto", 0, 10, 10),
    row("auto", 1, 20, 19, seconds=20.1),
    row("best_fit", 0, 11),
    row("best_fit", 1, 20),
    row("highs_arc_flow", 0, 10, status="optimal", proof="solver"),
    row("highs_arc_flow", 1, outcome=Outcome.UNSUPPORTED, error="too large", seconds=None),
]


def test_a_line_says_what_is_proved_by_whom_and_how_far_the_rest_is() -> None:
    found, red = line(ROWS)
    assert not red
    assert (found["family"], found["runs"], found["checked"]) == ("measured-shares step=1", 2, 1)
    assert (found["nothing"], found["worse"], found["fitted"]) == (0, 0, 2)
    assert found["mean gap"] == pytest.approx(1 / 40)
    assert found["worst"] == pytest.approx(1 / 20)
    assert found["worst gap"] == 1
    assert found["median s"] == 11.0  # of 2 and the limit
    assert (found["highs_arc_flow optimal"], found["highs_arc_flow too large"]) == (1, 1)


@pytest.mark.parametrize(
    ("more", "column"), [(row("auto", 2), "nothing"), (row("auto", 1, 21, 19), "worse")]
)
def test_no_schedule_and_one_worse_than_best_fit_are_red(more: RunRow, column: str) -> None:
    rows = [one for one in ROWS if one.instance != more.instance or one.algorithm != "auto"]
    found, red = line([*rows, more])
    assert found[column] == 1
    assert red
    assert line([*ROWS, row("auto", 3, 9, 9, outcome=Outcome.FAILED, error="a lie")])[1]
