"""The PTAS as a whole: its guarantee, its two parts, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import algorithms.ptas
from algorithms.prices.vertex import rounded
from algorithms.ptas import Ptas, PtasOptions, additive_loss_in_steps
from cms import (
    BlockPrices,
    Configuration,
    Job,
    MachineType,
    NamedProblem,
    Problem,
    SizeBoundedConfigurations,
    SolverBound,
    UnsupportedProblem,
    solve,
)
from cms.reduction.reduction import reduce
from instances import hard, small
from instances.families import generate
from tests.algorithms.prices.parts import cases, every_case
from tests.algorithms.ptas.parts import run, schedules, sources, watch
from tests.families import FAMILIES, instance
from tests.samples import few, no_round_up, so_many, spread

FEW = so_many(2, 4)
EPSILONS = ("1/2", "1/4", "1/10")


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_the_bare_algorithm_claims_one_schedule_within_the_guarantee(family: str, way: str) -> None:
    for case in cases(family, FEW):
        seen = watch(case.problem, plain=True, exact=way, epsilon="1/4")
        assert seen.refusal is None, case.name
        if not seen.started:
            continue  # nothing to do, or a proof at a glance
        assert len(seen.claims) == len(schedules(seen)) == 1, case.name
        cost = schedules(seen)[0].cost(case.problem)
        assert case.best <= cost <= Fraction(5, 4) * case.best, case.name


@pytest.mark.parametrize("way", ["dynamic", "program"])
@pytest.mark.parametrize("family", ["a100", "costs", "size_bounded", "set_cover"])
def test_both_ways_find_the_optimum_and_say_so(family: str, way: str) -> None:
    word = {"dynamic": "dynamic program", "program": "CP-SAT"}[way]
    for case in cases(family, FEW):
        seen = watch(case.problem, exact=way, epsilon="1/1000000")
        assert seen.solution is not None, case.name
        assert seen.solution.status == "optimal", case.name
        assert seen.solution.cost == case.best, case.name
        for claim in seen.claims:
            if isinstance(claim, SolverBound):
                assert (claim.value, claim.solver) == (case.best, word)


NAMED: list[Any] = [
    one
    for module in (hard, small)
    for one in vars(module).values()
    if isinstance(one, NamedProblem) and one.optimum is not None
]


@pytest.mark.parametrize("epsilon", few(1, ("1/4", "1/2", "1/10")))
@pytest.mark.parametrize("one", spread(9, NAMED), ids=lambda one: one.name)
def test_named_instances_are_within_the_guarantee(one: Any, epsilon: str) -> None:
    problem = one.make()
    if not Ptas().support(problem, PtasOptions()):
        assert any(machine.limit is not None for machine in problem.machine_types)
        return
    solution = run(problem, epsilon=epsilon)
    assert solution.cost is not None
    assert one.optimum <= solution.cost <= (1 + Fraction(epsilon)) * one.optimum


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
def test_where_the_bound_does_not_round_up_the_exact_part_has_the_last_word(way: str) -> None:
    solution = run(no_round_up(), exact=way, epsilon="1/10")
    assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 6)
    assert (solution.lower_bound, solution.claimed_bound) == (5, 6)
    assert sources(solution)[-1].endswith(": exact part")


def test_one_block_type_is_optimal_whatever_epsilon_is() -> None:
    for demand in (1, 6, 7, 10**12):
        problem = Problem(
            configurations=Configuration({"a": 7}),
            jobs=[Job("x", demand, {"a": 1}), Job("y", 9, {"a": 2})],
        )
        seen = watch(problem, epsilon=1, plain=True)
        assert schedules(seen)[0].machine_count == -(-(demand + 5) // 7)
        guarantee = Ptas().guarantee(problem, PtasOptions(Fraction(1)))
        assert guarantee is not None
        assert guarantee.factor == 1


def test_many_machines_are_rounded_and_few_are_found() -> None:
    many, few = small.huge_fleet(10**12), small.huge_fleet(2000)
    assert additive_loss_in_steps(reduce(many).problem) == 8
    rounding = watch(many, plain=True)
    assert len(rounding.claims) == 1
    best, solution = small.HUGE_FLEET.optimum, rounding.solution
    assert best is not None
    assert solution is not None
    assert solution.cost is not None
    assert best <= solution.cost <= best + 8
    assert run(few, plain=True).cost == run(few, exact="program", epsilon="1/100").cost


@pytest.mark.parametrize(("n", "m"), [(100, 5), (1000, 5)])
def test_measured_models_on_a_gpu(n: int, m: int) -> None:
    problem = generate("real-rows", n=n, seed=1, m=m)
    solution = run(problem, epsilon="1/4")
    assert solution.cost is not None
    assert solution.cost <= Fraction(5, 4) * solution.lower_bound
    assert solution.guarantee is not None
    assert solution.guarantee.verdict == "verified"


def test_a_good_rounding_is_enough_where_tables_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algorithms.ptas.dynamic, "MAX_CELLS", 1)
    programs = 0
    for case in every_case(4):
        seen = watch(case.problem, epsilon="1/2")
        assert seen.solution is not None
        solution = seen.solution
        assert solution.cost is not None
        programs += any(isinstance(claim, SolverBound) for claim in seen.claims)
        if solution.status == "feasible":
            assert solution.cost <= Fraction(3, 2) * solution.lower_bound, case.name
    assert programs < 10


def test_where_the_numbers_are_too_large_the_error_says_what_would_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algorithms.ptas.dynamic, "MAX_CELLS", 1)
    with pytest.raises(UnsupportedProblem, match="cells .*; take a larger epsilon, or the method"):
        run(no_round_up(), exact="dynamic", epsilon="1/10")
    assert run(no_round_up(), exact="program", epsilon="1/10").cost == 6
    solution = run(no_round_up(), exact="dynamic", epsilon="1/5")
    assert (solution.cost, solution.stop_reason) == (6, "finished")
    # The bare algorithm has no other check than the theorem: 2 machines and 4 - 1 more are 5.
    two = hard.packing((44, 33, 12), 132, (2, 2, 4))
    assert run(two, exact="dynamic", epsilon="1/10").cost == 2
    with pytest.raises(UnsupportedProblem, match="take a larger epsilon"):
        run(two, exact="dynamic", epsilon=1, plain=True)


@pytest.mark.parametrize("plain", [False, True])
def test_supplies_far_apart_are_no_obstacle(plain: bool) -> None:
    problem = Problem(
        configurations=[Configuration({"a": 8, "c": 8}), Configuration({"b": 1000, "c": 3})],
        jobs=[Job("x", 10**14, {"a": 10**12, "b": 2, "c": 3})],
    )
    assert solve(problem, "ptas", options={"plain": plain}).cost == 13


def test_block_types_that_serve_nobody_are_not_listed() -> None:
    problem = Problem(
        configurations=SizeBoundedConfigurations({f"mps:{s}": s for s in range(1, 91)}, 100),
        jobs=[Job("x", 7, {"mps:50": 3, "mps:25": 1})],
    )
    assert run(problem).cost == 2


def test_prices_come_with_what_no_machine_has() -> None:
    problem = Problem.from_arrays(
        demands=[5, 3],
        supply=[[1, 9], [2, 9]],
        configurations=[Configuration({"here": 2})],
        blocks=["here", "nowhere"],
    )
    seen = watch(problem)
    assert seen.solution is not None
    assert (seen.solution.status, seen.solution.proof) == ("optimal", "checked")
    (prices,) = (claim for claim in seen.claims if isinstance(claim, BlockPrices))
    assert prices.prices["nowhere"] >= 1


@pytest.mark.parametrize("number", range(12))
def test_a_job_that_nobody_serves_is_proved_before_the_run(number: int) -> None:
    seen = watch(instance("infeasible_by_block", number))
    assert seen.solution is not None
    assert (seen.solution.status, seen.solution.proof) == ("infeasible", "checked")
    assert not seen.started


def test_no_jobs_and_no_demands_need_no_machines() -> None:
    idle = [Job("idle", 0, {"a": 1}), Job("hopeless", 0, {})]
    for jobs in ([], idle, [*idle, Job("one", 3, {"a": 5})]):
        solution = run(Problem(configurations=Configuration({"a": 1}), jobs=jobs), plain=True)
        assert solution.machine_count == (1 if len(jobs) == 3 else 0)


def test_a_schedule_to_start_from_that_is_better_stays() -> None:
    problem = hard.NON_IRUP.make()
    best = run(problem, exact="program").schedule
    again = solve(problem, Ptas(), start=best, options={"exact": "dynamic"}, gap=1)
    assert again.cost == 3


def test_limits_and_endless_sets_are_refused_with_the_reason() -> None:
    limited = Problem(
        configurations=Configuration({"a": 1}), machine_types=[MachineType("machine", limit=1)]
    )
    with pytest.raises(UnsupportedProblem, match="'machine' has a limit"):
        run(limited)
    shares = SizeBoundedConfigurations({f"mps:{s}": s for s in range(1, 91)}, 100, max_blocks=48)
    with pytest.raises(UnsupportedProblem, match="more than 20000 maximal"):
        run(Problem(configurations=shares, jobs=[Job("x", 1, dict.fromkeys(shares.sizes, 1))]))
    far = Problem(
        configurations=[Configuration({"a": 1}, "m"), Configuration({"a": 9}, "n")],
        jobs=[Job("x", 9, {"a": 1})],
        machine_types=[MachineType("m", "1e-60"), MachineType("n", 10**60)],
    )
    with pytest.raises(UnsupportedProblem, match="costs more than"):
        run(far)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, r"epsilon is 0; expected a number > 0 and <= 1"),
        ({"epsilon": "5/4"}, "epsilon is 1.25; expected"),
        ({"epsilon": -1}, "epsilon"),
        ({"exact": "magic"}, "exact is 'magic'; expected one of auto, dynamic, program"),
        ({"plain": 1}, "plain is 1; expected True or False"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PtasOptions(**options)


# --- planted faults -------------------------------------------------------------------------------


def breached(epsilon: str, **options: Any) -> bool:
    """Whether a problem costs more than the guarantee allows, or ends in an error."""
    for family in ("random_configurations", "a100_arbitrary", "set_cover", "sparse", "costs"):
        for case in cases(family, 8):
            seen = watch(case.problem, plain=True, epsilon=epsilon, **options)
            if seen.solution is None or seen.solution.cost is None:
                return True
            if seen.solution.cost > (1 + Fraction(epsilon)) * case.best:
                return True
    return False


@pytest.mark.parametrize("way", few(1, ["auto", "dynamic", "program"]))
def test_nothing_is_caught_where_nothing_is_wrong(way: str) -> None:
    assert not breached("1/10", exact=way)


def test_a_switch_that_comes_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms.ptas, "additive_loss_in_steps", lambda _: Fraction(0))
    # The exact check of the cost still holds the rounding back ...
    assert not breached("1/10")
    # ... which is the second fault that has to be made.
    monkeypatch.setattr(algorithms.ptas, "round_up", lambda bound, step: bound + 10 * step)
    assert breached("1/10")


def test_a_rounding_that_serves_too_little_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(solution: Any) -> Any:
        machines, given = rounded(solution)
        return machines, {pair: n - 1 for pair, n in given.items()}

    monkeypatch.setattr(algorithms.ptas, "rounded", short)
    assert breached("1")
