"""What notebooks show, and tables of pandas and Arrow."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from random import Random
from xml.etree import ElementTree

import numpy as np
import pytest

from cms import Configuration, Job, Problem, Solution, solve
from cms.errors import InvalidOption
from cms.fleet import Deployment, Plan, gpu, place
from cms.fleet.deployment import Placed
from cms.fleet.report.web import MOST_SHOWN
from cms.values.views import Tabular, Viewed
from tests.fleet.deployments import published
from tests.fleet.plans import NASTY, many_services
from tests.fleet.scenarios import fleet
from tests.references.mixes import time_shared_toy

MANY = MOST_SHOWN + 7


def s5() -> Plan:
    plan = published("S5").plan
    assert plan is not None
    return plan


def placed() -> Deployment:
    found = place(published("S5"), fleet(n=14))
    assert isinstance(found, Placed)
    return found.deployment


def nasty() -> Problem:
    return Problem(
        configurations=Configuration({NASTY: 2}), jobs=[Job(NASTY, Fraction(10, 3), {NASTY: 1})]
    )


SHOWN: dict[str, Callable[[], Viewed]] = {
    "plan": lambda: many_services(MANY),
    "deployment": placed,
    "gpu": lambda: gpu("h100-80gb"),
    "problem": nasty,
    "time-shared problem": lambda: time_shared_toy(Random(3)),
    "no job": lambda: Problem(configurations=Configuration({NASTY: 2})),
    "solution": lambda: solve(nasty()),
    "time-shared solution": lambda: solve(time_shared_toy(Random(3))),
}


@pytest.mark.parametrize("name", SHOWN)
def test_each_shows_its_page_and_names_as_text(name: str) -> None:
    shown = SHOWN[name]()
    html, svg = shown._repr_html_(), shown._repr_svg_()
    assert html is not None
    assert svg is not None
    ElementTree.fromstring(svg)
    assert not re.search(r"(src|href)=|<script", html)
    assert isinstance(shown, Deployment) or len(repr(shown)) < 200
    assert (name == "plan") == (f"... and {MANY - MOST_SHOWN} more rows" in html)
    assert name not in ("problem", "solution") or "&lt;b&gt;" in html


def test_a_million_jobs_are_a_few_lines() -> None:
    n = 10**6
    problem = Problem.from_arrays(
        configurations=Configuration({"a": 2}),
        demands=np.ones(n, dtype=np.int64),
        supply=np.ones((n, 1), dtype=np.int64),
        blocks=["a"],
    )
    html = problem._repr_html_()
    assert html is not None
    assert len(html) < 20_000
    assert f"the first of {n:,}" in html
    assert len(repr(problem)) < 200


def test_where_nobody_draws_the_repr_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cms.values.views.entry_points", lambda **_: [])
    assert nasty()._repr_html_() is None
    assert nasty()._repr_svg_() is None


# --- tables ---------------------------------------------------------------------------------------

pandas = pytest.importorskip("pandas")
arrow = pytest.importorskip("pyarrow")


def test_tables_are_what_the_objects_say() -> None:
    plan, deployment = s5(), placed()
    services = plan.to_pandas()
    assert list(services["service"]) == [each.service.name for each in plan.services]
    assert list(services["provided_rps"]) == [float(each.provided_rps) for each in plan.services]
    instances = plan.to_pandas("instances")
    assert instances["count"].sum() == sum(each.instances for each in plan.services)
    solution: Solution = plan.solution
    used = (plan.to_pandas("gpus"), "gpus"), (solution.to_pandas("schedule"), "machines")
    for frame, column in used:
        assert frame.groupby("group")[column].first().sum() == solution.machine_count
    history = solution.to_pandas()
    assert list(history["lower_bound"]) == [float(line.lower_bound) for line in solution.history]
    assert len(deployment.to_pandas()) == sum(1 for _ in deployment.instances())
    assert len(deployment.to_pandas("gpus")) == sum(1 for _ in deployment.gpus())


@pytest.mark.parametrize("table", [None, "instances", "gpus"])
def test_arrow_has_the_same_table(table: str | None) -> None:
    plan = many_services(5)
    frame = plan.to_pandas(table)
    assert plan.to_arrow(table).to_pylist() == [
        {key: None if value != value else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def test_an_unknown_table_and_a_missing_library_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plan: Tabular = many_services(2)
    with pytest.raises(InvalidOption, match="no table 'gpu'; nearest: 'gpus'"):
        plan.to_pandas("gpu")
    for module, method in (("pandas", plan.to_pandas), ("pyarrow", plan.to_arrow)):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(InvalidOption, match=r"pip install '\.\[tables\]'"):
            method()


def test_numbers_beyond_floats_are_infinite() -> None:
    demand = 10**400
    problem = Problem(
        configurations=Configuration({"b": 10**399}), jobs=[Job("x", demand, {"b": 1})]
    )
    assert solve(problem).to_pandas()["cost"].iloc[-1] == 10
