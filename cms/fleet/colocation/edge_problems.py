"""Small co-location problems at the edges of the model, and large ones to stop in the middle of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from random import Random

from ...plugin.registry import NamedProblem
from ...testing.edge_problems import edge
from .problem import ColocationProblem, OfflineClass, OnlineClass


def posed(
    online: Sequence[int], offline: Sequence[int], weights: Sequence[Sequence[int]]
) -> ColocationProblem:
    """Return a problem with these numbers of GPUs and workloads: ``g0…``, ``w0…``."""
    gpus = [OnlineClass("gpu", count=n, sm_activity=0, name=f"g{i}") for i, n in enumerate(online)]
    work = [OfflineClass(f"w{j}", count=n) for j, n in enumerate(offline)]
    return ColocationProblem(online=gpus, offline=work, weights=weights)


@cache
def _crowd(classes: int, gpus: int) -> ColocationProblem:
    """Return a problem in which many pairs are worth nearly the same."""
    random = Random(f"sharing {classes}")
    rows = [
        [int(10**6 * (0.5 + 0.5 * random.random())) for _ in range(classes)] for _ in range(classes)
    ]
    return posed([gpus] * classes, [gpus] * classes, rows)


_CHAIN = [[9, 8, -1, -1], [-1, 8, 7, -1], [-1, -1, 7, 6], [9, -1, -1, 5]]
_VAST = [10**12, 10**12], [10**12, 3 * 10**12], [[10**6, 10**6], [10**6, 1]]
#: By name: its edge, the problem, and the loss against every workload at its best GPU.
_EDGES: dict[str, tuple[str, tuple[list[int], list[int], list[list[int]]], int]] = {
    "nobody": ("no class at all: 0", ([], [], []), 0),
    "no_gpu": ("no GPU: all is lost", ([], [3], []), 0),
    "gpus_of_no_count": ("a class of 0 GPUs", ([0], [3], [[5]]), 15),
    "no_work": ("no workload", ([3], [], [[]]), 0),
    "forbidden": ("the only pair is forbidden", ([3], [3], [[-1]]), 0),
    "worthless": ("the only pair is worth nothing", ([3], [3], [[0]]), 0),
    "one_pair": ("one pair of classes", ([2], [5], [[7]]), 21),
    "crossed": ("the best pair alone is worth 10", ([1, 1], [1, 1], [[10, 9], [9, -1]]), 1),
    "ties": ("everything is worth the same", ([2, 3], [3, 4], [[5, 5], [5, 5]]), 10),
    "chain": ("an exchange of four GPUs is needed", ([1] * 4, [1] * 4, _CHAIN), 0),
    "vast": ("10^12 GPUs and more workloads", _VAST, 2 * 10**18),
}
SHARING_EDGE_PROBLEMS = tuple(
    edge(f"colocation_{name}", title, partial(posed, *parts), loss)
    for name, (title, parts, loss) in _EDGES.items()
)
SHARING_CROWDS = (
    NamedProblem(
        name="colocation_crowd", title="500 online and 500 offline classes",
        source="the conformance suite of cms; random, seeded", make=partial(_crowd, 500, 40),
    ),
)  # fmt: skip
