"""``solve`` believes nothing unchecked, says on whose word; rough prices and guarantees."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, Branch
from cms.certificate.quantity import MachinesOfType
from cms.errors import AlgorithmError, GuaranteeBreached, InvalidOption, UnsupportedProblem
from cms.plugin.algorithm import Budget, Claim, SolverBound, Support
from cms.plugin.guarantee import Guarantee, Reference, Verdict, judge
from cms.plugin.registry import list_algorithms
from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem
from cms.running.stopping import Stopped
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.driver import Arguments
from cms.solving.ledger import Ledger
from cms.solving.rough_prices import rough_prices
from cms.solving.solution import Proof, Status, StopReason
from cms.solving.solve import run_checked, solve
from cms.testing.checks import Laboratory
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.plugins import OneByOne
from tests.samples import spread
from tests.scripted import HALF, PAIR, QUARTER, Scripted, blocks, serving, solved, told


def test_a_bound_that_meets_the_schedule_is_optimal_and_checked() -> None:
    solution = told(blocks(5), [serving(5, 4), HALF, serving(5, 3)])
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert solution.stop_reason is StopReason.PROVED
    assert (solution.cost, solution.lower_bound, solution.machine_count) == (3, 3, 3)
    assert solution.certificate == HALF
    assert solution.gap == solution.relative_gap == 0
    assert [(i.cost, i.lower_bound) for i in solution.history] == [(4, 0), (4, 3), (3, 3)]
    assert solution.problem_sha256 == blocks(5).sha256


def test_a_bound_is_rounded_up_to_the_common_step_of_the_costs() -> None:
    solution = told(blocks(5, cost="3/2"), [BlockPrices({"b": "3/4"})])
    assert solution.lower_bound == Fraction(9, 2)


def test_an_algorithm_that_ends_early_leaves_what_it_found() -> None:
    solution = told(blocks(8), [serving(8, 6), QUARTER])
    assert (solution.status, solution.proof) == (Status.FEASIBLE, Proof.NONE)
    assert solution.stop_reason is StopReason.FINISHED
    assert (solution.gap, solution.relative_gap) == (4, Fraction(2, 3))
    solution = told(blocks(8), [QUARTER])
    assert (solution.status, solution.proof) == (Status.NO_SCHEDULE, Proof.NONE)
    assert (solution.cost, solution.machine_count, solution.relative_gap) == (None, None, None)
    assert (solution.schedule, solution.lower_bound) == (Schedule(), 2)


def test_a_solvers_word_alone_proves_as_a_solver_does() -> None:
    claims: list[Any] = [serving(5, 3), SolverBound("5/2", "oracle")]
    solution = told(blocks(5), claims, trusted=True)
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.SOLVER)
    assert solution.stop_reason is StopReason.FINISHED
    assert (solution.lower_bound, solution.claimed_bound) == (0, 3)
    assert solution.history[-1].source == "oracle"
    solution = told(blocks(5), [*claims, HALF], trusted=True)  # a certificate says it after all
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert solution.stop_reason is StopReason.PROVED


def test_infeasible_by_a_solvers_word_or_by_a_ray() -> None:
    problem, word = blocks(5, limit=2), SolverBound(None, "oracle")
    solution = told(problem, [word], trusted=True)
    assert (solution.status, solution.proof) == (Status.INFEASIBLE, Proof.SOLVER)
    assert solution.schedule == Schedule()
    solution = told(problem, [word, BlockPrices({"b": 1}, {"machine": 2})], trusted=True)
    assert (solution.status, solution.proof) == (Status.INFEASIBLE, Proof.CHECKED)
    assert solution.stop_reason is StopReason.PROVED
    assert solution.certificate.proves_infeasible(problem)
    assert solution.lower_bound == 1


@pytest.mark.parametrize(
    ("jobs", "status", "cost"),
    [
        ([Job("x", 1, {})], Status.INFEASIBLE, None),
        ([], Status.OPTIMAL, 0),
        ([Job("x", 0, {})], Status.OPTIMAL, 0),
    ],
)
def test_what_is_certain_without_a_run_takes_none(
    jobs: list[Job], status: Status, cost: int | None
) -> None:
    solution = told(Problem(configurations=PAIR, jobs=jobs), ["never reached"])
    assert (solution.status, solution.proof, solution.cost) == (status, Proof.CHECKED, cost)
    assert solution.stop_reason is StopReason.PROVED
    assert [line.source for line in solution.history] == ["trivial"]


NO_WAY = SolverBound(None, "oracle")


class Subclass(Schedule):
    """A schedule that could answer for itself."""


class FreeBound(BlockPrices):
    """A certificate that could say what it likes."""


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([Schedule()], "claims a schedule of cost 0 that is not valid: job 'x' has 0"),
        ([serving(5, 3), Schedule([MachineGroup(PAIR, {("b", "x"): 5}, 1)])], "5 blocks 'b' in"),
        (
            [Schedule([MachineGroup(Configuration({"b": 9}, "moon"), {("b", "x"): 5}, 1)])],
            "machine type 'moon'",
        ),
        ([BlockPrices({"b": 1})], "claims a certificate that does not hold: configuration 2 x b"),
        ([BlockPrices({"c": 1})], "does not hold"),
        ([FreeBound()], "type 'FreeBound'"),
        (
            [Branch(MachinesOfType("machine"), 1, BlockPrices(multipliers=[0]), FreeBound())],
            "a part of type 'FreeBound'",
        ),
        ([Subclass()], "an object of type 'Subclass'; expected Schedule"),
        ([3], "an object of type 'int'"),
        ([SolverBound(2, "oracle")], "a solver's word is accepted from"),
    ],
)
def test_a_false_claim_is_refused_by_name(claims: list[Any], words: str) -> None:
    with pytest.raises(AlgorithmError) as caught:
        told(blocks(5), claims)
    assert caught.value.algorithm == "scripted"
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("word", "says"), [(SolverBound(4, "oracle"), "a bound of 4"), (NO_WAY, "there is none")]
)
def test_a_solvers_word_against_a_checked_schedule_is_an_error(
    word: SolverBound, says: str
) -> None:
    for claims in ([serving(5, 3), word], [word, serving(5, 3)]):
        with pytest.raises(AlgorithmError, match=f"scripted.*costs 3, and oracle claims {says}"):
            told(blocks(5), claims, trusted=True)


def test_claims_that_improve_nothing_are_not_checked_and_leave_no_line() -> None:
    worse = Schedule([MachineGroup(PAIR, {}, 9)])  # not valid, but nobody needs to know
    solution = told(blocks(8), [serving(8, 5), worse, QUARTER, QUARTER])
    assert [(i.cost, i.lower_bound) for i in solution.history] == [(5, 0), (5, 2)]


def test_an_exception_inside_an_algorithm_names_it() -> None:
    def broken(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 5)
        raise KeyError("b7")

    with pytest.raises(AlgorithmError, match="'scripted': raised KeyError: 'b7'") as caught:
        solved(broken)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(AlgorithmError, match="not iterable"):
        solved(lambda *_: None)


def test_an_algorithms_own_refusal_passes_through() -> None:
    def late(problem: Problem, budget: Budget) -> Iterator[Claim]:
        raise UnsupportedProblem("more than 7 blocks")
        yield

    with pytest.raises(UnsupportedProblem, match=r"^more than 7 blocks$"):
        solved(late)


def test_an_unsupported_problem_is_refused_with_the_algorithms_reason() -> None:
    with pytest.raises(UnsupportedProblem, match=r"'one_by_one' cannot .*: it does not count"):
        solve(blocks(8, limit=3), OneByOne())


def test_a_question_that_fails_or_is_answered_with_junk_names_the_algorithm() -> None:
    class Mute(OneByOne):
        def support(self, problem: Problem, options: object) -> Any:
            return True

        def guarantee(self, problem: Problem, options: object) -> Any:
            raise ZeroDivisionError

    with pytest.raises(AlgorithmError, match=r"support\(\) returned True; expected a Support"):
        solve(blocks(8), Mute())
    Mute.support = lambda *_: Support(True)  # type: ignore[method-assign]
    with pytest.raises(AlgorithmError, match=r"guarantee\(\) raised ZeroDivisionError"):
        solve(blocks(8), Mute())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *(({"time_limit": t}, "; expected seconds >= 0") for t in (float("nan"), -1, "5", True)),
        ({"gap": -1}, "gap is -1; expected a number >= 0"),
        ({"seed": -1}, "seed is -1; expected a whole number >= 0"),
        ({"threads": 0}, "threads is 0; expected a whole number >= 1"),
        ({"cancel": 3}, "cancel is 3; expected a threading.Event"),
        ({"start": [1]}, "start is [1]; expected Schedule"),
        ({"on_improvement": 3}, "on_improvement is 3; expected a function"),
        ({"options": [1]}, "options is [1]; expected a mapping"),
        ({"options": {"chose": "first"}}, "no option 'chose'; nearest: 'choose'; it has choose"),
        ({"options": {"choose": "last"}}, "option choose = 'last': expected 'cheapest' or 'first'"),
        ({"method": 3}, "method is 3; expected the name of an algorithm or an object"),
        ({"method": OneByOne}, "give an object, not its class"),
        ({"problem": 3}, "problem is 3; expected a cms.Problem"),
    ],
)
def test_a_bad_argument_is_a_value_error_that_says_what_is_expected(
    arguments: dict[str, Any], words: str
) -> None:
    everything: dict[str, Any] = {"problem": blocks(8), "method": OneByOne(), **arguments}
    with pytest.raises(InvalidOption) as caught:
        solve(**everything)
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_options_reach_the_run() -> None:
    seen = []

    class Notes(OneByOne):
        def run(self, problem: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
            seen.append((options.choose, budget.seed, budget.threads, budget.remaining()))
            yield from super().run(problem, options, budget)

    solve(blocks(8), Notes(), options={"choose": "first"}, seed=3, threads=2, time_limit=None)
    assert seen == [("first", 3, 2, float("inf"))]
    solve(blocks(8), Notes())
    assert seen[1][0] == "cheapest"
    assert seen[1][2] >= 1
    assert 59 < seen[1][3] <= 60


LONG: list[Any] = [1e20, 1e300, float("inf"), sys.maxsize, 10**400, Fraction(10**400), 1e9, 1e8]
SHORT: list[Any] = [0, 5e-324, 1e-300]


@pytest.mark.parametrize("method", list_algorithms())
def test_a_time_limit_may_be_of_any_size(method: str) -> None:
    """Solvers count milliseconds in 63 bits, and threads have a longest wait."""
    laboratory = Laboratory(method)
    wanting = [named.make() for named in laboratory.problems[::-1] if named.optimum]
    problem = next(problem for problem in wanting if laboratory.supports(problem))
    for limits in (LONG, SHORT):
        for limit in limits:
            reason = solve(problem, method, time_limit=limit).stop_reason
            assert (reason is StopReason.TIME_LIMIT) == (limits is SHORT)


def promised(claims: list[Any], factor: object, additive: object, **more: Any) -> Any:
    algorithm = Scripted(claims)
    algorithm.promise = Guarantee(factor, additive, "OPT", "Theorem 7")  # type: ignore[arg-type]
    return run_checked(algorithm, True, blocks(8), Arguments(**more))


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        ([QUARTER, serving(8, 5)], Verdict.VERIFIED),
        ([serving(8, 5), SolverBound(4, "oracle")], Verdict.OPEN),  # no word verifies it
    ],
)
def test_a_guarantee_is_judged_by_checked_bounds(claims: list[Any], verdict: Verdict) -> None:
    assert promised(claims, 2, 1).guarantee.verdict is verdict


def test_a_breached_guarantee_is_an_error_that_names_the_theorem() -> None:
    with pytest.raises(GuaranteeBreached, match=r"scripted.*cost 5, above .* Theorem 7 guarantees"):
        promised([serving(8, 5)], "1/2", 0)
    with pytest.raises(GuaranteeBreached, match=r"without a schedule.* Theorem 7 guarantees one"):
        promised([], 1, 0)
    cut_short = promised([HALF, serving(8, 5), serving(8, 4)], "1/2", 0, gap=1)
    assert cut_short.guarantee is None


def test_without_a_schedule_nothing_is_breached_where_there_may_be_none() -> None:
    algorithm = Scripted([])
    algorithm.promise = Guarantee(1, 0, "OPT", "Theorem 7")
    for supply, limit in (({"b": 1}, 3), ({"b": 1}, 9), ({}, None)):
        problem = Problem(
            configurations=Configuration({"b": 2}),
            jobs=[Job("x", 8, supply)],
            machine_types=[MachineType("machine", 1, limit)],
        )
        assert run_checked(algorithm, True, problem).guarantee is None


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_rough_prices_hold_and_prove_no_more_than_the_optimum(family: str) -> None:
    for number in range(5):
        problem = instance(family, number)
        best = optimum(problem)
        for prices in rough_prices(problem):
            assert best is None or 0 <= prices.bound(problem) <= best


def test_a_schedule_without_a_bound_or_a_solvers_word_gets_one() -> None:
    for claims in ([serving(8, 5), QUARTER], [serving(8, 5), SolverBound(3, "oracle")]):
        assert "rough prices" not in str(told(blocks(8), claims, trusted=True).history)
    assert told(blocks(8), []).lower_bound == 0, "there is no schedule to judge"
    solution = told(blocks(8), [serving(8, 5)])
    assert (solution.status, solution.cost, solution.lower_bound) == (Status.FEASIBLE, 5, 4)
    assert solution.stop_reason is StopReason.FINISHED
    assert told(blocks(8), [serving(8, 4)]).stop_reason is StopReason.PROVED


def test_demands_beyond_any_float_and_machines_that_cost_nothing_are_priced() -> None:
    huge = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", "1e400", {"b": 1})])
    assert rough_prices(huge) == (BlockPrices({"b": "1/2"}),) * 2
    free = Problem(
        configurations=[Configuration({"a": 1}, "free"), Configuration({"a": 1, "b": 1}, "paid")],
        jobs=[Job("x", 3, {"a": 1}), Job("y", 4, {"b": 2})],
        machine_types=[MachineType("free", cost=0, limit=1), MachineType("paid", cost=3)],
    )
    for prices in rough_prices(free):
        assert (prices.prices, prices.bound(free)) == ({"b": 3}, 6)
    useless = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 1, {})])
    assert rough_prices(useless) == (BlockPrices(),) * 2


def test_rough_prices_are_given_up_when_the_time_is_over() -> None:
    shapes = [Configuration({"b": n + 1}) for n in range(5_000)]
    many = Problem(configurations=shapes, jobs=[Job("j", 9, {"b": 1})])
    looks = iter([False, False])  # for the block, and before the first configuration
    with pytest.raises(Stopped):
        rough_prices(many, lambda: next(looks, True))
    ledger = Ledger(blocks(8), "by hand", trusted=False, clock=lambda: 0.0)
    ledger.hear(serving(8, 8))
    # for the block, before the configurations at either prices, at the leaf; not at its job
    looks = iter([False] * 4)
    assert not [*ledger.bound_roughly(lambda: next(looks, True))]


def test_who_interrupts_a_run_waits_for_no_prices() -> None:
    cancel = threading.Event()

    def then_cancelled(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        cancel.set()
        yield serving(8, 5)

    solution = solved(then_cancelled, cancel=cancel)
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert solution.lower_bound == 0


numbers = st.fractions(min_value=0, max_value=20, max_denominator=6)


@given(numbers, numbers, numbers, numbers, numbers)
def test_a_verdict_is_what_its_definition_says(
    factor: Fraction, additive: Fraction, bound: Fraction, above: Fraction, cost: Fraction
) -> None:
    guarantee = Guarantee(factor, additive, Reference.OPT, "T")
    value = bound + above  # the optimum lies between the bound and an upper value
    verdict = judge(guarantee, cost=cost, lower_bound=bound, upper_value=value).verdict
    if verdict is Verdict.VERIFIED:
        assert cost <= factor * bound + additive
    elif verdict is Verdict.BREACHED:
        assert cost > factor * value + additive
    else:
        assert factor * bound + additive < cost <= factor * value + additive


def test_numbers_are_exact_whatever_they_are_written_as() -> None:
    guarantee = Guarantee("3/2", 0.1, "LP_DW", "Theorem B")
    assert (guarantee.factor, guarantee.additive) == (Fraction(3, 2), Fraction(1, 10))
    assert guarantee.against is Reference.LP_DW
    assert str(guarantee) == "cost <= 1.5 LP_DW + 0.1 (Theorem B)"
    assert str(Guarantee(1, 0, "OPT", "exact")) == "cost <= OPT (exact)"
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
