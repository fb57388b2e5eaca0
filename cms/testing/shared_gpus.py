"""GPUs whole or cut into two shares that jobs share in time: small problems, and a large one.

For schedulers that take no other machines; shares have the names that they read sizes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

from ..mixes.model import TimeSharedJob
from ..mixes.problem import TimeSharedProblem
from ..plugin.registry import NamedProblem
from ..problem.parts import Configuration, MachineType
from .edge_problems import edge

_WHOLE = Configuration({"mps:100": 1})
#: A batch of 2 in 4 units of time: 1/2 a unit for a job alone, and turns of 4.
_TURN = {"mps:100": [(2, 4)]}


def _whole(jobs: Iterable[tuple[Any, Any, Mapping[str, Any]]], **more: Any) -> TimeSharedProblem:
    return TimeSharedProblem(
        configurations=_WHOLE,
        jobs=[TimeSharedJob(f"j{j}", *parts) for j, parts in enumerate(jobs)],
        **more,
    )


def _split() -> TimeSharedProblem:
    points = {"mps:60": [(4, 8)], "mps:40": [(4, 16)]}
    return TimeSharedProblem(
        configurations=[_WHOLE, Configuration({"mps:60": 1, "mps:40": 1})],
        jobs=[TimeSharedJob("x", "3/4", 32, points)],
    )


def _backwards() -> TimeSharedProblem:
    return TimeSharedProblem(
        configurations=[_WHOLE, Configuration({"mps:80": 1, "mps:20": 1})],
        jobs=[
            TimeSharedJob(
                "x", 2, 8, {"mps:20": [(4, 2), (1, 3)], "mps:80": [(4, 5)], "mps:100": [(4, 4)]}
            )
        ],
    )


def _odd_names() -> TimeSharedProblem:
    block = "mps:100"
    names = ("mönster größe, 猫; a=b/c", '<b>&"')
    return TimeSharedProblem(
        configurations=Configuration({block: 1}, machine="GPU №1"),
        jobs=[TimeSharedJob(name, "1/4", 12, _TURN) for name in names],
        machine_types=[MachineType("GPU №1")],
    )


def _crowd(jobs: int) -> TimeSharedProblem:
    random = Random(jobs)
    shares = (20, 40, 50, 60, 80, 100)

    def points(speed: float) -> dict[str, list[tuple[int, Fraction]]]:
        return {
            f"mps:{share}": [
                (2**b, Fraction(round(1000 + speed * 2**b * 100 / share), 10**6)) for b in range(7)
            ]
            for share in shares
        }

    return TimeSharedProblem(
        configurations=[
            _WHOLE,
            *(Configuration({f"mps:{p}": 1, f"mps:{100 - p}": 1}) for p in (20, 40)),
            Configuration({"mps:50": 2}),
        ],
        jobs=[
            TimeSharedJob(
                f"j{j}",
                30 + int(random.random() * 500),
                Fraction(50 + int(random.random() * 150), 1000),
                points(200 + 600 * random.random()),
            )
            for j in range(jobs)
        ],
    )


#: Small problems with their optimum (None: there is no schedule), each derived in its title.
SHARED_GPU_PROBLEMS = (
    edge("mixes_no_jobs", "nothing to do: 0 machines", lambda: _whole([]), 0),
    edge(
        "mixes_zero_demands",
        "demands of 0 only, one without a point: 0 machines",
        lambda: _whole([(0, 8, _TURN), (0, 1, {})]),
        0,
    ),
    edge(
        "mixes_shared",
        "two turns of 4 in a frame of 8 give 1/4 each, within 8 + 4 = 12 exactly: 1",
        lambda: _whole([("1/4", 12, _TURN), ("1/4", 12, _TURN)]),
        1,
    ),
    edge(
        "mixes_late",
        "the same a hair tighter: each needs a machine: 2",
        lambda: _whole([("1/4", "11.999999999", _TURN), ("1/4", 12, _TURN)]),
        2,
    ),
    edge(
        "mixes_collected",
        "the same where batches are gathered first: 2 x 8 > 12, so 2 machines",
        lambda: _whole([("1/4", 12, _TURN), ("1/4", 12, _TURN)], rule="collect_then_run"),
        2,
    ),
    edge(
        "mixes_cap",
        "three turns fit into every limit, but a mix has two jobs at most: 2",
        lambda: _whole([("1/6", 99, _TURN)] * 3, max_jobs=2),
        2,
    ),
    edge(
        "mixes_unservable",
        "a job whose only batch takes more than half of its limit",
        lambda: _whole([("1/4", 99, _TURN), (1, "7.9", _TURN)]),
    ),
    edge(
        "mixes_thirds",
        "three times a third, each in turns of a third, in a frame of 1: 1",
        lambda: _whole([("1/3", 2, {"mps:100": [("1/3", "1/3")]})] * 3),
        1,
    ),
    edge(
        "mixes_huge_demand",
        "10^12 at 1/2 a machine: 2 x 10^12",
        lambda: _whole([(10**12, 8, _TURN)]),
        2 * 10**12,
    ),
    edge(
        "mixes_wide_numbers",
        "2^70 at 2^69 a machine, and a job of 3^-30 that finds no time beside it: 3",
        lambda: _whole(
            [
                (2**70, 8, {"mps:100": [(2**71, 4)]}),
                (Fraction(1, 3**30), 8, {"mps:100": [(1, 4)]}),
            ]
        ),
        3,
    ),
    edge("mixes_split", "3/4 by shares of 60 (1/2) and 40 (1/4) of one GPU: 1", _split, 1),
    edge(
        "mixes_backwards",
        "the smallest share and the larger batch are the fastest: 2 on a share of 20: 1",
        _backwards,
        1,
    ),
    edge("mixes_odd_names", "names with blanks, quotes and other alphabets: 1", _odd_names, 1),
    edge(
        "mixes_free",
        "machines that cost nothing: 0",
        lambda: _whole([(5, 8, _TURN)], machine_types=[MachineType("machine", cost=0)]),
        0,
    ),
)

#: Large ones, to stop in the middle of.
TIME_SHARED_CROWDS = (
    NamedProblem(
        name="mixes_crowd",
        title="80 jobs on GPUs cut in two",
        source="the conformance suite of cms; random, seeded",
        make=lambda: _crowd(80),
    ),
)
