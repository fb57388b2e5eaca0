"""The theorem files notice an algorithm that is missing, wasteful, too good to be true, or stuck.

Every stand-in below takes the place of `cms.solve`; so these tests need none of the algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

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
#: Cases about the ways an algorithm took, which no stand-in goes.
WAYS = ("every branch of", "every way of")


def verified(factor: int, theorem: str) -> GuaranteeVerdict:
    return GuaranteeVerdict(Guarantee(factor, 0, Reference.OPT, theorem), Verdict.VERIFIED)


@cache
def _solved(problem: Problem, time_limit: float) -> Solution:
    """Solve once what every stand-in is asked."""
    return solve(problem, "branch_and_price", time_limit=time_limit)


def optimal(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Answers optimally whatever the method, and refuses what that method has to refuse."""
    if method == "conic" and len(problem.listed_configurations) > 100:
        raise UnsupportedProblem("it lists too many configurations")
    if method in limits.REFUSE and problem.limits:
        raise UnsupportedProblem("there are limits")
    return replace(_solved(problem, time_limit), guarantee=verified(1, "optimal"))


def saying(change: Callable[[Problem, Solution], Solution]) -> Solver:
    """Answers optimally, but for a change to what is said."""

    def answers(
        problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
    ) -> Solution:
        return change(problem, optimal(problem, method, options=options, time_limit=time_limit))

    return answers


def with_groups(problem: Problem, solution: Solution, groups: list[MachineGroup]) -> Solution:
    schedule = Schedule(groups)
    return replace(solution, schedule=schedule, cost=schedule.cost(problem))


def waste(problem: Problem, solution: Solution) -> Solution:
    """Open a thousand machines more than needed."""
    groups = list(solution.schedule.groups)
    idle = [MachineGroup(group.configuration, {}, 1000) for group in groups[:1]]
    return with_groups(problem, solution, [*groups, *idle]) if groups else solution


def leave_out_a_machine(problem: Problem, solution: Solution) -> Solution:
    """And say that nothing is missing."""
    if solution.cost is None:
        return solution
    first, *others = solution.schedule.groups
    fewer = [first._replace(count=first.count - 1)] if first.count > 1 else []
    return with_groups(problem, solution, [*fewer, *others])


def break_down(problem: Problem, solution: Solution) -> Solution:
    """End in an error that is none of the package's."""
    raise IndexError("beyond a row")


def missing(problem: Problem, method: str, **more: Any) -> Solution:
    """Is installed under another name."""
    return solve(problem, f"{method}-of-old", **more)


def willing(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Takes what has to be refused."""
    return solve(problem, "branch_and_price", time_limit=time_limit)


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


def failures(name: str, solver: Solver) -> list[str]:
    found = theorems.run(name, cases=CASES, solver=solver).failures
    return [one for one in found if not one.startswith(WAYS)]


@pytest.mark.parametrize("name", spread(4, RUN_ALGORITHMS))
def test_an_optimal_answer_keeps_every_theorem(name: str) -> None:
    assert not failures(name, optimal)


DEAR = saying(
    lambda p, s: replace(s, certificate=BlockPrices(dict.fromkeys(p.blocks, Fraction(1000))))
)
#: A stand-in, the theorem that must notice it, and what each of its failures says.
BAD: dict[str, tuple[Solver, str, str]] = {
    "promises nothing": (
        saying(lambda _, s: replace(s, guarantee=None)), "t2_tadd", "no guarantee is stated",
    ),
    "promises a thousand times the optimum": (
        saying(lambda _, s: replace(s, guarantee=verified(1000, "no theorem"))),
        "g_int", "more than the theorem",
    ),
    "breaks down": (saying(break_down), "theorem_a", "IndexError: "),
    "is not installed": (missing, "theorem_b", "-of-old"),
    "is cut short": (
        saying(lambda _, s: replace(s, stop_reason=StopReason.TIME_LIMIT)),
        "few_configurations", "ended by time_limit",
    ),
    "is wasteful": (saying(waste), "ptas_switch", ""),
    "leaves out a machine": (saying(leave_out_a_machine), "set_cover", ""),
    "claims a bound that its prices do not prove": (DEAR, "prices", "the certificate of"),
    "takes a list that it must refuse": (
        willing, "list_hardness",
        "conic refuses a long list: conic takes a list of 102 configurations",
    ),
    "takes limits": (willing, "limits", "takes a problem with limits"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_answer_is_a_failure(bad: str) -> None:
    solver, name, words = BAD[bad]
    found = failures(name, solver)
    assert found
    assert all(words in one for one in found if not one.startswith("and "))
