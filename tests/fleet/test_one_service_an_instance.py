"""With one service an instance, time sharing is the plain plan of the rule ``half``."""

from __future__ import annotations

import pytest

from bench.time_sharing.plain import OPTIMA, both_ways
from cms import BlockPrices, Proof
from tests.samples import few


@pytest.mark.parametrize("name", few(2, OPTIMA[0]))
@pytest.mark.parametrize("tighter", few(1, [1, 0]))
def test_one_service_an_instance_takes_as_many_gpus_as_plain(name: str, tighter: int) -> None:
    plain, mixed = both_ways(name, tighter)
    for found in (plain, mixed):
        assert (found.machine_count, found.lower_bound) == (OPTIMA[tighter][name],) * 2
        assert found.proof is Proof.CHECKED
        assert isinstance(found.certificate, BlockPrices)
    assert plain.certificate == mixed.certificate
