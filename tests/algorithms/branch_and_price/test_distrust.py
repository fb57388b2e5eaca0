"""Solvers that fail or answer nonsense: less may be found and proved, but nothing is wrong."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from algorithms.branch_and_price.restricted_master import NodeSolution, RestrictedMaster
from algorithms.prices.master import Master, Proposal
from algorithms.solvers.integer import Outcome, Program, TooLarge
from cms import Problem, check, solve
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.property.test_differential import contradictions
from tests.samples import so_many

solved, solved_below = Master.solve, RestrictedMaster.solve
LIES: list[object] = []


def fails(*_: object, **__: object) -> None:
    return None


def unknown(*_: object, **__: object) -> Outcome:
    return Outcome("unknown", None, None)


def too_large(*_: object, **__: object) -> None:
    raise TooLarge


def nonsense(master: Master) -> Proposal | None:
    """Prices anywhere, with weights and machines that have nothing to do with them.

    Thirty times a problem: after that the truth, for a search by such prices has no end.
    """
    found = solved(master)
    LIES.append(found)
    if found is None or len(LIES) > 30:
        return found
    rng = random.Random(len(master.weights))

    def off(values: list[Fraction]) -> list[Fraction]:
        return [rng.choice([Fraction(0), v * 3, v / 7, Fraction(rng.random())]) for v in values]

    master.weights = [rng.random() for _ in master.weights]
    master.machines = [Fraction(5 * rng.random()) for _ in master.machines]
    return Proposal(off(found.prices), found.value)


def too_low(master: Master) -> Proposal | None:
    """An upper bound that is none: the search ends too early."""
    found = solved(master)
    return None if found is None else found._replace(value=found.value / 2)


def too_high(master: Master) -> Proposal | None:
    found = solved(master)
    return None if found is None else found._replace(value=found.value * 2 + 1)


def dear(master: RestrictedMaster, bounds: Any) -> NodeSolution | None:
    """Values and prices three times too high: what they seem to close is open."""
    found = solved_below(master, bounds)
    if found is None:
        return None
    prices = [3 * price for price in found.prices]
    return found._replace(value=3 * found.value + 1, prices=prices, worth=3 * found.worth)


def now_and_then(master: Master) -> Proposal | None:
    return None if len(master.weights) % 3 == 2 else solved(master)


NO_PROGRAMS: list[Any] = [(Program, "search", fails), (Program, "solve", unknown)]
FAULTS: dict[str, list[tuple[Any, str, Any]]] = {
    "no linear programs": [(Master, "solve", fails), (RestrictedMaster, "solve", fails)],
    "nonsense below branches": [(RestrictedMaster, "solve", dear)],
    "linear programs fail now and then": [(Master, "solve", now_and_then)],
    "nonsense for prices": [(Master, "solve", nonsense)],
    "upper bounds too low": [(Master, "solve", too_low)],
    "upper bounds too high": [(Master, "solve", too_high)],
    "no SCIP": [(Program, "search", fails)],
    "no CP-SAT": [(Program, "solve", unknown)],
    "no programs": NO_PROGRAMS,
    "all numbers too large": [(Program, "variable", too_large)],
    "nothing works": [(o, "solve", fails) for o in (Master, RestrictedMaster)] + NO_PROGRAMS,
}


def said(problem: Problem) -> str:
    """Solve a problem, refuse anything wrong, and return what was claimed."""
    best = optimum(problem)
    LIES.clear()
    solution = solve(problem, "price_and_branch", threads=1, time_limit=None)
    assert contradictions(problem, best, solution) == []
    assert solution.cost is None or check(problem, solution.schedule) == ()
    return str(solution.status)


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_wrong_is_said(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, stub in FAULTS[fault]:
        monkeypatch.setattr(owner, name, stub)
    found: Counter[str] = Counter()
    for family in [*FAMILIES][:: so_many(6, 1)]:
        try:
            found[said(instance(family, 7))] += 1
        except Exception as error:
            raise AssertionError(f"instance({family!r}, 7): {error}") from error
    # A schedule is found nearly always: rounding down to single options needs no solver.
    assert found["optimal"] + found["infeasible"] >= found.total() // 3
