"""The oracle itself, on the theory's instances."""

from __future__ import annotations

import pytest

from cms.plugin.registry import NamedProblem
from instances import hard, small
from tests.oracle import optimum

SLOW = ("set-cover-f2-4", "harmonic-trap-4")
# The oracle is for demands of a few blocks; these two have 10^12.
KNOWN = [n for n in (hard.PROBLEMS | small.PROBLEMS).values() if not n.name.startswith("huge")]


@pytest.mark.parametrize(
    "named", [n for n in KNOWN if n.name not in SLOW], ids=lambda named: named.name
)
def test_the_oracle_knows_the_theorys_optima(named: NamedProblem) -> None:
    assert optimum(named.make()) == named.optimum
