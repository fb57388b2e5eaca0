"""Every installed algorithm conforms, whatever its options: the whole suite of ``cms.testing``."""

from __future__ import annotations

from typing import Any

import pytest

from cms.plugin.registry import algorithms
from cms.testing import check_algorithm
from cms.testing.edge_problems import CROWDS
from tests.samples import few

#: What else runs than by default.
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("ptas", {"exact": "program"}),
    ("conic", {"route": "points"}),
    ("conic", {"route": "cells"}),
    ("ptas", {"plain": True, "epsilon": "1/10"}),
    ("conic", {"route": "cells", "plain": True}),
]


@pytest.mark.parametrize("seed", few(1, [0, 1, 2]))
@pytest.mark.parametrize("name", algorithms())
def test_every_installed_algorithm_conforms(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first seed the clock is looked at in one crowd, at others in every one."""
    if seed == 0:
        monkeypatch.setattr("cms.testing.checks.CROWDS", CROWDS[1:2])
    report = check_algorithm(name, seeds=[seed])
    assert report.ok, str(report)


@pytest.mark.parametrize("way", few(3, WAYS))
def test_an_algorithm_conforms_with_other_options(way: tuple[str, dict[str, Any]]) -> None:
    name, options = way
    report = check_algorithm(name, options=options, seeds=[0])
    assert report.ok, str(report)
