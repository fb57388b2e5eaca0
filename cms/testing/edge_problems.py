"""Small problems at the edges of the model, with known optima: what an algorithm must survive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ..plugin.registry import NamedProblem
from ..problem.parts import (
    AnyConfiguration,
    Configuration,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from ..problem.problem import Problem
from ..values.numbers import Number


def edge(
    name: str,
    title: str,
    make: Callable[[], Any],
    optimum: int | Fraction | None = None,
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


def _posed(
    configurations: AnyConfiguration | list[Configuration],
    *jobs: tuple[Number, Mapping[str, Number]],
    types: tuple[MachineType, ...] = (),
) -> Callable[[], Problem]:
    """Return what makes a problem of jobs of (demand, supply a block)."""
    return lambda: Problem(
        configurations=configurations,
        jobs=[Job(f"j{at}", demand, supply) for at, (demand, supply) in enumerate(jobs)],
        machine_types=types,
    )


def _lost_block() -> Problem:
    return Problem.from_arrays(
        demands=[1, 1],
        supply=[[1, 0], [0, 1]],
        configurations=[Configuration({"here": 1})],
        blocks=["here", "nowhere"],
    )


def _limited(limit_of_dear: int | None) -> Callable[[], Problem]:
    return _posed(
        [Configuration({"b": 1}, "cheap"), Configuration({"b": 1}, "dear")],
        (2, {"b": 1}),
        types=(MachineType("cheap", limit=1), MachineType("dear", 3, limit_of_dear)),
    )


def _partition(weights: list[int]) -> Callable[[], Problem]:
    supply = {f"w{i}": weight for i, weight in enumerate(weights)}
    return _posed(Configuration(dict.fromkeys(supply, 1)), (5, supply), (5, supply))


def _odd_names() -> Problem:
    block, job = "1g.10gb+me <b>&\"'", "mönster größe, 猫; a=b/c"
    return Problem(
        configurations=Configuration({block: 1}, machine="GPU №1"),
        jobs=[Job(job, 1, {block: 1})],
        machine_types=[MachineType("GPU №1")],
    )


def _crowd(n: int) -> Problem:
    generator = np.random.Generator(np.random.PCG64(n))
    supply = generator.integers(1, 9, (n, 4)) * np.array([1, 2, 4, 8])
    return Problem.from_arrays(
        demands=generator.integers(1, 100, n),
        supply=supply,
        configurations=[[7, 0, 0, 0], [1, 3, 0, 0], [3, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]],
    )


def _crowd_of_shares(n: int) -> Problem:
    generator = np.random.Generator(np.random.PCG64(n))
    return Problem.from_arrays(
        demands=generator.integers(1, 100, n),
        supply=generator.integers(1, 9, (n, 3)) * np.array([1, 2, 4]),
        configurations=SizeBoundedConfigurations({"s": 12, "m": 33, "l": 44}, capacity=132),
        blocks=["s", "m", "l"],
    )


def _set_cover(q: int) -> Problem:
    vectors = range(1, 2**q)
    member = np.array([[(e & v).bit_count() % 2 for v in vectors] for e in vectors])
    return Problem.from_arrays(
        demands=np.ones(len(member), dtype=np.int64),
        supply=member,
        configurations=np.diag(member.sum(axis=0)),
    )


_ONE, _TWO = Configuration({"b": 1}), Configuration({"b": 2})

#: Small problems with their optimum (None: there is no schedule), each derived in its title.
EDGE_PROBLEMS = (
    edge("no_jobs", "nothing to do: 0 machines", _posed(_ONE), 0),
    edge("one_job", "one job, one block: 1 machine", _posed(_ONE, (1, {"b": 1})), 1),
    edge(
        "zero_demands",
        "demands of 0 only: 0 machines",
        _posed(_ONE, (0, {"b": 1}), (0, {})),
        0,
    ),
    edge(
        "zero_beside",
        "3 blocks on machines of 2, beside demands of 0: 2 machines",
        _posed(_TWO, (0, {}), (3, {"b": 1}), (0, {"b": 5})),
        2,
    ),
    edge("unservable", "a job that no block can serve", _posed(_ONE, (1, {"b": 0}))),
    edge("lost_block", "a job whose only block is on no machine", _lost_block),
    edge(
        "huge_demand",
        "10^12 blocks, 7 on a machine: the quotient rounded up",
        _posed(Configuration({"b": 7}), (10**12, {"b": 1})),
        142_857_142_858,
    ),
    edge(
        "thirds",
        "3 blocks of 1/3 meet 1 exactly",
        _posed(Configuration({"b": 3}), (1, {"b": "1/3"})),
        1,
    ),
    edge(
        "long_decimals",
        "3 blocks of 333.3333333333333 meet 999.9999999999999 exactly, as decimals",
        _posed(Configuration({"b": 3}), ("999.9999999999999", {"b": "333.3333333333333"})),
        1,
    ),
    edge("limit", "2 machines, of the cheap type (cost 1) only one: 1 + 3", _limited(None), 4),
    edge("too_few_machines", "2 machines needed, 1 cheap and 0 dear exist", _limited(0)),
    edge(
        "fractional_costs",
        "3 blocks: a large machine (2 blocks, cost 3/4) and a small one (1 block, cost 1/2)",
        _posed(
            [Configuration({"b": 1}, "small"), Configuration({"b": 2}, "large")],
            (3, {"b": 1}),
            types=(MachineType("small", "1/2"), MachineType("large", "3/4")),
        ),
        Fraction(5, 4),
    ),
    edge(
        "free_machines",
        "machines that cost nothing: 0",
        _posed(_ONE, (5, {"b": 1}), types=(MachineType("machine", cost=0),)),
        0,
    ),
    edge(
        "not_rounding_up",
        "sizes 2 x 44 + 3 x 33 + 6 x 12 = 259 <= 2 x 132, yet no two machines hold them: 3",
        _posed(
            SizeBoundedConfigurations({"a": 44, "b": 33, "c": 12}, capacity=132),
            (2, {"a": 1}),
            (3, {"b": 1}),
            (6, {"c": 1}),
        ),
        3,
    ),
    edge(
        "few_blocks",
        "5 blocks, at most 2 on a machine whatever their size: 3",
        _posed(SizeBoundedConfigurations({"b": 1}, capacity=10, max_blocks=2), (5, {"b": 1})),
        3,
    ),
    edge("partition", "3 1 1 2 2 1 splits into 5 and 5: 1", _partition([3, 1, 1, 2, 2, 1]), 1),
    edge("no_partition", "3 3 3 1 does not split: 2", _partition([3, 3, 3, 1]), 2),
    edge("odd_names", "names with blanks, quotes and other alphabets: 1", _odd_names, 1),
    edge(
        "wide_numbers",
        "2^70 by blocks of 2^68 - 1 takes 5, on 3 machines, beside 1 of 3^-30: 4",
        _posed(
            [Configuration({"b": 2}), Configuration({"c": 1})],
            (2**70, {"b": 2**68 - 1, "c": 2**40}),
            (Fraction(1, 3**30), {"c": Fraction(1, 3**30)}),
        ),
        4,
    ),
    edge(
        "mig",
        "bert takes 7g + 5 x 1g or more (1,200 > 800; 630), resnet the rest of neither: 3",
        _posed(
            [Configuration({"7g": 1}), Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
            (1200, {"1g": 90, "3g": "310.5", "7g": 800}),
            ("333.3", {"1g": 40, "3g": 150, "7g": 380}),
        ),
        3,
    ),
)

_SOURCE = "the conformance suite of cms; random, seeded"
#: Problems to stop in the middle of: large ones, and one that is hard.
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
        make=lambda: _crowd(3000),
    ),
    NamedProblem(
        name="crowd_of_shares",
        title="3,000 jobs on machines cut by size",
        source=_SOURCE,
        make=lambda: _crowd_of_shares(3000),
    ),
)
