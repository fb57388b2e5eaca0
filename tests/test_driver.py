"""The driver stops when it should and loses no answer; Ctrl-C, also for real; the ledger."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, first_certificate
from cms.checker.kinds import check
from cms.errors import AlgorithmError, InvalidSchedule
from cms.plugin.algorithm import Budget, Claim
from cms.problem.parts import Configuration
from cms.problem.problem import Problem
from cms.running.interrupt import CtrlC
from cms.running.stopping import GRACE_SECONDS
from cms.schedule.faults import Violation
from cms.schedule.schedule import Schedule
from cms.solving.ledger import Ledger
from cms.solving.solution import Incumbent, Proof, Status, StopReason
from tests.ctrl_c import KINDS, WAYS, press
from tests.files.documents import TRUE_CLAIMS
from tests.scripted import HALF, QUARTER, Clock, blocks, serving, solved, told

#: Seconds after which what has not come never will, on the slowest machine.
NEVER = 600.0


def test_a_start_is_improved_on_or_is_the_answer_or_is_refused() -> None:
    solution = told(blocks(8), [serving(8, 6), serving(8, 4)], start=serving(8, 5))
    assert [(line.cost, line.source) for line in solution.history] == [
        (5, "start"),
        (4, "scripted"),
        (4, "rough prices"),
    ]
    solution = told(blocks(8), ["never reached"], start=serving(8, 5), time_limit=0)
    assert (solution.status, solution.cost) == (Status.FEASIBLE, 5)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    with pytest.raises(InvalidSchedule, match=r"start is not valid: job 'x' has 6 .* needs 8"):
        told(blocks(8), [], start=serving(6, 3))


@pytest.mark.parametrize("gap", [1, 1.0, "1", Fraction(1), Decimal("1.0")])
def test_the_run_stops_at_the_gap(gap: Any) -> None:
    closed = []

    def slow(problem: Problem, budget: Budget) -> Iterator[Claim]:
        try:
            yield from (HALF, serving(8, 6), serving(8, 5), serving(8, 4))
        finally:
            closed.append(budget.stopped)

    solution = solved(slow, gap=gap)
    assert solution.stop_reason is StopReason.GAP
    assert (solution.status, solution.gap, closed) == (Status.FEASIBLE, 1, [True])


def thinking(problem: Problem, budget: Budget) -> Iterator[Claim]:
    """Think until stopped, then say the best."""
    yield serving(8, 6)
    while not budget.stopped:
        time.sleep(0.01)
    assert budget.remaining() == 0
    yield serving(8, 5)
    yield QUARTER


@pytest.mark.parametrize("limit", [0.02, 0.3])
def test_what_a_stopped_algorithm_says_within_the_grace_still_counts(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Incumbent] = []
    Clock(0.05, until=lambda: limit if heard else 0.0).rule(monkeypatch)
    solution = solved(thinking, time_limit=limit, on_improvement=heard.append)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert (solution.cost, solution.lower_bound) == (5, 2)


def test_an_algorithm_that_never_stops_claiming_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def endless(problem: Problem, budget: Budget) -> Iterator[Claim]:
        try:
            while True:
                yield serving(8, 6)
        finally:
            closed.append(1)

    clock = Clock(0.05).rule(monkeypatch)
    solution = solved(endless, time_limit=0.1)
    assert 0.1 + GRACE_SECONDS <= clock.now
    assert (solution.stop_reason, solution.cost, closed) == (StopReason.TIME_LIMIT, 6, [1])


def test_a_check_is_given_up_when_the_grace_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, stopped: Callable[[], bool], **__: Any) -> None:
        while not stopped():
            pass

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        monkeypatch.setattr("cms.certificate.certificate.price_jobs", slow)
        yield QUARTER

    Clock(0.05).rule(monkeypatch)
    solution = solved(run, time_limit=0.1)
    assert (solution.stop_reason, solution.cost, solution.lower_bound) == ("time_limit", 6, 0)


def test_cancels_are_called_until_their_block_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call may come before a solver has begun; it must not be the last."""
    calls: list[threading.Thread] = []
    stopped = threading.Event()

    def cancel() -> None:
        calls.append(threading.current_thread())
        if len(calls) >= 3:  # the solver begins
            stopped.set()

    def native(problem: Problem, budget: Budget) -> Iterator[Claim]:
        with budget.on_stop(cancel):
            clock.until = 0.1
            assert stopped.wait(NEVER)
        before = len(calls)
        with budget.on_stop(lambda: calls.append(threading.current_thread())):
            assert len(calls) > before  # registered after the stop, called at once
        yield serving(8, 5)

    clock = Clock(0.05, until=0.0).rule(monkeypatch)
    assert solved(native, time_limit=0.1).cost == 5
    assert threading.main_thread() not in calls[:3]


def test_a_cancel_that_raises_names_the_algorithm() -> None:
    called = threading.Event()

    def cancel() -> None:
        called.set()
        raise OSError("gone")

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        with budget.on_stop(cancel):
            assert called.wait(NEVER)
        yield serving(8, 5)

    with pytest.raises(AlgorithmError, match="has a cancel that raised OSError: gone"):
        solved(run, time_limit=0.1)


def test_the_callers_cancel_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = threading.Event()
    Clock().rule(monkeypatch)
    solution = solved(
        thinking, time_limit=None, cancel=cancel, on_improvement=lambda _: cancel.set()
    )
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert (solution.cost, solution.lower_bound) == (5, 2)
    again = solved(thinking, time_limit=None, cancel=cancel)
    assert (again.stop_reason, again.status) == (StopReason.INTERRUPTED, Status.NO_SCHEDULE)


def test_an_algorithm_cannot_write_into_what_it_is_given_or_has_claimed() -> None:
    counts = np.array([4])

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        for array in (problem.rows.demands, problem.rows.supplies):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(AttributeError):
            problem.job_names = ("y",)
        schedule = Schedule.from_columns(serving(8, 4).columns._replace(group_count=counts))
        yield schedule
        counts[:] = 1
        with pytest.raises(ValueError, match="read-only"):
            schedule.columns.group_count[:] = 1

    solution = solved(run)
    assert solution.cost == 4
    assert check(blocks(8), solution.schedule) == ()


def test_every_claim_is_a_rendezvous() -> None:
    """When the algorithm goes on after a claim, the budget knows what came of it."""
    seen = []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        for claim in (serving(8, 7), QUARTER, serving(8, 6), serving(8, 7)):
            yield claim
            seen.append((budget.best and budget.best.machine_count, budget.lower_bound))

    solved(run)
    assert seen == [(7, 0), (7, 2), (6, 2), (6, 2)]


def test_all_is_done_in_the_callers_thread_which_may_be_any() -> None:
    threads, found, lines = set(), [], []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        threads.add(threading.current_thread())
        yield serving(8, 6)

    def note(line: Incumbent) -> None:
        lines.append(line)
        threads.add(threading.current_thread())

    other = threading.Thread(target=lambda: found.append(solved(run, on_improvement=note)))
    other.start()
    other.join()
    assert threads == {other}
    assert tuple(lines) == found[0].history
    assert not [each for each in threading.enumerate() if each.name.startswith("cms")]


def test_an_error_of_the_callers_own_function_ends_the_run() -> None:
    closed = []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        try:
            yield serving(8, 6)
        finally:
            closed.append(1)

    def report(line: Incumbent) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        solved(run, on_improvement=report)
    assert closed == [1]


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


def pressed(problem: Problem, budget: Budget) -> Iterator[Claim]:
    """Press Ctrl-C, think until stopped, then say the best."""
    yield serving(8, 6)
    signal.raise_signal(signal.SIGINT)
    while not budget.stopped:
        time.sleep(0.01)
    yield serving(8, 5)


@pytest.mark.usefixtures("_no_hurry")
def test_ctrl_c_returns_what_is_known_and_restores_the_handler() -> None:
    def twice(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield from pressed(problem, budget)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    solution = solved(pressed, time_limit=None)
    assert (solution.stop_reason, solution.cost) == (StopReason.INTERRUPTED, 5)
    with pytest.raises(KeyboardInterrupt):
        solved(twice, time_limit=None)
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.usefixtures("_no_hurry")
@pytest.mark.parametrize("raises", [True, False])
def test_in_a_program_with_a_handler_of_its_own_ctrl_c_ends_the_run_too(raises: bool) -> None:
    presses = []

    def handler(*_: object) -> None:
        presses.append(1)
        if raises:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    solution = solved(pressed, time_limit=None)
    assert signal.getsignal(signal.SIGINT) is handler
    assert presses == [1]
    # what it raises ends the algorithm where it is
    assert (solution.stop_reason, solution.cost) == (StopReason.INTERRUPTED, 6 if raises else 5)


@pytest.mark.usefixtures("_no_hurry")
def test_an_event_loop_hears_its_signals_after_the_run() -> None:
    heard = []

    async def program() -> Any:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: heard.append(1))
        solution = solved(pressed, time_limit=None)
        assert not heard
        while not heard:
            await asyncio.sleep(0)
        return solution

    assert asyncio.run(program()).stop_reason is StopReason.INTERRUPTED
    assert heard == [1]


@contextmanager
def interruptible() -> Iterator[CtrlC]:
    with CtrlC(take_over=True) as interrupt, interrupt.abortable():
        yield interrupt


def press_that_a_library_swallows() -> None:
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_press_raises_where_it_comes_and_the_handler_before_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_swallowed_press_is_raised_at_the_next_look_or_at_the_end() -> None:
    with suppress(KeyboardInterrupt), interruptible() as interrupt:
        interrupt.look()
        press_that_a_library_swallows()
        with pytest.raises(KeyboardInterrupt):
            interrupt.look()
    with pytest.raises(KeyboardInterrupt), interruptible():
        press_that_a_library_swallows()


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_gives_a_checked_answer(way: str) -> None:
    one = press(way, "cp_sat", 0.2)
    assert one.good, str(one)


def test_ctrl_c_reaches_the_default_method_whatever_it_is_at() -> None:
    """SCIP would take the signal for itself, unless it is told not to."""
    one = press("main", "python", 0.3, "auto")
    assert one.good, str(one)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_gives_a_checked_answer_at_any_moment(way: str, kind: str) -> None:
    moments = random.Random(0)
    for one in (press(way, kind, moments.random()) for _ in range(10)):
        assert one.good, str(one)


DEMAND = 13  # 7 machines


@given(TRUE_CLAIMS)
def test_true_claims_in_any_order_end_at_the_best_of_each(claimed: list[Any]) -> None:
    problem = blocks(DEMAND)
    ledger = Ledger(problem, "test", trusted=True, clock=lambda: 0.0)
    accepted = 0
    for claim in claimed:
        accepted += ledger.hear(claim) is not None
    known = ledger.known
    assert len(known.history) == accepted
    for before, after in zip(known.history, known.history[1:], strict=False):
        assert after.lower_bound >= before.lower_bound
        assert (after.claimed_bound or 0) >= (before.claimed_bound or 0)
        assert before.cost is None or (after.cost is not None and after.cost <= before.cost)
        assert before[1:4] != after[1:4]
    costs = [c.cost(problem) for c in claimed if isinstance(c, Schedule)]
    assert known.cost == min(costs, default=None)
    proved = [-(-c.bound(problem) // 1) for c in claimed if isinstance(c, BlockPrices)]
    assert known.lower_bound == max(proved, default=0)
    assert known.lower_bound == -(-known.certificate.bound(problem) // 1)
    assert known.best is None or not check(problem, known.best)
    met = known.cost in (known.lower_bound, known.claimed_bound)
    status, proof = ledger.verdict
    if known.cost is None:
        assert status is Status.NO_SCHEDULE
    else:
        assert status is (Status.OPTIMAL if met else Status.FEASIBLE)
    assert (proof is Proof.CHECKED) == ledger.proved == (known.cost == known.lower_bound)


amounts = st.sampled_from([0, 0, 1, Fraction(1, 3), 2**70])


@given(st.lists(st.tuples(amounts, amounts, amounts), min_size=1, max_size=4))
def test_what_nothing_can_serve_is_seen_at_once(rows: list[tuple[Any, Any, Any]]) -> None:
    """The ledger's glance at a problem agrees with the certificate that proves it."""
    problem = Problem.from_arrays(
        demands=np.array([row[0] for row in rows], dtype=object),
        supply=np.array([row[1:] for row in rows], dtype=object),
        configurations=Configuration({"here": 1}),
        blocks=["here", "nowhere"],
    )
    hopeless = any(demand and not here for demand, here, _ in rows)
    ledger = Ledger(problem, "test", trusted=False, clock=lambda: 0.0)
    assert (ledger.known.infeasible is Proof.CHECKED) == hopeless
    assert first_certificate(problem).proves_infeasible(problem) == hopeless
    idle = not any(demand for demand, _, _ in rows)
    assert (ledger.known.cost == 0) == idle


def test_of_very_many_violations_only_the_first_are_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.from_arrays(
        demands=[1] * 5000, supply=[[1]] * 5000, configurations=[[1]], blocks=["b"]
    )
    worded = []

    def violation(*facts: str) -> Violation:
        worded.append(facts)
        return Violation(*facts)

    monkeypatch.setattr(import_module("cms.schedule.faults"), "Violation", violation)
    with pytest.raises(AlgorithmError, match="; and more than 997 more violations$"):
        Ledger(problem, "test", trusted=False, clock=lambda: 0.0).hear(Schedule())
    assert len(worded) == 1001
