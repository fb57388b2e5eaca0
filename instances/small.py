"""Small problems on which arithmetic, costs, limits or infeasibility go wrong first."""

from __future__ import annotations

from collections import Counter
from functools import partial

from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem

from .hard import attribute, equal_jobs, listed

_HUGE = 10**12


def huge_fleet(demand: int) -> Problem:
    """Serve one job best on whole machines and one on sevenths, on shapes of an A100."""
    shapes = ["7g", "4g 3g", "3g 3g", "3g 1g 1g 1g 1g", "4g 1g 1g 1g", "1g 1g 1g 1g 1g 1g 1g"]
    return Problem(
        configurations=[Configuration(Counter(shape.split())) for shape in shapes],
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
    types = [MachineType("cheap", cost=1, limit=limit), MachineType("dear", cost=3)]
    shapes = [Configuration({"small": 1}, "cheap"), Configuration({"large": 1}, "dear")]
    supply = {"small": 2, "large": 5}
    if not dear:
        types, shapes, supply = types[:1], shapes[:1], {"small": 2}
    return Problem(configurations=shapes, jobs=[Job("job", 12, supply)], machine_types=types)


def unserved_job() -> Problem:
    """Two jobs, one of which no block serves."""
    return Problem(
        configurations=Configuration({"b": 2}),
        jobs=[Job("served", 1, {"b": 1}), Job("unserved", 1, {"b": 0})],
    )


#: 10^12 / 800 machines for the one job; ceil(10^12 / 60) = 7 x 2380952381 sevenths for the other.
PROBLEMS = listed(
    """
huge-demand | 5555555555560 | - - - 5555555555560 \
| 5 jobs of demand 10^12 and blocks of 0.9: nothing may be done a machine at a time
huge-fleet | 3630952381 | - - - 3630952381 | two jobs of demand 10^12 on the shapes of an A100
three-thirds | 1 | | three blocks of 1/3 meet a demand of 1 exactly
long-decimals | 3 | | three blocks of 333.3333333333333 meet 999.9999999999999 exactly
limited-type | 7 | | two machine types, of the cheap one there are two
unserved-job | none | | infeasible: no block serves one of the jobs
too-few-machines | none | | infeasible: five machines of which six are needed
""",
    {
        "huge-demand": partial(equal_jobs, 5, _HUGE, "0.9"),
        "huge-fleet": partial(huge_fleet, _HUGE),
        "three-thirds": partial(equal_jobs, 1, 1, "1/3", 3),
        "long-decimals": long_decimals,
        "limited-type": partial(limited_type, 2),
        "unserved-job": unserved_job,
        "too-few-machines": partial(limited_type, 5, dear=False),
    },
    source="made for this project",
)
__getattr__ = partial(attribute, PROBLEMS)
