"""Errors of offline work: the table, the handler, the supervisor; real processes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from itertools import product, repeat
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.colocation_figures.errors import ONE_THREAD
from cms.errors import FileError, InvalidOption, InvalidProblem
from cms.fleet import (
    GracefulExit,
    Metric,
    MonitorStates,
    MonitorTimes,
    RestartTimes,
    Supervisor,
    error_handling,
    monitor_preset,
    monitor_signal,
    monitor_signals,
    monitor_step,
    monitor_steps,
    read_monitor,
)
from cms.fleet.published import (
    LaunchGate,
    MemoryQuota,
    SharedDevice,
    muxflow_monitor,
    slowdown_bound,
)
from cms.fleet.published.muxflow_errors import GRACEFUL, ended
from cms.fleet.published.muxflow_monitor import ACTIONS, SIGNALS, STATES, TABLE, Cell, Timer
from proofs_checks.finding import Breach
from proofs_checks.monitor import drawn, reach, require_monitor
from tests.files.test_schemas import require_valid
from tests.samples import few, refusal

ROOT = Path(__file__).resolve().parents[3]
posix = pytest.mark.skipif(os.name != "posix", reason="fork and these signals are of POSIX systems")
TIMES = RestartTimes(grace=500, base=125, cap=375, calm=10_000, silence=2000)


class Child:
    """An offline program of which a test says how it ends."""

    def __init__(self, on_signal: dict[int, int]) -> None:
        self.code: int | None = None
        self.on_signal = on_signal  # which exit code follows a signal; others are ignored

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, sig: int, /) -> None:
        self.code = self.on_signal.get(sig, self.code)

    def kill(self) -> None:
        self.code = -9


class Scene:
    """A supervisor with a clock, children and an online side that a test moves by hand."""

    def __init__(
        self,
        *,
        listens: bool = False,
        health: tuple[bool, ...] = (),
        on_signal: dict[int, int] | None = None,
    ) -> None:
        self.now, self.beats, self.resets, self.children = 0.0, 0, 0, list[Child]()
        self.answers, self.on_signal = iter(health), on_signal or {}
        self.supervisor = Supervisor(
            self._start, self._reset, lambda: next(self.answers, True), times=TIMES,
            heard=(lambda: self.beats) if listens else None, clock=lambda: self.now,
            sleep=self._sleep,
        )  # fmt: skip

    def _start(self) -> Child:
        self.children.append(Child(self.on_signal))
        return self.children[-1]

    def _reset(self) -> None:
        self.resets += 1

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, seconds: float, code: int | None = None) -> list[str]:
        """Let time pass, after the last child has ended with a code; return all that was done."""
        self.children[-1].code = code if code is not None else self.children[-1].code
        self.now += seconds
        self.supervisor.look()
        return [event.what for event in self.supervisor.events]


@posix
def test_only_the_two_signals_that_ask_are_graceful_and_how_a_process_ended_is_an_error() -> None:
    for name in ("SIGINT", "SIGTERM"):
        assert error_handling(name) == "graceful"
    for name in ("SIGKILL", "SIGHUP", "error", "silence", "CUDA_ERROR_ILLEGAL_ADDRESS", ""):
        assert error_handling(name) == "reset"
    assert [ended(code) for code in (0, -11, 1, -200)] == [
        None, "SIGSEGV", "exit code 1", "signal 200",
    ]  # fmt: skip
    assert all(each.name in (ended(-each) or "") for each in GRACEFUL)
    assert "grace of restarts is 0" in refusal(InvalidOption, lambda: RestartTimes(grace=0))


@pytest.fixture
def handlers() -> Iterator[None]:
    """Leave the signals as they were: after a graceful exit a program ends, the tests do not."""
    before = [signal.getsignal(each) for each in GRACEFUL]
    yield
    for each, handler in zip(GRACEFUL, before, strict=True):
        signal.signal(each, handler)


@posix
@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("each", GRACEFUL)
def test_a_signal_asks_once_and_later_ones_kill_nobody(each: signal.Signals) -> None:
    heard: list[int] = []
    signal.signal(each, lambda number, _: heard.append(number))
    with GracefulExit():
        pass
    signal.raise_signal(each)  # a program that nobody asked has its own handler back
    assert heard == [each]
    signal.pthread_sigmask(signal.SIG_BLOCK, GRACEFUL)
    signal.pthread_kill(threading.get_ident(), each)  # one that is blocked is heard, too
    with GracefulExit() as leave:
        assert leave.asked
        signal.raise_signal(each)
    signal.raise_signal(each)
    assert signal.getsignal(each) is signal.SIG_IGN
    said: list[str] = []
    enter = GracefulExit().__enter__
    thread = threading.Thread(target=lambda: said.append(refusal(InvalidOption, enter)))
    thread.start()
    thread.join()
    assert "thread" in said[0]


def test_every_fault_is_followed_by_one_reset_and_one_restart_ever_later() -> None:
    scene, waits = Scene(), []
    for code in (-9, 1, -11, -15):
        seen, began = scene.wait(0, code), scene.now
        while scene.supervisor.state == "waiting":
            seen = scene.wait(1 / 64)
        waits.append(scene.now - began)
    assert waits == [0.125, 0.25, 0.375, 0.375]
    assert seen == ["start", *["fault", "reset", "restart"] * 4]
    assert (scene.resets, len(scene.children)) == (4, 5)
    assert scene.supervisor.events[1].why == ended(-9)
    scene.wait(11)  # after a long run back-offs begin at the first again
    scene.wait(0, 1)
    scene.wait(0.115)
    assert scene.supervisor.state == "waiting"
    assert scene.wait(0.02)[-1] == "restart"


def test_a_program_that_leaves_or_cannot_be_helped_is_not_started_again() -> None:
    left, helpless = Scene(), Scene(health=(False, False))
    left.wait(0, 0)
    helpless.wait(0, -9)
    assert left.wait(1000) == ["start", "left"]
    assert helpless.wait(1000) == ["start", "fault", "reset", "out"]
    assert (left.resets, left.supervisor.stop()) == (0, "graceful")


def test_silence_is_an_error_and_a_beat_is_not() -> None:
    scene = Scene(listens=True)
    for _ in range(5):
        assert scene.wait(1.9) == ["start"]
        scene.beats += 1
    scene.wait(1.9)
    seen = [scene.wait(1) for _ in range(4)][-1]
    assert seen == ["start", "fault", "reset", "restart"]
    assert scene.supervisor.events[1].why == "silence"


@pytest.mark.parametrize(
    ("on_signal", "how", "seen"),
    [
        ({signal.SIGTERM: 0}, "graceful", ["start", "left"]),
        ({signal.SIGTERM: -15}, "reset", ["start", "fault", "reset"]),
        ({}, "reset", ["start", "fault", "reset"]),
    ],
)
def test_who_is_stopped_is_asked_first_and_killed_after_the_grace(
    on_signal: dict[int, int], how: str, seen: list[str]
) -> None:
    scene = Scene(on_signal=on_signal)
    assert scene.supervisor.stop() == how
    assert scene.now == 0 if on_signal else 0.5 <= scene.now < 0.6
    assert (scene.wait(1000), len(scene.children)) == (seen, 1)


@posix
@pytest.mark.parametrize("numbers", few(1, [(10, 5, 5), (200, 50, 50)]))
def test_signals_harm_nobody_with_the_handler_and_each_kill_is_answered_by_a_reset_and_a_restart(
    numbers: tuple[int, int, int],
) -> None:
    """A process of its own does the forking: pytest's may have threads."""
    children, kills, without = numbers
    options = ["--children", str(children), "--kills", str(kills), "--without", str(without)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.colocation_figures.errors", *options],
        cwd=ROOT, env=os.environ | ONE_THREAD, capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    graceful, killed, unprotected = found["graceful"], found["killed"], found["without"]
    assert graceful["ends"] == {"0": children}  # each within the grace, by itself
    assert graceful["faults"] == graceful["online_failed"] == 0
    assert graceful["online_kernels"] > 0
    assert killed["answers"] == {"fault reset restart": kills}
    assert killed["causes"].pop("exit code 1") == kills // 5
    assert killed["causes"].keys() <= {"SIGKILL", "SIGSEGV", "SIGABRT"}
    assert sum(killed["causes"].values()) == kills - kills // 5
    assert killed["stopped"] == "graceful"
    assert unprotected["faults"] >= without // 5


LENGTHS = st.fractions(Fraction(1, 7), 9, max_denominator=7)
REQUESTS = st.lists(st.tuples(st.fractions(0, 50, max_denominator=7), LENGTHS), min_size=1)


@given(REQUESTS, st.lists(LENGTHS, min_size=1), st.integers(1, 100))
def test_no_request_is_late_by_more_than_the_longest_kernel(
    requests: list[tuple[Fraction, Fraction]], kernels: list[Fraction], share: int
) -> None:
    shared, quiet = SharedDevice(kernels, LaunchGate(share, 1)), SharedDevice([], LaunchGate(share))
    for device in (shared, quiet):
        device.advance(10**5, sorted(requests))
    for late, sooner in zip(shared.served, quiet.served, strict=True):
        assert 0 <= late.end - sooner.end <= max(kernels)
        slowdown = (late.end - late.arrival) / (sooner.end - sooner.arrival)
        assert slowdown <= slowdown_bound(max(kernels), late.service)


def test_without_the_gate_one_long_request_after_another_waits_for_what_lies_ahead() -> None:
    kept, broken = (SharedDevice(repeat(5), gate, ahead=4) for gate in (LaunchGate(60), None))
    for device in (kept, broken):
        device.advance(1000, [(10 * at + 1, 1) for at in range(90)])
    assert max(one.end - one.arrival for one in kept.served) <= slowdown_bound(5, 1) == 6
    assert min(one.end - one.arrival for one in broken.served[1:]) > 6
    for share, launches in ((0, 0), (100, 10), (50, 5)):
        device = SharedDevice(repeat(2), LaunchGate(share))
        device.advance("19.5")
        assert len(device.launched) == launches


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50))))
def test_a_quota_never_gives_more_than_its_limit_and_refuses_before_it_gives(
    wishes: list[tuple[bool, int]],
) -> None:
    quota, used = MemoryQuota(100), 0
    for takes, mib in wishes:
        if takes:
            assert quota.allocate(mib) == (used + mib <= 100)
            used += mib * (used + mib <= 100)
        elif mib <= used:
            quota.release(mib)
            used -= mib
        else:
            assert f"{mib} MiB" in refusal(InvalidProblem, quota.release, mib)
        assert quota.used_mib == used <= 100


@pytest.mark.parametrize(
    ("advance", "words"),
    [((4,), "until is 4"), ((9, [(8, 1), (7, 1)]), "is 7"), ((9, [(6, 0)]), "kernel is 0")],
)
def test_odd_times_are_refused(advance: Any, words: str) -> None:
    device = SharedDevice([1])
    device.advance(5)
    assert words in refusal(InvalidProblem, device.advance, *advance)
    assert "launch gate is 101" in refusal(InvalidProblem, LaunchGate, 101)


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
    names = np.array([STATES.index(each.name) for each in every], np.int8)
    timers = np.array([each[1:] for each in every], np.int32).T
    after, actions = monitor_steps(MonitorStates(names, *timers), signals, times)
    for at, state in enumerate(every):
        known, action = monitor_step(state, SIGNALS[signals[at]], times)
        assert [STATES[after.name[at]], *(each[at] for each in after[1:])] == [*known], state
        assert (ACTIONS[actions[at]], after.admits[at]) == (action, known.admits)
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


def test_the_preset_says_that_it_is_assumed() -> None:
    assert "Not the paper's figures" in SHIPPED.source
    assert {metric.name for metric in SHIPPED.metrics} == {
        *("gpu_utilisation", "sm_activity", "sm_clock", "memory_used")
    }
    require_valid("monitor", json.loads(PRESET.read_text("utf-8")))
    assert "'muxflow'" in refusal(InvalidOption, monitor_preset, "muxflow")
    assert "tick_seconds is 0" in refusal(InvalidOption, SHIPPED.times, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
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
    path.write_text(json.dumps(document), "utf-8")
    message = refusal(FileError, read_monitor, path)
    assert words in message
    assert str(path) in message
