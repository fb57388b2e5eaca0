"""Faults planted in the algorithms, a rounding weakened by one each: some check sees every one.

A fault replaces one small function where an algorithm looks it up; the checks are tests of this
suite and theorem files of `proofs_checks`, called as they stand. That nothing is seen where nothing
is wrong, these tests say themselves, and ``test_theorems`` of as many cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from math import ceil, floor
from typing import Any

import numpy as np
import pytest

import algorithms.aggregated.program as aggregated
import algorithms.aggregated.pseudoforest as pseudoforest
import algorithms.aggregated.tidy as tidy
import algorithms.conic.run as content_program
import algorithms.greedy.inner as inner
import algorithms.greedy.opening as opening
import algorithms.greedy.promises as promises
import algorithms.greedy.steps as steps
import algorithms.lp_rounding as lp_rounding
import algorithms.prices.vertex as options_rounding
import algorithms.ptas as ptas
from algorithms.conic.polygon import Polygon
from algorithms.ptas.few_machines import DynamicProgram
from cms.errors import CmsError
from proofs_checks import theorems
from tests.algorithms import test_guarantees
from tests.algorithms.aggregated import test_aggregated
from tests.algorithms.conic import test_conic
from tests.algorithms.greedy import test_greedy
from tests.instances import test_hard
from tests.references.faults import stop_at_a_failure

Check = Callable[[], object]


def changed(true: Callable[..., Any], how: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function whose result is changed afterwards."""
    return lambda *given, **named: how(true(*given, **named))


_repaired, _whole, _harmonic = aggregated.repaired, aggregated._whole, promises.harmonic_above
_table, _ptas = DynamicProgram.__init__, ptas._Run.__init__
_taken, _with_missing = options_rounding.taken, options_rounding.with_missing


def keeps_the_machines(tables: Any, machines: Any, given: Any, budget: Any = None) -> Any:
    """Repair without new machines."""
    return list(machines), _repaired(tables, machines, given, budget)[1]


def gives_to_the_first(blocks: Any, bids: Any, budgets: Any) -> Any:
    """An exact filling that looks at the first job only."""
    given = np.zeros(bids.shape, dtype=np.int64)
    given[:, 0] = blocks
    return given


def takes_three_times_epsilon(self: Any, problem: Any, options: Any, budget: Any) -> None:
    loose = replace(options, epsilon=min(Fraction(1), 3 * options.epsilon))
    _ptas(self, problem, loose, budget)


def takes_one_more(chosen: Any) -> Any:
    taken = _taken(chosen)
    return taken if len(chosen) == 1 else tuple(blocks + 1 for blocks in taken)


def buys_one_a_block(problem: Any, machines: Any, load: Any) -> Any:
    enough = _with_missing(problem, machines, load)
    more = {shape: n - machines.get(shape, 0) for shape, n in enough.items()}
    return {c: n + more[c] * (max(c.blocks.values()) - 1) for c, n in enough.items()}


def never_few(tables: Any, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """A' for which every program is large: T-2, always."""
    return Fraction(0), 2 * tables.dearest(tables.p) / epsilon + tables.dearest(tables.p)


@cache
def theorem(name: str, cases: int) -> Check:
    """The theorem file's check of the plain version and of the algorithms."""

    def check() -> None:
        finding = theorems.run(name, cases=cases)
        assert finding.ok, finding.failures

    return check


def takes(name: str, method: str, options: Any, machines: int) -> Check:
    """The theory's instance, which a method solves by so many machines."""
    known = test_hard.test_a_method_takes_as_many_machines_as_the_theory_says
    return partial(known, name, method, options, machines)


def known_factor() -> None:
    test_greedy.test_the_inflated_factor_is_the_table_of_the_theory(16, "5.48")


def three_quarters() -> None:
    test_greedy.test_a_method_keeps_its_factor_and_gives_no_block_twice("dependent", 0)


def doubling() -> None:
    variant = {"variant": "doubling"}
    test_guarantees.test_a_variant_keeps_its_guarantee_on_other_families("lp_rounding", variant)


peels = changed(pseudoforest._peeled, lambda found: [(node, None) for node, _ in found])
one_more = changed(_repaired, lambda found: ([x + 1 for x in found[0]], found[1]))
takes_back = changed(tidy.without_waste, lambda found: (found[0], np.maximum(0, found[1] - 1)))
opens_more = changed(steps.apply, lambda opened: opened + 1)
too_small = changed(promises.rounded_up, lambda value: value - Fraction(1, 1000))
worse_way = changed(inner.PathRounding.potential, lambda value: -value)
every_second = changed(Polygon.list_corners, lambda corners: corners[::2])
to_the_first = {**inner.INNER, "exact": gives_to_the_first}


def as_wanted(tables: Any, blocks: Any, more: int, budget: Any) -> Any:
    return _whole(tables, blocks, 0, budget)


def halves(tables: Any, machines: Any, blocks: Any, budget: Any) -> Any:
    return aggregated.rounded(tables, [x / 2 for x in machines], blocks, budget)


def any_support(tables: Any, budget: Any) -> Any:
    return aggregated.Aggregated(tables).solve(budget)


def starts_late(self: Any, fleet: Any, lowest: Fraction, highest: Fraction) -> None:
    _table(self, fleet, lowest + fleet.step, highest)


lemma = test_aggregated.test_rounding_keeps_types_and_loses_less_than_a_block_a_job
roundings = test_aggregated.test_roundings_keep_their_bounds_and_prices_prove_the_program
repair = test_aggregated.test_repair_uses_idle_blocks_before_new_machines
costs = test_greedy.test_costs_decide_between_machines
corners = test_conic.test_machines_are_corners_and_at_most_two_others
theorem_b, switch = theorem("theorem_b", 1), theorem("ptas_switch", 3)
few, slots = theorem("few_configurations", 1), theorem("structure_theorem", 1)
trap = takes("harmonic-trap-3", "greedy", test_hard.GREEDY, 8)
doubled = takes("needless-doubling", "lp_rounding", test_hard.PLAIN, 2)
#: What is replaced, where, and the check that has to notice it.
FAULTS: list[tuple[str, Any, str, Any, Check]] = [
    ("the lemma rounds no leaf's edge up", pseudoforest, "_peeled", peels, lemma),
    ("the lemma rounds no cycle up", pseudoforest, "_cycles", lambda graph: [], lemma),
    ("the lemma rounds nothing down", pseudoforest, "floor", ceil, lemma),
    ("machines are opened by rounding down", aggregated, "ceil", floor, roundings),
    ("jobs get no more than they want", aggregated, "_whole", as_wanted, theorem("t2_tadd", 1)),
    ("repair buys a machine too many", aggregated, "repaired", one_more, repair),
    ("repair buys no machines", aggregated, "repaired", keeps_the_machines, roundings),
    ("clean-up takes a block too many", tidy, "without_waste", takes_back, doubling),
    ("greedy opens a machine too many", steps, "apply", opens_more, costs),
    ("greedy looks at no costs", steps, "rate", lambda gain, cost: gain, costs),
    ("the inflated factor is too small", promises, "rounded_up", too_small, known_factor),
    (
        "the harmonic number ends one term early",
        promises,
        "harmonic_above",
        lambda n: _harmonic(n - 1),
        theorem("g_int", 1),
    ),
    ("paths are rounded the worse way", inner.PathRounding, "potential", worse_way, three_quarters),
    ("the exact filling is not exact", opening, "INNER", to_the_first, trap),
    ("machines are taken once, not twice", lp_rounding, "rounded", halves, doubled),
    ("A'' takes a support without using it", lp_rounding, "cheapest_support", any_support, few),
    ("A' takes T-2 always", lp_rounding, "_switch", never_few, few),
    ("the dynamic program starts late", DynamicProgram, "__init__", starts_late, switch),
    ("the PTAS takes 3 epsilon", ptas._Run, "__init__", takes_three_times_epsilon, switch),
    (
        "Theorem B buys no missing blocks",
        options_rounding,
        "with_missing",
        lambda problem, machines, load: dict(machines),
        theorem_b,
    ),
    ("Theorem B buys one a block", options_rounding, "with_missing", buys_one_a_block, theorem_b),
    ("Theorem B gives a block more", options_rounding, "taken", takes_one_more, theorem_b),
    ("conic has no free machines", content_program, "SLOTS", 0, slots),
    ("conic leaves every second corner out", Polygon, "list_corners", every_second, corners),
]


#: What takes more than half a second to be seen, and is like another one.
LONG = {
    "A'' takes a support without using it",
    "the dynamic program starts late",
    "the harmonic number ends one term early",
}


@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, marks=[pytest.mark.long] if one[0] in LONG else []) for one in FAULTS],
    ids=lambda fault: fault[0],
)
def test_a_planted_fault_is_seen(
    fault: tuple[str, Any, str, Any, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, module, name, replacement, check = fault
    monkeypatch.setattr(module, name, replacement)
    stop_at_a_failure(monkeypatch)
    with pytest.raises((AssertionError, CmsError)):
        check()
