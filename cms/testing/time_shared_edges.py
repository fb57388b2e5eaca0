"""Small problems whose blocks jobs share in time, at the edges of the model, with known optima."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..mixes.model import TimeSharedJob
from ..mixes.problem import TimeSharedProblem
from ..plugin.registry import NamedProblem
from ..problem.parts import Configuration, MachineType, SizeBoundedConfigurations
from ..values.numbers import Number

_Points = Sequence[tuple[Number, Number]]


def _edge(
    name: str,
    title: str,
    make: Callable[[], TimeSharedProblem],
    optimum: int | Fraction | None = None,
) -> NamedProblem:
    return NamedProblem(
        name=f"time_shared_{name}",
        title=title,
        source="the conformance suite of cms; by hand",
        make=make,
        optimum=None if optimum is None else Fraction(optimum),
        infeasible=optimum is None,
    )


def _one_block(
    *jobs: tuple[Number, Number, _Points], limit: int | None = None, **more: Any
) -> TimeSharedProblem:
    """Machines of one block; jobs of (demand, latency limit, points)."""
    return TimeSharedProblem(
        configurations=Configuration({"b": 1}),
        jobs=[
            TimeSharedJob(f"j{at}", demand, own, {"b": points})
            for at, (demand, own, points) in enumerate(jobs)
        ],
        machine_types=[MachineType("machine", limit=limit)],
        **more,
    )


def _shares(
    points: Mapping[str, _Points], demands: Sequence[Number], limit: Number, **more: Any
) -> TimeSharedProblem:
    """GPUs whole or in two unequal parts; jobs of the same points and latency limit."""
    return TimeSharedProblem(
        configurations=[Configuration({"100": 1}), Configuration({"60": 1, "40": 1})],
        jobs=[TimeSharedJob(f"j{at}", d, limit, points) for at, d in enumerate(demands)],
        **more,
    )


def _lost_block() -> TimeSharedProblem:
    return TimeSharedProblem(
        configurations=SizeBoundedConfigurations({"half": 50, "giant": 150}, capacity=100),
        jobs=[
            TimeSharedJob("x", 1, 9, {"half": [(8, 1)]}),
            TimeSharedJob("y", 1, 9, {"giant": [(8, 1)]}),
        ],
    )


def _half_and_half() -> TimeSharedProblem:
    """Each block is shared by two of four jobs, each of which it gives 8 / 2."""
    return TimeSharedProblem(
        configurations=SizeBoundedConfigurations({"half": 50}, capacity=100, max_blocks=2),
        jobs=[TimeSharedJob(f"j{at}", 4, 3, {"half": [(8, 1)]}) for at in range(4)],
    )


def _two_costs() -> TimeSharedProblem:
    return TimeSharedProblem(
        configurations=[Configuration({"b": 2}, "large"), Configuration({"b": 1}, "small")],
        jobs=[TimeSharedJob(f"j{at}", 4, 3, {"b": [(8, 1)]}) for at in range(5)],
        machine_types=[MachineType("large", "3/4"), MachineType("small", "1/2")],
    )


_EIGHT = (4, 3, [(8, 1)])  # of two such jobs a block gives each all it wants, in frames of 2

#: Small problems with their optimum (None: there is no schedule), each derived in its title.
TIME_SHARED_EDGE_PROBLEMS = (
    _edge("no_jobs", "nothing to do: 0 machines", _one_block, 0),
    _edge("zero_demands", "demands of 0 only: 0 machines", lambda: _one_block((0, 9, [])), 0),
    _edge(
        "zero_beside",
        "one job beside one that wants nothing and could not get it: 1 machine",
        lambda: _one_block(_EIGHT, (0, 1, [(1, 1)])),
        1,
    ),
    _edge("one_job", "8 a second: 1 machine", lambda: _one_block((8, 2, [(8, 1)])), 1),
    _edge("shared", "two jobs in turn on one block", lambda: _one_block(_EIGHT, _EIGHT), 1),
    _edge(
        "unshared",
        "two jobs that may not share: 2 machines",
        lambda: _one_block(_EIGHT, _EIGHT, max_jobs=1),
        2,
    ),
    _edge(
        "capped",
        "three jobs that fit into a frame of 3, but two may share: 2 machines",
        lambda: _one_block(*[(2, 4, [(8, 1)])] * 3, max_jobs=2),
        2,
    ),
    _edge(
        "at_the_limit",
        "a frame of 3 keeps limits of 4 and 5 exactly",
        lambda: _one_block(("8/3", 4, [(8, 1)]), ("8/3", 5, [(8, 2)])),
        1,
    ),
    _edge(
        "above_the_limit",
        "a frame of 3 breaks a limit by a ten-millionth: 2 machines",
        lambda: _one_block(("8/3", "3.9999999", [(8, 1)]), ("8/3", 5, [(8, 2)])),
        2,
    ),
    _edge(
        "collecting",
        "two frames of 2 break limits of 3, which a frame and a slot keep: 2 machines",
        lambda: _one_block(_EIGHT, _EIGHT, rule="collect_then_run"),
        2,
    ),
    _edge(
        "short_rate",
        "a frame of 2 gives 4, a billionth less than is wanted: 2 machines",
        lambda: _one_block(("4.000000001", 3, [(8, 1)]), _EIGHT),
        2,
    ),
    _edge(
        "odd_points",
        "a larger batch that is quicker, and one that is too slow",
        lambda: _one_block((4, 3, [(1, 2), (8, 1), (64, 3)]), _EIGHT),
        1,
    ),
    _edge(
        "split",
        "12 and 4: one share gives 8 to the first alone, the other 4 to each: 1 machine",
        lambda: _shares({"60": [(8, 1)], "40": [(8, 1)]}, [12, 4], 3),
        1,
    ),
    _edge("halves", "four jobs in two halves of a machine", _half_and_half, 1),
    _edge(
        "huge_demand",
        "10^12 at 7 a second: the quotient rounded up",
        lambda: _one_block((10**12, 2, [(7, 1)])),
        142_857_142_858,
    ),
    _edge(
        "fractional_costs",
        "5 jobs, two to a block: 3 blocks, two for 3/4 and one for 1/2",
        _two_costs,
        Fraction(5, 4),
    ),
    _edge("too_slow", "no batch keeps the limit", lambda: _one_block((1, 1, [(1, 1)]))),
    _edge("unmeasured", "a job that nobody measured", lambda: _one_block((1, 1, []))),
    _edge("lost_block", "a job whose only block is on no machine", _lost_block),
    _edge(
        "too_few_machines",
        "3 jobs, two to a block, and one machine",
        lambda: _one_block(*[_EIGHT] * 3, limit=1),
    ),
)
