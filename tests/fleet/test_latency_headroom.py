"""How much slower batches may be than measured: of a plan, and of a plan made for it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cms import check, solve
from cms.errors import FileError, InvalidOption
from cms.fleet import (
    RULES,
    LoadCurve,
    OperatingPoint,
    Plan,
    Service,
    build_problem,
    plan_from_json,
    plan_to_json,
)
from cms.fleet.report.plans import plan_page
from cms.fleet.serving import FillTimes, ServicePlan, ServingProblem
from cms.fleet.serving.load_curve import key_of
from cms.fleet.simulation import simulate
from cms.values.frozen import FrozenMap
from instances import published
from proofs_checks.checker.__main__ import _examined
from proofs_checks.checker.reading import sentences
from tests.fleet.plans import POINTS, SERVICES, printed, set_at
from tests.fleet.simulation.test_kept import SCENARIOS, kept
from tests.fleet.test_plan import Halved
from tests.proofs_checks.both import read
from tests.property.problems import share

A100 = "a100-80gb"
#: A bisection ends when it knows a factor to this.
APART = Fraction(1, 2**30)


def slowed(point: OperatingPoint, factor: Fraction) -> OperatingPoint:
    """What is measured if every batch takes `factor` times as long."""
    return replace(
        point, throughput_rps=point.throughput_rps / factor, latency_ms=point.latency_ms * factor
    )


def slowed_curve(curve: LoadCurve, factor: Fraction) -> LoadCurve:
    rates, latencies = curve.rates_rps, curve.latencies_ms
    return LoadCurve([r / factor for r in rates], [ms * factor for ms in latencies])


@st.composite
def measured(draw: st.DrawFn) -> tuple[list[Service], list[OperatingPoint], Any]:
    """Services with a model each, its points on two profiles, and load curves of some."""
    services, points, curves = [], [], {}
    for name in ("chat", "code")[: draw(st.integers(1, 2))]:
        fastest = Fraction(draw(st.integers(10, 400)), 10)
        for at, profile in enumerate(("3g.40gb", "1g.10gb")):
            processes, batch = draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 8)))
            ms = fastest * (1 + at)
            rate = 1000 * processes * batch / ms
            late = ms * 2 if draw(st.integers(0, 3)) == 0 and ms > 2 else ms  # clearly slow
            points.append(OperatingPoint(name, A100, profile, processes, batch, rate, late))
            if draw(st.booleans()) and processes == 1:
                steps = sorted(draw(st.sets(st.integers(1, 9), min_size=1)))
                curves[key_of(points[-1])] = LoadCurve(
                    [rate * n / 10 for n in steps], [ms * (10 + n * n) / 10 for n in steps]
                )
        limit = fastest * draw(st.integers(15, 60)) / 10
        services.append(Service(name, name, draw(st.integers(1, 400)), limit))
    return services, points, curves


def pose(
    services: list[Service], points: list[OperatingPoint], rule: str, curves: Any, **more: Any
) -> ServingProblem:
    more["load_curves"] = curves if rule == "capacity" else None
    posed: ServingProblem = build_problem(services, points, rule=rule, **more)
    return posed


def holds(given: ServicePlan, rule: str, curves: Any, factor: Fraction) -> bool:
    """Whether, posed anew with slower batches, each instance counts for its load."""
    slow = {key: slowed_curve(curve, factor) for key, curve in curves.items()}
    points = [slowed(use.point, factor) for use in given.uses]
    posed = pose([given.service], points, rule, slow)
    load = given.planned_rps / given.provided_rps
    supplies = ((posed.supply(given.service.name, use.block), use) for use in given.uses)
    return all(supply >= load * use.supply_rps for supply, use in supplies)


@pytest.mark.parametrize("rule", RULES)
@share(2)
@given(drawn=measured(), margin=st.sampled_from((0, Fraction(1, 20))))
def test_the_headroom_is_what_measuring_slower_batches_leaves(
    rule: str, drawn: Any, margin: Fraction
) -> None:
    services, points, curves = drawn
    serving = pose(services, points, rule, curves, latency_margin=margin)
    assume(not serving.unservable)
    plan = Plan(serving, solve(serving.problem))
    for given_ in plan.services:
        low, high = Fraction(1 + margin), Fraction(2) ** 12
        assert holds(given_, rule, curves, low)
        while high - low > APART:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(given_, rule, curves, middle) else (low, middle)
        assert given_.latency_headroom is not None
        assert low - APART <= 1 + given_.latency_headroom <= high + APART
    least = min(plan.services, key=lambda each: each.latency_headroom or 0)
    assert plan.latency_headroom == (least.latency_headroom, least.service.name)


@pytest.mark.parametrize("rule", ["round_robin", "collect_then_run"])
@pytest.mark.parametrize("terms", [{}, {"headroom": "gpulet"}, {"latency_margin": "0.25"}])
def test_mixes_hold_slower_batches_up_to_the_headroom(rule: str, terms: dict[str, Any]) -> None:
    more: dict[str, Any] = {"sharing": "time", "rule": rule}
    serving = build_problem(SERVICES, POINTS, A100, **more, **terms)
    plan = Plan(serving, solve(serving.problem))
    found = plan.latency_headroom
    assert found is not None
    assert found.share >= Fraction(terms.get("latency_margin", 0))
    for margin, is_valid in ((found.share, True), (found.share + APART, False)):
        worse = terms | {"latency_margin": margin}
        posed = build_problem(SERVICES, POINTS, A100, **more, **worse)
        assert (check(posed.problem, plan.solution.schedule) == ()) is is_valid
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.checkers == ("package", "independent")


def near(limit: Any = 100, **more: Any) -> Plan:
    """A plan at 98 % of a limit: batches of 49 ms, of which two have to fit into 100."""
    point = OperatingPoint("bert", A100, "1g.10gb", 1, 8, Fraction(8000, 49), 49)
    serving = build_problem([Service("chat", "bert", 40, limit)], [point], **more)
    return Plan(serving, solve(serving.problem))


def test_a_plan_near_a_limit_says_so_and_who_can_check_it() -> None:
    plan = near()
    assert plan.latency_headroom == (Fraction(1, 49), "chat")
    said = " ".join(printed(plan_page(plan, "plan")).split())
    assert "Holds up to 2 % slower batches; first to break: chat, at 98 % of what its" in said
    assert "checked by the package; cms-check and cms-check --proved (Coq) recheck" in said
    wide = near(400)
    assert "slower batches; first to break: chat." in " ".join(
        printed(plan_page(wide, "plan")).split()
    )
    assert near(None).latency_headroom is None
    assert near(rule="half", latency_margin="0.02").latency_headroom == (Fraction(1, 49), "chat")
    assert near(latency_margin="0.03").answer.status == "infeasible"
    assert "49 ms + 3 % a batch is 1.98 times within 100 ms" in str(
        near(latency_margin="0.03").serving.unservable
    )


def test_a_margin_that_cannot_be_is_refused() -> None:
    assert near(rule=Halved()).latency_headroom is None
    for rule, margin, message in (
        (Halved(), "0.1", "which the rule 'halved' does not know"),
        ("half", -1, "the latency margin"),
    ):
        with pytest.raises(InvalidOption, match=message):
            near(rule=rule, latency_margin=margin)


@pytest.mark.parametrize("rule", ["capacity", "half"])
@pytest.mark.parametrize(
    ("path", "value", "is_packages"),
    [
        ("services.0.latency_headroom", "0.5", False),
        ("services.0.latency_headroom", None, False),
        ("latency_headroom", None, False),
        ("latency_headroom.share", "0.5", False),
        ("latency_headroom.service", "code", False),
        ("rule.latency_margin", "0.01", False),
        ("operating_points.0.throughput_rps", 163, False),
        ("groups", [], False),
        ("groups.0.count", 2, False),
        ("groups.0.instances.0.count", 7, False),
        ("groups.0.instances.0.serves", [], False),
        ("services.0.instances", 7, False),
        ("services.0.provided_rps", 9999, False),
        ("promise.latency_margin", "0.5", True),
        ("checkers", ["package"], True),
    ],
)
def test_a_forged_plan_is_refused(rule: str, path: str, value: Any, is_packages: bool) -> None:
    document = json.loads(json.dumps(plan_to_json(near(rule=rule))))
    assert not sentences(lambda: _examined([read(document)])[0])
    if rule == "half" and path.startswith("promise"):
        return  # it promises nothing
    set_at(document, path, value)
    with pytest.raises(FileError):
        plan_from_json(document)
    assert is_packages or sentences(lambda: _examined([read(document)])[0])


@pytest.mark.long
def test_a_plan_with_a_margin_keeps_its_limits_with_slower_batches() -> None:
    margin, runs = Fraction(1, 20), []
    for name in SCENARIOS:
        scenario = published.scenario(name)
        serving = build_problem(
            scenario.services, scenario.operating_points, latency_margin=margin,
            load_curves=scenario.curves_for("capacity"),
        )  # fmt: skip
        found = solve(serving.problem)
        plan = Plan(serving, found)
        assert plan.latency_headroom is not None
        assert plan.latency_headroom.share >= margin
        slower = 1 + margin
        points = {
            pair: tuple(slowed(each, slower) for each in own)
            for pair, own in serving.points.items()
        }
        fills = {
            pair: FillTimes({n: ms * slower for n, ms in times.times_ms.items()})
            for pair, times in serving.fills.items()
        }
        worse = replace(serving, points=FrozenMap(points), fills=FrozenMap(fills))
        runs.append(simulate(Plan(worse, found), requests=1_000_000))
    assert sum(map(kept, runs)) == sum(len(run.services) for run in runs) == 61
