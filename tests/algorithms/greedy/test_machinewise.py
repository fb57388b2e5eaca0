"""The LP version: LP*, its rounding, and the bound on the cost that never rises."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import algorithms.greedy as greedy
from algorithms.greedy import lp_star, machinewise, promises
from algorithms.greedy.draws import Draws
from algorithms.greedy.lp_star import LpStar
from algorithms.greedy.machinewise import Rounding, round_machinewise, solve
from algorithms.greedy.paid import Paid, usable
from algorithms.solvers.linear import LinearProgram
from algorithms.tables.integers import Tables
from cms import Configuration, Job, MachineType, Problem, Reference, StopReason, check
from cms import solve as run
from cms.errors import UnsupportedProblem
from cms.reduction.reduction import reduce
from instances.families import generate
from tests.families import instance
from tests.references.guarantees import program
from tests.samples import so_many


def drawn(rng: random.Random) -> Problem:
    """A problem of a dozen jobs, machines of many blocks and any costs."""
    blocks = [f"b{i}" for i in range(rng.randint(1, 4))]
    types = [MachineType(f"m{i}", Fraction(10) ** rng.randint(-3, 3)) for i in range(3)]
    shapes = {
        Configuration({b: rng.choice([1, 2, 5, 30, 10**9]) for b in held}, rng.choice(types).name)
        for held in (rng.sample(blocks, rng.randint(1, len(blocks))) for _ in range(4))
    }
    have = sorted(set().union(*(shape.blocks for shape in shapes)))
    jobs = [
        Job(f"j{j}", rng.choice([1, 7, 50, 10**6, 10**12]), {b: rng.randint(1, 9) for b in have})
        for j in range(rng.randint(1, 12))
    ]
    return Problem(
        configurations=sorted(shapes, key=repr),
        machine_types=types,
        jobs=jobs,
    )


def many_small_jobs() -> Tables:
    """300 jobs of one to four blocks each, a hundred blocks a machine."""
    jobs = [Job(f"j{j}", 12, {"a": 3 + j % 10}) for j in range(300)]
    return Tables.of(reduce(Problem(configurations=Configuration({"a": 100}), jobs=jobs)).problem)


def cost_of_many_small_jobs() -> tuple[Fraction, Fraction]:
    """What the rounding costs on ``many_small_jobs``, and what LP* does."""
    tables = many_small_jobs()
    paid = Paid.of(tables)
    fractional = solve(paid, None)
    assert fractional is not None
    counts = round_machinewise(paid, fractional, None)
    assert counts is not None
    return tables.cost(counts[0]), fractional.value


# --- LP* ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["random_configurations", "a100", "costs", "size_bounded"])
def test_configurations_that_join_as_prices_ask_for_them_say_the_same(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = joined = 0
    for number in range(30):
        tables = Tables.of(reduce(instance(family, number)).problem)
        if not tables.n or tables.unservable:
            continue
        paid = Paid.of(tables)
        with monkeypatch.context() as patched:
            patched.setattr(machinewise, "_AT_ONCE", 10**9)
            every = solve(paid, None)
            patched.setattr(machinewise, "_AT_ONCE", -1)
            some = solve(paid, None)
        assert every is not None
        assert some is not None
        assert float(some.value) == pytest.approx(float(every.value), rel=1e-5)
        seen += 1
        joined += bool(set(some.machines) - set(machinewise._first(paid)))
    assert seen > 10
    assert joined > 0


@pytest.mark.long
def test_lp_star_of_hundreds_of_contents_is_found_by_few_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = Tables.of(reduce(generate("size-bounded", n=12, seed=1)).problem)
    added: list[int] = []
    true = LpStar.add

    def counted(self: LpStar, c: int) -> None:
        added.append(c)
        true(self, c)

    monkeypatch.setattr(LpStar, "add", counted)
    fractional = solve(Paid.of(tables), None)
    assert fractional is not None
    assert len(added) == len(set(added)) < tables.c / 3
    assert float(fractional.value) == pytest.approx(11.0979870737)


@pytest.mark.parametrize("family", ["random_configurations", "a100", "costs"])
def test_the_program_is_lp_star(family: str) -> None:
    seen = 0
    most = so_many(6, 30)
    for number in range(most):
        problem = instance(family, number)
        tables = Tables.of(reduce(problem).problem)
        if not tables.n or tables.unservable:
            continue
        paid = Paid.of(tables)
        if not paid.jobs:
            continue
        fractional = solve(paid, None)
        assert fractional is not None
        value = pytest.approx(program(problem, Reference.LP_STAR), rel=1e-5)
        if paid.complete:
            seen += 1
            assert float(fractional.value) == value
        else:
            assert float(fractional.value) >= program(problem, Reference.LP_STAR) * (1 - 1e-6)
    assert seen >= most // 6


def test_no_machine_counts_for_more_blocks_than_can_be_used() -> None:
    jobs = [Job("x", 7, {"a": 2}), Job("y", 3, {"a": 3, "b": 1})]
    shapes = [Configuration({"a": 10**20, "b": 2}), Configuration({"a": 1, "b": 9})]
    assert usable(Tables.of(Problem(configurations=shapes, jobs=jobs))) == [[5, 2], [1, 3]]


def test_free_machines_serve_first_and_the_dearest_are_left_out() -> None:
    types = [MachineType("free", 0), MachineType("paid", 1), MachineType("dear", 10**11)]
    shapes = [
        Configuration({"a": 1}, "free"),
        Configuration({"b": 1}, "paid"),
        Configuration({"a": 9, "b": 9}, "dear"),
    ]
    jobs = [Job("x", 10**12, {"a": 1, "b": 2}), Job("y", 3, {"b": 1})]
    problem = Problem(configurations=shapes, machine_types=types, jobs=jobs)
    paid = Paid.of(Tables.of(problem))
    assert (paid.jobs, paid.shapes, paid.unit, paid.complete) == ([1], [1], 3, False)
    # What is promised is against the optimum then.
    assert promises.linear(paid).against == Reference.OPT
    for plain in (False, True):
        solution = run(problem, "greedy", options={"variant": "lp", "plain": plain})
        assert check(problem, solution.schedule) == ()
        assert solution.cost is not None
        assert solution.cost <= promises.linear(paid).allows(Fraction(3))


# --- the rounding ---------------------------------------------------------------------------------


def never_rises() -> None:
    rng = random.Random(5)
    for _ in range(60):
        tables = Tables.of(reduce(drawn(rng)).problem)
        paid = Paid.of(tables)
        fractional = solve(paid, None)
        assert fractional is not None
        rounding = Rounding(paid, fractional)
        counts = rounding.counts(None)
        assert counts is not None
        estimates = rounding.estimates
        # What the theorem allows at first, what it costs in the end, and never more in between.
        allowed = (paid.alpha + 2) * fractional.value / paid.unit
        assert estimates[0] <= float(allowed) * (1 + 1e-6)
        assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(estimates))
        assert float(tables.cost(counts[0]) / paid.unit) <= estimates[-1] * (1 + 1e-9)


def test_the_estimate_never_rises_and_is_no_less_than_the_cost() -> None:
    never_rises()


def far_below_serving_everyone_alone() -> None:
    cost, value = cost_of_many_small_jobs()
    # Every job alone takes a machine: 300.
    assert 5 < value < 8
    assert cost <= 13 * value


def test_many_small_jobs_share_their_machines() -> None:
    far_below_serving_everyone_alone()


def test_groups_are_few_however_many_machines_there_are() -> None:
    for demand in (10**3, 10**9, 10**15):
        jobs = [Job(f"j{j}", demand * (j + 1), {"a": 2, "b": 3}) for j in range(5)]
        shapes = [Configuration({"a": 3}), Configuration({"b": 1, "a": 1})]
        paid = Paid.of(Tables.of(Problem(configurations=shapes, jobs=jobs)))
        fractional = solve(paid, None)
        assert fractional is not None
        rounding = Rounding(paid, fractional)
        assert rounding.counts(None) is not None
        assert len(rounding.estimates) <= 2 * len(shapes) * (2 * paid.alpha + 2)


# --- blocks drawn without dice --------------------------------------------------------------------


def left_of(draws: Draws, given: dict[tuple[int, int], int], weights: dict[int, float]) -> float:
    """The weighted products of what jobs miss, each block counting by itself."""
    missing = dict.fromkeys(weights, 1.0)
    sure: dict[int, float] = {}
    for (i, j), number in draws.given.items():
        sure[j] = sure.get(j, 0.0) + number * PARTS[i, j]
    for j, amount in sure.items():
        missing[j] *= max(0.0, 1.0 - amount)
    for (i, j), number in given.items():
        missing[j] *= (1.0 - PARTS[i, j]) ** (number - draws.given.get((i, j), 0))
    return sum(weights[j] * missing[j] for j in weights)


PARTS = {(i, j): (1 + (3 * i + 5 * j) % 7) / 10 for i in range(3) for j in range(4)}


def draws_keep_the_average() -> None:
    rng = random.Random(8)
    for _ in range(200):
        blocks, held = {}, []
        for i in range(3):
            mine = {(i, j): rng.choice([0.0, 0.25, 0.5, 1.0, 1.75]) for j in range(4)}
            held.append(-int(-sum(mine.values()) // 1) + rng.choice([0, 0, 10**6]))
            blocks.update(mine)
        draws = Draws.of(blocks, held)
        weights = {j: rng.choice([0.5, 1.0, 3.0]) for j in range(4)}
        missing = draws.missing(PARTS)
        before = sum(weights[j] * missing.get(j, 1.0) for j in weights)
        given = draws.decided(PARTS, weights, None)
        assert left_of(draws, given, weights) <= before * (1 + 1e-9)
        for i in range(3):
            assert sum(n for (type_, _), n in given.items() if type_ == i) <= held[i]
        # On average a job misses no more than the inequality of theory 2.1 says.
        for j in range(4):
            mean = sum(number * PARTS[i, job] for (i, job), number in blocks.items() if job == j)
            least = (1 - 0.3679) * min(1.0, mean)
            assert 1.0 - missing.get(j, 1.0) >= least - 1e-9


def test_deciding_the_draws_leaves_no_more_than_drawing_does_on_average() -> None:
    draws_keep_the_average()


# --- faults, planted ------------------------------------------------------------------------------


def everyone_alone(self: Any, budget: Any) -> Any:
    return self._served([0] * self._paid.tables.c, {})


def one_machine_more(self: Any, opened: Any, given: Any, true: Any = Rounding._served) -> Any:
    machines, blocks = true(self, opened, given)
    return [x + 1 for x in machines], blocks


def to_the_lightest(
    self: Any, parts: Any, weights: Any, budget: Any, true: Any = Draws.decided
) -> Any:
    return true(self, parts, {j: 1 / (weight or 1.0) for j, weight in weights.items()}, budget)


def too_good(self: Any, parts: Any, true: Any = Draws.missing) -> Any:
    return {j: 0.9 * chance for j, chance in true(self, parts).items()}


@pytest.mark.parametrize(
    ("owner", "name", "fault", "check"),
    [
        (Rounding, "counts", everyone_alone, far_below_serving_everyone_alone),
        (Rounding, "counts", everyone_alone, never_rises),
        (Rounding, "_served", one_machine_more, never_rises),
        (Draws, "decided", to_the_lightest, draws_keep_the_average),
        (Draws, "missing", too_good, never_rises),
    ],
)
def test_a_fault_in_the_rounding_is_seen(
    owner: Any, name: str, fault: Any, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises((AssertionError, IndexError)):
        check()


# --- as a part of the best ------------------------------------------------------------------------


def two_of_many_types() -> Problem:
    """Few blocks a machine and more block types than jobs: LP* has the smallest factor."""
    rng = random.Random(2)
    tables: list[dict[str, int]] = [{} for _ in range(20)]
    shapes = []
    for c in range(60):
        shapes.append(Configuration({f"a{c}": 1, f"b{c}": 1}))
        for block in shapes[-1].blocks:
            for j in rng.sample(range(20), 2):
                tables[j][block] = rng.randint(10**5, 10**6)
    jobs = [Job(f"j{j}", 10**6, table) for j, table in enumerate(tables)]
    return Problem(configurations=shapes, jobs=jobs)


@pytest.mark.long
def test_the_lp_version_is_part_of_the_best_where_its_factor_is_the_smallest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no factor is stated for a part that is not run."""
    problem, ran = two_of_many_types(), []
    true = machinewise.solve

    def noted(paid: Any, budget: Any) -> Any:
        ran.append(paid)
        return true(paid, budget)

    monkeypatch.setattr(machinewise, "solve", noted)
    solution = run(problem, "greedy", options={"plain": True, "inner": "greedy"})
    assert len(ran) == 1
    assert solution.guarantee is not None
    assert solution.guarantee.guarantee.theorem == promises.LINEAR
    monkeypatch.setattr(greedy, "_MOST_VARIABLES", 10)
    solution = run(problem, "greedy", options={"plain": True, "inner": "greedy"})
    assert len(ran) == 1
    assert solution.guarantee is not None
    assert solution.guarantee.guarantee.theorem != promises.LINEAR


def test_the_programs_own_prices_tell_of_most_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate("stock-residual", n=100, seed=7, low="0.3", lengths=25)
    tables = Tables.of(reduce(problem).problem)
    filled: list[int] = []
    true = lp_star._filled

    def counted(paid: Paid, c: int, *more: Any) -> Any:
        filled.append(c)
        return true(paid, c, *more)

    monkeypatch.setattr(machinewise, "_AT_ONCE", -1)
    monkeypatch.setattr(lp_star, "_filled", counted)
    assert solve(Paid.of(tables), None) is not None
    assert len(filled) < tables.c / 3


@pytest.mark.parametrize(
    "family", ["random_configurations", "costs", "size_bounded", "long_numbers"]
)
def test_a_job_by_itself_has_the_cheapest_machines_there_are(family: str) -> None:
    for number in range(15):
        tables = Tables.of(reduce(instance(family, number)).problem)
        if tables.unservable:
            continue
        paid = Paid.of(tables)
        for demand, supply, repair in zip(tables.demands, tables.supply, paid.alone, strict=True):
            amounts = [sum(a * f for a, f in zip(row, supply, strict=True)) for row in paid.counts]
            ways = [
                (-(-demand // amount) * tables.costs[c], c)
                for c, amount in enumerate(amounts)
                if amount
            ]
            assert (repair.cost, repair.shape) == min(ways)
            assert repair.cost == repair.number * tables.costs[repair.shape]


def test_a_program_cut_off_is_not_one_without_a_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven hundred variables, of which the solver has not seen one when it is stopped."""
    cancel, solve_all = threading.Event(), LinearProgram.solve

    def cut_off(self: LinearProgram, budget: Any, *ways: Any) -> Any:
        cancel.set()
        while not budget.stopped:
            time.sleep(0.001)
        return solve_all(self, budget, *ways)

    monkeypatch.setattr(LinearProgram, "solve", cut_off)
    problem = generate("size-bounded", n=7, seed=680628733, m=5, floor=10)
    options = {"variant": "lp", "plain": True}
    solution = run(problem, "greedy", options=options, time_limit=None, cancel=cancel)
    assert solution.stop_reason is StopReason.INTERRUPTED


def test_a_plain_run_is_the_lp_version_however_many_machines() -> None:
    problem = generate("real-rows", n=60, m=2, seed=0)
    options = {"variant": "lp", "plain": True}
    parts = [line.source for line in run(problem, "greedy", options=options).history]
    assert parts == ["greedy: LP version", "rough prices"]
    parts = [line.source for line in run(problem, "greedy", options={"variant": "lp"}).history]
    assert "greedy: aggregated program, T-2" in parts
    assert "greedy: LP version" not in parts


def test_a_solver_that_gives_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearProgram, "solve", lambda self, budget, *ways: None)
    shapes = [Configuration({"a": 2}), Configuration({"a": 1, "b": 2})]
    jobs = [Job("x", 20, {"a": 3, "b": 2}), Job("y", 17, {"a": 1, "b": 3})]
    paid = Paid.of(Tables.of(Problem(configurations=shapes, jobs=jobs)))
    with pytest.raises(UnsupportedProblem, match="too far apart for floats"):
        solve(paid, None)
