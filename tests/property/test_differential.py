"""All methods on the same problems: whatever one of them proves, none of the others contradicts.

The judge is enumeration (``tests.oracle``), which shares nothing with any of them.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import Problem, Proof, Solution, Status
from tests.families import FAMILIES
from tests.oracle import optimum
from tests.property.problems import problems, share
from tests.references.guarantees import METHODS, examine
from tests.samples import spread

#: These decide every tiny problem, whatever its kind.
EXACT = ("branch_and_price", "cp_sat", "auto")
ALL = (*EXACT, *METHODS)


def contradictions(problem: Problem, best: Fraction | None, solution: Solution) -> list[str]:
    """What a solution says that the optimum refutes."""
    status, cost = solution.status, solution.cost
    infeasible = solution.certificate.proves_infeasible(problem)
    if best is None:
        said = {
            "an infeasible problem has a schedule": cost is not None,
            "an infeasible problem is called optimal": status is Status.OPTIMAL,
        }
    else:
        lines = solution.history
        said = {
            "a feasible problem is called infeasible": status is Status.INFEASIBLE or infeasible,
            "a schedule is below the optimum": cost is not None and cost < best,
            "it is called optimal and is not": status is Status.OPTIMAL and cost != best,
            "its bound is above the optimum": solution.lower_bound > best,
            "its certificate proves too much": solution.certificate.bound(problem) > best,
            "a bound of its history is above the optimum": any(
                line.lower_bound > best or (line.claimed_bound or 0) > best for line in lines
            ),
        }
    return [words for words, holds in said.items() if holds]


@pytest.mark.parametrize("family", spread(8, FAMILIES))
@share(17)
@given(st.data())
def test_no_method_contradicts_another(family: str, data: st.DataObject) -> None:
    problem = data.draw(problems([family]))
    best = optimum(problem)
    for method in ALL:
        solution = examine(problem, best, method, {})
        if solution is None:
            continue
        assert contradictions(problem, best, solution) == [], method
        if method in EXACT or method == "conic":
            assert solution.proof is not Proof.NONE, method
            assert solution.cost == best, method
