"""The conformance suite, as one of the distribution's own algorithms and in its bare form."""

from __future__ import annotations

from typing import Any

import pytest

from algorithms.ptas import Ptas
from cms.testing import CHECKS, Check
from cms.testing.checks import Laboratory


@pytest.mark.parametrize("options", [{}, {"exact": "program"}, {"plain": True, "epsilon": "1/10"}])
@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(check: Check, options: dict[str, Any]) -> None:
    laboratory = Laboratory(Ptas(), options=options)
    laboratory.trusted = True  # as it is by its registered name
    result = check.result(laboratory)
    assert result.passed, result.detail
