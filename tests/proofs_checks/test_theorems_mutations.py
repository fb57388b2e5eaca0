"""Planted faults: a rounding weakened by one, a factor too small, a step left out.

Each is put into the plain version of an algorithm in `proofs_checks`; the theorem's check has to
report it, naming a case. That the same check is content without the fault is part of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from math import floor
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
from proofs_checks.finding import Tally
from proofs_checks.tiny import Tiny

true_completed = assignment.completed
true_at_once = huge_demands.at_once
true_replay = queueing.replay
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
    Fault("scaling forgets the supply", "monotone.SAME", (rescaled_demand,), 10),
    Fault("cycles stay short", "time_sharing.least_cycle", half_the_cycle, 30),
    Fault("GPUs are priced too low", "assignment.completed", one_less, 30),
    Fault("calm monitors stay wary", "monitor.monitor_step", never_calmer, 4),
    Fault("the gate hears no requests", "launch_gate.gate_of", deaf, 20),
    Fault("no waits for floors", "cms.fleet.deployment.transition.order._for_floors",
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
