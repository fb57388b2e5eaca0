"""Problems whose blocks jobs share in time: small ones at the edges of the model, and a large one.

Most have machines as gpulet knows them, GPUs whole or cut into two shares, with its names of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from ..mixes.model import TimeSharedJob
from ..mixes.problem import TimeSharedProblem
from ..plugin.registry import NamedProblem
from ..problem.parts import (
    AnyConfiguration,
    Configuration,
    MachineType,
    SizeBoundedConfigurations,
)
from ..values.numbers import Number
from .edge_problems import edge

_Points = Sequence[tuple[Number, Number]]
_GPU = "mps:100"
_WHOLE = Configuration({_GPU: 1})


def _posed(
    configurations: AnyConfiguration | list[Configuration],
    *jobs: tuple[Number, Number, Mapping[str, _Points]],
    types: tuple[MachineType, ...] = (),
    **more: Any,
) -> Callable[[], TimeSharedProblem]:
    """Return what makes a problem of jobs of (demand, latency limit, points a block)."""
    return lambda: TimeSharedProblem(
        configurations=configurations,
        jobs=[TimeSharedJob(f"j{at}", *job) for at, job in enumerate(jobs)],
        machine_types=types,
        **more,
    )


def _whole(
    *jobs: tuple[Number, Number, _Points], limit: int | None = None, cost: int = 1, **more: Any
) -> Callable[[], TimeSharedProblem]:
    """Return what makes a problem of GPUs that are not cut; of jobs of (…, …, points)."""
    given = [(demand, own, {_GPU: points}) for demand, own, points in jobs]
    return _posed(_WHOLE, *given, types=(MachineType("machine", cost, limit),), **more)


def _cut(larger: int) -> list[Configuration]:
    """GPUs whole or in two unequal parts."""
    return [_WHOLE, Configuration({f"mps:{larger}": 1, f"mps:{100 - larger}": 1})]


def _odd_names() -> TimeSharedProblem:
    names = ("mönster größe, 猫; a=b/c", '<b>&"')
    return TimeSharedProblem(
        configurations=Configuration({_GPU: 1}, machine="GPU №1"),
        jobs=[TimeSharedJob(name, "1/4", 12, {_GPU: [(2, 4)]}) for name in names],
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


_EIGHT = (4, 3, [(8, 1)])  # of two such jobs a block gives each all it wants, in frames of 2
_SPLIT = {"mps:60": [(8, 1)], "mps:40": [(8, 1)]}

#: Small problems with their optimum (None: there is no schedule), each derived in its title.
TIME_SHARED_EDGE_PROBLEMS = (
    edge("time_shared_no_jobs", "nothing to do: 0 machines", _whole(), 0),
    edge(
        "time_shared_zero_beside",
        "one job beside one that wants nothing and could not get it: 1 machine",
        _whole(_EIGHT, (0, 1, [(1, 1)])),
        1,
    ),
    edge("time_shared_shared", "two jobs in turn on one block", _whole(_EIGHT, _EIGHT), 1),
    edge(
        "time_shared_unshared",
        "two jobs that may not share: 2 machines",
        _whole(_EIGHT, _EIGHT, max_jobs=1),
        2,
    ),
    edge(
        "time_shared_capped",
        "three jobs that fit into a frame of 3, but two may share: 2 machines",
        _whole(*[(2, 4, [(8, 1)])] * 3, max_jobs=2),
        2,
    ),
    edge(
        "time_shared_at_the_limit",
        "a frame of 3 keeps limits of 4 and 5 exactly",
        _whole(("8/3", 4, [(8, 1)]), ("8/3", 5, [(8, 2)])),
        1,
    ),
    edge(
        "time_shared_above_the_limit",
        "a frame of 3 breaks a limit by a ten-millionth: 2 machines",
        _whole(("8/3", "3.9999999", [(8, 1)]), ("8/3", 5, [(8, 2)])),
        2,
    ),
    edge(
        "time_shared_collecting",
        "two frames of 2 break limits of 3, which a frame and a slot keep: 2 machines",
        _whole(_EIGHT, _EIGHT, rule="collect_then_run"),
        2,
    ),
    edge(
        "time_shared_short_rate",
        "a frame of 2 gives 4, a billionth less than is wanted: 2 machines",
        _whole(("4.000000001", 3, [(8, 1)]), _EIGHT),
        2,
    ),
    edge(
        "time_shared_odd_points",
        "a larger batch that is quicker, and one that is too slow",
        _whole((4, 3, [(1, 2), (8, 1), (64, 3)]), _EIGHT),
        1,
    ),
    edge(
        "time_shared_split",
        "12 and 4: one share gives 8 to the first alone, the other 4 to each: 1 machine",
        _posed(_cut(60), (12, 3, _SPLIT), (4, 3, _SPLIT)),
        1,
    ),
    edge(
        "time_shared_halves",
        "four jobs in two halves of a machine, each of which gives two of them 8 / 2",
        _posed(
            SizeBoundedConfigurations({"half": 50}, capacity=100, max_blocks=2),
            *[(4, 3, {"half": [(8, 1)]})] * 4,
        ),
        1,
    ),
    edge(
        "time_shared_huge_demand",
        "10^12 at 7 a second: the quotient rounded up",
        _whole((10**12, 2, [(7, 1)])),
        142_857_142_858,
    ),
    edge(
        "time_shared_fractional_costs",
        "5 jobs, two to a block: 3 blocks, two for 3/4 and one for 1/2",
        _posed(
            [Configuration({"b": 2}, "large"), Configuration({"b": 1}, "small")],
            *[(4, 3, {"b": [(8, 1)]})] * 5,
            types=(MachineType("large", "3/4"), MachineType("small", "1/2")),
        ),
        Fraction(5, 4),
    ),
    edge(
        "time_shared_thirds",
        "three times a third, each in turns of a third, in a frame of 1: 1",
        _whole(*[("1/3", 2, [("1/3", "1/3")])] * 3),
        1,
    ),
    edge(
        "time_shared_wide_numbers",
        "2^70 at 2^69 a machine, and a job of 3^-30 that finds no time beside it: 3",
        _whole((2**70, 8, [(2**71, 4)]), (Fraction(1, 3**30), 8, [(1, 4)])),
        3,
    ),
    edge(
        "time_shared_backwards",
        "the smallest share and the larger batch are the fastest: 2 on a share of 20: 1",
        _posed(
            _cut(80),
            (2, 8, {"mps:20": [(4, 2), (1, 3)], "mps:80": [(4, 5)], "mps:100": [(4, 4)]}),
        ),
        1,
    ),
    edge(
        "time_shared_odd_names", "names with blanks, quotes and other alphabets: 1", _odd_names, 1
    ),
    edge("time_shared_free", "machines that cost nothing: 0", _whole((5, 8, [(2, 4)]), cost=0), 0),
    edge("time_shared_too_slow", "no batch keeps the limit", _whole((1, 1, [(1, 1)]))),
    edge("time_shared_unmeasured", "a job that nobody measured", _whole((1, 1, []))),
    edge(
        "time_shared_lost_block",
        "a job whose only block is on no machine",
        _posed(
            SizeBoundedConfigurations({"half": 50, "giant": 150}, capacity=100),
            (1, 9, {"half": [(8, 1)]}),
            (1, 9, {"giant": [(8, 1)]}),
        ),
    ),
    edge(
        "time_shared_too_few_machines",
        "3 jobs, two to a block, and one machine",
        _whole(*[_EIGHT] * 3, limit=1),
    ),
)

#: Large ones, to stop in the middle of.
TIME_SHARED_CROWDS = (
    NamedProblem(
        name="time_shared_crowd",
        title="80 jobs on GPUs cut in two",
        source="the conformance suite of cms; random, seeded",
        make=lambda: _crowd(80),
    ),
)
