"""Figure 6: hosting, the dearest mix and the optimum, each beside an enumeration."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from bench.expected import Line
from cms import solve
from proofs_checks.brute_force import optimum
from proofs_checks.finding import require
from proofs_checks.offered import require_agreement
from proofs_checks.shared import best_cost, drawn, image

from .asked import Asked, wrong_ones
from .hosting import require_hosting


def kernels(asked: Asked) -> Iterator[Line]:
    """Figure 6: the package, the second checker and enumerations agree on small cases."""
    parts: tuple[tuple[str, int, Callable[[int], None]], ...] = (
        ("hostings of up to 3 jobs: what a block can carry, by all mixes", 10_000, require_hosting),
        ("cases of up to 4 jobs: the dearest mix, by both searches and by all mixes", 10_000,
         partial(require_agreement, jobs=4)),
        ("tiny problems: the optimum, proved, by search and of the expanded plain problem", 300,
         _optimum),
    )  # fmt: skip
    for of, wanted, check in parts:
        cases = asked.cases(wanted)
        wrong = wrong_ones(cases, check)
        found = "; ".join([f"{len(wrong)} otherwise", *wrong[:3]])
        yield Line("6", f"{len(cases):,} {of}", "0 otherwise", found, not wrong)


def _optimum(seed: int) -> None:
    shared = drawn(random.Random(f"optima {seed}"))
    found, best = solve(shared.problem(), time_limit=None), best_cost(shared)
    plain = optimum(image(shared)).cost
    require(found.cost == found.lower_bound == best == plain, f"{found.cost}, {best}, {plain}")
