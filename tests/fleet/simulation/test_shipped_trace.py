"""The hour of recorded arrivals that comes with the package."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cms.fleet.simulation import read_trace, simulate
from tests.source_tree import ROOT

from .cases import instance, service

TRACE = ROOT / "instances" / "data" / "azure_llm_conversation.csv"


def test_it_has_the_published_statistics() -> None:
    times = np.array([float(line) for line in TRACE.read_text("utf-8").splitlines()[1:]])
    gaps = np.diff(times)
    assert (len(times), gaps.min() >= 0) == (19_366, True)
    assert round(len(times) / times[-1], 1) == 5.5
    assert round(float(gaps.var() / gaps.mean() ** 2), 1) == 1.2
    spread = []
    for seconds in (1, 10, 60, 300):
        whole = times[times < times[-1] // seconds * seconds]
        counts = np.bincount((whole // seconds).astype(int))
        spread.append(float(counts.var() / counts.mean()))
    assert [round(each, 1) for each in spread[:2]] == [1.4, 3.9]
    assert [round(each) for each in spread[2:]] == [16, 56]


def test_a_service_is_replayed_with_it() -> None:
    busy = service(instance(), rate=Fraction(60))
    found = simulate([busy], read_trace(TRACE), requests=19_366, plain=True)
    assert found.services[0].requests == 19_366
    assert found.services[0].late > 0  # it comes in waves, which a steady stream does not
