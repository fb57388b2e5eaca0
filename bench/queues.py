"""One service on equal instances, as a problem: what the loops of the simulator are timed on."""

from __future__ import annotations

from fractions import Fraction

from cms import Configuration, Job, Problem

BATCH, BATCH_NS = 8, 10_000_000
LOAD = Fraction(9, 10)


def generate(family: str, *, instances: int, processes: int) -> Problem:
    """Make a service that loads so many instances to nine tenths."""
    supply = Fraction(processes * BATCH * 10**9, BATCH_NS)
    service = Job(family, instances * supply * LOAD, {"instance": supply})
    return Problem(configurations=[Configuration({"instance": 1})], jobs=[service])
