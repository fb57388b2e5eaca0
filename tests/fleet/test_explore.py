"""What the app asks: tables turned by exact multiples, planned as ``cms plan`` does."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import load_instance, simplify_schedule, solve
from cms.errors import CmsError
from cms.fleet import OperatingPoint, Plan, Scenario, Service, build_problem
from cms.fleet.explore import (
    LIMITS,
    RATES,
    measured_gpus,
    plan_scenario,
    read_scenario,
    turn,
)
from cms.fleet.hardware import get_gpu
from cms.fleet.serving.csv_input import points_template, services_template
from tests.fleet.plans import NASTY

POINTS = (
    OperatingPoint("bert", "a100-80gb", "7g.80gb", 1, 8, 200, 5),
    OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 1, 20, 30),
    OperatingPoint("bert", "h100-80gb", "7g.80gb", 1, 8, 500, 2),
)
ASKED = Scenario(
    name="two", title="", source="", operating_points=POINTS,
    services=(Service("chat", "bert", "0.3", 100), Service(NASTY, "bert", 50)),
)  # fmt: skip


@given(st.sampled_from(RATES), st.sampled_from(RATES), st.sampled_from(LIMITS))
def test_rates_and_limits_are_multiplied_exactly(every: float, own: float, limit: float) -> None:
    turned = turn(ASKED, {"chat": str(own)}, {"chat": str(limit)}, every=str(every))
    chat, other = turned.services
    assert chat.rate_rps == Fraction(3, 10) * Fraction(str(own)) * Fraction(str(every))
    assert chat.latency_limit_ms == 100 * Fraction(str(limit))
    assert (other.rate_rps, other.latency_limit_ms) == (50 * Fraction(str(every)), None)


@pytest.mark.parametrize("name", ["S1", "S6"])
def test_a_published_scenario_is_planned_as_it_stands(name: str) -> None:
    scenario = load_instance(name)
    assert isinstance(scenario, Scenario)
    plan = plan_scenario(read_scenario({"published": name}))
    problem = scenario.build_problem().problem
    assert plan.answer.proof == "checked"
    assert plan.answer.schedule == simplify_schedule(problem, solve(problem)).schedule


def test_more_gpus_are_never_worse_and_tables_are_read_as_for_a_plan(
    tmp_path: Path,
) -> None:
    one = plan_scenario(turn(ASKED, every=8))
    both = plan_scenario(turn(ASKED, every=8, gpus=measured_gpus(ASKED)))
    assert measured_gpus(ASKED) == ("a100-80gb", "h100-80gb")
    assert one.answer.cost is not None
    assert both.answer.cost is not None
    assert both.answer.cost < one.answer.cost
    assert plan_scenario(turn(ASKED, every=0)).answer.cost == 0
    assert turn(ASKED) == ASKED
    services, points = tmp_path / "mine.csv", tmp_path / "points.csv"
    services.write_text(services_template())
    points.write_text(points_template(get_gpu("a100-80gb")))
    given = {"services": str(services), "operating-points": str(points)}
    asked = read_scenario(given)
    assert (asked.name, asked.gpus) == ("mine", ("a100-80gb",))
    expected = build_problem(asked.services, asked.operating_points).problem
    assert plan_scenario(asked).answer.cost == solve(expected).cost
    (gpu,) = read_scenario(given | {"gpu": "a100-80gb"}).gpus
    assert gpu == get_gpu("a100-80gb")


@pytest.mark.parametrize(
    ("turned", "words"),
    [
        ({"rates": {"chap": 2}}, "no service 'chap'; nearest: 'chat'"),
        ({"limits": {"mail": 2}}, "no service 'mail'"),
        ({"gpus": ()}, "no GPU is chosen"),
        ({"limits": {"chat": 0}}, "limit of service 'chat' is 0 ms"),
        ({"every": -1}, "all rates are multiplied by"),
        ({"gpus": ["h200"]}, "h200"),
    ],
)
def test_what_cannot_be_turned_is_refused(turned: dict[str, object], words: str) -> None:
    with pytest.raises(CmsError, match=words):
        plan_scenario(turn(ASKED, **turned))  # type: ignore[arg-type]


def test_the_notebook_runs_from_top_to_bottom() -> None:
    app = pytest.importorskip("cms.fleet.explore.app").app
    _, found = app.run()
    plan = found["plan"]
    assert isinstance(plan, Plan)
    assert (plan.answer.cost, plan.answer.proof) == (12, "checked")
    assert json.loads(found["plan_file"]())["format"] == "cms-plan"
    # The plan follows the slider, as it does in a browser.
    turned = pytest.importorskip("marimo").ui.slider(0, 4, value=2)
    names = ("every", "gpus", "turned", "names")
    _, found = app.run(defs={name: found[name] for name in names} | {"every": turned})
    assert found["plan"].answer.cost == 24
