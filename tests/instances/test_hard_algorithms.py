"""The theory's instances through the algorithms: traps are fallen into, ratios are reached.

``test_hard`` recomputes what is known of each instance; here it is taken as known.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from cms import (
    Configuration,
    Job,
    NamedProblem,
    Problem,
    Proof,
    Reference,
    Solution,
    Status,
    StopReason,
    UnsupportedProblem,
    load_instance,
    solve,
)
from tests.references.guarantees import METHODS, examine, must_take, promise
from tests.references.named import EVERY, HUGE
from tests.samples import in_turn

Options = Mapping[str, Any]

PLAIN: Options = {"plain": True}
GREEDY: Options = {"plain": True, "variant": "units", "inner": "exact"}
ROUNDING = ("milp", "published", "supports", "enumeration", "doubling")
ROUTES = ("auto", "points", "cells")


def named(name: str) -> NamedProblem:
    found = load_instance(name)
    assert isinstance(found, NamedProblem)
    return found


def ran(name: str, method: str, options: Options) -> Solution:
    """A run to its end: what is found is the method's own, and no clock had a part in it."""
    solution = solve(named(name).make(), method, options=options, threads=1, time_limit=None)
    assert solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED)
    return solution


def allowed(name: str, method: str, options: Options) -> Fraction:
    """What a method's guarantee allows, by the known value it is against."""
    one = named(name)
    promised = promise(one.make(), method, options)
    assert promised is not None
    value = one.optimum if promised.against is Reference.OPT else one.bounds[promised.against]
    assert value is not None
    return promised.allows(value)


# --- every instance through every method ----------------------------------------------------------


@pytest.mark.parametrize(("method", "name"), in_turn(3, METHODS, sorted(EVERY)))
def test_every_instance_ends_between_its_optimum_and_the_guarantee(method: str, name: str) -> None:
    one = named(name)
    problem = one.make()
    try:
        solution = solve(problem, method, threads=1, time_limit=None)
    except UnsupportedProblem as fault:
        refusal = str(fault)
    else:
        refusal = ""
        _assert_within(one, problem, method, solution)
    assert not (refusal and must_take(method, {}, problem)), refusal


def _assert_within(one: NamedProblem, problem: Problem, method: str, solution: Solution) -> None:
    assert solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED)
    if one.infeasible:
        assert solution.status in (Status.INFEASIBLE, Status.NO_SCHEDULE)
        return
    assert one.optimum is not None
    assert solution.cost is not None
    assert solution.lower_bound <= one.optimum <= solution.cost
    promised = promise(problem, method, {})
    assert promised is not None or not must_take(method, {}, problem)
    if promised is not None:
        value = one.bounds.get(promised.against, one.optimum)
        assert solution.cost <= promised.allows(value)


@pytest.mark.parametrize("name", sorted(HUGE))
@pytest.mark.parametrize("method", ["greedy", "lp_rounding", "ptas"])
def test_a_huge_demand_is_met_by_a_handful_of_groups(method: str, name: str) -> None:
    solution = ran(name, method, {})
    assert solution.machine_count is not None
    assert solution.machine_count > 10**9
    assert len(solution.schedule.groups) <= 100


# --- greedy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("greedy-trap-3", 3),
        ("greedy-trap-4", 4),
        ("harmonic-trap-2", 4),
        ("harmonic-trap-3", 8),
        ("harmonic-trap-4", 13),
    ],
)
def test_bare_greedy_falls_into_its_trap(name: str, steps: int) -> None:
    assert ran(name, "greedy", GREEDY).machine_count == steps
    assert steps <= allowed(name, "greedy", GREEDY)
    # The best of its own parts, tidied up, is no worse.
    best = ran(name, "greedy", {}).cost
    assert best is not None
    assert best <= steps


def test_the_best_pair_first_fills_a_machine_half_as_well_as_is_possible() -> None:
    assert ran("half-trap", "greedy", {**GREEDY, "inner": "greedy"}).machine_count == 3
    assert ran("half-trap", "greedy", GREEDY).machine_count == 2


# --- rounding -------------------------------------------------------------------------------------


def test_bare_rounding_doubles_needlessly() -> None:
    # The theorem's factor 2 is reached exactly.
    bare = ran("needless-doubling", "lp_rounding", PLAIN)
    assert bare.machine_count == allowed("needless-doubling", "lp_rounding", PLAIN) == 2
    assert ran("needless-doubling", "lp_rounding", {}).machine_count == 1


@pytest.mark.parametrize("plain", [{}, PLAIN], ids=["default", "plain"])
def test_a_partition_that_does_not_exist_costs_twice_what_the_program_says(plain: Options) -> None:
    # The optimum itself is twice MILP_c: no rounding of that program can promise less than 2.
    solution = ran("partition-no", "lp_rounding", plain)
    promised = promise(named("partition-no").make(), "lp_rounding", plain)
    assert promised is not None
    assert (promised.factor, promised.additive, promised.against) == (2, 0, Reference.MILP_C)
    assert solution.machine_count == allowed("partition-no", "lp_rounding", plain) == 2


@pytest.mark.parametrize("variant", ["milp", "published", "supports", "enumeration"])
def test_machines_that_are_cheap_in_parts_are_no_decoys(variant: str) -> None:
    # T-2 buys one of each; what counts whole machines, or supports, buys the one for all twice.
    options = {"variant": variant, **PLAIN}
    assert ran("decoys", "lp_rounding", options).machine_count == 2
    assert allowed("decoys", "lp_rounding", options) < 4
    assert ran("decoys", "lp_rounding", {"variant": "doubling", **PLAIN}).machine_count == 4


@pytest.mark.parametrize("plain", [{}, PLAIN], ids=["default", "plain"])
@pytest.mark.parametrize("variant", ROUNDING)
@pytest.mark.parametrize("digits", [9, 18])
def test_a_demand_a_hair_above_one_block_costs_no_more_than_is_guaranteed(
    digits: int, variant: str, plain: Options
) -> None:
    # Floats take one b to be enough: then twice the machines do not do along the one edge used.
    problem = Problem(
        configurations=Configuration({"a": 3, "b": 1}),
        jobs=[Job("x", 9 * 10**digits + 1, {"a": 10**digits, "b": 9 * 10**digits})],
    )
    options = {"variant": variant, **plain}
    assert examine(problem, Fraction(1), "lp_rounding", options) is not None


# --- options, and all configurations up to a size -------------------------------------------------


@pytest.mark.parametrize("name", ["aggregated-lp-gap", "ceil-gap", "partition-no", "non-irup"])
@pytest.mark.parametrize("epsilon", ["1", "1/10"])
def test_the_switch_to_the_exact_regime_closes_the_gap_of_the_bound(
    epsilon: str, name: str
) -> None:
    solution = ran(name, "ptas", {"epsilon": epsilon})
    assert solution.cost == named(name).optimum
    assert solution.proof is not Proof.NONE


@pytest.mark.parametrize("plain", [{}, PLAIN], ids=["default", "plain"])
@pytest.mark.parametrize(
    ("name", "route"),
    [("non-irup", "points"), ("bin-packing", "points"), *(("slots-needed", r) for r in ROUTES)],
)
def test_conic_is_exact_where_corners_alone_or_prices_alone_are_not(
    name: str, route: str, plain: Options
) -> None:
    options = {"route": route, **plain}
    solution = ran(name, "conic", options)
    assert solution.status is Status.OPTIMAL or plain
    # Its guarantee of factor 1 is reached exactly.
    assert solution.cost == named(name).optimum == allowed(name, "conic", options)
