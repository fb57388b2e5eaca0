"""Small problems in shards are solved as those are of which no table of options is kept."""

from __future__ import annotations

import pytest

from algorithms.prices import jobs


@pytest.fixture(autouse=True)
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_LISTED", 0)
