"""Planted faults: a rounding weakened by one, a factor too small, a step left out.

Each is put into the plain version of an algorithm in `proofs_checks`; the theorem's check has to
report it, naming a case. That the same check is content without the fault is part of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any, NamedTuple

import pytest

from cms.fleet import monitor_step
from cms.fleet.published import LaunchGate
from proofs_checks import (
    assignment,
    bounds,
    cells,
    few_configurations,
    g_alone,
    g_int,
    g_real,
    greedy,
    huge_demands,
    launch_gate,
    prices,
    queueing,
    set_cover,
    t2_tadd,
    theorem_a,
    theorems,
    time_sharing,
)
from proofs_checks.brute_force import options
from proofs_checks.tiny import Blocks, Counts, Tiny
from tests.references.faults import Reported, holds, stop_at_a_failure

true_arcs = assignment.arcs
true_completed = assignment.completed
true_at_once = huge_demands.at_once
true_replay = queueing.replay
true_enumerated = few_configurations.enumerated
true_alone = g_alone.factor
true_kappa = g_real.kappa
true_largest_gain = g_int.largest_gain
true_schedule_of = set_cover.schedule_of
true_single_job = bounds.single_job
true_slack_class = cells.slack_class
true_least_cycle = time_sharing.least_cycle
true_most_paid = time_sharing.most_paid


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


def all_but_the_last(tiny: Tiny, amounts: Sequence[Fraction]) -> bool:
    pairs = list(zip(amounts, tiny.demands, strict=True))
    return all(v >= d for v, d in pairs[:-1]) and pairs[-1][0] > 0


def all_for_the_last(
    tiny: Tiny, C: int, weights: greedy.Numbers, residual: greedy.Numbers
) -> greedy.Assignment:
    nothing = (0,) * tiny.k
    return (*[nothing] * (tiny.n - 1), tiny.configurations[C])


def dearest_option(tiny: Tiny, j: int, at: prices.Prices) -> Blocks:
    return max(options(tiny, j), key=lambda option: prices.worth(at, option))


def rescaled_demand(tiny: Tiny, rng: object) -> Tiny:
    return replace(tiny, demands=tuple(3 * d for d in tiny.demands))


def one_machine_too_few(tiny: Tiny, machines: list[int]) -> Counts | None:
    """Theorem A on one machine too few."""
    counts = theorem_a.doubled(tiny, machines)
    if counts is None:
        return None
    first = next(C for C, number in enumerate(counts.machines) if number)
    fewer = [number - (C == first) for C, number in enumerate(counts.machines)]
    return Counts(fewer, counts.given)


def scaled_dual(factor: Fraction) -> Callable[[Tiny], prices.Prices]:
    original = prices.dual_prices
    return lambda tiny: tuple(factor * p for p in original(tiny))


def half_the_cycle(points: Any, rates: Any) -> Fraction | None:
    cycle = true_least_cycle(points, rates)
    return None if cycle is None else cycle / 2


def at_first(function: Any, demand: Any, amount: Any, lo: Any, hi: Any) -> Fraction:
    return true_most_paid(function, demand, amount, lo, lo)


def one_by_one(c: int, b: int, times: Sequence[int], arrivals: Sequence[int]) -> queueing.Path:
    """Serve every request by itself, in the time of a full batch."""
    return true_replay(c, 1, [times[-1]], arrivals)._replace(b=b, times=times)


def one_less(classes: assignment.Classes, v: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(0, price - 1) for price in true_completed(classes, v))


def nobody_alone(classes: assignment.Classes, plan: assignment.Plan) -> dict[tuple[int, int], int]:
    """Forget the arcs that say what it is worth to be left over."""
    none = len(classes.offline)
    lengths = true_arcs(classes, plan).items()
    return {(a, b): 0 if a == none else n for (a, b), n in lengths if b != none}


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
    Fault("down becomes up", "rounding_lemma.rounds_up", lambda owner: True),
    Fault("types round down, jobs up", "rounding_lemma.rounds_up", lambda owner: owner[0] == "job"),
    Fault("T-2 by 3/2", "t2_tadd.FACTOR", Fraction(3, 2)),
    Fault("T-2 opens floors", "t2_tadd.machines_for",
        lambda amounts, factor: [floor(factor * x) for x in amounts]),
    Fault("T-add repairs nothing", "t2_tadd.repaired",
        lambda tiny: (t2_tadd.scaled(tiny, Fraction(1)), [])),
    Fault("Theorem A without doubling", "theorem_a.FACTOR", 1),
    Fault("A'' opens floors", "few_configurations.machines_for",
        lambda amounts, factor: [floor(factor * x) for x in amounts]),
    Fault("A' one machine too few", "few_configurations.doubled", one_machine_too_few),
    Fault("U too small for A'", "few_configurations.most_machines",
        lambda tiny, epsilon: (1 / epsilon + 1) * tiny.c, 1),
    Fault("A' with epsilon 4 whatever is asked", "few_configurations.enumerated",
        lambda tiny, epsilon: true_enumerated(tiny, Fraction(4)), 1),
    Fault("phi is always 1", "tiny.Tiny.phi",
        property(lambda tiny: Fraction(1)), 1, check="t2_tadd"),
    Fault("Theorem B rounds down", "theorem_b.whole_blocks", floor, 200),
    Fault("Theorem B buys no missing block", "theorem_b.with_missing",
        lambda tiny, counts, lacking: counts, 400),
    Fault("K one too small", "theorem_b.additive_loss", lambda k: max(k, (k - 1) ** 2) - 1),
    Fault("greedy takes the second best, units", "greedy.choose", second_best, check="g_int"),
    Fault("greedy takes the second best, shares", "greedy.choose", second_best, 10, check="g_real"),
    Fault("greedy stops early, units", "greedy.enough", all_but_the_last, check="g_int"),
    Fault("greedy stops early, shares", "greedy.enough", all_but_the_last, 10, check="g_real"),
    Fault("no inflation", "g_real.targets", lambda tiny, delta: list(tiny.demands), 5),
    Fault("kappa too small", "g_real.kappa", lambda n: true_kappa(n) - 0.01, 5),
    Fault("greedy takes the second best, alone", "greedy.choose", second_best, 10, check="g_alone"),
    Fault("greedy stops early, alone", "greedy.enough", all_but_the_last, 10, check="g_alone"),
    Fault("no inflation, alone", "g_alone.targets", lambda tiny, delta: list(tiny.demands), 5),
    Fault("every job is as dear alone", "g_alone.alone", lambda tiny, j: Fraction(1), 5),
    Fault("half the factor", "g_alone.factor", lambda few, delta: true_alone(few, delta) / 2, 20),
    Fault("harmonic number off by one", "g_int.harmonic",
        lambda m: sum((Fraction(1, unit) for unit in range(1, m)), Fraction(0))),
    Fault("largest gain off by one", "g_int.largest_gain",
        lambda tiny: true_largest_gain(tiny) - 1),
    Fault("a cover's last machine is left out", "set_cover.schedule_of",
        lambda system, cover: true_schedule_of(system, cover[:-1]), 5),
    Fault("box one too large", "cells.box", lambda: (-2, 2), 5, check="structure_theorem"),
    Fault("classes too coarse", "cells.slack_class",
        lambda slack, dimension: true_slack_class(slack, 1), 5, check="structure_theorem"),
    Fault("mirrored at the farther end", "structure_theorem.nearer_end",
        lambda mu, low, high: low if 2 * mu >= low + high else high, 20),
    Fault("one slot too few", "structure_theorem.slots", lambda D: 2**D - 1, 5),
    Fault("a machine's blocks all go to one job", "inner_problem.best_pair_first",
        all_for_the_last, 10),
    Fault("limits cost nothing", "limits.limited_bound",
        lambda limited, at, sigma: prices.bound(limited.tiny, at)),
    Fault("one block too many at once", "huge_demands.at_once",
        lambda supply, b, demand: true_at_once(supply, b, demand) + 1, 10),
    Fault("too few blocks at once", "huge_demands.at_once",
        lambda supply, b, demand: max(0, (demand - 4 * supply[b] * max(supply)) // supply[b]), 10),
    Fault("a job by itself needs nothing", "bound_chain.single_job", lambda tiny: 0, 1),
    Fault("X holds all maximal points", "structure_theorem.by_cells", cells.by_boxes, 1),
    Fault("always rounding", "ptas_switch.rounds", lambda k, value, eps: True, 45),
    Fault("a loss of K is overlooked", "ptas_switch.additive_loss", lambda k: 0, 45),
    Fault("one block of the total is missing", "list_hardness.other_demand",
        lambda width, machines, total: (total, machines * width - total - 1 or 1)),
    Fault("duals too high", "prices.dual_prices", scaled_dual(Fraction(11, 10))),
    Fault("duals too low", "prices.dual_prices", scaled_dual(Fraction(9, 10))),
    Fault("jobs buy dearly", "prices.cheapest", dearest_option),
    Fault("a job by itself off by one", "bound_chain.single_job",
        lambda tiny: true_single_job(tiny) + 1),
    Fault("batches are of one", "queueing.replay", one_by_one, 12),
    Fault("scaling forgets the supply", "monotone.SAME", (rescaled_demand,), 10),
    Fault("cycles stay short", "time_sharing.least_cycle", half_the_cycle, 30),
    Fault("jobs pay as in the first cycle", "time_sharing.most_paid", at_first, 30),
    Fault("GPUs are priced too low", "assignment.completed", one_less, 30),
    Fault("nobody stays alone", "assignment.arcs", nobody_alone, 30),
    Fault("calm monitors stay wary", "monitor.monitor_step", never_calmer, 4),
    Fault("the gate hears no requests", "launch_gate.gate_of", deaf, 20),
    Fault("no waits for floors", "cms.fleet.deployment.transition.order._for_floors",
        no_waits, 30, check="parallel_order"),
    Fault("no waits for layouts", "cms.fleet.deployment.transition.order._for_layouts",
        no_waits, 30, check="parallel_order"),
    Fault("no waits for GPUs", "cms.fleet.deployment.transition.order._for_gpus",
        no_waits, 30, check="parallel_order"),
]  # fmt: skip


@cache
def plain(name: str, cases: int) -> Callable[[], None]:
    """A theorem's check, without any algorithm of the package."""
    only_plain = {"solver": None} if theorems.runs_algorithms(name) else {}

    def check() -> None:
        finding = theorems.CHECKS[name](cases=cases, **only_plain)
        assert finding.ok, finding.failures

    return check


#: One for each theorem; what else is planted in it is for the long run.
KEPT = [
    pytest.param(
        fault,
        marks=[pytest.mark.long] if fault.theorem in [one.theorem for one in FAULTS[:at]] else [],
    )
    for at, fault in enumerate(FAULTS)
]


@pytest.mark.parametrize("fault", KEPT, ids=lambda fault: fault.words)
def test_a_planted_fault_is_reported(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(plain(fault.theorem, 5))
    root = "" if fault.place.startswith("cms.") else "proofs_checks."
    monkeypatch.setattr(f"{root}{fault.place}", fault.replacement)
    stop_at_a_failure(monkeypatch)
    with pytest.raises(Reported):
        plain(fault.theorem, fault.cases)()


def test_there_is_a_fault_for_every_theorem_file() -> None:
    assert {fault.theorem for fault in FAULTS} == set(theorems.CHECKS)
    assert len({fault.words for fault in FAULTS}) == len(FAULTS) >= 10
