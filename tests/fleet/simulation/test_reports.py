"""What people read of a simulation, and of what a plan promises."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from cms.fleet.report.figure import drawing
from cms.fleet.report.proofs import promised
from cms.fleet.report.simulations import simulation_page
from cms.fleet.serving import RULES, LoadCurve, Service, build_problem
from cms.fleet.serving.load_curve import key_of
from cms.fleet.simulation import simulate
from tests.fleet.plans import point, printed
from tests.fleet.simulation.cases import instance, service

FOUND = simulate([service(instance(batch=4), rate=200)], requests=600)


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (60, "service p99 / limit late verdict"),
        (80, "service limit rate/s p99 / limit late load mean batch verdict"),
        (100, "service limit rate/s p99 / limit late 99 % interval load mean batch verdict"),
    ],
)
def test_a_table_has_the_columns_that_there_is_room_for(width: int, columns: str) -> None:
    text = printed(simulation_page(FOUND, "x"), width)
    assert " ".join(text.splitlines()[2].split()) == columns


def test_load_is_of_full_batches_and_unknown_without_instances() -> None:
    assert FOUND.services[0].load == Fraction(1, 2)
    assert FOUND.services[0].utilisation > Fraction(2, 3)
    assert simulate([service()], requests=20).services[0].load is None


@pytest.mark.parametrize(
    ("late", "said"), [(0, "0 % late"), (2, "&lt; 0.1 % late"), (10, "0.1 % late"), (11, "0.2 %")]
)
def test_a_picture_does_not_round_a_small_late_share_to_a_larger_one(late: int, said: str) -> None:
    one = replace(FOUND.services[0], late=late, requests=10_000)
    assert said in drawing(simulation_page(replace(FOUND, services=(one,)), "x"))


@pytest.mark.parametrize("rule", RULES)
def test_a_report_says_what_its_rule_promises_and_by_what_evidence(rule: str) -> None:
    measured = point("m", "7g.80gb", 1000)
    said = promised(build_problem([Service("chat", "m", 10, 300)], [measured], rule=rule))
    assert rule in said
    keeps = RULES[rule].promise is not None
    assert ("99 % of the requests within their limit" in said) == keeps
    assert ("promises nothing about waiting" in said) == (not keeps)
    assert ("(by proof, for batches" in said) == (rule == "capacity_certified")
    curves = {key_of(measured): LoadCurve([1, 90], [20, 200])}
    own = Service("chat", "m", 10, 300, late_share="0.02")
    said = promised(build_problem([own], [measured], rate_margin="0.1", load_curves=curves))
    for words in ("at up to 10 % more", "a late share or queue of their own", "load curves)"):
        assert words in said
