"""The suite about MIG-serving: its tasks, and what its tables make of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from bench.row import Outcome, RunRow
from bench.suites import SUITES
from bench.suites.mig_serving import AT_EARLY
from bench.tables import Table
from bench.task import NAMED, Source
from tests.bench.conftest import run_row

SUITE = SUITES["mig-serving"]
DEFAULTS = SUITE.defaults


def row(source: Source, method: str, cost: Any = None, **found: Any) -> RunRow:
    facts: dict[str, Any] = {"status": "feasible", "seconds": 1.0}
    if cost is not None:
        facts |= {"cost": Fraction(cost), "history": ((0.5, str(cost), 0, "it"),)}
    return run_row(method, source, limit=60, **{**facts, **found})


def pipeline(source: Source, *history: tuple[float, Any]) -> RunRow:
    """The pipeline's run, whose schedules are these seconds and costs."""
    entries = tuple((at, cost, 0, "it") for at, cost in history)
    return row(source, "mig_serving", history[-1][1], history=((0.1, None, 0, "trivial"), *entries))


def proved(source: Source, cost: int, **more: Any) -> RunRow:
    facts = {
        "status": "optimal", "proof": "checked", "checker": "cms", "lower_bound": Fraction(cost),
    }  # fmt: skip
    return row(source, "auto", cost, **{**facts, **more})


def baselines(source: Source, *costs: int | None, bound: Fraction) -> list[RunRow]:
    """Whole GPUs, the smallest instances and the mix; a rule without a cost refused."""
    names = ("whole_gpus", "smallest", "static_mix")
    refused = {"outcome": Outcome.UNSUPPORTED, "error": "it said why", "status": None}
    found = [
        row(source, name, cost, **({} if cost is not None else refused))
        for name, cost in zip(names, costs, strict=True)
    ]
    bare = row(source, "partition_free", status="no_schedule", lower_bound=bound)
    return [*found, bare]


S1 = Source(family="S1", module=NAMED)
FIRST, SECOND = (
    Source(family="mig-serving", arguments={"n": 24, "seed": seed, "rates": "normal"})
    for seed in (0, 2)
)
ROWS = [
    row(S1, "mig_serving_fast", 3),
    pipeline(S1, (0.3, 3), (9.0, 2)),
    proved(S1, 2),
    *baselines(S1, 6, 2, 3, bound=Fraction(10, 7)),
    row(FIRST, "mig_serving_fast", 12),
    pipeline(FIRST, (0.5, 12), (10.0, 11), (40.0, 10)),
    proved(FIRST, 10),
    *baselines(FIRST, 20, None, 14, bound=Fraction(9)),
    row(SECOND, "mig_serving_fast", 21),
    pipeline(SECOND, (0.5, 21), (20.0, 20)),
    proved(SECOND, 18, status="feasible", proof="none", lower_bound=Fraction(17)),
    *baselines(SECOND, 30, 25, 22, bound=Fraction(16)),
]


def lines(rows: list[RunRow]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    gpus, distance = SUITE.tables(rows, DEFAULTS)
    return list(gpus.to_json()["rows"]), list(distance.to_json()["rows"])


def reds(rows: list[RunRow]) -> list[set[str]]:
    """Return the names of the red lines of both tables."""

    def names(table: Table) -> set[str]:
        return {table.rows[number][0] for number in table.red}

    return [names(table) for table in SUITE.tables(rows, DEFAULTS)]


def test_gpus_are_means_and_savings_are_against_whole_gpus() -> None:
    (scenario, group), _ = lines(ROWS)
    assert list(scenario.values()) == [
        "S1", 1, 3, 2, 2, 2, 2, 6, 2, 3, "10/7", 0.5, pytest.approx(2 / 3), pytest.approx(2 / 3),
    ]  # fmt: skip
    assert group == {
        "problems": "n=24, normal", "instances": 2, "fast": "16.5", "pipeline 10 s": 16,
        "pipeline": 15, "auto": 14, "bound": "13.5", "as is": 25, "all 1/7": None, "4-2-1": 18,
        "layouts ignored": "12.5", "fast saves": pytest.approx(0.34), "pipeline saves": 0.4,
        "auto saves": 0.44,
    }  # fmt: skip


def test_the_distance_is_to_proved_optima_alone() -> None:
    _, (fast, early, end) = lines(ROWS)
    assert [line["algorithm"] for line in (fast, early, end)] == [
        "mig_serving_fast", AT_EARLY, "mig_serving",
    ]  # fmt: skip
    assert [line["compared"] for line in (fast, early, end)] == [2, 2, 2]  # SECOND is not proved
    assert [line["optimal"] for line in (fast, early, end)] == [0, 1, 2]
    assert (fast["/ optimum"], fast["worst / optimum"]) == (1.35, 1.5)
    assert (early["/ optimum"], early["worst / optimum"]) == (1.05, 1.1)
    assert (end["/ optimum"], end["worst / optimum"]) == (1.0, 1.0)
    assert (end["median s to best"], end["worst s to best"]) == (20.0, 40.0)
    assert (fast["median s to best"], early["median s to best"]) == (0.5, None)
    assert (fast["worse than fast"], early["worse than fast"], end["worse than fast"]) == (
        None, 0, 0,
    )  # fmt: skip
    assert reds(ROWS) == [set(), set()]


def test_a_pipeline_that_is_worse_than_its_fast_phase_or_fails_is_red() -> None:
    rows = [row(S1, "mig_serving_fast", 3), pipeline(S1, (0.5, 4), (30.0, 3)), proved(S1, 2)]
    _, (_, early, end) = lines(rows)
    assert (early["worse than fast"], end["worse than fast"]) == (1, 0)
    assert reds(rows) == [set(), {AT_EARLY}]
    rows[1] = pipeline(S1, (0.5, 4))
    _, (_, early, end) = lines(rows)
    assert (early["worse than fast"], end["worse than fast"]) == (1, 1)
    assert reds(rows) == [{"S1"}, {AT_EARLY, "mig_serving"}]
    rows[1] = replace(rows[1], outcome=Outcome.FAILED, error="it is not valid")
    (scenario,), (_, early, _) = lines(rows)
    assert (scenario["pipeline"], early["failed"], early["compared"]) == (None, 1, 0)
    assert reds(rows) == [{"S1"}, {AT_EARLY, "mig_serving"}]
