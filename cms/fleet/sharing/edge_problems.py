"""Small problems of sharing at the edges of the model, and large ones to stop in the middle of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from random import Random

from ...plugin.registry import NamedProblem
from ...testing.edge_problems import edge
from .classes import OfflineClass, OnlineClass
from .problem import SharingProblem


def posed(
    online: Sequence[int], offline: Sequence[int], weights: Sequence[Sequence[int]]
) -> SharingProblem:
    """Return a problem of so many GPUs and workloads of each class: ``g0…``, ``w0…``."""
    return SharingProblem(
        online=[
            OnlineClass("gpu", count=n, sm_activity=0, name=f"g{i}") for i, n in enumerate(online)
        ],
        offline=[OfflineClass(f"w{j}", count=n) for j, n in enumerate(offline)],
        weights=weights,
    )


@cache
def _crowd(classes: int, gpus: int) -> SharingProblem:
    """Return a problem in which many pairs are worth nearly the same."""
    random = Random(f"sharing {classes}")
    rows = [
        [int(10**6 * (0.5 + 0.5 * random.random())) for _ in range(classes)] for _ in range(classes)
    ]
    return posed([gpus] * classes, [gpus] * classes, rows)


#: Losses are against every workload at its best GPU.
SHARING_EDGE_PROBLEMS = (
    edge("sharing_nobody", "no class at all: 0", lambda: posed([], [], []), 0),
    edge("sharing_no_gpu", "no GPU: all is lost", lambda: posed([], [3], []), 0),
    edge("sharing_gpus_of_no_count", "a class of 0 GPUs", lambda: posed([0], [3], [[5]]), 15),
    edge("sharing_no_work", "no workload", lambda: posed([3], [], [[]]), 0),
    edge("sharing_forbidden", "the only pair is forbidden", lambda: posed([3], [3], [[-1]]), 0),
    edge("sharing_worthless", "the only pair is worth nothing", lambda: posed([3], [3], [[0]]), 0),
    edge("sharing_one_pair", "one pair of classes", lambda: posed([2], [5], [[7]]), 21),
    edge(
        "sharing_crossed",
        "the best pair alone is worth 10, the two others 18",
        lambda: posed([1, 1], [1, 1], [[10, 9], [9, -1]]),
        1,
    ),
    edge(
        "sharing_ties",
        "everything is worth the same",
        lambda: posed([2, 3], [3, 4], [[5, 5], [5, 5]]),
        10,
    ),
    edge(
        "sharing_chain",
        "an exchange of four GPUs is needed",
        lambda: posed(
            [1] * 4,
            [1] * 4,
            [[9, 8, -1, -1], [-1, 8, 7, -1], [-1, -1, 7, 6], [9, -1, -1, 5]],
        ),
        0,
    ),
    edge(
        "sharing_vast",
        "10^12 GPUs and more workloads",
        lambda: posed([10**12, 10**12], [10**12, 3 * 10**12], [[10**6, 10**6], [10**6, 1]]),
        2 * 10**18,
    ),
)

SHARING_CROWDS = (
    NamedProblem(
        name="sharing_crowd",
        title="500 online and 500 offline classes",
        source="the conformance suite of cms; random, seeded",
        make=partial(_crowd, 500, 40),
    ),
)
