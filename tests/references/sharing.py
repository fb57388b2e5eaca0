"""What sharing is held against: scipy's assignment of single GPUs, and every plan there is."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from cms.fleet.sharing import SharingPlan, SharingProblem
from cms.fleet.sharing.edge_problems import posed
from cms.referee.check import check


def best_value(problem: SharingProblem) -> int:
    """What the best plan is worth, GPU by GPU; a pair that is forbidden is worth as little as none.

    Every GPU and every workload may stay alone, so a negative weight counts as 0.
    """
    rows = np.repeat(np.arange(len(problem.online)), [o.count for o in problem.online])
    columns = np.repeat(np.arange(len(problem.offline)), [f.count for f in problem.offline])
    single: Any = np.maximum(problem.weights[rows][:, columns], 0)
    if not single.size:
        return 0
    chosen = linear_sum_assignment(single, maximize=True)
    return int(single[chosen].sum())


def every_plan(problem: SharingProblem) -> list[SharingPlan]:
    """All plans of a tiny problem."""
    pairs = [(o, f) for o in problem.online for f in problem.offline]
    ranges = [range(min(o.count, f.count) + 1) for o, f in pairs]
    plans = (
        SharingPlan({(o.name, f.name): n for (o, f), n in zip(pairs, counts, strict=True) if n})
        for counts in product(*ranges)
    )
    return [plan for plan in plans if not check(problem, plan)]


def drawn(seed: int, largest: int = 200) -> SharingProblem:
    """A random problem of at most so many GPUs and workloads: ties, forbidden pairs, counts."""
    rng = random.Random(f"sharing {seed}")
    classes = rng.choice([1, 2, 5, 20, largest])
    counts = [_split(rng.randint(0, largest), rng.randint(1, classes), rng) for _ in range(2)]
    most = rng.choice([1, 3, 100, 10**6])
    forbidden = rng.choice([0, 0.05, 0.5])
    weights = [
        [-1 if rng.random() < forbidden else rng.randint(0, most) for _ in counts[1]]
        for _ in counts[0]
    ]
    return posed(counts[0], counts[1], weights)


def _split(total: int, parts: int, rng: random.Random) -> list[int]:
    counts = [0] * parts
    for _ in range(total):
        counts[rng.randrange(parts)] += 1
    return counts
