"""SIGINT for real, to processes with every kind of solver inside; see ``tests/ctrl_c.py``."""

from __future__ import annotations

import random
import sys

import pytest

from tests.ctrl_c import KINDS, WAYS, press

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to a child is POSIX")


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_gives_a_checked_answer(way: str) -> None:
    one = press(way, "cp_sat", 0.2)
    assert one.good, str(one)


def test_ctrl_c_reaches_the_default_method_whatever_it_is_at() -> None:
    """SCIP would take the signal for itself, unless it is told not to."""
    one = press("main", "python", 0.3, "auto")
    assert one.good, str(one)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_gives_a_checked_answer_at_any_moment(way: str, kind: str) -> None:
    moments = random.Random(0)
    for one in (press(way, kind, moments.random()) for _ in range(10)):
        assert one.good, str(one)
