"""Every installed algorithm conforms, whatever its options: the whole suite of ``cms.testing``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cms.plugin.registry import list_algorithms
from cms.testing import check_algorithm
from cms.testing.checks import Laboratory
from cms.testing.edge_problems import CROWDS, EDGE_PROBLEMS
from tests.samples import few, so_many

#: What else runs than by default.
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("ptas", {"exact": "program"}),
    ("conic", {"route": "points"}),
    ("conic", {"route": "cells"}),
    ("ptas", {"plain": True, "epsilon": "1/10"}),
    ("conic", {"route": "cells", "plain": True}),
]
#: One of them is for the long run: "auto" hands its problems over to it.
NAMES = [
    pytest.param(name, marks=[pytest.mark.long] if name == "branch_and_price" else [])
    for name in list_algorithms()
]


#: Made once for all algorithms.
CROWD = tuple(replace(CROWDS[at], make=cache(CROWDS[at].make)) for at in (1, 3))


@pytest.mark.parametrize("name", NAMES)
def test_every_installed_algorithm_conforms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an eighth of the problems, not the same for all, and in one crowd; on all of a few."""
    monkeypatch.setattr("cms.testing.checks.CROWDS", CROWD)
    problems = Laboratory(name).problems
    if len(problems) > 20:
        problems = problems[list_algorithms().index(name) % 8 :: 8]
    report = check_algorithm(name, problems, seeds=[0])
    assert report.ok, str(report)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", list_algorithms())
def test_every_installed_algorithm_conforms_on_every_problem(name: str, seed: int) -> None:
    report = check_algorithm(name, seeds=[seed])
    assert report.ok, str(report)


@pytest.mark.parametrize("way", few(3, WAYS))
def test_an_algorithm_conforms_with_other_options(way: tuple[str, dict[str, Any]]) -> None:
    name, options = way
    problems = EDGE_PROBLEMS[so_many(1, 0) :: so_many(4, 1)]
    report = check_algorithm(name, problems, options=options, seeds=[0])
    assert report.ok, str(report)
