"""The monitor of a shared GPU: its table, its search, its arrays, its metrics and its file."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError, InvalidOption, InvalidProblem
from cms.fleet import (
    Metric,
    MonitorStates,
    MonitorTimes,
    monitor_preset,
    monitor_signal,
    monitor_signals,
    monitor_step,
    monitor_steps,
    read_monitor,
)
from cms.fleet.colocation.predictor import MODELS
from cms.fleet.published import muxflow_monitor
from cms.fleet.published.muxflow_monitor import ACTIONS, SIGNALS, STATES, TABLE, Cell, Timer
from cms.fleet.simulation.colocation_loop import Terms
from proofs_checks.finding import Breach
from proofs_checks.monitor import drawn, reach, require_monitor
from tests.files.test_schemas import require_valid
from tests.samples import refusal

SMALL = MonitorTimes(dwell=2, base=2, cap=8, calm=2)
SHIPPED = monitor_preset("muxflow-assumed")
PRESET = Path(muxflow_monitor.__file__).parent / "presets" / "muxflow-assumed.json"
METRICS = (Metric("load", soft=80, hard="90.1"), Metric("clock", soft="1/3", hard=0, worse="low"))
CELLS = [
    Cell(*fields)
    for fields in product(STATES, get_args(Timer), ACTIONS, (False, True), (False, True))
]


@pytest.mark.parametrize("key", TABLE, ids="-".join)
def test_any_other_cell_in_its_place_is_found_or_changes_no_step(key: Any) -> None:
    whole, found = reach(SMALL), 0
    for cell in CELLS:
        planted = {**TABLE, key: cell}
        try:
            require_monitor(SMALL, planted)
        except Breach:
            found += 1
        else:
            assert reach(SMALL, planted) == whole, cell
    assert found >= len(CELLS) - 3


@given(st.integers(1, 10**4), st.integers(1, 10**5))
def test_back_offs_double_up_to_the_cap_and_the_top_is_the_first_of_its_length(
    base: int, more: int
) -> None:
    times = MonitorTimes(dwell=1, base=base, cap=base + more, calm=1)
    lengths = [times.back_off(level) for level in range(times.top + 2)]
    assert lengths[:2] == [0, base]
    assert lengths[2:] == [min(times.cap, 2 * each) for each in lengths[1:-1]]
    assert lengths.index(times.cap) == times.top


@given(st.randoms(use_true_random=False))
def test_many_monitors_at_once_step_as_each_by_itself(rng: Any) -> None:
    times = drawn(rng)
    every = [state for state in reach(times).states for _ in SIGNALS]
    signals = [at % len(SIGNALS) for at in range(len(every))]
    after, actions = monitor_steps(MonitorStates.of(every), signals, times)
    for at, state in enumerate(every):
        known = monitor_step(state, SIGNALS[signals[at]], times)
        assert (after.at(at), ACTIONS[actions[at]]) == known, state
        assert (after.admits[at], after.occupied[at]) == (known[0].admits, known[0].occupied)
    none, actions = monitor_steps(MonitorStates.fresh(0), np.array([], int), times)
    assert none.name.shape == actions.shape == (0,)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 79.99, 80.0, 90.1, np.nextafter(90.1, 0), 1e300]),
            st.sampled_from([0.0, 0.3333333333333333, 0.33333333333333337, 5e-324]),
            st.booleans(),
        ),
        min_size=1,
    )
)
def test_signals_of_many_gpus_are_those_of_each(rows: list[tuple[float, float, bool]]) -> None:
    loads, clocks, disabled = zip(*rows, strict=True)
    signals = monitor_signals(METRICS, {"load": loads, "clock": clocks}, disabled=disabled)
    assert [SIGNALS[signal] for signal in signals] == [
        monitor_signal(METRICS, {"load": load, "clock": clock}, disabled=off)
        for load, clock, off in rows
    ]


def test_the_worst_metric_counts_and_what_nobody_observed_is_not_called_quiet() -> None:
    for load, clock, told in (
        ("79.9", "0.34", "quiet"), (80, 1, "soft"), (90, 1, "soft"), ("90.1", 1, "hard"),
        (0, "1/3", "soft"), (80, 0, "hard"),
    ):  # fmt: skip
        assert monitor_signal(METRICS, {"load": load, "clock": clock, "more": 10**6}) == told
    for seen in ({"load": 1, "clok": 2}, {"load": 1, "clock": float("nan")}):
        assert "'clock'" in refusal(InvalidProblem, monitor_signal, METRICS, seen)
    for many in ({"load": [1.0]}, {"load": [1.0], "clock": [-1.0]}):
        assert "'clock'" in refusal(InvalidProblem, monitor_signals, METRICS, many)
    assert "'load' is 70" in refusal(InvalidProblem, lambda: Metric("load", soft=80, hard=70))
    assert "base of a monitor is 2.5" in refusal(InvalidProblem, MonitorTimes, 1, 2.5, 3, 1)


def test_the_preset_says_that_it_is_assumed_and_is_what_a_day_goes_by() -> None:
    assert "Not the paper's figures" in SHIPPED.source
    assert {metric.name for metric in SHIPPED.metrics} == {
        *("gpu_utilisation", "sm_activity", "sm_clock", "memory_used")
    }
    assert SHIPPED.predictor in MODELS
    assert SHIPPED.interval_minutes == Terms().interval
    require_valid("monitor", json.loads(PRESET.read_text("utf-8")))
    assert "'muxflow'" in refusal(InvalidOption, monitor_preset, "muxflow")
    assert "tick_seconds is 0" in refusal(InvalidOption, SHIPPED.times, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"predictor": None, "interval_minutes": None}, ""),
        ({"seconds": {"dwell": 1, "base": 1, "cap": 1}}, "calm"),
        ({"seconds": {"dwell": 1, "base": 2, "cap": 1, "calm": 1}}, "cap of a monitor is 1"),
        ({"metrics": [{"name": "a", "soft": 1, "hard": 2}] * 2}, "'a'"),
        ({"metrics": [{"name": "a", "soft": 1, "hard": 2, "worse": "up"}]}, "up"),
    ],
)  # fmt: skip
def test_an_odd_file_is_refused_with_its_place(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "monitor.json"
    document = json.loads(PRESET.read_text("utf-8")) | change
    path.write_text(json.dumps({k: v for k, v in document.items() if v is not None}), "utf-8")
    if not words:
        assert read_monitor(path).metrics == SHIPPED.metrics
        return
    message = refusal(FileError, read_monitor, path)
    assert words in message
    assert str(path) in message
