"""SIGINT for real, to processes with every kind of solver inside; see ``tests/ctrl_c.py``."""

from __future__ import annotations

import random
import signal
import sys

import pytest

from tests.ctrl_c import KINDS, press, table
from tests.samples import few

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to a child is POSIX")


@pytest.mark.parametrize(
    "kind", few(2, sorted(KINDS.keys() - {"highs_long"}, key=lambda kind: (kind == "deaf", kind)))
)
def test_ctrl_c_gives_a_checked_answer_whatever_solver_is_at_work(kind: str) -> None:
    one = press(kind, 0.6 * random.Random(kind).random())
    assert one.answered, str(one)


@pytest.mark.parametrize("wait", few(1, [0.3, 1.1]))
def test_ctrl_c_reaches_the_default_method_whatever_it_is_at(wait: float) -> None:
    """SCIP would take the signal for itself, unless it is told not to."""
    one = press("python", wait, "auto")
    assert one.answered, str(one)


def test_a_second_ctrl_c_ends_the_process() -> None:
    one = press("deaf", 0.1, again=0.15)
    assert one.exit_status == -signal.SIGINT, str(one)
    assert not one.verdict
    assert "KeyboardInterrupt" in one.errors


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_gives_a_checked_answer_at_any_moment(kind: str) -> None:
    """30 of each kind are 210 in all; ``python -m tests.ctrl_c --moments 200`` is 200 of each."""
    for one in table([kind], moments=30, seed=0, method=None):
        assert one.answered, str(one)
