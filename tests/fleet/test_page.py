"""Every object's page: in a terminal of any width, as HTML, in a notebook, as a picture."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from html.parser import HTMLParser
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from bench.report_page import counts_picture
from cms import Job, MachineType, Problem, SizeBoundedConfigurations, explain_infeasibility
from cms.fleet import explain, get_gpu, list_gpus, rightsize
from cms.fleet.colocation import ColocationProblem, OfflineClass, OnlineClass, colocate
from cms.fleet.deployment import Deployment, difference
from cms.fleet.report.bars import draw_plan
from cms.fleet.report.catalogue import gpu_page, gpus_page
from cms.fleet.report.charts import history_table
from cms.fleet.report.colocation import colocation_page
from cms.fleet.report.deployments import deployment_page, difference_page, export_page
from cms.fleet.report.figure import drawing, inline
from cms.fleet.report.page import Bars, Fact, Page, Section
from cms.fleet.report.plans import plan_page
from cms.fleet.report.problems import problem_page, solution_page, solved_page
from cms.fleet.report.simulations import shared_day_page, simulation_page
from cms.fleet.report.tables import Cell, Grid, table
from cms.fleet.report.transitions import transition_page
from cms.fleet.report.web import fragment, html
from cms.fleet.report.what_if import explained_page, rightsized_page
from cms.fleet.serving import Plan, Service, build_problem
from cms.fleet.serving.gpus_used import AvailableGpus
from cms.fleet.serving.rate_curve import RatePoint, rate_curve, whole_gpus
from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
from cms.solving.solution import Status
from cms.solving.solve import solve
from cms.values.words import printable
from instances.families.colocation import shared_gpus
from tests.fleet.deployments import deployments
from tests.fleet.plans import NASTY, many_services, mixed_plan, point, printed
from tests.fleet.simulation.cases import made_up_day
from tests.fleet.transitions import every_kind, growth
from tests.property.problems import share as some
from tests.references.mixes import time_shared_toy
from tests.samples import refusal
from tests.texts import LETTERS


class Read(HTMLParser):
    """What a browser would see: elements with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.text.setdefault(self._open[-1], []).append(data)

    def with_tag(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def served(*rates: int | Fraction, **terms: Any) -> Plan:
    """Services on a model that was measured on a third of a GPU, and on a whole one."""
    services = [Service(f"s{n}", "bert", rate, 400) for n, rate in enumerate(rates)]
    points = [point("bert", "3g.40gb", 400), point("bert", "7g.80gb", 800)]
    serving = build_problem(services, points, rule="plain", **terms)
    return Plan(serving, solve(serving.problem))


def simulated() -> Page:
    one = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 4)
    services = [
        ModelledService(name, Fraction(250), limit, Fraction(1, 100), (one,))
        for name, limit in ((NASTY, 40_000_000), ("broken", 9_000_000))
    ]
    return simulation_page(simulate(services, requests=3000), NASTY)


def infeasible() -> Page:
    plan = served(5000, limits={"a100-80gb": 2})
    problem = plan.serving.problem
    assert isinstance(problem, Problem)
    return plan_page(plan, NASTY, shortage=explain_infeasibility(problem, solution=plan.solution))


def matched(problem: ColocationProblem) -> Page:
    return colocation_page(problem, colocate(problem), NASTY)


def sized() -> Page:
    shares = SizeBoundedConfigurations({"a": "0.5", "b": "1/3"}, capacity=1, machine="m")
    problem = Problem(
        configurations=shares, jobs=[Job("j", 1, {"a": 1}), Job(NASTY, 1, {"b": 1})],
        machine_types=[MachineType("m", cost="1.5")],
    )  # fmt: skip
    return solved_page(problem, solve(problem), NASTY)


FEW = ColocationProblem(
    online=[OnlineClass("a30", count=7, sm_activity=20, name=NASTY),
            OnlineClass("a30", count=2, sm_activity=98, name="busy")],
    offline=[OfflineClass("</text>", count=5)], weights=[[5], [0]],
)  # fmt: skip


def curved() -> Page:
    plan = mixed_plan()
    return plan_page(plan, NASTY, f"a {NASTY}.json", rate_curve(plan))


def changed(other: str = NASTY) -> Page:
    found = every_kind(other, "code", "gpu-node-eu-west-1a-production-cluster-0017")
    both = replace(found.target, services=(*found.start.services, *found.target.services[1:]))
    return difference_page(difference(found.start, found.target), both, NASTY)


PAGES: dict[str, Callable[[], Page]] = {
    "plan": curved,
    "large plan": lambda: plan_page(many_services(400), NASTY),
    "infeasible plan": infeasible,
    "transition": lambda: transition_page(every_kind(NASTY, "code", "x" * 60), NASTY),
    "growth": lambda: transition_page(growth(), NASTY, durations=None),
    "difference": changed,
    "deployment": lambda: deployment_page(growth().target, NASTY),
    "export": lambda: export_page({}, growth().target, NASTY, offers=True),
    "simulation": simulated,
    "matching": lambda: matched(FEW),
    "large matching": lambda: matched(shared_gpus(100_000, online=1000, offline=12, seed=4)),
    "shared day": lambda: shared_day_page(made_up_day(), NASTY),
    "solved": sized,
    "problem": lambda: problem_page(time_shared_toy(Random(3))),
    "solution": lambda: solution_page(solve(time_shared_toy(Random(3)))),
    "gpu": lambda: gpu_page(get_gpu("h100-80gb")),
    "gpus": lambda: gpus_page(list_gpus()),
    "empty": lambda: deployment_page(Deployment(()), NASTY),
}


@cache
def page_of(name: str) -> Page:
    return PAGES[name]()


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> Page:
    return page_of(request.param)


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_a_terminal_of_any_width_holds_the_page_in_some_hundred_lines(
    page: Page, width: int
) -> None:
    lines = printed(page, width).splitlines()
    assert max(map(cell_len, map(str.rstrip, lines))) <= width
    assert len(lines) < 400 * (2 if width < 100 else 1)
    assert "\x1b" not in "".join(lines)


def test_html_says_what_the_terminal_says(page: Page) -> None:
    read = Read(html(page))
    words = {each.strip() for texts in read.text.values() for each in texts}
    for section in page.sections:
        for part in section.parts:
            if isinstance(part, Grid) and section.only != "terminal":
                for row in part.rows[:50]:
                    for cell in row:
                        assert {printable(line).strip() for line in cell.text.split("\n")} <= words
    if page.facts:
        assert printable(page.facts[0].value) in read.text["strong"]


def test_html_refers_to_nothing_outside_and_allows_its_own_script_alone(page: Page) -> None:
    text = html(page)
    read = Read(text)
    for tag, attributes in read.tags:
        assert tag not in ("link", "img", "iframe", "object", "base", "form", "image")
        assert not {"src", "srcset", "onclick"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\((?!#)", text)
    ids = [attributes["id"] for tag, attributes in read.tags if tag in ("section", "h2")]
    assert len(ids) == len(set(ids))
    assert {each["href"][1:] for each in read.with_tag("a")} <= set(ids)
    (policy,) = (each["content"] for each in read.with_tag("meta") if "content" in each
                 and each.get("http-equiv"))  # fmt: skip
    (script,) = read.text["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")


def test_a_picture_and_a_notebook_have_names_as_text_and_fetch_nothing(page: Page) -> None:
    root = ElementTree.fromstring(picture := drawing(page))
    assert not re.search(r"(href|src)=\"(?!#)|@import|url\((?!#)", picture)
    assert printable(page.title) in "".join(root.itertext()).replace("\xa0", " ")
    shown = fragment(page)
    assert "<script" not in shown
    assert printable(page.title) in "".join(map("".join, Read(shown).text.values()))


@given(st.text(LETTERS, min_size=1, max_size=30))
def test_any_text_is_read_back_from_html_as_it_is_printed(name: str) -> None:
    grid = table("all", "name", [[name.replace("\n", " ")]])
    page = Page(name, name, [Fact(name, name)], [Section("s", name, [grid, name])])
    read = Read(html(page))
    wanted = printable(name).replace("\ufffe", "?").replace("\uffff", "?")
    assert read.text["h1"] == [wanted]
    assert read.text["td"] == [printable(name.replace("\n", " "))]
    assert [tag for tag, _ in read.tags].count("td") == 1


def test_numbers_are_sorted_and_long_tables_say_what_they_leave_out() -> None:
    read = Read(html(page_of("plan")))
    assert all(each["aria-sort"] == "none" for each in read.with_tag("th"))
    assert f"cms check {shlex.quote(f'a {NASTY}.json')}" in read.text["code"]
    keys = [each["data-key"] for each in read.with_tag("td") if "number" in each.get("class", "")]
    assert keys
    assert all(each == "nan" or float(each) == float(each) for each in keys)
    orders = (10**400, -(10**400), 0.5, "B", None)
    assert [Cell("Aa", order).key for order in orders] == [
        "1.7e+308", "-1.7e+308", "0.5", "b", "aa",
    ]  # fmt: skip
    rows = [[Cell(str(n), n)] for n in range(10_003)]
    grid = table("g", ">n", rows)
    page = Page("t", "", [], [Section("s", "s", [grid])])
    text = html(page)
    assert "... and 3 more rows" in text
    assert text.count("<tr>") == 10_000 + 1
    assert "... and 9,963 more rows" in printed(page)


def test_a_table_that_must_fold_keeps_its_columns_and_a_narrower_one_its_words_whole() -> None:
    sentence = "1 x mps:100 (b=8 of a 32.5 ms frame, 246.2/s, 17.5 ms to spare)"
    rows = [["chat", "bert", "60 ms", "1,500.5", "246.2", "64.1 %", sentence]]
    heads = "service|model:3|>limit:2|>wanted/s|>served/s|>headroom|instances*"
    page = Page("t", "", [], [Section("s", "s", [table("g", heads, rows)])])
    assert re.search(r"chat +bert +60 ms +1,500.5 +246.2 +64.1 % +1 x", printed(page, 90))
    narrow = printed(page, 40)
    assert re.search(r"limit +60 ms +\n", narrow)
    assert {*sentence.split(), "1,500.5"} <= {*narrow.split()}


@some(4)
@given(deployments())
def test_any_deployment_has_a_page(deployment: Deployment) -> None:
    page = deployment_page(deployment, NASTY, lost=True)
    for width in (40, 100):
        assert max(map(cell_len, map(str.rstrip, printed(page, width).splitlines()))) <= width
    boxes = sum(len(bar.boxes) for section in page.sections for part in section.parts
                if isinstance(part, Bars) for bar in part.bars)  # fmt: skip
    drawn = [
        each
        for each in Read(html(page)).with_tag("div")
        if each.get("class", "").startswith("box ")
    ]
    assert len(drawn) == boxes
    ElementTree.fromstring(drawing(page))


def test_the_head_of_a_plan_says_all_and_its_bars_are_drawn_whole() -> None:
    def facts_of(plan: Plan) -> dict[str, Fact]:
        return {fact.name: fact for fact in plan_page(plan, "x").facts}

    facts = facts_of(served(100, 300, 350))
    assert (facts["GPUs"].value, facts["Lower bound"].value) == ("2", "≥ 2")
    assert (facts["Proof"].value, facts["Proof"].tone) == ("optimal", "good")
    assert (facts["Saving"].value, "3 whole GPUs" in facts["Saving"].note) == ("33.3 %", True)
    open_ = facts_of(mixed_plan())
    assert (open_["Proof"].tone, open_["Lower bound"].value) == ("fair", "≥ 0")
    assert (open_["Saving"].value, "Cost" in open_) == ("not known", False)
    dear = facts_of(served(100, 300, 350, costs={"a100-80gb": "1.5"}))
    assert (dear["GPUs"].value, dear["Cost"].value) == ("2", "3")
    for name in ("Cost", "Lower bound", "Saving"):  # costs are never called GPUs
        assert not re.search(r"[0-9] (whole )?GPU", dear[name].note), dear[name]
    bars = [bar for part in draw_plan(many_services(400)) for bar in part.bars]
    assert sum(bar.count for bar in bars) == 400 * 401 // 2
    page = page_of("large plan")
    assert printed(page).count("... and 360 more ") == 2  # layouts and services
    assert len([e for e in Read(html(page)).with_tag("div") if e.get("class") == "bar"]) == 400


@pytest.mark.parametrize("price", ["1", "1.5"])
def test_costs_have_one_unit_in_a_figure_their_currency_where_there_is_one(price: str) -> None:
    plan = served(100, 300, 350, costs={"a100-80gb": price}, currency="EUR")
    read = Read(html(plan_page(plan, "x", curve=rate_curve(plan, [1, 2]))))
    assert read.text["button"].count("EUR/h") == 2  # the curve's table, and that of both bounds
    assert "EUR/h" in read.text["text"]  # beside the axis
    captions = {*read.text["button"], *read.text["text"], *read.text["caption"]}
    assert not [each for each in captions if re.search("GPU|[Cc]ost", each)]
    (alt,) = (e["aria-label"] for e in read.with_tag("div") if e.get("class") == "sheet")
    assert alt.startswith("EUR/h by the multiple of all rates: 1 times: ")
    explained = printed(explained_page(explain(plan, "s1"), plan, "x"))
    assert re.search("its bound [0-9.]+ EUR/h plus", " ".join(explained.split()))
    saved = printed(rightsized_page(rightsize(plan, time_limit=None), plan, "x"))
    assert re.match(r"x: what would save that much, [0-9.]+ EUR/h -> [0-9.]+ EUR/h\n", saved)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=4))
def test_whole_gpus_are_those_of_a_plan_with_whole_gpus_alone(rates: list[int]) -> None:
    """Where GPUs that are there have prices of their own, by the least of these."""
    of = partial(AvailableGpus, "a100-80gb")
    plan = served(*rates, available=[of(0), of(9, price=Fraction(3)), of(9, price=Fraction(2))])
    points, costs = [point("bert", "7g.80gb", 800)], {"a100-80gb": 2}
    best = solve(build_problem(plan.serving.services, points, rule="plain", costs=costs).problem)
    assert whole_gpus(plan) == (best.machine_count, best.cost, ())


@pytest.mark.parametrize("rate", [10**40, 10**400, Fraction(1, 10**30), 0])
def test_rates_beyond_all_measure_have_a_page(rate: Fraction) -> None:
    services = [Service("s", "bert", rate, 400), Service("t", "bert", 1)]
    serving = build_problem(services, [point("bert", "3g.40gb", 400)], rule="plain")
    plan = Plan(serving, solve(serving.problem))
    page = plan_page(plan, "x", curve=rate_curve(plan, ["0.5", 1, 4]))
    assert Read(html(page)).text["h1"] == ["x"]
    assert printed(page).startswith("x\n")


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=4))
def test_a_point_of_the_curve_is_the_plan_of_services_with_such_rates(rates: list[int]) -> None:
    plan = served(*rates)
    for found in rate_curve(plan, ["0.5", 1, "2.5"], time_limit=None):
        answer = served(*(rate * found.rate for rate in rates)).solution
        assert (found.cost, found.bound, found.status) == (
            answer.cost, answer.lower_bound, answer.status,
        )  # fmt: skip


def test_what_cannot_be_served_and_what_is_not_known_are_told_apart() -> None:
    # With two GPUs at most: what is beyond them was proved with bounds of 0 and 1.
    plan = served(500, limits={"a100-80gb": 2})
    curve = rate_curve(plan, ["0.5", 1, "1.5", 2, 5, 6], time_limit=None)
    assert [each.bound for each in curve] == sorted(each.bound for each in curve)
    assert [each.cost is None for each in curve] == [False] * 4 + [True] * 2

    def read(curve: Sequence[RatePoint]) -> tuple[list[str], str]:
        page = Read(html(plan_page(plan, "x", curve=curve)))
        return page.text["td"], "".join(page.text["p"])

    cells, said = read(curve)
    assert cells.count("cannot be served") == 2
    assert "2 cannot be served (proved)" in said
    unknown = RatePoint(Fraction(1, 2), None, Fraction(0), Status.NO_SCHEDULE)
    cells, _ = read([unknown, *curve[1:3]])
    assert (cells.count("not known"), cells.count("cannot be served")) == (2, 0)
    _, said = read([curve[1], replace(curve[2], bound=Fraction(1, 2))])
    assert "1 point proved optimal; 1 open (hollow, with the lower bound below)" in said
    assert [each.rate for each in rate_curve(served(500), time_limit=0)] == [1]
    for wrong in ("1/3", 0):
        assert "with at most three decimals" in refusal(ValueError, rate_curve, served(1), [wrong])


def test_every_improvement_of_a_run_is_listed_and_proofs_over_time_are_drawn() -> None:
    huge = Fraction(10**400, 3)
    known = [(0.0, None, Fraction(-1), "a"), (1.5, huge, huge - 1, "b")]
    rows = history_table(known, "found", up=True).rows
    assert [[cell.text for cell in row] for row in rows] == [
        ["0.000 s", "-", "-1", "a"], ["1.500 s", "3.334e399", "3.333e399", "b"],
    ]  # fmt: skip
    many = inline(counts_picture([("a", [0.1, 0.2]), ("<b> $x$", [0.3])], "proved"))
    assert "&lt;b&gt; $x$" in many
    ElementTree.fromstring(many)
