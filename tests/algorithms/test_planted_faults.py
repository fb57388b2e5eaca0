"""Faults planted in the algorithms, a rounding weakened by one each: some check sees every one.

A fault replaces one small function; the checks are tests of this suite, called as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest

import algorithms.greedy.factors as factors
import algorithms.greedy.inner as inner
import algorithms.greedy.opened as opened
import algorithms.greedy.paths as paths
import algorithms.greedy.steps as steps
import algorithms.linear.aggregated as aggregated
import algorithms.linear.tidy as tidy
import algorithms.lp_rounding as lp_rounding
from cms import solve
from cms.errors import CmsError
from tests.algorithms.greedy import test_factors, test_greedy, test_inner
from tests.algorithms.linear import test_aggregated, test_pseudoforest
from tests.algorithms.lp_rounding import test_lp_rounding
from tests.hard import hard_problem

_true_repair = aggregated.repaired
_true_kappa = factors.kappa
_true_harmonic = factors.harmonic_above
_true_apply = steps.apply
_true_potential = paths.PathRounding.potential
_true_waste = tidy.without_waste


def rounds_down(blocks: Mapping[Any, Fraction]) -> dict[Any, int]:
    """The lemma without its rounding up."""
    return {edge: floor(amount) for edge, amount in blocks.items()}


def rounds_up(blocks: Mapping[Any, Fraction]) -> dict[Any, int]:
    """The lemma without its rounding down."""
    return {edge: -floor(-amount) for edge, amount in blocks.items()}


def buys_one_more(tables: Any, machines: Any, given: Any) -> Any:
    opened, blocks = _true_repair(tables, machines, given)
    return [x + 1 for x in opened], blocks


def keeps_the_machines(tables: Any, machines: Any, given: Any) -> Any:
    """Repair without new machines."""
    _, blocks = _true_repair(tables, machines, given)
    return list(machines), blocks


def opens_once_more(s: Any) -> int:
    return _true_apply(s) + 1


def keeps_the_last(s: Any, c: int, chosen: int, best: float) -> tuple[int, float]:
    """The last configuration that gains anything, instead of the best."""
    gain = steps.fill(s, c)
    steps.undo(s)
    return (c, gain) if gain > 0 else (chosen, best)


def takes_the_worse_direction(self: Any) -> float:
    return -_true_potential(self)


def gives_to_the_first(blocks: Any, bids: Any, budgets: Any) -> Any:
    """An exact filling that looks at the first job only."""
    given = np.zeros(bids.shape, dtype=np.int64)
    given[:, 0] = blocks
    return given


def takes_too_much_back(tables: Any, machines: Any, given: Any) -> Any:
    opened, blocks = _true_waste(tables, machines, given)
    return opened, {edge: max(0, number - 1) for edge, number in blocks.items()}


Check = Callable[[], None]


def traps() -> None:
    for name, machines in (("greedy-trap-4", 4), ("harmonic-trap-3", 8)):
        test_greedy.test_traps_catch_the_textbook_algorithm(name, machines)


def traps_by_item_greedy() -> None:
    problem = hard_problem("greedy-trap-4")
    options = {"variant": "units", "inner": "greedy", "plain": True}
    assert solve(problem, "greedy", options=options).machine_count == 4


def costs() -> None:
    test_greedy.test_costs_decide_between_machines_that_gain_the_same()


FAULTS: list[tuple[str, Any, str, Any, Check]] = [
    (
        "the lemma rounds nothing up",
        test_pseudoforest,
        "round_pseudoforest",
        rounds_down,
        test_pseudoforest.test_rounding_keeps_types_and_loses_less_than_a_block_a_job,
    ),
    (
        "the lemma rounds nothing down",
        test_pseudoforest,
        "round_pseudoforest",
        rounds_up,
        test_pseudoforest.test_rounding_keeps_types_and_loses_less_than_a_block_a_job,
    ),
    (
        "rounding up is left out where machines are opened",
        aggregated,
        "ceil",
        floor,
        test_aggregated.test_roundings_serve_everyone_within_their_bounds_and_prices_prove_the_program,
    ),
    (
        "jobs are given no block more than they want before rounding",
        aggregated,
        "_one_block_more",
        lambda edges, tables: dict(enumerate(map(Fraction, tables.demands))),
        test_aggregated.test_twice_the_machines_are_enough_for_a_block_more_each,
    ),
    (
        "repair buys a machine too many",
        test_aggregated,
        "repaired",
        buys_one_more,
        test_aggregated.test_repair_uses_idle_blocks_before_new_machines,
    ),
    (
        "repair buys no machines",
        aggregated,
        "repaired",
        keeps_the_machines,
        test_aggregated.test_roundings_serve_everyone_within_their_bounds_and_prices_prove_the_program,
    ),
    (
        "clean-up takes one block too many back",
        test_aggregated,
        "without_waste",
        takes_too_much_back,
        lambda: test_aggregated.test_clean_up_keeps_schedules_valid_and_never_dearer(
            aggregated.doubled
        ),
    ),
    ("greedy opens a machine too many", steps, "apply", opens_once_more, costs),
    ("greedy takes any configuration", steps, "consider", keeps_the_last, traps_by_item_greedy),
    (
        "kappa is too small",
        test_factors,
        "kappa",
        lambda n: _true_kappa(n) - Fraction(1, 1000),
        lambda: test_factors.test_kappa_is_the_table_of_the_theory(16, "5.48"),
    ),
    (
        "the harmonic number ends one term early",
        test_factors,
        "harmonic_above",
        lambda n: _true_harmonic(n - 1),
        lambda: test_factors.test_harmonic_numbers_are_met_from_above(30),
    ),
    (
        "path rounding goes the worse way",
        paths.PathRounding,
        "potential",
        takes_the_worse_direction,
        lambda: test_inner.test_a_method_keeps_its_factor_and_gives_no_block_twice("dependent"),
    ),
    (
        "the exact filling is not exact",
        opened,
        "INNER",
        {**inner.INNER, "exact": gives_to_the_first},
        traps,
    ),
    (
        "machines are taken once instead of twice",
        lp_rounding,
        "ceil",
        lambda x: x // 2,
        lambda: test_lp_rounding.test_doubling_is_needless_but_is_what_the_textbook_does(),
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_a_planted_fault_is_seen(
    fault: tuple[str, Any, str, Any, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, module, name, replacement, check = fault
    check()
    monkeypatch.setattr(module, name, replacement)
    with pytest.raises((AssertionError, CmsError)):
        check()
