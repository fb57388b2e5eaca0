"""Certified loads and facts about batched queues; planted faults that each theorem file reports."""

from __future__ import annotations

import heapq
import json
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cms.fleet import monitor_step
from cms.fleet.published import LaunchGate
from proofs_checks import (
    assignment,
    greedy,
    huge_demands,
    launch_gate,
    prices,
    queueing,
    set_cover,
    theorems,
    time_sharing,
)
from proofs_checks.checker import loads
from proofs_checks.finding import Tally
from proofs_checks.tiny import Tiny

CENT = Fraction(1, 100)
ACCEPTED = [(1, "2", 134), (8, "35/16", 608), (32, "9/4", 880), (64, "3", 974)]


@pytest.mark.parametrize(("batch", "ratio", "thousandths"), ACCEPTED)
def test_known_loads_are_proved_and_two_per_cent_more_are_not(
    batch: int, ratio: str, thousandths: int
) -> None:
    load = Fraction(thousandths, 1000)
    assert loads.why_not(batch, Fraction(ratio), CENT, load) == ""
    for too_much in (load * Fraction(102, 100), Fraction(1)):
        assert loads.why_not(batch, Fraction(ratio), CENT, too_much)


def test_what_cannot_be_proved_says_why() -> None:
    assert "the late share is not at most 1/100" in loads.why_not(
        8, Fraction(35, 16), CENT, Fraction(64, 100)
    )
    assert "expected at least 2" in loads.why_not(8, Fraction(31, 16), CENT, Fraction(1, 100))
    assert "the queue grows" in loads.why_not(8, Fraction(9), CENT, Fraction(1))
    assert loads.why_not(8, Fraction(1), CENT, Fraction(0)) == ""


@pytest.mark.parametrize("factor", [0, 0.9, 0.999])
def test_a_guess_that_is_too_low_is_no_bound(factor: float) -> None:
    def low(a: Fraction, b: int, decay: Fraction, m: int) -> Sequence[float]:
        return [factor * each for each in loads.waiting_tail(a, b, decay, m)]

    why = loads.why_not(8, Fraction(35, 16), CENT, Fraction(1, 2), low)
    assert why == "the guess at load 1/2 is no bound"


def test_a_table_is_checked_entry_by_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {
        "late_shares": ["1/100"], "ratios": ["2", "3"], "batches": [1, 8],
        "thousandths": [[[[134, 506], [319, 825]]]],
    }  # fmt: skip
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table), "utf-8")
    assert loads.main([str(path)]) == 0
    assert len(list(loads.faults(table, raised=Fraction(102, 100)))) == 4
    assert not list(loads.faults(table, every=3))
    table["thousandths"] = [[[[134, 517], [319, 825]]]]
    path.write_text(json.dumps(table), "utf-8")
    assert loads.main([str(path)]) == 1
    assert "batch 8, ratio 2, late share 1/100: at load" in capsys.readouterr().err


@pytest.mark.long
def test_every_entry_of_the_shipped_table_is_proved_and_refused_when_raised() -> None:
    table = list(loads.entries(queueing.certified()))
    assert len(table) == 3 * 57 * 9
    for entry in table:
        assert loads.why_not(*entry) == "", entry
        assert loads.why_not(*entry[:3], queueing.RAISED * entry[3]), entry


@pytest.mark.long
def test_the_facts_hold_on_ten_thousand_paths_poisson_and_others() -> None:
    largest = Fraction(0)
    for number in range(10_000):
        path = queueing.random_path(random.Random(f"long {number}"))
        queueing.require_fact_1(path)
        largest = max(largest, queueing.require_fact_2(path))
    assert Fraction(9, 10) < largest <= 1  # the bound is nearly reached


def lazy(c: int, b: int, times: Sequence[int], arrivals: Sequence[int]) -> queueing.Path:
    """A replay whose batches start late, though a process is idle."""
    free, starts, ends, at = [0] * c, list[int](), list[int](), 0
    while at < len(arrivals):
        start = max(heapq.heappop(free), arrivals[at]) + times[-1]
        fill = min(b, bisect_right(arrivals, start) - at)
        starts += [start] * fill
        ends += [start + times[fill - 1]] * fill
        heapq.heappush(free, ends[-1])
        at += fill
    return queueing.Path(c, b, times, arrivals, starts, ends)


true_completed = assignment.completed
true_at_once = huge_demands.at_once
true_replay = queueing.replay
true_certified = queueing.certified
true_schedule_of = set_cover.schedule_of
true_least_cycle = time_sharing.least_cycle


class Fault(NamedTuple):
    """What replaces a name of a module, which a check has to notice: by default the module's."""

    words: str
    place: str
    replacement: Any
    cases: int = 40
    check: str = ""

    @property
    def theorem(self) -> str:
        return self.check or self.place.split(".")[0]


def second_best(tiny: Tiny, machines: Sequence[greedy.Machine]) -> greedy.Machine:
    ranked = sorted(machines, key=lambda m: -m.gain / tiny.costs[m.configuration])
    return ranked[min(1, len(ranked) - 1)]


def all_for_the_last(
    tiny: Tiny, C: int, weights: greedy.Numbers, residual: greedy.Numbers
) -> greedy.Assignment:
    nothing = (0,) * tiny.k
    return (*[nothing] * (tiny.n - 1), tiny.configurations[C])


def rescaled_demand(tiny: Tiny, rng: object) -> Tiny:
    return replace(tiny, demands=tuple(3 * d for d in tiny.demands))


def scaled_dual(factor: Fraction) -> Callable[[Tiny], prices.Prices]:
    original = prices.dual_prices
    return lambda tiny: tuple(factor * p for p in original(tiny))


def half_the_cycle(points: Any, rates: Any) -> Fraction | None:
    cycle = true_least_cycle(points, rates)
    return None if cycle is None else cycle / 2


def one_by_one(c: int, b: int, times: Sequence[int], arrivals: Sequence[int]) -> queueing.Path:
    """Serve every request by itself, in the time of a full batch."""
    return true_replay(c, 1, [times[-1]], arrivals)._replace(b=b, times=times)


def too_good() -> dict[str, Any]:
    """Two and a half per cent more load than is proved."""
    table = true_certified()
    more = [[[[each + 25 for each in row] for row in rows] for rows in part]
            for part in table["thousandths"]]  # fmt: skip
    return {**table, "thousandths": more}


def one_less(classes: assignment.Classes, v: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(0, price - 1) for price in true_completed(classes, v))


def never_calmer(state: Any, signal: Any, times: Any, table: Any) -> Any:
    after, action = monitor_step(state, signal, times, table)
    return after._replace(level=max(after.level, state.level)), action


def deaf(case: launch_gate.Case) -> LaunchGate:
    class Deaf(LaunchGate):
        def opens(self, *, online_waits: bool) -> bool:
            return super().opens(online_waits=False)

    return Deaf(case.share, case.burst)


def no_waits(*_: object) -> None:
    """Let actions wait for nothing."""


FAULTS = [
    Fault("up becomes down", "rounding_lemma.rounds_up", lambda owner: False),
    Fault("T-2 by 3/2", "t2_tadd.FACTOR", Fraction(3, 2)),
    Fault("Theorem A without doubling", "theorem_a.FACTOR", 1),
    Fault("A'' opens floors", "few_configurations.machines_for",
        lambda amounts, factor: [floor(factor * x) for x in amounts]),
    Fault("Theorem B rounds down", "theorem_b.whole_blocks", floor, 200),
    Fault("greedy takes the second best, units", "greedy.choose", second_best, check="g_int"),
    Fault("greedy takes the second best, shares", "greedy.choose", second_best, 10, check="g_real"),
    Fault("greedy takes the second best, alone", "greedy.choose", second_best, 10, check="g_alone"),
    Fault("a cover's last machine is left out", "set_cover.schedule_of",
        lambda system, cover: true_schedule_of(system, cover[:-1]), 5),
    Fault("box one too large", "cells.box", lambda: (-2, 2), 5, check="structure_theorem"),
    Fault("a machine's blocks all go to one job", "inner_problem.best_pair_first",
        all_for_the_last, 10),
    Fault("limits cost nothing", "limits.limited_bound",
        lambda limited, at, sigma: prices.bound(limited.tiny, at)),
    Fault("one block too many at once", "huge_demands.at_once",
        lambda supply, b, demand: true_at_once(supply, b, demand) + 1, 10),
    Fault("a job by itself needs nothing", "bound_chain.single_job", lambda tiny: 0, 1),
    Fault("always rounding", "ptas_switch.rounds", lambda k, value, eps: True, 45),
    Fault("one block of the total is missing", "list_hardness.other_demand",
        lambda width, machines, total: (total, machines * width - total - 1 or 1)),
    Fault("duals too high", "prices.dual_prices", scaled_dual(Fraction(11, 10))),
    Fault("batches are of one", "queueing.replay", one_by_one, 12),
    Fault("batches start late", "queueing.replay", lazy, 12),
    Fault("the table promises too much", "queueing.certified", too_good, 12),
    Fault("scaling forgets the supply", "monotone.SAME", (rescaled_demand,), 10),
    Fault("cycles stay short", "time_sharing.least_cycle", half_the_cycle, 30),
    Fault("GPUs are priced too low", "assignment.completed", one_less, 30),
    Fault("calm monitors stay wary", "monitor.monitor_step", never_calmer, 4),
    Fault("the gate hears no requests", "launch_gate.gate_of", deaf, 20),
    Fault("no waits for floors", "cms.fleet.deployment.transition.waits._for_floors",
        no_waits, 30, check="parallel_order"),
]  # fmt: skip


class Reported(AssertionError):
    """A theorem's check has written a failure down."""


def check(name: str, cases: int) -> None:
    """A theorem's check, without any algorithm of the package."""
    only_plain = {"solver": None} if theorems.runs_algorithms(name) else {}
    finding = theorems.CHECKS[name](cases=cases, **only_plain)
    assert finding.ok, finding.failures


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.words)
def test_a_planted_fault_is_reported(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    check(fault.theorem, 5)
    root = "" if fault.place.startswith("cms.") else "proofs_checks."
    monkeypatch.setattr(f"{root}{fault.place}", fault.replacement)
    case = Tally.case

    @contextmanager
    def stop_at_a_failure(tally: Tally, name: object) -> Iterator[None]:
        with case(tally, name):
            yield
        if tally.finding().failures:
            raise Reported

    monkeypatch.setattr(Tally, "case", stop_at_a_failure)
    with pytest.raises(Reported):
        check(fault.theorem, fault.cases)


def test_there_is_a_fault_for_every_theorem_file() -> None:
    assert {fault.theorem for fault in FAULTS} == set(theorems.CHECKS)
