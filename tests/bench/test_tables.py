"""From rows to tables and pictures: what is counted, what contradicts, what is drawn."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import growth, quantile
from bench.plots import draw
from bench.plots.curves import profile
from bench.row import Outcome, RunRow
from bench.suites import SUITES, Settings, proof
from bench.suites.agreement import agreement
from bench.suites.mig_serving import AT_EARLY
from bench.suites.quality import known_values, proved_ratio, quality, ratios
from bench.tables import Table, failures
from bench.task import NAMED, Source
from tests.bench.conftest import run_row
from tests.samples import so_many


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


def test_a_profile_has_the_factors_of_the_fastest() -> None:
    found = profile({"a": {"x": 1.0, "y": None, "z": None}, "b": {"x": 4.0, "y": 2.0, "z": None}})
    assert found == {"a": [1.0, float("inf")], "b": [4.0, 1.0]}


HISTORY = ((0.1, None, 3, "bound"), (0.2, 6, 3, "first"), (2.0, "7/2", "7/2", "last"))


def plotted(
    method: str = "auto", *, n: int = 10, m: int = 5, limit: float = 9, **found: Any
) -> RunRow:
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
PLOTTED = [
    made
    for n in (10, 100, 1000)
    for m in (5, 30)
    for made in (plotted(n=n, m=m), plotted("greedy", n=n, m=m, guarantee=GREEDY, **UNPROVED))
]


def test_ratios_are_to_the_best_bound_and_to_a_proved_optimum() -> None:
    rows = [
        plotted("greedy", cost=Fraction(6), lower_bound=Fraction(3), guarantee=GREEDY, **UNPROVED),
        plotted("auto", cost=Fraction(5), lower_bound=Fraction(4), **UNPROVED),
        plotted("parvagpu", cost=Fraction(8), **UNPROVED),
    ]  # fmt: skip
    known = known_values(rows)
    assert ratios(rows, known, "bound") == [Fraction(3, 2), Fraction(5, 4), 2]
    assert ratios(rows, known, "optimum") == []
    assert proved_ratio(rows[0], known[rows[0].instance]) is None
    rows.append(plotted("cp_sat", cost=Fraction(4)))
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
    rows = [
        plotted("auto", cost=Fraction(5), lower_bound=Fraction(5)),
        plotted("cp_sat", **word),
    ]
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
    rows = [plotted("greedy", **UNPROVED, **wrong), plotted("cp_sat")]
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
    with_peers = [
        *PLOTTED,
        *(plotted("highs", n=n, m=30) for n in (10, 100)),
        plotted("parvagpu"),
    ]
    named = [plotted(m, family=f"S{i}") for i in range(1, 7) for m in ("auto", "parvagpu", "highs")]
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


SUITE = SUITES["mig-serving"]
DEFAULTS = SUITE.defaults


def of_mig(source: Source, method: str, cost: Any = None, **found: Any) -> RunRow:
    facts: dict[str, Any] = {"status": "feasible", "seconds": 1.0}
    if cost is not None:
        facts |= {"cost": Fraction(cost), "history": ((0.5, str(cost), 0, "it"),)}
    return run_row(method, source, limit=60, **{**facts, **found})


def pipeline(source: Source, *history: tuple[float, Any]) -> RunRow:
    """The pipeline's run, whose schedules are these seconds and costs."""
    entries = tuple((at, cost, 0, "it") for at, cost in history)
    return of_mig(
        source, "mig_serving", history[-1][1], history=((0.1, None, 0, "trivial"), *entries)
    )


def optimal(source: Source, cost: int, **more: Any) -> RunRow:
    facts = {
        "status": "optimal", "proof": "checked", "checker": "cms", "lower_bound": Fraction(cost),
    }  # fmt: skip
    return of_mig(source, "auto", cost, **{**facts, **more})


def baselines(source: Source, *costs: int | None, bound: Fraction) -> list[RunRow]:
    """Whole GPUs, the smallest instances and the mix; a rule without a cost refused."""
    names = ("whole_gpus", "smallest", "static_mix")
    refused = {"outcome": Outcome.UNSUPPORTED, "error": "it said why", "status": None}
    found = [
        of_mig(source, name, cost, **({} if cost is not None else refused))
        for name, cost in zip(names, costs, strict=True)
    ]
    bare = of_mig(source, "partition_free", status="no_schedule", lower_bound=bound)
    return [*found, bare]


S1 = Source(family="S1", module=NAMED)
FIRST, SECOND = (
    Source(family="mig-serving", arguments={"n": 24, "seed": seed, "rates": "normal"})
    for seed in (0, 2)
)
OF_MIG = [
    of_mig(S1, "mig_serving_fast", 3),
    pipeline(S1, (0.3, 3), (9.0, 2)),
    optimal(S1, 2),
    *baselines(S1, 6, 2, 3, bound=Fraction(10, 7)),
    of_mig(FIRST, "mig_serving_fast", 12),
    pipeline(FIRST, (0.5, 12), (10.0, 11), (40.0, 10)),
    optimal(FIRST, 10),
    *baselines(FIRST, 20, None, 14, bound=Fraction(9)),
    of_mig(SECOND, "mig_serving_fast", 21),
    pipeline(SECOND, (0.5, 21), (20.0, 20)),
    optimal(SECOND, 18, status="feasible", proof="none", lower_bound=Fraction(17)),
    *baselines(SECOND, 30, 25, 22, bound=Fraction(16)),
]


def lines_of(rows: list[RunRow]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    gpus, distance = SUITE.tables(rows, DEFAULTS)
    return list(gpus.to_json()["rows"]), list(distance.to_json()["rows"])


def test_gpus_are_means_and_savings_are_against_whole_gpus() -> None:
    (scenario, group), _ = lines_of(OF_MIG)
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
    _, (fast, early, end) = lines_of(OF_MIG)
    assert [line["algorithm"] for line in (fast, early, end)] == [
        "mig_serving_fast", AT_EARLY, "mig_serving",
    ]  # fmt: skip
    assert [line["compared"] for line in (fast, early, end)] == [2, 2, 2]  # SECOND is not optimal
    assert [line["optimal"] for line in (fast, early, end)] == [0, 1, 2]
    assert (fast["/ optimum"], fast["worst / optimum"]) == (1.35, 1.5)
    assert (early["/ optimum"], early["worst / optimum"]) == (1.05, 1.1)
    assert (end["/ optimum"], end["worst / optimum"]) == (1.0, 1.0)
    assert (end["median s to best"], end["worst s to best"]) == (20.0, 40.0)
    assert (fast["median s to best"], early["median s to best"]) == (0.5, None)
    assert (fast["worse than fast"], early["worse than fast"], end["worse than fast"]) == (
        None, 0, 0,
    )  # fmt: skip
