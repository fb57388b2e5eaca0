"""GPUs that offline work shares with online services: made-up fleets, and made-up measured pairs.

What a pair does to each other follows from a sensitivity, an aggressiveness and a demand for SMs,
times noise. Nothing here was measured, and no model has these names.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.fleet.colocation import (
    ColocationProblem,
    MeasuredPair,
    OfflineClass,
    OnlineClass,
    table_weights,
)
from cms.fleet.colocation.edge_problems import posed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

DEVICE = "a100-80gb"
#: Shares at which pairs are as good as measured, in per cent.
SHARES = tuple(range(10, 100, 10))
#: Of a random problem, this percentage of pairs is forbidden.
_FORBIDDEN = 0.05
_LIMIT = "1.2"
#: Models of made-up pairs, and workloads for each GPU of a daily fleet.
_ONLINE, _OFFLINE, _JOBS = 6, 12, 3


def shared_gpus(gpus: int, *, online: int, offline: int, seed: int) -> ColocationProblem:
    """Draw a problem of activities from Beta(2, 6), with half as many workloads again as GPUs.

    Five pairs in a hundred are forbidden, and those slower than 1.2 times by :func:`slowdowns`.
    """
    rng = np.random.default_rng([seed, gpus, online, offline])
    activity = np.maximum(np.round(100 * rng.beta(2, 6, online), 1), 1)
    demand = rng.uniform(15, 90, offline)
    sensitivity = rng.uniform(0, 0.6, (online, offline))
    left = np.maximum(90 - np.ceil(activity), 0)[:, None]
    weights = np.minimum(1, left / demand) * (1 - sensitivity * activity[:, None] / 100)
    table = (10**6 * weights).astype(np.int64)
    table[rng.random(table.shape) < _FORBIDDEN] = -1
    table[slowdowns(left[:, 0], offline, seed) > float(_LIMIT)] = -1
    rows = rng.multinomial(gpus, rng.dirichlet(np.full(online, 2.0)))
    columns = rng.multinomial(gpus + gpus // 2, rng.dirichlet(np.full(offline, 2.0)))
    return ColocationProblem(
        online=[
            OnlineClass(DEVICE, count=int(n), sm_activity=str(a), name=f"o{i}")
            for i, (n, a) in enumerate(zip(rows, activity, strict=True))
        ],
        offline=[OfflineClass(f"f{k}", count=int(n)) for k, n in enumerate(columns)],
        weights=table,
    )


def random_classes(seed: int, largest: int = 200) -> ColocationProblem:
    """Draw a problem without structure, of at most a number of GPUs, and workloads."""
    rng = Random(f"sharing {seed}")
    classes = rng.choice([1, 2, 5, 20, largest])
    counts = []
    for _ in range(2):
        total, parts = rng.randint(0, largest), rng.randint(1, classes)
        drawn = Counter(rng.randrange(parts) for _ in range(total))
        counts.append([drawn[at] for at in range(parts)])
    most = rng.choice([1, 3, 100, 10**6])
    forbidden = rng.choice([0, 0.05, 0.5])
    weights = [
        [-1 if rng.random() < forbidden else rng.randint(0, most) for _ in counts[1]]
        for _ in counts[0]
    ]
    return posed(counts[0], counts[1], weights)


def slowdowns(shares: ArrayLike, offline: int, seed: int) -> NDArray[np.float64]:
    """Return how many times slower online classes are, (G, K), at these shares left in per cent."""
    given = np.asarray(shares, dtype=np.float64)
    rng = np.random.default_rng([seed, len(given), offline])
    sensitive = rng.uniform(0.3, 1, len(given))
    aggressive = rng.uniform(0.2, 1, offline)
    return 1 + 0.35 * np.outer(sensitive * given / 100, aggressive)


def made_up_pairs(seed: int, *, error: float = 0.0) -> tuple[MeasuredPair, ...]:
    """Make up what was measured of pairs, with a predictor's error (a standard deviation, of 1)."""
    rng, wrong = Random(f"pairs {seed}"), Random(f"error {seed}")
    found = []
    demands = [rng.uniform(20, 90) for _ in range(_OFFLINE)]
    aggressive = [rng.uniform(0.2, 1) for _ in range(_OFFLINE)]
    for i in range(_ONLINE):
        sensitive = rng.uniform(0.3, 1)
        for k in range(_OFFLINE):
            harm, cost = (sensitive * aggressive[k] * rng.uniform(0.8, 1.2) for _ in range(2))
            slips = wrong.gauss(0, error), wrong.gauss(0, error)
            for share in SHARES:
                part = min(1.0, share / demands[k]) * (1 - 0.3 * cost) * (1 + slips[0])
                slower = 1 + 0.35 * harm * share / 100 + slips[1]
                found.append(
                    MeasuredPair(
                        f"on{i}", f"off{k}", DEVICE, share,
                        Fraction(round(10**4 * min(max(part, 0.01), 1)), 10**4),
                        Fraction(round(10**4 * max(slower, 1)), 10**4),
                    )
                )  # fmt: skip
    return tuple(found)


def daily_fleet(gpus: int, *, seed: int) -> ColocationProblem:
    """Draw a fleet whose days are simulated, of the models of :func:`made_up_pairs`."""
    rng, pairs = Random(f"fleet {seed}"), made_up_pairs(seed)
    names = list(dict.fromkeys(pair.online_model for pair in pairs))
    work = list(dict.fromkeys(pair.offline_model for pair in pairs))
    classes = [(name, at) for name in names for at in range(5)]

    def shares_of(total: int, parts: int) -> list[int]:
        return [total * (i + 1) // parts - total * i // parts for i in range(parts)]

    return ColocationProblem(
        online=[
            OnlineClass(
                DEVICE, count=count, sm_activity=rng.randint(15, 70), model=name,
                slowdown_limit=_LIMIT, name=f"{name}-{at}",
            )
            for (name, at), count in zip(classes, shares_of(gpus, len(classes)), strict=True)
        ],
        offline=[
            OfflineClass(name, count=count)
            for name, count in zip(work, shares_of(_JOBS * gpus, len(work)), strict=True)
        ],
        weights=table_weights(pairs),
    )  # fmt: skip


def generate(name: str, **arguments: Any) -> ColocationProblem:
    """Make a problem by the name of its kind, as benchmarks ask for one."""
    makers = {"shared-gpus": shared_gpus, "daily-fleet": daily_fleet}
    return makers[name](**arguments)  # type: ignore[operator, no-any-return]
