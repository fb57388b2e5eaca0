"""Figures: what goes into them is right, and they are drawn as PNG and SVG."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench.plots import draw
from bench.row import RunRow
from bench.suites import SUITES, Settings
from bench.suites.quality import known_values, proved_ratio, quality, ratios
from bench.task import Source
from tests.bench.conftest import run_row
from tests.samples import so_many

HISTORY = ((0.1, None, 3, "bound"), (0.2, 6, 3, "first"), (2.0, "7/2", "7/2", "last"))


def row(method: str = "auto", *, n: int = 10, m: int = 5, limit: float = 9, **found: Any) -> RunRow:
    family = found.pop("family", "real-rows")
    source = Source(family=family, arguments={"n": n, "m": m, "seed": 1})
    facts: dict[str, Any] = {
        "n": n, "seconds": n / 1000, "cost": Fraction(4),
        "lower_bound": Fraction(4), "status": "optimal", "proof": "checked", "checker": "cms",
        "stop_reason": "proved", "gap": Fraction(0), "history": HISTORY,
    }  # fmt: skip
    if method in ("highs", "parvagpu"):
        facts |= {"lower_bound": None, "history": (), "proof": "solver"}
    return run_row(method, source, limit=limit, **{**facts, **found})


GREEDY = {
    "factor": "2", "additive": "1", "against": "OPT", "theorem": "T", "verdict": "verified",
}  # fmt: skip
UNPROVED: dict[str, Any] = {"status": "feasible", "proof": "none"}
ROWS = [
    made
    for n in (10, 100, 1000)
    for m in (5, 30)
    for made in (row(n=n, m=m), row("greedy", n=n, m=m, guarantee=GREEDY, **UNPROVED))
]


def test_ratios_are_to_the_best_bound_and_to_a_proved_optimum() -> None:
    rows = [
        row("greedy", cost=Fraction(6), lower_bound=Fraction(3), status="feasible", proof="none",
            guarantee=GREEDY),
        row("auto", cost=Fraction(5), lower_bound=Fraction(4), status="feasible", proof="none"),
        row("parvagpu", cost=Fraction(8), status="feasible", proof="none"),
    ]  # fmt: skip
    known = known_values(rows)
    assert ratios(rows, known, "bound") == [Fraction(3, 2), Fraction(5, 4), 2]
    assert ratios(rows, known, "optimum") == []
    assert proved_ratio(rows[0], known[rows[0].instance]) is None
    rows.append(row("cp_sat", cost=Fraction(4)))
    known = known_values(rows)
    assert ratios(rows, known, "optimum") == [Fraction(3, 2), Fraction(5, 4), 2, 1]
    assert proved_ratio(rows[0], known[rows[0].instance]) == Fraction(9, 4)
    table = quality("t", rows, known)
    assert table is not None
    assert not table.red
    lines = {line["algorithm"]: line for line in table.to_json()["rows"]}
    assert lines["parvagpu"]["worst / optimum"] == 2
    assert lines["greedy"]["guarantee"] == 2.25


@pytest.mark.parametrize(
    "claim", [{"cost": Fraction(6), "gap": Fraction(0)}, {"cost": None, "status": "infeasible"}]
)
def test_a_solvers_word_against_a_better_schedule_is_red(claim: dict[str, Any]) -> None:
    word = {"proof": "solver", "lower_bound": Fraction(0), **claim}
    rows = [row("auto", cost=Fraction(5), lower_bound=Fraction(5)), row("cp_sat", **word)]
    table = quality("t", rows, known_values(rows))
    assert table is not None
    assert table.red == {1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"cost": Fraction(3), "lower_bound": Fraction(3)},
        {"cost": Fraction(10), "guarantee": GREEDY, "stop_reason": "finished"},
        {"lower_bound": Fraction(5), "cost": Fraction(6)},
        {"cost": Fraction(9), "guarantee": {**GREEDY, "verdict": "breached"}},
    ],
)
def test_what_contradicts_the_optimum_is_red(wrong: dict[str, Any]) -> None:
    unproved = {"status": "feasible", "proof": "none", **wrong}
    rows = [row("greedy", **unproved), row("cp_sat")]
    if wrong.get("lower_bound") == 5:
        # of two bounds the larger counts: then it is the optimum that lies below it
        rows.reverse()
    table = quality("t", rows, known_values(rows))
    assert table is not None
    broken = [line["algorithm"] for line in table.to_json()["rows"] if line["breached"]]
    assert "greedy" in broken
    assert table.red


def test_every_suite_draws_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the short run, the files of the first picture alone; the others are only filled."""
    from matplotlib.figure import Figure

    monkeypatch.setattr("bench.plots.plot._DOTS", 40)
    with_peers = [*ROWS, *(row("highs", n=n, m=30) for n in (10, 100)), row("parvagpu")]
    named = [row(m, family=f"S{i}") for i in range(1, 7) for m in ("auto", "parvagpu", "highs")]
    names, drawn = set(), 0
    for suite in SUITES.values():
        rows = named if suite.name == "published" else with_peers
        for plot in suite.plots(rows, Settings(methods=("auto", "greedy"))):
            names.add(plot.name)
            drawn += 1
            if drawn > so_many(1, 100):
                plot.fill(Figure().add_subplot())
                continue
            written = draw([plot], tmp_path / "figures")
            png, svg = (path.read_bytes() for path in written)
            assert png.startswith(b"\x89PNG")
            assert plot.title.encode() in svg
            assert plot.caption[:40].encode() in svg
    assert names == {
        "overview_ratios", "overview_gaps", "ratios_a100", "published", "peers_profile",
        "proof_rate", "proof_gaps", "scale_times", "growth_times", "mig_serving_ratios",
    }  # fmt: skip
