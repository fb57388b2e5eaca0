"""Problems with known optima at the edges of the models, and large ones to stop in the middle of.

Those of jobs that share blocks in time have machines as gpulet knows them, GPUs whole or cut into
two shares, with its names of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import numpy as np

from ..mixes.model import TimeSharedJob
from ..mixes.problem import TimeSharedProblem
from ..plugin.registry import NamedProblem
from ..problem.parts import Configuration, Job, MachineType, SizeBoundedConfigurations
from ..problem.problem import Problem
from ..values.numbers import Number


def edge(
    name: str, title: str, make: Callable[[], Any], optimum: int | str | None = None
) -> NamedProblem:
    """Name a small problem of some kind, with its optimum; without one there is no schedule."""
    return NamedProblem(
        name=name,
        title=title,
        source="the conformance suite of cms; by hand",
        make=make,
        optimum=None if optimum is None else Fraction(optimum),
        infeasible=optimum is None,
    )


def _edge(
    words: str,
    optimum: int | str | None,
    configurations: Any,
    jobs: Sequence[tuple[Any, ...]],
    kind: type[Any] = Problem,
    named: str = "j",
    **more: Any,
) -> NamedProblem:
    """Name a problem, "name: how its optimum is derived", of jobs without names of their own."""
    name, title = words.split(": ", 1)
    made = Job if kind is Problem else TimeSharedJob

    def make() -> Any:
        rows = [made(f"{named}{at}", *job) for at, job in enumerate(jobs)]
        return kind(configurations=configurations, jobs=rows, **more)

    return edge(name, title, make, optimum)


_shared = partial(_edge, kind=TimeSharedProblem)


def _whole(
    words: str,
    optimum: int | str | None,
    jobs: Sequence[tuple[Number, Number, Sequence[tuple[Number, Number]]]],
    limit: int | None = None,
    cost: int = 1,
    **more: Any,
) -> NamedProblem:
    """Name a problem of time sharing on GPUs that are not cut."""
    given = [(demand, longest, {_GPU: points}) for demand, longest, points in jobs]
    types = [MachineType("machine", cost, limit)]
    return _shared(words, optimum, _WHOLE, given, machine_types=types, **more)


_GPU = "mps:100"
_WHOLE = Configuration({_GPU: 1})
_ONE, _TWO = Configuration({"b": 1}), Configuration({"b": 2})
_SHARES = SizeBoundedConfigurations({"half": 50, "giant": 150}, capacity=100, max_blocks=2)
_SMALL_OR_LARGE = Configuration({"b": 1}, "small"), Configuration({"b": 2}, "large")
_CHEAP_OR_DEAR = Configuration({"b": 1}, "cheap"), Configuration({"b": 1}, "dear")
_TYPES = MachineType("small", "1/2"), MachineType("large", "3/4")
_TINY = Fraction(1, 3**30)
_ODD = "mönster größe, 猫; a=b/c <b>&\"'"
_NUMBER_1 = [MachineType("GPU №1")]


def _cheap(dear: int | None) -> list[MachineType]:
    return [MachineType("cheap", limit=1), MachineType("dear", 3, dear)]


def _parts(*weights: int) -> tuple[Any, Any]:
    supply = {f"w{at}": weight for at, weight in enumerate(weights)}
    return Configuration(dict.fromkeys(supply, 1)), [(5, supply), (5, supply)]


#: Small problems with their optimum (None: there is no schedule), each derived in its title.
EDGE_PROBLEMS = (
    _edge("no_jobs: nothing to do: 0 machines", 0, _ONE, []),
    _edge("one_job: one job, one block: 1 machine", 1, _ONE, [(1, {"b": 1})]),
    _edge("zero_demands: demands of 0 only: 0 machines", 0, _ONE, [(0, {"b": 1}), (0, {})]),
    _edge(
        "zero_beside: 3 blocks on machines of 2, beside demands of 0: 2 machines",
        2,
        _TWO,
        [(0, {}), (3, {"b": 1}), (0, {"b": 5})],
    ),
    _edge("unservable: a job that no block can serve", None, _ONE, [(1, {"b": 0})]),
    _edge(
        "lost_block: a job whose only block is on no machine",
        None,
        SizeBoundedConfigurations({"here": 1, "nowhere": 2}, capacity=1),
        [(1, {"here": 1}), (1, {"nowhere": 1})],
    ),
    _edge(
        "huge_demand: 10^12 blocks, 7 on a machine: the quotient rounded up",
        142_857_142_858,
        Configuration({"b": 7}),
        [(10**12, {"b": 1})],
    ),
    _edge(
        "thirds: 3 blocks of 1/3 meet 1 exactly", 1, Configuration({"b": 3}), [(1, {"b": "1/3"})]
    ),
    _edge(
        "limit: 2 machines, of the cheap type (cost 1) only one: 1 + 3",
        4,
        _CHEAP_OR_DEAR,
        [(2, {"b": 1})],
        machine_types=_cheap(None),
    ),
    _edge(
        "too_few_machines: 2 machines needed, 1 cheap and 0 dear exist",
        None,
        _CHEAP_OR_DEAR,
        [(2, {"b": 1})],
        machine_types=_cheap(0),
    ),
    _edge(
        "fractional_costs: 3 blocks: a large machine (2 blocks, 3/4) and a small one (1, 1/2)",
        "5/4",
        _SMALL_OR_LARGE,
        [(3, {"b": 1})],
        machine_types=_TYPES,
    ),
    _edge(
        "free_machines: machines that cost nothing: 0",
        0,
        _ONE,
        [(5, {"b": 1})],
        machine_types=[MachineType("machine", cost=0)],
    ),
    _edge(
        "not_rounding_up: sizes 2 x 44 + 3 x 33 + 6 x 12 = 259 <= 2 x 132, yet on no two machines",
        3,
        SizeBoundedConfigurations({"a": 44, "b": 33, "c": 12}, capacity=132),
        [(2, {"a": 1}), (3, {"b": 1}), (6, {"c": 1})],
    ),
    _edge(
        "few_blocks: 5 blocks, at most 2 on a machine whatever their size: 3",
        3,
        SizeBoundedConfigurations({"b": 1}, capacity=10, max_blocks=2),
        [(5, {"b": 1})],
    ),
    _edge("partition: 3 1 1 2 2 1 splits into 5 and 5: 1", 1, *_parts(3, 1, 1, 2, 2, 1)),
    _edge("no_partition: 3 3 3 1 does not split: 2", 2, *_parts(3, 3, 3, 1)),
    _edge(
        "odd_names: names with blanks, quotes and other alphabets: 1",
        1,
        Configuration({_ODD: 1}, machine="GPU №1"),
        [(1, {_ODD: 1})],
        machine_types=_NUMBER_1,
        named=_ODD,
    ),
    _edge(
        "wide_numbers: 2^70 by blocks of 2^68 - 1 takes 5, on 3 machines, beside 1 of 3^-30: 4",
        4,
        [_TWO, Configuration({"c": 1})],
        [(2**70, {"b": 2**68 - 1, "c": 2**40}), (_TINY, {"c": _TINY})],
    ),
    _edge(
        "mig: bert takes 7g + 5 x 1g or more (1,200 > 800; 630), resnet the rest of neither: 3",
        3,
        [Configuration({"7g": 1}), Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
        [
            (1200, {"1g": 90, "3g": "310.5", "7g": 800}),
            ("333.3", {"1g": 40, "3g": 150, "7g": 380}),
        ],
    ),
)

_EIGHT = (4, 3, [(8, 1)])  # of two such jobs a block gives each all it wants, in frames of 2
_SPLIT = {"mps:60": [(8, 1)], "mps:40": [(8, 1)]}

TIME_SHARED_EDGE_PROBLEMS = (
    _whole("time_shared_no_jobs: nothing to do: 0 machines", 0, []),
    _whole(
        "time_shared_zero_beside: one job beside one that wants nothing and could not get it: 1",
        1,
        [_EIGHT, (0, 1, [(1, 1)])],
    ),
    _whole("time_shared_shared: two jobs in turn on one block", 1, [_EIGHT] * 2),
    _whole("time_shared_unshared: two that may not share: 2", 2, [_EIGHT] * 2, max_jobs=1),
    _whole(
        "time_shared_at_the_limit: a frame of 3 keeps limits of 4 and 5 exactly",
        1,
        [("8/3", 4, [(8, 1)]), ("8/3", 5, [(8, 2)])],
    ),
    _whole(
        "time_shared_above_the_limit: a frame of 3 breaks a limit by a ten-millionth: 2 machines",
        2,
        [("8/3", "3.9999999", [(8, 1)]), ("8/3", 5, [(8, 2)])],
    ),
    _whole(
        "time_shared_collecting: two frames of 2 break limits of 3, which a frame and a slot keep",
        2,
        [_EIGHT] * 2,
        rule="collect_then_run",
    ),
    _whole(
        "time_shared_short_rate: a frame of 2 gives 4, a billionth less than is wanted: 2 machines",
        2,
        [("4.000000001", 3, [(8, 1)]), _EIGHT],
    ),
    _shared(
        "time_shared_split: 12 and 4: one share gives 8 to the first alone, the other 4 to each: 1",
        1,
        [_WHOLE, Configuration({"mps:60": 1, "mps:40": 1})],
        [(12, 3, _SPLIT), (4, 3, _SPLIT)],
    ),
    _shared(
        "time_shared_halves: four jobs in two halves, each of which gives two of them 8 / 2",
        1,
        SizeBoundedConfigurations({"half": 50}, capacity=100, max_blocks=2),
        [(4, 3, {"half": [(8, 1)]})] * 4,
    ),
    _shared(
        "time_shared_fractional_costs: 5 jobs, two to a block: 3 blocks, two for 3/4, one for 1/2",
        "5/4",
        _SMALL_OR_LARGE,
        [(4, 3, {"b": [(8, 1)]})] * 5,
        machine_types=_TYPES,
    ),
    _whole(
        "time_shared_wide_numbers: 2^70 at 2^69 a machine, and 3^-30 that finds no time beside: 3",
        3,
        [(2**70, 8, [(2**71, 4)]), (_TINY, 8, [(1, 4)])],
    ),
    _shared(
        "time_shared_backwards: the smallest share and the larger batch are the fastest: 1",
        1,
        [_WHOLE, Configuration({"mps:80": 1, "mps:20": 1})],
        [(2, 8, {"mps:20": [(4, 2), (1, 3)], "mps:80": [(4, 5)], _GPU: [(4, 4)]})],
    ),
    _whole("time_shared_free: machines that cost nothing: 0", 0, [(5, 8, [(2, 4)])], cost=0),
    _whole("time_shared_too_slow: no batch keeps the limit", None, [(1, 1, [(1, 1)])]),
    _whole("time_shared_unmeasured: a job that nobody measured", None, [(1, 1, [])]),
    _shared(
        "time_shared_lost_block: a job whose only block is on no machine",
        None,
        _SHARES,
        [(1, 9, {"half": [(8, 1)]}), (1, 9, {"giant": [(8, 1)]})],
    ),
    _whole(
        "time_shared_too_few_machines: 3 jobs, two to a block, and one machine",
        None,
        [_EIGHT] * 3,
        limit=1,
    ),
)


def _crowd(factors: Sequence[int], configurations: Any, **more: Any) -> Problem:
    generator = np.random.Generator(np.random.PCG64(3000))
    return Problem.from_arrays(
        demands=generator.integers(1, 100, 3000),
        supply=generator.integers(1, 9, (3000, len(factors))) * np.array(factors),
        configurations=configurations,
        **more,
    )


def _set_cover(q: int) -> Problem:
    vectors = range(1, 2**q)
    member = np.array([[(e & v).bit_count() % 2 for v in vectors] for e in vectors])
    return Problem.from_arrays(
        demands=np.ones(len(member), dtype=np.int64),
        supply=member,
        configurations=np.diag(member.sum(axis=0)),
    )


def _time_shared_crowd() -> TimeSharedProblem:
    random = Random(80)
    shares = (20, 40, 50, 60, 80, 100)

    def job(number: int) -> TimeSharedJob:
        speed = 200 + 600 * random.random()
        points = {
            f"mps:{share}": [
                (2**b, Fraction(round(1000 + speed * 2**b * 100 / share), 10**6)) for b in range(7)
            ]
            for share in shares
        }
        limit = Fraction(random.randrange(50, 200), 1000)
        return TimeSharedJob(f"j{number}", random.randrange(30, 530), limit, points)

    cut = [Configuration({f"mps:{share}": 1, f"mps:{100 - share}": 1}) for share in (20, 40)]
    return TimeSharedProblem(
        configurations=[_WHOLE, *cut, Configuration({"mps:50": 2})],
        jobs=[job(number) for number in range(80)],
    )


_SOURCE = "the conformance suite of cms; random, seeded"
_CUTS = [[7, 0, 0, 0], [1, 3, 0, 0], [3, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
#: Problems to stop in the middle of: one that is hard, and large ones.
CROWDS = (
    NamedProblem(
        name="set_cover",
        title="127 vectors over F2 and 127 hyperplanes: 7 machines, and no bound by prices above 2",
        source="the conformance suite of cms; the set-cover instance over F2^q with q = 7",
        make=lambda: _set_cover(7),
        optimum=Fraction(7),
    ),
    NamedProblem(
        name="crowd",
        title="3,000 jobs on machines cut like a GPU",
        source=_SOURCE,
        make=lambda: _crowd([1, 2, 4, 8], _CUTS),
    ),
    NamedProblem(
        name="crowd_of_shares",
        title="3,000 jobs on machines cut by size",
        source=_SOURCE,
        make=lambda: _crowd(
            [1, 2, 4],
            SizeBoundedConfigurations({"s": 12, "m": 33, "l": 44}, capacity=132),
            blocks=["s", "m", "l"],
        ),
    ),
    NamedProblem(
        name="time_shared_crowd",
        title="80 jobs on GPUs cut in two",
        source=_SOURCE,
        make=_time_shared_crowd,
    ),
)
