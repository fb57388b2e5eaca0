"""The compact integer program against enumeration."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.ptas.compact import CompactProgram, Ended
from algorithms.ptas.fleet import Fleet, Found
from cms import Configuration, Job, Problem, UnsupportedProblem, check
from cms.reduction import reduce
from instances import hard
from tests.algorithms.dantzig_wolfe.parts import cases
from tests.algorithms.price_and_branch.parts import Unlimited
from tests.families import FAMILIES


def solved(problem: Problem, lowest: Fraction, highest: Fraction) -> tuple[list[Found], bool]:
    """What the program finds, and whether it says that this is all."""
    fleet = Fleet(reduce(problem).problem)
    *found, last = CompactProgram(fleet, lowest, highest).run(Unlimited())
    assert isinstance(last, Ended)
    return [item for item in found if isinstance(item, Found)], last.proved


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"long_numbers"}))
def test_it_finds_what_enumeration_finds(family: str) -> None:
    for case in cases(family, 8):
        fleet = Fleet(reduce(case.problem).problem)
        if not fleet.step:
            continue  # nothing to do, or nothing to pay
        step = fleet.step
        found, proved = solved(case.problem, Fraction(0), case.best + step)
        assert proved, case.name
        assert found[-1].cost == case.best, case.name
        costs = [item.cost for item in found]
        assert costs == sorted(costs, reverse=True)
        for item in found:
            schedule = reduce(case.problem).restore(fleet.schedule(item))
            assert not check(case.problem, schedule), case.name
        # Below the optimum there is nothing.
        assert solved(case.problem, Fraction(0), case.best) == ([], True), case.name


def test_a_bound_that_does_not_round_up_is_closed() -> None:
    assert solved(hard.NON_IRUP.make(), Fraction(2), Fraction(3)) == ([], True)


def test_numbers_beyond_the_solver_are_refused_in_words() -> None:
    problem = Problem(
        configurations=Configuration({"a": 1}),
        jobs=[Job("x", 2**62 - 1, {"a": 2**61 + 1}), Job("y", 1, {"a": 1})],
    )
    with pytest.raises(UnsupportedProblem, match=r"2\*\*60"):
        CompactProgram(Fleet(reduce(problem).problem), Fraction(0), Fraction(9))


def test_it_ends_when_it_is_stopped() -> None:
    budget = Unlimited()
    budget.stopped = True
    fleet = Fleet(reduce(hard.NON_IRUP.make()).problem)
    assert list(CompactProgram(fleet, Fraction(0), Fraction(9)).run(budget)) == [Ended(False)]
