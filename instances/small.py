"""Small problems on which arithmetic, costs, limits or infeasibility go wrong first.

Examples
--------
>>> from instances import small
>>> small.THREE_THIRDS.optimum
Fraction(1, 1)
"""

from __future__ import annotations

from functools import partial

from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem

from .hard import equal_jobs, known

_HUGE = 10**12


def huge_fleet(demand: int) -> Problem:
    """Serve one job best on whole machines and one on sevenths, on shapes of an A100."""
    shapes = (
        {"7g": 1},
        {"4g": 1, "3g": 1},
        {"3g": 2},
        {"3g": 1, "1g": 4},
        {"4g": 1, "1g": 3},
        {"1g": 7},
    )
    return Problem(
        configurations=[Configuration(shape) for shape in shapes],
        jobs=[
            Job("whole", demand, {"1g": 90, "3g": 300, "4g": 400, "7g": 800}),
            Job("sevenths", demand, {"1g": 60, "3g": 150, "4g": 200, "7g": 300}),
        ],
    )


def long_decimals() -> Problem:
    """Supply and demand of 16 digits, of which three blocks make one to the last digit."""
    supply = {"large": "333.3333333333333", "small": "0.0123456789012345"}
    return Problem(
        configurations=[Configuration({"large": 1}), Configuration({"small": 1})],
        jobs=[Job("exact", "999.9999999999999", supply)],
    )


def limited_type(limit: int, dear: bool = True) -> Problem:
    """Serve a demand of 12 by machines that give 2 at cost 1, few of them, or 5 at cost 3."""
    types = [MachineType("cheap", cost=1, limit=limit)]
    shapes = [Configuration({"small": 1}, machine="cheap")]
    supply = {"small": 2}
    if dear:
        types.append(MachineType("dear", cost=3))
        shapes.append(Configuration({"large": 1}, machine="dear"))
        supply["large"] = 5
    return Problem(configurations=shapes, jobs=[Job("job", 12, supply)], machine_types=types)


def unserved_job() -> Problem:
    """Two jobs, one of which no block serves."""
    return Problem(
        configurations=Configuration({"b": 2}),
        jobs=[Job("served", 1, {"b": 1}), Job("unserved", 1, {"b": 0})],
    )


_named = partial(known, source="made for this project")
HUGE_DEMAND = _named(
    "huge-demand",
    "5 jobs of demand 10^12 and blocks of 0.9: nothing may be done a machine at a time",
    partial(equal_jobs, 5, _HUGE, "0.9"),
    5 * -(-10 * _HUGE // 9),
    (None, None, None, 5 * -(-10 * _HUGE // 9)),
)
# 10^12 / 800 machines for the one job; ceil(10^12 / 60) = 7 x 2380952381 sevenths for the other.
HUGE_FLEET = _named(
    "huge-fleet",
    "two jobs of demand 10^12 on the shapes of an A100",
    partial(huge_fleet, _HUGE),
    1_250_000_000 + 2_380_952_381,
    (None, None, None, 1_250_000_000 + 2_380_952_381),
)
THREE_THIRDS = _named(
    "three-thirds",
    "three blocks of 1/3 meet a demand of 1 exactly",
    partial(equal_jobs, 1, 1, "1/3", 3),
    1,
)
LONG_DECIMALS = _named(
    "long-decimals",
    "three blocks of 333.3333333333333 meet 999.9999999999999 exactly",
    long_decimals,
    3,
)
LIMITED_TYPE = _named(
    "limited-type", "two machine types, of the cheap one there are two", partial(limited_type, 2), 7
)
UNSERVED_JOB = _named(
    "unserved-job", "infeasible: no block serves one of the jobs", unserved_job, None
)
TOO_FEW_MACHINES = _named(
    "too-few-machines",
    "infeasible: five machines of which six are needed",
    partial(limited_type, 5, dear=False),
    None,
)
