"""The theorem files notice an algorithm that is missing, wasteful, too good to be true, or stuck.

Every stand-in below takes the place of `cms.solve`; so these tests need none of the algorithms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from cms import (
    BlockPrices,
    Guarantee,
    GuaranteeVerdict,
    MachineGroup,
    Problem,
    Reference,
    Schedule,
    Solution,
    StopReason,
    UnsupportedProblem,
    Verdict,
    solve,
)
from proofs_checks import limits, theorems
from proofs_checks.promises import Solver
from tests.samples import spread

RUN_ALGORITHMS = [name for name in theorems.CHECKS if theorems.runs_algorithms(name)]
CASES = 2
#: What an optimal answer may promise.
EXACT = GuaranteeVerdict(Guarantee(1, 0, Reference.OPT, "optimal"), Verdict.VERIFIED)
#: Cases about the ways an algorithm took, which no stand-in goes.
WAYS = ("every branch of", "every way of")


def optimal(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Answers optimally whatever the method, and refuses what that method has to refuse."""
    if method == "conic" and len(problem.listed_configurations) > 100:
        raise UnsupportedProblem("it lists too many configurations")
    if method in limits.REFUSE and any(m.limit is not None for m in problem.machine_types):
        raise UnsupportedProblem("there are limits")
    return replace(_solved(problem, time_limit), guarantee=EXACT)


@cache
def _solved(problem: Problem, time_limit: float) -> Solution:
    """Solve once what every stand-in is asked."""
    return solve(problem, "price_and_branch", time_limit=time_limit)


def silent(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Promises nothing, though what it answers is optimal."""
    solution = optimal(problem, method, options=options, time_limit=time_limit)
    return replace(solution, guarantee=None)


def generous(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Promises a thousand times the optimum."""
    solution = optimal(problem, method, options=options, time_limit=time_limit)
    loose = Guarantee(1000, 0, Reference.OPT, "no theorem")
    return replace(solution, guarantee=GuaranteeVerdict(loose, Verdict.VERIFIED))


def broken(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Ends in an error that is none of the package's."""
    raise IndexError(f"{method} looks beyond a row")


def wasteful(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Opens a thousand machines more than needed."""
    solution = optimal(problem, method, options=options, time_limit=time_limit)
    groups = list(solution.schedule.groups)
    if not groups:
        return solution
    more = MachineGroup(groups[0].configuration, {}, 1000)
    schedule = Schedule([*groups, more])
    return replace(solution, schedule=schedule, cost=schedule.cost(problem))


def short_of_blocks(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Leaves out a machine, and says that nothing is missing."""
    solution = optimal(problem, method, options=options, time_limit=time_limit)
    if solution.cost is None:
        return solution
    first, *others = solution.schedule.groups
    fewer = [first._replace(count=first.count - 1)] if first.count > 1 else []
    schedule = Schedule([*fewer, *others])
    return replace(solution, schedule=schedule, cost=schedule.cost(problem))


def missing(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Is installed under another name."""
    return solve(problem, f"{method}-of-old", options=options, time_limit=time_limit)


def stuck(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Runs into the time limit."""
    solution = optimal(problem, method, options=options, time_limit=time_limit)
    return replace(solution, stop_reason=StopReason.TIME_LIMIT)


def boastful(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Claims a bound that its prices do not prove."""
    solution = optimal(problem, method, options=options, time_limit=time_limit)
    dear = BlockPrices(dict.fromkeys(problem.blocks, Fraction(1000)))
    return replace(solution, certificate=dear)


def willing(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Takes what has to be refused."""
    return solve(problem, "price_and_branch", time_limit=time_limit)


@pytest.fixture(autouse=True)
def _all_but_the_solver_aside(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds without any algorithm is the matter of ``test_theorems``.

    A bad answer is noticed on any instance; a good one is good on the named ones too.
    """
    if request.function is not test_an_optimal_answer_keeps_every_theorem:
        for name in RUN_ALGORITHMS:
            monkeypatch.setattr(f"proofs_checks.{name}.named", lambda: (), raising=False)
    # Those of the two others also count the branches that cases take.
    for name in set(RUN_ALGORITHMS) - {"ptas_switch", "limits"}:
        for part in ("_plain", "_claim"):
            stub = f"proofs_checks.{name}.{part}"
            monkeypatch.setattr(stub, lambda *_: Fraction(1), raising=False)


def failures(name: str, solver: Solver) -> tuple[str, ...]:
    found = theorems.run(name, cases=CASES, solver=solver).failures
    return tuple(one for one in found if not one.startswith(WAYS))


@pytest.mark.parametrize("name", spread(4, RUN_ALGORITHMS))
def test_an_optimal_answer_keeps_every_theorem(name: str) -> None:
    assert not failures(name, optimal)


#: Where an algorithm's promise is the theorem's.
PROMISES = (
    *("t2_tadd", "inner_problem", "g_int", "g_real", "g_alone", "set_cover"),
    *("theorem_a", "few_configurations", "theorem_b", "ptas_switch"),
)


@pytest.mark.parametrize("name", spread(4, PROMISES))
def test_an_algorithm_that_promises_nothing_is_a_failure(name: str) -> None:
    found = failures(name, silent)
    assert found
    assert all("no guarantee is stated" in one for one in found if not one.startswith("and "))


@pytest.mark.parametrize("name", spread(4, PROMISES))
def test_a_promise_beyond_the_theorem_is_a_failure(name: str) -> None:
    found = failures(name, generous)
    assert found
    assert all("more than the theorem" in one for one in found if not one.startswith("and "))


@pytest.mark.parametrize("name", spread(4, RUN_ALGORITHMS))
def test_an_error_of_any_kind_is_reported_with_its_case(name: str) -> None:
    found = failures(name, broken)
    assert found
    assert all("IndexError: " in one for one in found if not one.startswith("and "))


@pytest.mark.parametrize("name", spread(4, RUN_ALGORITHMS))
def test_a_method_that_is_not_installed_is_a_failure(name: str) -> None:
    found = failures(name, missing)
    assert found
    assert all("-of-old" in failure for failure in found if not failure.startswith("and "))


@pytest.mark.parametrize("name", spread(4, RUN_ALGORITHMS))
def test_an_answer_cut_short_is_a_failure(name: str) -> None:
    found = failures(name, stuck)
    assert found
    assert all("ended by time_limit" in one for one in found if not one.startswith("and "))


# prices looks at certificates alone, these at schedules alone.
SCHEDULES = [name for name in RUN_ALGORITHMS if name != "prices"]
CERTIFICATES = [
    name for name in RUN_ALGORITHMS if name not in ("list_hardness", "structure_theorem")
]


@pytest.mark.parametrize("name", spread(4, SCHEDULES))
@pytest.mark.parametrize("solver", [wasteful, short_of_blocks], ids=["wasteful", "short"])
def test_a_wrong_schedule_is_a_failure(name: str, solver: Solver) -> None:
    assert failures(name, solver)


@pytest.mark.parametrize("name", spread(4, CERTIFICATES))
def test_a_certificate_that_does_not_hold_is_a_failure(name: str) -> None:
    found = failures(name, boastful)
    assert found
    assert all("the certificate of" in one for one in found if not one.startswith("and "))


def test_taking_a_list_where_it_must_be_refused_is_a_failure() -> None:
    (failure,) = failures("list_hardness", willing)
    assert failure == "conic refuses a long list: conic takes a list of 102 configurations"


def test_taking_a_problem_with_limits_is_a_failure() -> None:
    found = failures("limits", willing)
    assert found
    assert all("takes a problem with limits" in one for one in found if not one.startswith("and "))
