"""What tests of planted faults share: a theorem's check that ends at the first failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from proofs_checks.finding import Tally


class Reported(AssertionError):
    """A theorem's check has written a failure down."""


def stop_at_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every check raise where it would walk on after a failure."""
    case = Tally.case

    @contextmanager
    def noted(tally: Tally, name: object) -> Iterator[None]:
        with case(tally, name):
            yield
        if tally.finding().failures:
            raise Reported

    monkeypatch.setattr(Tally, "case", noted)


@cache
def holds(check: Callable[[], object]) -> None:
    """Run a check as it stands, once for all faults that it has to see."""
    check()
