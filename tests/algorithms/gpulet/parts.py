"""Tiny tables for tests by hand: one job's rate on each share, from a single batch of one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cms import Configuration, TimeSharedJob, TimeSharedProblem
from instances.families.time_sharing import pairs

#: Longer than any frame of these tables.
LATE = 1000


def serving(*jobs: tuple[str, Any, Mapping[int, Any]], **more: Any) -> TimeSharedProblem:
    """Jobs as (name, demand, {share: items per unit of time}), of which items run one by one."""
    named = {share for _, _, rates in jobs for share in rates}
    used = named | {100 - share for share in named if share < 100}
    return TimeSharedProblem(
        configurations=pairs(tuple(sorted(used))),
        jobs=[
            TimeSharedJob(
                name,
                demand,
                LATE,
                {f"mps:{share}": [(1, 1 / Fraction(rate))] for share, rate in rates.items()},
            )
            for name, demand, rates in jobs
        ],
        **more,
    )


def whole(*jobs: tuple[Any, Any, list[tuple[int, Any]]], **more: Any) -> TimeSharedProblem:
    """Jobs as (demand, limit, points on a whole GPU), called x, y and z."""
    return TimeSharedProblem(
        configurations=Configuration({"100": 1}),
        jobs=[
            TimeSharedJob(name, demand, limit, {"100": points})
            for name, (demand, limit, points) in zip("xyz", jobs, strict=False)
        ],
        **more,
    )
