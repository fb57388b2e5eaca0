"""The ledger: in whatever order true claims come, costs fall, bounds rise, the best are kept."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, first_certificate
from cms.checker.kinds import check
from cms.errors import AlgorithmError
from cms.plugin.algorithm import SolverBound
from cms.problem.parts import Configuration
from cms.problem.problem import Problem
from cms.schedule.faults import Violation
from cms.schedule.schedule import Schedule
from cms.solving.ledger import Ledger
from cms.solving.solution import Proof, Status
from tests.scripted import blocks, serving

DEMAND = 13  # 7 machines

schedules = st.integers(7, 20).map(lambda machines: serving(DEMAND, machines))
certificates = st.fractions(0, "1/2", max_denominator=8).map(lambda p: BlockPrices({"b": p}))
words = st.fractions(0, 7, max_denominator=3).map(lambda value: SolverBound(value, "oracle"))
claims = st.lists(st.one_of(schedules, certificates, words), max_size=12)


@given(claims)
def test_true_claims_in_any_order_end_at_the_best_of_each(claimed: list[Any]) -> None:
    problem = blocks(DEMAND)
    ledger = Ledger(problem, "test", trusted=True, clock=lambda: 0.0)
    accepted = 0
    for claim in claimed:
        accepted += ledger.hear(claim) is not None
    known = ledger.known
    assert len(known.history) == accepted
    for before, after in zip(known.history, known.history[1:], strict=False):
        assert after.lower_bound >= before.lower_bound
        assert (after.claimed_bound or 0) >= (before.claimed_bound or 0)
        assert before.cost is None or (after.cost is not None and after.cost <= before.cost)
        assert before[1:4] != after[1:4]
    costs = [c.cost(problem) for c in claimed if isinstance(c, Schedule)]
    assert known.cost == min(costs, default=None)
    proved = [-(-c.bound(problem) // 1) for c in claimed if isinstance(c, BlockPrices)]
    assert known.lower_bound == max(proved, default=0)
    assert known.lower_bound == -(-known.certificate.bound(problem) // 1)
    assert known.best is None or not check(problem, known.best)
    met = known.cost in (known.lower_bound, known.claimed_bound)
    status, proof = ledger.verdict
    if known.cost is None:
        assert status is Status.NO_SCHEDULE
    else:
        assert status is (Status.OPTIMAL if met else Status.FEASIBLE)
    assert (proof is Proof.CHECKED) == ledger.proved == (known.cost == known.lower_bound)


amounts = st.sampled_from([0, 0, 1, Fraction(1, 3), 2**70])


@given(st.lists(st.tuples(amounts, amounts, amounts), min_size=1, max_size=4))
def test_what_nothing_can_serve_is_seen_at_once(rows: list[tuple[Any, Any, Any]]) -> None:
    """The ledger's glance at a problem agrees with the certificate that proves it."""
    problem = Problem.from_arrays(
        demands=np.array([row[0] for row in rows], dtype=object),
        supply=np.array([row[1:] for row in rows], dtype=object),
        configurations=Configuration({"here": 1}),
        blocks=["here", "nowhere"],
    )
    hopeless = any(demand and not here for demand, here, _ in rows)
    ledger = Ledger(problem, "test", trusted=False, clock=lambda: 0.0)
    assert (ledger.known.infeasible is Proof.CHECKED) == hopeless
    assert first_certificate(problem).proves_infeasible(problem) == hopeless
    idle = not any(demand for demand, _, _ in rows)
    assert (ledger.known.cost == 0) == idle


def test_of_very_many_violations_only_the_first_are_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.from_arrays(
        demands=[1] * 5000, supply=[[1]] * 5000, configurations=[[1]], blocks=["b"]
    )
    worded = []

    def violation(*facts: str) -> Violation:
        worded.append(facts)
        return Violation(*facts)

    monkeypatch.setattr(import_module("cms.schedule.faults"), "Violation", violation)
    with pytest.raises(AlgorithmError, match="; and more than 997 more violations$"):
        Ledger(problem, "test", trusted=False, clock=lambda: 0.0).hear(Schedule())
    assert len(worded) == 1001
