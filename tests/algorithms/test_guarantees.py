"""Every algorithm, in every variant, keeps its guarantee: bound <= optimum <= cost <= guarantee.

``make test`` takes a few problems; ``pytest -m long tests/algorithms`` takes a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import cms
from cms import Configuration, Job, Problem
from cms.plugin.registry import algorithm_of, read_options
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.property.problems import source
from tests.references.guarantees import VARIANTS, Options, examine, promise
from tests.samples import so_many

#: Each variant with what is plain of it or without; in the long run it is both.
VARIED = [
    pytest.param(
        method,
        {**options, **plain},
        id=" ".join([method, *map(str, options.values()), *plain]),
        marks=[pytest.mark.long] if (at + len(plain)) % 2 else [],
    )
    for at, (method, options) in enumerate((m, each) for m in VARIANTS for each in VARIANTS[m])
    for plain in ({}, {"plain": True})
]
TAKEN = tuple(
    family
    for family in FAMILIES
    if family not in ("limits", "groups", "infeasible_by_limit", "infeasible_by_block")
)


def answered(method: str, options: Options, numbers: Iterable[int]) -> int:
    """How many problems a variant answers; a guarantee that is broken names the problem."""
    families = ("size_bounded", "max_blocks") if options.get("route") == "cells" else TAKEN
    seen = 0
    for number in numbers:
        family = families[number % len(families)]
        problem = instance(family, number)
        try:
            seen += examine(problem, optimum(problem), method, options) is not None
        except Exception as fault:
            raise AssertionError(
                f"instance({family!r}, {number}): {fault}\n{source(problem)}"
            ) from fault
    return seen


@pytest.mark.parametrize(("method", "options"), VARIED)
def test_a_variant_keeps_its_guarantee(method: str, options: Options) -> None:
    most = so_many(8, 16) // (2 if "plain" in options else 1)
    assert answered(method, options, range(most)) >= most // 3


@pytest.mark.parametrize("method", ["greedy", "lp_rounding", "ptas"])
def test_limits_are_refused_or_leave_no_guarantee(method: str) -> None:
    few = Problem(
        configurations=Configuration({"a": 2}),
        jobs=[Job("x", 3, {"a": 1})],
        machine_types=[cms.MachineType("machine", limit=3)],
    )
    algorithm, _ = algorithm_of(method)
    support = algorithm.support(few, read_options(algorithm, {}))
    assert support or "limit" in support.reason
    tiny = (instance(family, number) for family in ("limits", "groups") for number in range(20))
    for problem in (few, *tiny):
        limited = any(problem.weights[str(shape.machine)] for shape in problem.configurations)
        if limited and examine(problem, optimum(problem), method, {}) is not None:
            assert promise(problem, method, {}) is None, source(problem)


@pytest.mark.long
@pytest.mark.parametrize("method", VARIANTS)
def test_every_variant_keeps_its_guarantee_on_a_thousand_problems(method: str) -> None:
    for options in VARIANTS[method]:
        answered(method, options, range(60, 1060))
