"""Pictures: one self-contained SVG file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet.report.bars import bars
from cms.fleet.report.canvas import fits
from cms.fleet.report.machines import machine_bars
from cms.fleet.report.palette import colour
from cms.fleet.report.problems import solution_report
from cms.fleet.report.svg import plan_picture, solution_picture
from cms.fleet.serving import Plan, Service, as_problem
from cms.problem.parts import Configuration, Job, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.solving.solution import Status
from cms.solving.solve import solve
from tests.fleet.plans import NASTY, many_services, mixed_plan, point, printed, solution
from tests.texts import LETTERS


@pytest.fixture(scope="module")
def mixed() -> Plan:
    return mixed_plan()


SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_is_one_well_formed_file_with_every_name_escaped(mixed: Plan) -> None:
    picture = plan_picture(mixed, f"title {NASTY}")
    root = ElementTree.fromstring(picture)
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert f"title {NASTY}" in texts
    assert f"{NASTY}: 2g.20gb p=2 b=8" in [e.text for e in root.iter(f"{SVG}title")]
    assert any("3 GPUs, proved >= 0" in text for text in texts)
    assert not re.search(r"(href|src|@import|url\((?!#))", picture), "it refers to nothing outside"


def test_a_label_that_is_said_to_fit_does_so_in_a_wide_typeface() -> None:
    # advance widths of DejaVu Sans, the widest of the usual ones, in thousandths of the size
    widths = {"1": 636, "0": 636, "4": 636, ".": 318, " ": 318, "=": 838} | dict.fromkeys(
        "gpb", 635
    )
    label = "1g.10gb p=1 b=4"
    true = sum(widths[letter] for letter in label) * 11 / 1000
    assert not fits(label, true - 1, 11)
    assert fits(label, true + 8, 11)


def test_a_picture_has_a_rectangle_for_every_cell_inside_its_borders(mixed: Plan) -> None:
    root = ElementTree.fromstring(plan_picture(mixed, "x"))
    cells = root.findall(f"{SVG}g")
    assert len(cells) == sum(len(bar.cells) for bar in bars(mixed))
    height = float(root.get("height") or 0)
    for element in root.iter(f"{SVG}text"):
        assert 0 < float(element.get("x") or 0) < 960
        assert 0 < float(element.get("y") or 0) < height
    fills = [cell.findall(f"{SVG}rect")[0].get("fill") for cell in cells]
    assert {"url(#idle)", "url(#free)", colour(0), colour(1)} == set(fills)


def test_blocks_of_a_size_bounded_machine_are_as_wide_as_their_sizes() -> None:
    shares = SizeBoundedConfigurations({"a": "0.5", "b": "1/3"}, capacity=1)
    problem = Problem(configurations=shares, jobs=[Job("j", 1, {"a": 1}), Job(NASTY, 1, {"b": 1})])
    found = solve(problem)
    (bar,) = machine_bars(problem, found.schedule, 10)
    assert bar.slices == 6
    assert [(cell.width, cell.service) for cell in bar.cells] == [(3, "j"), (2, NASTY), (1, None)]
    ElementTree.fromstring(solution_picture(problem, found, "shares"))


def test_a_machine_of_countless_blocks_is_not_drawn() -> None:
    problem = Problem(configurations=Configuration({"b": 10**12}), jobs=[Job("j", 5, {"b": 1})])
    found = solve(problem)
    assert machine_bars(problem, found.schedule, 10) == []
    assert "... and 1 more group" in solution_picture(problem, found, "x")
    assert "999,999,999,995 idle" in printed(solution_report(problem, found, "x"))


def test_a_picture_of_a_large_plan_stays_a_picture() -> None:
    picture = plan_picture(many_services(400), "many")
    assert "more layouts" in picture
    assert "... and 280 more" in picture
    assert len(picture) < 200_000


@given(st.text(LETTERS, min_size=1, max_size=30))
def test_any_title_makes_a_well_formed_picture(title: str) -> None:
    serving = as_problem([Service("a", "m", 1, 100)], [point("m", "7g.80gb", 10)], rule="parvagpu")
    nothing = solution(status=Status.NO_SCHEDULE, cost=None, problem_sha256=serving.problem.sha256)
    ElementTree.fromstring(plan_picture(Plan(serving, nothing), title))
