"""The whole method on fleets, on sets of thousands of contents, and on solvers that lie."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

import cms
from algorithms.branch_and_price.restricted_master import NodeSolution, RestrictedMaster
from algorithms.integer_problem import listed
from algorithms.prices.master import Master, Proposal
from algorithms.solvers.integer import Hint, Outcome, Program, TooLarge
from bench.gates.in_tree import generate
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    UnsupportedProblem,
    check,
    solve,
)
from instances import families
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.references.guarantees import contradictions
from tests.samples import few, so_many


def test_fleets_are_looked_for_again_once_branches_raise_the_bound() -> None:
    # the first programs end a tenth above what is best
    given: dict[str, Any] = {"n": 14_000, "seed": 12, "serving": "pods", "kinds": 70, "types": 7}
    assert solve(families.generate("cluster-fleet", **given), time_limit=None).cost == 5630


@pytest.mark.parametrize(
    ("family", "n", "seed", "given", "cost"),
    [
        (
            "mixed-fleet",
            32,
            1124697384,
            {"cost_step": "0.01", "limits": "tight", "types": 4},
            27.26,
        ),
        ("size-bounded-mixed", 42, 2552819479, {"m": 5, "mig_cost": "0.9"}, 33.5),
    ],
    ids=["all jobs are free at a node", "dives within a fleet"],
)
def test_nodes_lead_to_schedules(family: str, n: int, seed: int, given: Any, cost: float) -> None:
    problem = families.generate(family, n=n, seed=seed, **given)
    assert solve(problem, time_limit=None).cost == Fraction(str(cost))


def test_programs_take_hundreds_of_kinds() -> None:
    # a rack costs as much as 19 machines; programs of a few dozen free jobs end at 825
    assert solve(generate("racks", n=400, seed=2), time_limit=None).cost == 823


def shares(seed: int, n: int, *, beside: bool) -> Problem:
    """Ten sizes in a capacity of 1000, some beside listed configurations that nobody wants."""
    rng = random.Random(seed)
    sizes = {f"b{i}": rng.randint(40, 200) for i in range(10)}
    jobs = [
        Job(f"j{j}", rng.randint(100, 3000), {b: s + rng.randint(-9, 9) for b, s in sizes.items()})
        for j in range(n)
    ]
    large = SizeBoundedConfigurations(sizes, 1000, "m")
    if not beside:
        return Problem(configurations=large, jobs=jobs, machine_types=[MachineType("m")])
    useless = [Configuration({"z": 3}, "n"), Configuration({"b0": 9, "z": 1}, "n")]
    types = [MachineType("m", 2), MachineType("n", 3)]
    return Problem(configurations=[large, *useless], jobs=jobs, machine_types=types)


@pytest.mark.parametrize("seed", few(2, [0, 2, 5, 1, 3, 4, 6, 7]))
@pytest.mark.parametrize("beside", [False, True])
def test_sets_too_large_to_be_listed_are_scheduled_and_proved(seed: int, beside: bool) -> None:
    problem = shares(seed, 3 + 6 * seed, beside=beside)
    assert listed(problem, 2_000).left_out
    solution = solve(problem, threads=1, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert solution.proof == "checked"


def test_more_block_types_than_python_has_frames() -> None:
    rng = random.Random(5)
    sizes = {f"b{i}": rng.randint(400, 3000) for i in range(1_500)}
    jobs = [
        Job(f"j{j}", rng.randint(100, 9000), {b: s + rng.randint(0, 90) for b, s in sizes.items()})
        for j in range(4)
    ]
    problem = Problem(configurations=SizeBoundedConfigurations(sizes, 10_000), jobs=jobs)
    cancel = threading.Event()

    def improved(line: cms.Incumbent) -> None:
        if line.cost is not None and line.lower_bound > 0:
            cancel.set()

    solution = solve(problem, time_limit=None, cancel=cancel, on_improvement=improved)
    assert check(problem, solution.schedule) == ()
    assert solution.cost is not None
    assert 0 < solution.lower_bound <= solution.cost


@pytest.mark.parametrize(("costs", "cost"), [(("1.01", "3.67"), "4.68"), (("1", "4"), "5")])
def test_few_jobs_on_shares_in_steps_of_one_per_cent_are_proved(
    costs: tuple[str, str], cost: str
) -> None:
    rates = {"small": (2, 1, 5, 2), "large": (20, 20, 40, 20)}
    sizes = {m: {f"{m}:{share}": share for share in range(1, 101)} for m in rates}
    jobs = [
        Job(
            f"j{at}",
            demand,
            {b: Fraction(rates[m][at] * s, 100) for m in rates for b, s in sizes[m].items()},
        )
        for at, demand in enumerate((6, 3, 15, 6))
    ]
    problem = Problem(
        configurations=[SizeBoundedConfigurations(sizes[m], 100, m) for m in rates],
        jobs=jobs,
        machine_types=[MachineType(m, cost) for m, cost in zip(rates, costs, strict=True)],
    )
    solution = solve(problem, threads=1, time_limit=None)
    assert (solution.cost, solution.proof) == (Fraction(cost), "checked")
    assert solution.certificate.bound(problem) <= Fraction(cost)


solved, solved_below = Master.solve, RestrictedMaster.solve
LIES: list[object] = []


def fails(*_: object, **__: object) -> None:
    return None


def no_hint(*_: Any, **__: Any) -> Hint:
    return Hint(None, ended=False)


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


def scaled(factor: Fraction, more: int) -> Callable[[Master], Proposal | None]:
    """An upper bound that is none: where it is too low the search ends too early."""

    def lie(master: Master) -> Proposal | None:
        found = solved(master)
        return None if found is None else found._replace(value=found.value * factor + more)

    return lie


def dear(master: RestrictedMaster, bounds: Any) -> NodeSolution | None:
    """Values and prices three times too high: what they seem to close is open."""
    found = solved_below(master, bounds)
    if found is None:
        return None
    prices = [3 * price for price in found.prices]
    return found._replace(value=3 * found.value + 1, prices=prices, worth=3 * found.worth)


def now_and_then(master: Master) -> Proposal | None:
    return None if len(master.weights) % 3 == 2 else solved(master)


NO_PROGRAMS: list[Any] = [(Program, "search", no_hint), (Program, "solve", unknown)]
FAULTS: dict[str, list[tuple[Any, str, Any]]] = {
    "no linear programs": [(Master, "solve", fails), (RestrictedMaster, "solve", fails)],
    "nonsense below branches": [(RestrictedMaster, "solve", dear)],
    "linear programs fail now and then": [(Master, "solve", now_and_then)],
    "nonsense for prices": [(Master, "solve", nonsense)],
    "upper bounds too low": [(Master, "solve", scaled(Fraction(1, 2), 0))],
    "upper bounds too high": [(Master, "solve", scaled(Fraction(2), 1))],
    "no SCIP": [(Program, "search", no_hint)],
    "no CP-SAT": [(Program, "solve", unknown)],
    "no programs": NO_PROGRAMS,
    "all numbers too large": [(Program, "variable", too_large)],
    "nothing works": [(o, "solve", fails) for o in (Master, RestrictedMaster)] + NO_PROGRAMS,
}


def said(problem: Problem) -> str:
    """Solve a problem, refuse anything wrong, and return what was claimed."""
    best = optimum(problem)
    found = []
    for method in ("branch_and_price", "ptas"):
        LIES.clear()
        with suppress(UnsupportedProblem):
            solution = solve(problem, method, threads=1, time_limit=None)
            assert contradictions(problem, best, solution) == []
            assert solution.cost is None or check(problem, solution.schedule) == ()
            found.append(str(solution.status))
    return found[0]


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
