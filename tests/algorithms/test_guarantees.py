"""Every algorithm, in every variant, keeps its guarantee: bound <= optimum <= cost <= guarantee.

``make test`` takes a few problems of every family; ``pytest -m long tests/algorithms`` takes a
thousand shapes of A100 and a thousand others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import pytest

import cms
from cms import Configuration, Job, Problem
from cms.plugin.registry import algorithm_of, read_options
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.property.problems import source
from tests.references.guarantees import VARIANTS, Options, examine, promise
from tests.samples import so_many


def every(first: int) -> list[Any]:
    """Each variant with or without what is plain of it; in the long run it is both."""
    variants = [(method, options) for method, several in VARIANTS.items() for options in several]
    return [
        pytest.param(
            method,
            {**options, **plain},
            id=" ".join([method, *map(str, options.values()), *plain]),
            marks=[] if (at + len(plain)) % 2 == first else [pytest.mark.long],
        )
        for at, (method, options) in enumerate(variants)
        for plain in ({}, {"plain": True})
    ]


A100 = ("a100", "a100_arbitrary")
OTHERS = tuple(
    family
    for family in FAMILIES
    if family not in (*A100, "limits", "infeasible_by_limit", "infeasible_by_block")
)


@cache
def known(family: str, number: int) -> tuple[Problem, Fraction | None]:
    """A problem of a family with its optimum."""
    problem = instance(family, number)
    return problem, optimum(problem)


class Ratios(NamedTuple):
    """What was seen of a variant on many problems: cost by optimum, and factors promised."""

    refused: int
    seen: list[Fraction]
    exact: int


def ratios(
    method: str, options: Options, families: Sequence[str], numbers: Iterable[int]
) -> Ratios:
    """Examine a variant on the first problems of some families; a failure names the problem."""
    refused, exact, seen = 0, 0, []
    for number in numbers:
        family = families[number % len(families)]
        problem, best = known(family, number)
        try:
            solution = examine(problem, best, method, options)
        except Exception as fault:
            raise AssertionError(
                f"instance({family!r}, {number}): {fault}\n{source(problem)}"
            ) from fault
        if solution is None:
            refused += 1
        elif best and solution.cost is not None:
            seen.append(solution.cost / best)
            exact += solution.cost == best
    return Ratios(refused, seen, exact)


def few(options: Options, families: Sequence[str]) -> range:
    """As many problems of so many families as a short run takes."""
    most = max(4, len(families))
    most = so_many((most + 1) // 2, most)
    return range((most + 1) // 2 if "plain" in options else most)


@pytest.mark.parametrize(("method", "options"), every(1))
def test_a_variant_keeps_its_guarantee_on_shapes_of_an_a100(method: str, options: Options) -> None:
    numbers = few(options, A100)
    found = ratios(method, options, A100, numbers)
    if options.get("route") == "cells":
        assert found == (len(numbers), [], 0)  # these are listed
    elif options.get("variant") == "enumeration":
        # A dozen configurations have too many machine vectors.
        assert found.refused >= len(numbers) // 2
    else:
        assert len(found.seen) >= len(numbers) // 2


@pytest.mark.parametrize(("method", "options"), every(0))
def test_a_variant_keeps_its_guarantee_on_other_families(method: str, options: Options) -> None:
    cells = options.get("route") == "cells"
    families = ("size_bounded", "max_blocks") if cells else OTHERS
    numbers = few(options, families)
    assert len(ratios(method, options, families, numbers).seen) >= len(numbers) // 3


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
    for problem, best in [(few, Fraction(2)), *(known("limits", number) for number in range(40))]:
        types = {shape.machine for shape in problem.configurations}
        limited = any(m.limit is not None and m.name in types for m in problem.machine_types)
        if limited and examine(problem, best, method, {}) is not None:
            assert promise(problem, method, {}) is None, source(problem)


@pytest.mark.long
@pytest.mark.parametrize("families", [A100, OTHERS], ids=["a100", "others"])
def test_every_variant_keeps_its_guarantee_on_a_thousand_problems(families: Sequence[str]) -> None:
    for method, several in VARIANTS.items():
        for options in several:
            found = ratios(method, options, families, range(60, 1060))
            assert found.seen or found.refused == 1000
