"""From rows to tables: what is counted, what contradicts, what is fitted."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import tables
from bench.figures import growth, quantile
from bench.plots.curves import profile
from bench.plots.points import ticks_up_to
from bench.row import Outcome, RunRow
from bench.runs.solving import passes
from bench.suites import Settings, proof
from bench.suites.agreement import agreement
from bench.tables import AtLeast, Column, Table, failures
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


@given(st.lists(st.integers(-9, 9), min_size=1), st.floats(0, 1))
def test_a_quantile_is_one_of_the_values_and_covers_its_share(
    values: list[int], share: float
) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (tables.plain, {12345: "12,345", "sparse": "sparse"}),
        (tables.seconds, {0.01234: "0.0123", 12.34: "12.3", 1234.5: "1234"}),
        (tables.times, {52.34: "52.3x", 0.1234: "0.123x"}),
        (tables.ratio, {1.0: "1", 1.03456: "1.035", 1.0001: "1.000+", 12.5: "12.500"}),
        (tables.exact, {Fraction(5, 2): "2.5", Fraction(1, 3): "1/3", 10**400: "1.00e+400"}),
        (tables.amount, {Fraction(12): "12", Fraction(82, 7): "11.71"}),
        (tables.percent, {0.995: "99.5 %", 0.00012: "0.012 %", 0.99999: "<100 %", 1: "100 %"}),
        (tables.gibibytes, {3 * 2**29: "1.5 GiB"}),
        (tables.at_least(tables.seconds), {AtLeast(20.0, True): ">20", AtLeast(2.0, False): "2"}),
        (passes, {("trivial", "branch_and_price: block prices, 7 passes"): 7, ("trivial",): None}),
        (ticks_up_to, {2.5: [1, 1.1, 1.25, 1.5, 2], 8: [1, 1.25, 1.5, 2, 3, 4, 6, 8]}),
    ],
)
def test_figures_are_written_with_the_digits_that_tell(write: Any, texts: dict[Any, Any]) -> None:
    assert {value: write(value) for value in texts} == texts


def test_a_table_for_latex_escapes_what_it_takes_for_commands() -> None:
    table = Table("a_b", "", (Column("name", left=True), Column("n")), (("[x & y", None),))
    assert r"\caption{a\_b.}" in table.latex()
    assert r"{}[x \& y & - \\" in table.latex()


def test_a_profile_has_the_factors_of_the_fastest() -> None:
    found = profile({"a": {"x": 1.0, "y": None, "z": None}, "b": {"x": 4.0, "y": 2.0, "z": None}})
    assert found == {"a": [1.0, float("inf")], "b": [4.0, 1.0]}
