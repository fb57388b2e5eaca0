"""No run ends above greedy: what is not proved at once has greedy's schedules too."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from algorithms.branch_and_price.run import claims
from cms import (
    Certificate,
    Configuration,
    Job,
    MachineType,
    Problem,
    Schedule,
    SizeBoundedConfigurations,
    check,
    solve,
)
from cms.plugin.algorithm import Named
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.samples import so_many

#: What a share gives, as parts of a whole machine; ``least`` is the job's own.
CURVES: dict[str, Callable[[float, float], float]] = {
    "in proportion": lambda share, least: share,
    "concave": lambda share, least: share**0.6,
    "convex": lambda share, least: share**1.4,
    "from a least share on": lambda share, least: share if share >= least else 0.0,
    "in whole steps": lambda share, least: int(4 * share) / 4,
}


def _shares(kind: str, seed: int) -> Problem:
    r = random.Random(f"{kind} {seed}")
    types, step, most = r.randint(1, 3), r.choice([10, 20]), r.choice([None, None, 4])
    shapes: list[Configuration | SizeBoundedConfigurations] = []
    machines, tables = [], [dict[str, Fraction]() for _ in range(r.randint(3, 4))]
    least = [r.uniform(0, 0.4) for _ in tables]
    for m in range(types):
        speed, sizes = r.uniform(1, 12), {f"g{m}:{s}": s for s in range(step, 101, step)}
        machines.append(MachineType(f"g{m}", f"{speed**0.85 * r.uniform(0.8, 1.25):.2f}"))
        shapes.append(SizeBoundedConfigurations(sizes, 100, f"g{m}", most))
        for table, low in zip(tables, least, strict=True):
            rate = speed * r.uniform(0.5, 2)
            given = {b: round(1000 * rate * CURVES[kind](s / 100, low)) for b, s in sizes.items()}
            table |= {block: Fraction(f, 1000) for block, f in given.items() if f}
    if seed % 2:
        shapes.append(Configuration({f"g0:{step}": 3, f"g0:{2 * step}": 2}, "g0"))
    jobs = [Job(f"j{at}", r.randint(1, 40), table) for at, table in enumerate(tables)]
    return Problem(configurations=shapes, jobs=jobs, machine_types=machines)


class _Best(Unlimited):
    """A budget that knows the cheapest schedule so far."""

    def tell(self, problem: Problem, claim: Schedule) -> None:
        assert check(problem, claim) == ()
        if self.best is None or claim.cost(problem) < self.best.cost(problem):
            self.best = claim


@pytest.mark.parametrize("kind", CURVES)
def test_before_it_branches_it_has_what_greedy_has(kind: str) -> None:
    asked = 0
    for seed in range(so_many(3, 100)):
        problem, budget, asking = _shares(kind, seed), _Best(), False
        for claim in claims(problem, budget):
            assert isinstance(claim, Named)
            of_greedy = claim.part.startswith("greedy: ")
            if asking and not of_greedy:
                break
            asking = asking or of_greedy
            if isinstance(claim.claim, Schedule):
                budget.tell(problem, claim.claim)
            elif isinstance(claim.claim, Certificate) and budget.best is not None:
                budget.lower_bound = max(budget.lower_bound, claim.claim.bound(problem))
                if budget.best.cost(problem) <= budget.lower_bound:
                    break
        asked += asking
        assert budget.best is not None
        greedy = solve(problem, method="greedy")
        assert greedy.cost is not None
        assert budget.best.cost(problem) <= greedy.cost, seed
    assert asked
