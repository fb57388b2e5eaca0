"""Mutated documents end in an answer or in an error of ours, and both checkers agree on them.

A hundred and twenty here; 10^5 in the long run, in parts of a thousand that can go side by side::

    python -m pytest -m long tests/fuzz --numprocesses auto
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.judge import judge
from tests.samples import few

PART, ALL = 1_000, 100_000


@pytest.mark.parametrize("first", few(1, range(0, 120, 60)))
def test_a_few_mutants_are_answered_or_refused(first: int, tmp_path: Path) -> None:
    for number in range(first, first + 60):
        assert judge(number, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, ALL, PART))
def test_a_thousand_mutants_are_answered_or_refused(first: int, tmp_path: Path) -> None:
    found = [fault for number in range(first, first + PART) for fault in judge(number, tmp_path)]
    assert found == []
