"""The driver stops when it should, and loses no answer: gap, clock, cancels, Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from cms.errors import AlgorithmError, InvalidSchedule
from cms.plugin.algorithm import Budget, Claim
from cms.problem.problem import Problem
from cms.solving.driver import GRACE_SECONDS
from cms.solving.solution import Incumbent, Status, StopReason
from cms.solving.solve import solve
from tests.plugins import OneByOne
from tests.samples import so_many
from tests.scripted import HALF, QUARTER, Clock, blocks, serving, solved, told

#: Seconds after which what has not come never will, on the slowest machine.
NEVER = 600.0

# --- start and gap --------------------------------------------------------------------------------


def test_a_start_is_improved_on() -> None:
    solution = told(blocks(8), [serving(8, 6), serving(8, 4)], start=serving(8, 5))
    assert [(line.cost, line.source) for line in solution.history] == [
        (5, "start"),
        (4, "scripted"),
        (4, "rough prices"),
    ]


def test_a_start_that_is_not_valid_is_refused_with_its_violations() -> None:
    with pytest.raises(InvalidSchedule, match=r"start is not valid: job 'x' has 6 .* needs 8"):
        told(blocks(8), [], start=serving(6, 3))


def test_a_start_is_the_answer_if_nothing_better_is_found() -> None:
    solution = told(blocks(8), [], start=serving(8, 5), time_limit=0)
    assert (solution.status, solution.cost) == (Status.FEASIBLE, 5)
    assert solution.stop_reason is StopReason.TIME_LIMIT


@pytest.mark.parametrize("gap", [1, 1.0, "1", Fraction(1), Decimal("1.0")])
def test_the_run_stops_at_the_gap(gap: Any) -> None:
    closed = []

    def slow(problem: Problem, budget: Budget) -> Iterator[Claim]:
        try:
            yield HALF
            yield serving(8, 6)
            yield serving(8, 5)
            yield serving(8, 4)
        finally:
            closed.append(budget.stopped)

    solution = solved(slow, gap=gap)
    assert solution.stop_reason is StopReason.GAP
    assert (solution.status, solution.gap) == (Status.FEASIBLE, 1)
    assert closed == [True]


# --- time and cancels -----------------------------------------------------------------------------


def thinking(problem: Problem, budget: Budget) -> Iterator[Claim]:
    """Think until stopped, then say the best."""
    yield serving(8, 6)
    while not budget.stopped:
        time.sleep(0.01)
    yield serving(8, 5)
    yield QUARTER


#: Seconds of the test's clock for a look at it, and looks at the start and the end of a run.
TICK, LOOKS = 0.05, 8


@pytest.mark.parametrize("limit", [0, 0.0, 0.02, 0.3])
def test_the_answer_comes_within_the_limit_and_the_grace(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def deaf(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        let_go.wait()
        yield serving(8, 5)

    heard: list[Incumbent] = []
    clock = Clock(TICK, until=lambda: math.inf if heard or not limit else 0.0).rule(monkeypatch)
    solution = solved(deaf, time_limit=limit, on_improvement=heard.append)
    let_go.set()
    assert limit <= solution.seconds <= clock.now <= limit + GRACE_SECONDS + LOOKS * TICK
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.cost == (6 if limit else None)


@pytest.mark.parametrize("limit", [0.02, 0.3])
def test_what_a_stopped_algorithm_says_within_the_grace_still_counts(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Incumbent] = []
    Clock(TICK, until=lambda: limit if heard else 0.0).rule(monkeypatch)
    solution = solved(thinking, time_limit=limit, on_improvement=heard.append)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert (solution.cost, solution.lower_bound) == (5, 2)


def test_an_algorithm_that_never_stops_claiming_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    began, closed = threading.Event(), threading.Event()

    def endless(problem: Problem, budget: Budget) -> Iterator[Claim]:
        try:
            while True:
                began.set()
                yield serving(8, 6)
        finally:
            closed.set()

    # What has not begun is not closed either.
    clock = Clock(TICK, until=lambda: math.inf if began.is_set() else 0.0).rule(monkeypatch)
    solution = solved(endless, time_limit=0.1)
    assert clock.now <= 0.1 + GRACE_SECONDS + LOOKS * TICK
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert closed.wait(NEVER)


def test_cancels_are_called_until_their_block_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call may come before a solver has begun; it must not be the last."""
    calls = []
    solver_begins_at = 3
    registered, stopped = threading.Event(), threading.Event()

    def cancel() -> None:
        calls.append(threading.current_thread())
        if len(calls) >= solver_begins_at:
            stopped.set()

    def native(problem: Problem, budget: Budget) -> Iterator[Claim]:
        with budget.on_stop(cancel):
            registered.set()
            assert stopped.wait(NEVER)
        yield serving(8, 5)

    Clock(TICK, until=lambda: 0.1 if registered.is_set() else 0.0).rule(monkeypatch)
    solution = solved(native, time_limit=0.1)
    assert solution.cost == 5
    assert len(calls) == solver_begins_at


def test_a_cancel_registered_after_the_stop_is_called_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called = []

    def late(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        while not budget.stopped:
            time.sleep(0.01)
        assert budget.remaining() == 0
        with budget.on_stop(lambda: called.append(1)):
            assert called
        yield serving(8, 5)

    heard: list[Incumbent] = []
    Clock(TICK, until=lambda: 0.05 if heard else 0.0).rule(monkeypatch)
    assert solved(late, time_limit=0.05, on_improvement=heard.append).cost == 5


def test_a_cancel_that_raises_names_the_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    registered, called = threading.Event(), threading.Event()

    def cancel() -> None:
        called.set()
        raise OSError("gone")

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        with budget.on_stop(cancel):
            registered.set()
            assert called.wait(NEVER)
        yield serving(8, 5)

    Clock(TICK, until=lambda: math.inf if registered.is_set() else 0.0).rule(monkeypatch)

    with pytest.raises(AlgorithmError, match="has a cancel that raised OSError: gone"):
        solved(run, time_limit=0.1)


def test_the_callers_cancel_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    Clock().rule(monkeypatch)
    solution = solved(thinking, time_limit=None, cancel=cancel)
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert (solution.cost, solution.lower_bound) == (5, 2)
    again = solved(thinking, time_limit=None, cancel=cancel)
    assert again.stop_reason is StopReason.INTERRUPTED
    assert again.status is Status.NO_SCHEDULE


def test_an_algorithm_that_ends_by_itself_when_time_is_up_was_cut_short() -> None:
    def punctual(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        while budget.remaining():
            pass

    assert solved(punctual, time_limit=0.05).stop_reason == "time_limit"


# --- the conversation -----------------------------------------------------------------------------


def test_every_claim_is_a_rendezvous() -> None:
    """When the algorithm goes on after a claim, the budget knows what came of it."""
    seen = []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        claims: list[Any] = [serving(8, 7), QUARTER, serving(8, 6), serving(8, 7)]
        for claim in claims * 20:
            yield claim
            seen.append((budget.best and budget.best.machine_count, budget.lower_bound))

    solved(run)
    assert seen[:4] == [(7, 0), (7, 2), (6, 2), (6, 2)]
    assert set(seen[4:]) == {(6, 2)}


def test_improvements_are_reported_in_the_callers_thread_as_they_come() -> None:
    lines: list[Incumbent] = []
    threads = set()

    def note(line: Incumbent) -> None:
        lines.append(line)
        threads.add(threading.current_thread())

    solution = told(
        blocks(8), [serving(8, 6), HALF, serving(8, 4)], start=serving(8, 9), on_improvement=note
    )
    assert tuple(lines) == solution.history
    assert threads == {threading.current_thread()}
    seconds = [line.seconds for line in lines]
    assert seconds == sorted(seconds)
    assert seconds[-1] <= solution.seconds


def test_an_error_of_the_callers_own_function_ends_the_run() -> None:
    closed = threading.Event()

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        try:
            yield serving(8, 6)
            yield serving(8, 5)
        finally:
            closed.set()

    def report(line: Incumbent) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        solved(run, on_improvement=report)
    assert closed.is_set()


def test_solutions_are_equal_but_for_the_seconds_when_run_again() -> None:
    claims = [serving(8, 7), QUARTER, serving(8, 6)]
    one, two = (
        [line._replace(seconds=0.0) for line in told(blocks(8), claims).history] for _ in "ab"
    )
    assert one == two


def test_solve_works_in_any_thread() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(solve(blocks(8), OneByOne())))
    thread.start()
    thread.join()
    assert found[0].cost == 4


# --- Ctrl-C in this process; the real thing is in test_ctrl_c.py ----------------------------------


@pytest.fixture(autouse=True)
def _listening() -> Iterator[None]:
    """Python's own handler, even if a shell that runs us in the background had SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a press, too, there is all the time that the machine takes."""
    Clock().rule(monkeypatch)


@pytest.mark.usefixtures("_no_hurry")
def test_ctrl_c_returns_what_is_known_and_restores_the_handler() -> None:
    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        signal.raise_signal(signal.SIGINT)
        while not budget.stopped:
            time.sleep(0.01)
        yield serving(8, 5)

    before = signal.getsignal(signal.SIGINT)
    solution = solved(run, time_limit=None)
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert solution.cost == 5
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timer")
def test_ctrl_c_is_noticed_at_any_moment_of_waiting_for_a_busy_algorithm() -> None:
    """A signal just before a wait's timeout, while another thread has the interpreter to itself.

    ``SimpleQueue.get`` of CPython 3.11 would wait for ever then, in about one of ten cases.
    """

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        signal.setitimer(signal.ITIMER_REAL, next(moments))
        number = 1
        while not budget.stopped:
            number = number * 5 % 2147483647
        yield QUARTER

    moments = iter([0.03 + milliseconds / 1000 for milliseconds in range(0, 60, so_many(12, 2))])
    # the kernel's timer, since a thread of ours would pass the interpreter on when it sends
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        for _ in range(so_many(5, 30)):
            assert solved(run, time_limit=None).stop_reason is StopReason.INTERRUPTED
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_no_hurry")
def test_a_keyboard_interrupt_of_another_handler_counts_as_ctrl_c() -> None:
    """A program with a handler of its own keeps it; what it raises in our loop is the same wish."""
    presses = []

    def handler(*_: object) -> None:
        presses.append(1)
        raise KeyboardInterrupt

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        signal.raise_signal(signal.SIGINT)
        while not budget.stopped:
            time.sleep(0.01)
        yield serving(8, 5)

    before = signal.signal(signal.SIGINT, handler)
    try:
        solution = solved(run, time_limit=None)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert presses == [1]
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert solution.cost == 5


@pytest.mark.usefixtures("_no_hurry")
def test_a_second_ctrl_c_raises_keyboard_interrupt() -> None:
    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        signal.raise_signal(signal.SIGINT)
        while not budget.stopped:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        caught.wait()

    caught = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        solved(run, time_limit=None)
    caught.set()
    assert signal.getsignal(signal.SIGINT) is before
