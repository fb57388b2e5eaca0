"""Problems with known optima at the edges of the models, and large ones to stop midway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import numpy as np

from ..plugin.registry import NamedProblem
from ..problem.parts import Configuration, GroupLimit, Job, MachineType, SizeBoundedConfigurations
from ..problem.problem import Problem
from ..time_sharing.model import TimeSharedJob
from ..time_sharing.problem import TimeSharedProblem


def edge(
    name: str, title: str, make: Callable[[], Any], optimum: int | str | None = None
) -> NamedProblem:
    """Name a small problem of some kind, with its optimum; without one there is no schedule."""
    return NamedProblem(
        name=name,
        title=title,
        source=_SOURCE,
        make=make,
        optimum=None if optimum is None else Fraction(optimum),
        infeasible=optimum is None,
    )


def _large(
    name: str, title: str, make: Callable[[], Any], optimum: Fraction | None = None
) -> NamedProblem:
    return NamedProblem(name=name, title=title, source=_SOURCE, make=make, optimum=optimum)


def _edge(
    words: str,
    optimum: int | str | None,
    configurations: Any,
    jobs: Sequence[tuple[Any, ...]],
    types: Sequence[MachineType] = (),
    *,
    kind: type[Any] = Problem,
    named: str = "j",
    **more: Any,
) -> NamedProblem:
    """Name a problem, "name: how its optimum is derived", of jobs without names of their own."""
    name, title = words.split(": ", 1)
    made = Job if kind is Problem else TimeSharedJob

    def make() -> Any:
        rows = [made(f"{named}{at}", *job) for at, job in enumerate(jobs)]
        return kind(configurations=configurations, jobs=rows, machine_types=types, **more)

    return edge(name if kind is Problem else f"time_shared_{name}", title, make, optimum)


_shared = partial(_edge, kind=TimeSharedProblem)


def _whole(
    words: str, optimum: int | None, jobs: Sequence[tuple[Any, ...]], **more: Any
) -> NamedProblem:
    """Name a problem of time sharing on GPUs that are not cut."""
    given = [(demand, longest, {_GPU: points}) for demand, longest, points in jobs]
    return _shared(words, optimum, _WHOLE, given, **more)


_SOURCE = "the conformance suite of cms"
_GPU, _B = "mps:100", {"b": 1}
_ONE, _TWO, _C, _WHOLE = map(Configuration, (_B, {"b": 2}, {"c": 1}, {_GPU: 1}))
_UNEQUAL = SizeBoundedConfigurations({"a": 44, "b": 33, "c": 12}, capacity=132)
_AT_MOST_2 = SizeBoundedConfigurations(_B, capacity=10, max_blocks=2)
_HALVES = SizeBoundedConfigurations({"b": 50, "giant": 150}, capacity=100)
_MIG = [Configuration({"7g": 1}), Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})]
_SIZES = [Configuration(_B, "small"), Configuration({"b": 2}, "large")]
_COSTS = [MachineType("small", "1/2"), MachineType("large", "3/4")]
_SUM: dict[str, Any] = {"group_limits": [GroupLimit("sum", {"small": 1, "large": "9/4"}, "4.4")]}
_EITHER = [Configuration(_B, "cheap"), Configuration(_B, "dear")]
_ONE_CHEAP = [MachineType("cheap", limit=1), MachineType("dear", 3)]
_NO_DEAR = [MachineType("cheap", limit=1), MachineType("dear", 3, 0)]
_NEARLY_2 = [(2, {"a": 1}), (3, {"b": 1}), (6, {"c": 1})]
_ODD = "mönster größe, 猫; a=b/c <b>&\"'"
_ODD_SHAPE, _ODD_TYPE = Configuration({_ODD: 1}, _ODD), [MachineType(_ODD)]
_HUGE, _TINY = 2**70, Fraction(1, 3**30)
_FAR_APART = [(_HUGE, {"b": 2**68 - 1, "c": 2**40}), (_TINY, {"c": _TINY})]
_BERT = (1200, {"1g": 90, "3g": "310.5", "7g": 800}), ("333.3", {"1g": 40, "3g": 150, "7g": 380})


def _parts(*weights: int) -> tuple[Any, Any]:
    supply = {f"w{at}": weight for at, weight in enumerate(weights)}
    return Configuration(dict.fromkeys(supply, 1)), [(5, supply), (5, supply)]


#: Small problems with their optimum (None: there is no schedule), each derived in its title.
EDGE_PROBLEMS = (
    _edge("no_jobs: nothing to do: 0 machines", 0, _ONE, []),
    _edge("one_job: one job, one block: 1 machine", 1, _ONE, [(1, _B)]),
    _edge("zero_demands: demands of 0 only: 0 machines", 0, _ONE, [(0, _B), (0, {})]),
    _edge("zero_beside: 3 blocks, and demands of 0: 2", 2, _TWO, [(0, {}), (3, _B), (0, _B)]),
    _edge("unservable: a job that no block can serve", None, _ONE, [(1, {"b": 0})]),
    _edge("lost_block: a block on no machine", None, _HALVES, [(1, _B), (1, {"giant": 1})]),
    _edge("huge_demand: 10^12 + 1 halves, rounded up", 5 * 10**11 + 1, _HALVES, [(10**12 + 1, _B)]),
    _edge("thirds: 2 blocks of 1/3 meet 2/3 exactly", 1, _TWO, [("2/3", {"b": "1/3"})]),
    _edge("limit: one cheap machine (1), one dear (3): 4", 4, _EITHER, [(2, _B)], _ONE_CHEAP),
    _edge("too_few_machines: 2 needed, one exists", None, _EITHER, [(2, _B)], _NO_DEAR),
    _edge("fractional_costs: 3 blocks: 3/4 + 1/2", "5/4", _SIZES, [(3, _B)], _COSTS),
    _edge("free_machines: all cost nothing", 0, _ONE, [(5, _B)], [MachineType("machine", cost=0)]),
    _edge("not_rounding_up: 88 + 99 + 72 <= 2 x 132, yet no two hold them", 3, _UNEQUAL, _NEARLY_2),
    _edge("few_blocks: 5 of whatever size, at most 2 a machine: 3", 3, _AT_MOST_2, [(5, _B)]),
    _edge("partition: 3 1 1 2 2 1 splits into 5 and 5: 1", 1, *_parts(3, 1, 1, 2, 2, 1)),
    _edge("no_partition: 3 3 3 1 does not split: 2", 2, *_parts(3, 3, 3, 1)),
    _edge("odd_names: of any alphabet: 1", 1, _ODD_SHAPE, [(1, {_ODD: 1})], _ODD_TYPE, named=_ODD),
    _edge("wide_numbers: 5 of 2^68 - 1 for 2^70, beside 1 of 3^-30: 4", 4, [_TWO, _C], _FAR_APART),
    _edge("mig: 7g + 5 x 1g or more (1,200 > 800; 630), and no rest for resnet: 3", 3, _MIG, _BERT),
    _edge("group: large counts 9/4, all 4.4: 3/4 + 2/2", "7/4", _SIZES, [(4, _B)], _COSTS, **_SUM),
    _edge("small_group: 5 x 1 is too much", None, _SIZES, [(5, _B)], _COSTS, **_SUM),
)

_EIGHT = (4, 3, [(8, 1)])  # of two such jobs a block gives each all it wants, in cycles of 2
_ON_B = (4, 3, {"b": [(8, 1)]})
_SLOW, _GIANT = ("8/3", 5, [(8, 2)]), (1, 9, {"giant": [(8, 1)]})
_COLLECTING, _ONE_GPU = "collect_then_run", [MachineType("machine", limit=1)]
_CUT = 3, {"mps:60": [(8, 1)], "mps:40": [(8, 1)]}
_60_40, _80_20 = ([_WHOLE, Configuration({f"mps:{s}": 1, f"mps:{100 - s}": 1})] for s in (60, 80))
_SLOW_WHOLE = (2, 8, {"mps:20": [(4, 2), (1, 3)], "mps:80": [(4, 5)], _GPU: [(4, 4)]})
_WIDE_RATES = [(_HUGE, 8, [(2**71, 4)]), (_TINY, 8, [(1, 4)])]

TIME_SHARED_EDGE_PROBLEMS = (
    _whole("no_jobs: nothing to do: 0 machines", 0, []),
    _whole("zero_beside: one beside one that wants nothing: 1", 1, [_EIGHT, (0, 1, [(1, 1)])]),
    _whole("shared: two jobs in turn on one block", 1, [_EIGHT] * 2),
    _whole("unshared: two that may not share: 2", 2, [_EIGHT] * 2, max_jobs=1),
    _whole("capped: three in a cycle of 3, two may share", 2, [(2, 4, [(8, 1)])] * 3, max_jobs=2),
    _whole("at_the_limit: a cycle of 3 keeps limits of 4, 5", 1, [("8/3", 4, [(8, 1)]), _SLOW]),
    _whole("above_the_limit: by 1/10^7: 2", 2, [("8/3", "3.9999999", [(8, 1)]), _SLOW]),
    _whole("collecting: 2 cycles of 2 break limits of 3: 2", 2, [_EIGHT] * 2, rule=_COLLECTING),
    _whole("short_rate: a billionth above 4: 2", 2, [("4.000000001", 3, [(8, 1)]), _EIGHT]),
    _whole("odd_points: larger and quicker", 1, [(4, 3, [(1, 2), (8, 1), (64, 3)]), _EIGHT]),
    _shared("split: 12 = 8 alone and 4 beside 4: 1 machine", 1, _60_40, [(12, *_CUT), (4, *_CUT)]),
    _shared("halves: four jobs, two on each of two halves", 1, _HALVES, [_ON_B] * 4),
    _whole("huge_demand: 10^12 at 7 each, rounded up", 142_857_142_858, [(10**12, 2, [(7, 1)])]),
    _shared("fractional_costs: 5, two a block: 3/4 + 1/2", "5/4", _SIZES, [_ON_B] * 5, _COSTS),
    _whole("wide_numbers: 2^70 at 2^69, 3^-30 alone: 3", 3, _WIDE_RATES),
    _shared("backwards: a share of 20 is the fastest, and gives 2: 1", 1, _80_20, [_SLOW_WHOLE]),
    _whole("free: machines cost nothing", 0, [(5, 8, [(2, 4)])], types=[MachineType("machine", 0)]),
    _whole("too_slow: no batch meets the limit", None, [(1, 1, [(1, 1)])]),
    _whole("unmeasured: a job that nobody measured", None, [(1, 1, [])]),
    _shared("lost_block: a block on no machine", None, _HALVES, [_ON_B, _GIANT]),
    _whole("too_few_machines: 3, two a block, and one", None, [_EIGHT] * 3, types=_ONE_GPU),
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
    jobs = []
    for number in range(80):
        speed = 200 + 600 * random.random()
        points = {
            f"mps:{share}": [
                (2**b, Fraction(round(1000 + speed * 2**b * 100 / share), 10**6)) for b in range(7)
            ]
            for share in (20, 40, 50, 60, 80, 100)
        }
        limit = Fraction(random.randrange(50, 200), 1000)
        jobs.append(TimeSharedJob(f"j{number}", random.randrange(30, 530), limit, points))
    cut = [Configuration({f"mps:{share}": 1, f"mps:{100 - share}": 1}) for share in (20, 40)]
    return TimeSharedProblem(configurations=[_WHOLE, *cut, Configuration({"mps:50": 2})], jobs=jobs)


_crowd_of_shares = partial(_crowd, [4, 2, 1], _UNEQUAL, blocks=["a", "b", "c"])
_CUTS = [[7, 0, 0, 0], [1, 3, 0, 0], [3, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
#: Problems to stop in the middle of: one that is hard, and large ones.
CROWDS = (
    _large("set_cover", "127 vectors and hyperplanes over F2", lambda: _set_cover(7), Fraction(7)),
    _large("crowd", "3,000 jobs on machines cut like a GPU", lambda: _crowd([1, 2, 4, 8], _CUTS)),
    _large("crowd_of_shares", "3,000 jobs on machines cut by size", _crowd_of_shares),
    _large("time_shared_crowd", "80 jobs on GPUs cut in two", _time_shared_crowd),
)
