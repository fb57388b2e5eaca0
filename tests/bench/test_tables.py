"""From rows to tables: what is counted, what contradicts, what is fitted."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import growth
from bench.row import Outcome, RunRow
from bench.suites import Settings, proof
from bench.suites.agreement import agreement
from bench.tables import Table, failures
from bench.task import Source
from tests.bench.conftest import run_row


def row(method: str, *, n: int = 10, m: int = 30, seed: int = 0, **found: Any) -> RunRow:
    return run_row(
        method, Source(family="real-rows", arguments={"n": n, "m": m, "seed": seed}), **found
    )


def proved(method: str, cost: int, seconds: float = 1.0, **more: Any) -> RunRow:
    ours = method == "auto"
    facts: dict[str, Any] = {"status": "optimal", "proof": "checked" if ours else "solver"}
    bound = {"lower_bound" if ours else "claimed_bound": Fraction(cost)}
    facts |= {"cost": Fraction(cost), "gap": Fraction(0), "seconds": seconds, "checker": "cms"}
    return row(method, **{**facts, **bound, **more})


def open_(method: str, cost: int | None, bound: int, seconds: float = 20.0, **more: Any) -> RunRow:
    name = "lower_bound" if method == "auto" else "claimed_bound"
    facts: dict[str, Any] = {"status": "feasible", "proof": "none", name: Fraction(bound)}
    if cost is not None:
        facts |= {"cost": Fraction(cost), "gap": Fraction(cost - bound)}
    return row(method, **{**facts, "seconds": seconds, **more})


def cells(table: Table) -> list[dict[str, Any]]:
    return list(table.to_json()["rows"])


def test_the_summary_counts_checked_answers_alone() -> None:
    rows = [
        proved("auto", 5, seed=0),
        proved("auto", 5, seed=1, proof="solver"),
        proved("auto", 5, seed=2, seconds=21.0),  # too late
        proved("auto", 5, seed=3, checker=None),
        open_("auto", 7, 5, seed=4),
        row("auto", seed=5, outcome=Outcome.FAILED, error="it crashed"),
        row("auto", seed=6, status="infeasible", proof="checked", checker="cms", seconds=1.0),
    ]
    (table,) = proof.tables(rows, Settings())
    (line,) = cells(table)
    assert (line["runs"], line["checked"], line["solver"], line["failed"]) == (7, 2, 1, 1)
    assert (line["worst gap"], line["relative"]) == (2, 2 / 7)
    assert table.red == {0}
    failed = failures(rows)
    assert failed is not None
    assert cells(failed)[0]["why"] == "it crashed"
    assert failures(rows[:3]) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "what"),
    [
        (proved("auto", 5), proved("scip", 5), None),
        (proved("auto", 5), open_("scip", 6, 4), None),
        (proved("auto", 5), proved("scip", 6), "scip says 6 is optimal; 5 is enough"),
        (proved("auto", 5), open_("scip", 4, 3), "scip has a schedule of cost 4, below the bound"),
        (open_("auto", 7, 5), proved("scip", 6), None),
        (open_("auto", 7, 5), proved("scip", 4), "below the bound 5"),
        (open_("auto", 7, 5), proved("scip", 8), "8 is optimal; 7 is enough"),
        (
            proved("auto", 5),
            row("scip", status="infeasible", proof="solver", seconds=1.0),
            "scip says infeasible; there is a schedule of cost 5",
        ),
        (
            row(
                "auto", status="infeasible", proof="checked", seconds=1.0, lower_bound=Fraction(9),
                checker="cms",
            ),
            open_("scip", 9, 4),
            "has a schedule of a problem said to be infeasible",
        ),
    ],
)  # fmt: skip
def test_what_contradicts_is_told(ours: RunRow, theirs: RunRow, what: str | None) -> None:
    counts, *wrong = agreement([ours, theirs])
    (line,) = cells(counts)
    assert line["contradict"] == len(wrong) == (what is not None)
    if what is not None:
        assert what in cells(wrong[0])[0]["what"]
        assert counts.red == {0}


def test_agreement_counts_each_group_of_peers_once_an_instance() -> None:
    rows = [
        proved("auto", 5),
        proved("cp_sat_1", 5),
        open_("cp_sat_8", 5, 4),
        open_("auto", 7, 5, seed=1),
        proved("cp_sat_1", 6, seed=1),
        proved("auto", 3, seed=2),
        open_("cp_sat_1", 4, 3, seed=2),
        row("highs", outcome=Outcome.OUT_OF_TIME),
    ]
    (table,) = agreement(rows)
    by_peer = {line.pop("peer"): list(line.values()) for line in cells(table)}
    # asked, finished, agree, undecided, contradict
    assert by_peer == {"highs": [1, 0, 0, 0, 0], "cp_sat": [3, 2, 1, 1, 0]}


@given(
    exponent=st.floats(0.2, 3),
    factor=st.floats(1e-6, 1e3),
    sizes=st.lists(st.integers(1, 10**7), min_size=2, max_size=20, unique=True),
)
def test_the_exponent_of_an_exact_power_law_is_found(
    exponent: float, factor: float, sizes: list[int]
) -> None:
    found = growth(sizes, [factor * size**exponent for size in sizes])
    assert found is not None
    assert found.exponent == pytest.approx(exponent, rel=1e-3, abs=1e-3)
    assert (found.error is None) == (len(sizes) == 2)
