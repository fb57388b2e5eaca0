"""The whole method against optima found otherwise, and the words it refuses problems with."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import algorithms.conic.run
from algorithms.conic import Conic, ConicOptions
from algorithms.conic.cells import cover
from algorithms.conic.integer_program import ContentTask
from algorithms.conic.prepared import Prepared, prepared
from algorithms.conic.run import Run
from cms import (
    BlockPrices,
    Configuration,
    InvalidOption,
    Job,
    MachineType,
    Problem,
    Schedule,
    SizeBoundedConfigurations,
    UnsupportedProblem,
    check,
    solve,
)
from cms.plugin.algorithm import Named, SolverBound
from instances import hard
from tests.algorithms.conic.parts import of, random_problem, solved
from tests.algorithms.price_and_branch.parts import Unlimited
from tests.oracle import optimum
from tests.references.programs import integer_program
from tests.samples import few

WAYS: list[dict[str, Any]] = [
    {"route": "points"},
    {"route": "cells"},
    {"route": "cells", "plain": True},
]


@pytest.mark.parametrize("tens", few(1, range(50)))
def test_it_finds_the_optimum_of_tiny_problems_by_every_route(tens: int) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        problem = random_problem(number)
        value = optimum(problem)
        for way in WAYS:
            solution = solved(problem, **way)
            assert solution.cost == value, (number, way)
            if value is None:
                proved = "no_schedule" if way.get("plain") else "infeasible"
                assert solution.status in (proved, "infeasible"), (number, way)
            elif not way.get("plain"):
                assert solution.status == "optimal", (number, way)


def no_round_up(times: int) -> Problem:
    """132 times the demands of the theory's instance are 259 full machines; once, they need 3."""
    demands = {"a": 2 * times, "b": 3 * times, "c": 6 * times}
    return of(
        {"a": 44, "b": 33, "c": 12}, 132, {name: (d, {name: 1}) for name, d in demands.items()}
    )


@pytest.mark.parametrize("times", few(2, [1, 3, 2, 5, 8]))
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_problem_without_the_round_up_property(times: int, way: dict[str, Any]) -> None:
    problem = no_round_up(times)
    assert solved(problem, **way).cost == integer_program(problem)


def test_a_machine_more_than_the_bound_among_hundreds_of_millions() -> None:
    assert solved(no_round_up(133)).cost == integer_program(no_round_up(133)) == 259 + 3
    solution = solved(no_round_up(132 * 10**6 + 1))
    assert (solution.cost, solution.status) == (259 * 10**6 + 3, "optimal")
    assert solution.lower_bound == 259 * 10**6 + 2


@pytest.mark.parametrize("seed", few(3, range(30)))
def test_it_finds_the_optimum_where_machines_hold_dozens_of_blocks(seed: int) -> None:
    rng = random.Random(f"dozens {seed}")
    k = rng.choice([2, 2, 3])
    blocks = [f"b{i}" for i in range(k)]
    jobs = {
        f"j{j}": (rng.randint(50, 400), {block: rng.randint(1, 9) for block in blocks})
        for j in range(rng.randint(1, 4))
    }
    problem = of({block: rng.randint(5, 12) for block in blocks}, rng.randint(70, 90), jobs)
    value = integer_program(problem)
    for way in WAYS:
        solution = solved(problem, **way)
        assert solution.cost == value, way
        assert way.get("plain") or solution.status == "optimal"


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", ["BIN_PACKING", "NON_IRUP", "SLOTS_NEEDED"])
def test_the_theory_s_instances(name: str, way: dict[str, Any]) -> None:
    one = getattr(hard, name)
    assert solved(one.make(), **way).cost == one.optimum


# --- huge numbers ---------------------------------------------------------------------------------

HUGE = {
    "small blocks": of(
        {"a": 4, "b": 7},
        1_000_003,
        {"x": (10**9 + 7, {"a": 3, "b": 5}), "y": (3 * 10**9 + 1, {"a": 2, "b": 7})},
    ),
    "middling blocks": of(
        {"a": 44, "b": 33},
        1_000_001,
        {
            "x": (10**9, {"a": 10, "b": 7}),
            "y": (2 * 10**9 + 5, {"a": 3, "b": 4}),
            "z": (10**9 + 9, {"b": 1}),
        },
    ),
    "blocks without a common measure": of(
        {"a": 10_007, "b": 7_919},
        10**7 + 19,
        {"x": (5 * 10**9, {"a": 13, "b": 9}), "y": (10**9 + 33, {"a": 1}), "z": (10**10, {"b": 3})},
    ),
    "at most so many blocks": of(
        {"a": 4, "b": 7},
        10**6,
        {"x": (10**9, {"a": 1}), "y": (10**9, {"b": 1})},
        max_blocks=180_001,
    ),
    "large blocks": of(
        {"a": 353_017, "b": 248_651},
        1_000_003,
        {"x": (10**9 + 1, {"a": 3, "b": 2}), "y": (10**9 + 1, {"b": 1})},
    ),
}


@pytest.mark.parametrize("name", few(4, sorted(HUGE, reverse=True)))
def test_a_large_machine_and_demands_of_billions_end_proved(name: str) -> None:
    problem = HUGE[name]
    solution = solved(problem)
    assert solution.status == "optimal"
    assert not check(problem, solution.schedule)
    assert solution.machine_count is not None
    assert solution.machine_count > 1_000


def test_both_routes_agree_on_demands_of_billions() -> None:
    problem = HUGE["large blocks"]
    values = {solved(problem, route=route).cost for route in ("points", "cells")}
    assert len(values) == 1


# --- the edges of the model -----------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_sizes_may_be_any_rationals(way: dict[str, Any]) -> None:
    jobs: dict[str, tuple[Any, dict[str, Any]]] = {
        "x": (7, {"a": 2, "b": 3}),
        "y": ("5/3", {"a": "1/2"}),
    }
    whole = of({"a": 6, "b": 10}, 33, jobs)
    scaled = of({"a": Fraction(6, 7), "b": Fraction(10, 7)}, Fraction(33, 7), jobs)
    assert solved(whole, **way).cost == solved(scaled, **way).cost == optimum(whole)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_zero_demands_and_useless_blocks_change_nothing(way: dict[str, Any]) -> None:
    jobs = {"x": (7, {"a": 2, "b": 3})}
    plain = of({"a": 3, "b": 5}, 16, jobs)
    more = of(
        {"a": 3, "b": 5, "useless": "1/1000000", "too large": 17},
        16,
        {**jobs, "idle": (0, {"a": 1}), "hopeless but idle": (0, {}), "x": (7, {"a": 2, "b": 3})},
    )
    assert solved(plain, **way).cost == solved(more, **way).cost == optimum(plain)


def test_nothing_to_serve_takes_no_machine() -> None:
    assert solved(of({"a": 3}, 16, {"idle": (0, {"a": 1})})).machine_count == 0
    assert solved(of({"a": 3}, 16, {})).machine_count == 0


def test_a_job_that_only_a_block_too_large_could_serve_is_beyond_help() -> None:
    solution = solved(of({"a": 3, "giant": 99}, 16, {"x": (1, {"giant": 1})}))
    assert (solution.status, solution.proof) == ("infeasible", "checked")


# Cutting stock of 655/132 machines that needs six: NON_IRUP, and what fills three machines more.
# (Of NON_IRUP itself proper contents prove 23/11.)
SIZES = {"a": 44, "b": 33, "c": 12}
NO_ROUND_UP: dict[str, tuple[Any, Any]] = {
    block: (demand, {block: 1}) for block, demand in zip("abc", (5, 7, 17), strict=True)
}


def test_costs_scale_the_answer() -> None:
    machine = MachineType("machine", cost="7/3")
    solution = solved(of(SIZES, 132, NO_ROUND_UP, machine=machine))
    assert (solution.cost, solution.status, solution.proof) == (14, "optimal", "solver")


def test_machines_that_cost_nothing_cost_nothing() -> None:
    machine = MachineType("machine", cost=0)
    assert solved(of({"a": 3}, 16, {"x": (90, {"a": 1})}, machine=machine)).cost == 0


@pytest.mark.parametrize(
    ("limit", "status", "proof"),
    [(4, "infeasible", "checked"), (5, "infeasible", "solver"), (6, "optimal", "solver")],
)
def test_a_limit_is_kept_or_proved_too_low(limit: int, status: str, proof: str) -> None:
    machine = MachineType("machine", limit=limit)
    solution = solved(of(SIZES, 132, NO_ROUND_UP, machine=machine))
    assert (solution.status, solution.proof) == (status, proof)


@pytest.mark.parametrize(("limit", "status"), [(2, "infeasible"), (3, "optimal")])
def test_proper_contents_prove_what_took_a_solver_s_word(limit: int, status: str) -> None:
    problem = hard.NON_IRUP.make()
    solution = solved(problem.replace(machine_types=[MachineType("machine", limit=limit)]))
    assert (solution.status, solution.proof) == (status, "checked")


def test_a_limit_of_none_at_all_is_too_low() -> None:
    machine = MachineType("machine", limit=0)
    solution = solved(of({"a": 3}, 16, {"x": (1, {"a": 1})}, machine=machine))
    assert (solution.status, solution.proof) == ("infeasible", "checked")


def test_a_start_that_is_optimal_is_proved_so() -> None:
    problem = hard.NON_IRUP.make()
    start = solved(problem).schedule
    solution = solved(problem, start=start)
    assert (solution.cost, solution.status) == (3, "optimal")
    assert solution.history[0].source == "start"


def test_the_history_tells_the_parts() -> None:
    parts = [line.source for line in solved(of(SIZES, 132, NO_ROUND_UP)).history]
    assert parts[0] == "conic: block prices"
    assert parts[-1].startswith("CP-SAT: integer program, ")


def test_a_plain_run_claims_schedules_and_nothing_else() -> None:
    problem = hard.NON_IRUP.make()
    for route in ("points", "cells"):
        claims = list(Conic().run(problem, ConicOptions(route, plain=True), Unlimited()))
        assert claims
        schedules = [claim.claim for claim in claims if isinstance(claim, Named)]
        assert [type(claim) for claim in schedules] == [Schedule] * len(claims)
    kinds = {type(claim.claim) for claim in Conic().run(problem, ConicOptions(), Unlimited())}  # type: ignore[union-attr]
    assert kinds == {BlockPrices, Schedule, SolverBound}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [{"a": 29, "b": 13}, {"a": 8, "b": 5, "c": 9}])
def test_a_slot_opened_for_nothing_is_no_machine(sizes: dict[str, int], seed: int) -> None:
    wide = len(sizes) == 3
    problem = Problem(
        configurations=SizeBoundedConfigurations(sizes, 15 if wide else 45),
        jobs=[Job(name, 1, {name: 1}) for name in ("bc" if wide else "ab")],
    )
    options = {"route": "cells", "plain": True}
    assert solve(problem, "conic", options=options, threads=1, seed=seed).cost == 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_cells_have_two_to_the_k_slots_and_points_none(k: int) -> None:
    blocks = {f"b{i}": i + 2 for i in range(k)}
    problem = of(blocks, 9, {"x": (5, dict.fromkeys(blocks, 1))})
    for route, slots in (("cells", 2**k), ("points", 0)):
        given = prepared(problem, route)
        assert isinstance(given, Prepared)
        run = Run(given, True, Unlimited())
        contents = run._contents(None)
        assert contents is not None
        assert run._task(contents, None).slots == slots


@pytest.mark.parametrize("fewer", [1, 2])
def test_slots_fewer_than_two_to_the_k_are_caught(
    fewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_fewer(*arguments: Any) -> ContentTask:
        task = ContentTask(*arguments)
        return replace(task, slots=max(0, task.slots - fewer))

    monkeypatch.setattr(algorithms.conic.run, "ContentTask", with_fewer)
    for k in (1, 2, 3):
        with pytest.raises(AssertionError):
            test_cells_have_two_to_the_k_slots_and_points_none(k)


def test_no_slots_at_all_cost_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One machine holds all, but its content is no corner of the cover."""
    problem = of({"a": 4, "b": 7}, 251, {"x": (27, {"a": 1}), "y": (20, {"b": 1})})
    way = {"route": "cells", "plain": True}
    assert solved(problem, **way).machine_count == 1
    monkeypatch.setattr(
        algorithms.conic.run,
        "ContentTask",
        lambda *arguments: replace(ContentTask(*arguments), slots=0),
    )
    assert solved(problem, **way).machine_count == 2


def test_a_stopped_run_ends() -> None:
    budget = Unlimited()
    budget.stopped = True
    assert not list(Conic().run(HUGE["small blocks"], ConicOptions("cells"), budget))
    assert not list(Conic().run(HUGE["small blocks"], ConicOptions("cells", plain=True), budget))


def test_a_run_that_is_cut_off_never_says_that_it_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {"a": 76, "b": 22, "c": 44, "d": 50, "e": 37, "f": 79, "g": 30, "h": 27}
    problem = of(
        sizes,
        86,
        {
            "x": ("685895053348/3", {"d": 7, "e": 8, "f": 207, "g": 1, "h": 2}),
            "y": (5433497820, {"a": 3, "b": 18, "c": 3, "d": 3, "e": 93, "f": 1, "g": 3, "h": 6}),
        },
    )
    cancel = threading.Event()

    def cut_off(polytope: Any, near: Any, stopped: Callable[[], bool]) -> Any:
        cancel.set()
        while not stopped():
            time.sleep(0.001)
        return cover(polytope, near, stopped)

    monkeypatch.setattr(algorithms.conic.run, "cover", cut_off)
    options = {"route": "cells", "plain": True}
    solution = solve(problem, Conic(), options=options, time_limit=None, cancel=cancel)
    assert (solution.stop_reason, solution.guarantee) == ("interrupted", None)


# --- refusals and options -------------------------------------------------------------------------

ONE_JOB = [Job("x", 1, {"a": 1})]


def bounded(number: int, capacity: int, **more: Any) -> SizeBoundedConfigurations:
    return SizeBoundedConfigurations({f"b{i}": 2 * i + 3 for i in range(number)}, capacity, **more)


def of_blocks(number: int, capacity: int) -> Problem:
    jobs = [Job("x", 1, {f"b{i}": 1 for i in range(number)})]
    return Problem(configurations=bounded(number, capacity), jobs=jobs)


@pytest.mark.parametrize(
    ("problem", "route", "reason"),
    [
        (hard.EXPLICIT_LIST_YES.make(), "auto", "NP-hard even for two jobs and two block types"),
        (
            Problem(
                configurations=[SizeBoundedConfigurations({"a": 1}, 2), Configuration({"a": 1})],
                jobs=ONE_JOB,
            ),
            "auto",
            "listed one by one",
        ),
        (
            Problem(
                configurations=[
                    SizeBoundedConfigurations({"a": 1}, 2, "small"),
                    SizeBoundedConfigurations({"a": 1}, 3, "large"),
                ],
                machine_types=[MachineType("small"), MachineType("large")],
                jobs=ONE_JOB,
            ),
            "auto",
            "2 size-bounded sets",
        ),
        (
            Problem(
                configurations=bounded(1, 9), jobs=[Job(f"x{j}", 1, {"b0": 1}) for j in range(101)]
            ),
            "auto",
            "101 jobs; at most 100",
        ),
        (of_blocks(9, 40), "auto", "9 block types that serve a job; at most 8"),
        (of_blocks(2, 10**6), "points", "more than 5,000 maximal contents"),
        (of_blocks(3, 10**6), "points", "more than 5,000 maximal contents"),
        (of_blocks(3, 200), "cells", "more than 5,000 contents"),
        (
            Problem(configurations=bounded(1, 9), jobs=[Job("x", 2**56 + 1, {"b0": 2})]),
            "auto",
            "too large for CP-SAT's 63 bits",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_it_cannot_take_it_refuses_with_the_reason(
    problem: Problem, route: str, reason: str
) -> None:
    with pytest.raises(UnsupportedProblem, match=reason):
        solve(problem, Conic(), options={"route": route})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"route": "all"}, "expected one of auto, points, cells"),
        ({"plain": 1}, "expected True or False"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        solve(hard.NON_IRUP.make(), Conic(), options=options)
