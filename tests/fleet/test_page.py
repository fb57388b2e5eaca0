"""Reports as a page: all of it in one file, every name as it was, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import threading
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet.report.bars import Bar
from cms.fleet.report.bars import Cell as Drawn
from cms.fleet.report.canvas import Canvas, draw_bar
from cms.fleet.report.page.charts import Known, bounds_chart, counts_chart, rates_chart
from cms.fleet.report.page.parts import Cell, Column, Fact, Grid, Page, Picture, Section
from cms.fleet.report.page.plans import plan_page
from cms.fleet.report.page.rendering import html
from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
from cms.fleet.serving.rate_curve import RatePoint, rate_curve
from cms.fleet.serving.whole_gpus import whole_gpus
from cms.solving.solution import Status
from cms.solving.solve import solve
from cms.values.words import printable
from tests.fleet.plans import NASTY, many_services, mixed_plan, point
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


def served(*rates: int, rule: str = "plain", costs: Any = None) -> Plan:
    """Services on a model that was measured on a third of a GPU, and on a whole one."""
    services = [Service(f"s{n}", "bert", rate, 400) for n, rate in enumerate(rates)]
    points = [point("bert", "3g.40gb", 400), point("bert", "7g.80gb", 800)]
    serving = as_problem(services, points, rule=rule, costs=costs)
    return Plan(serving, solve(serving.problem))


@pytest.fixture(scope="module")
def mixed() -> Read:
    plan = mixed_plan()
    return Read(html(plan_page(plan, f"title {NASTY}", f"a {NASTY}.json", rate_curve(plan))))


# --- the page -------------------------------------------------------------------------------------


def test_a_page_refers_to_nothing_outside_itself(mixed: Read) -> None:
    for tag, attributes in mixed.tags:
        assert tag not in ("link", "img", "iframe", "object", "base", "form", "image", "use")
        assert not {"src", "srcset", "xlink:href", "style", "onclick"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#")
        assert all(
            value.startswith("url(#") for value in attributes.values() if value.startswith("url")
        )


def test_the_policy_of_a_page_allows_its_own_script_and_style_alone(mixed: Read) -> None:
    (policy,) = (
        each["content"]
        for each in mixed.with_tag("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    for kind, of in (("script", "script"), ("style", "style")):
        (text,) = mixed.text[of]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_links_of_a_page_lead_somewhere_and_its_ids_are_there_once(mixed: Read) -> None:
    ids = [attributes["id"] for _, attributes in mixed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {each["href"][1:] for each in mixed.with_tag("a")} <= set(ids)
    drawn = {
        value[5:-1]
        for _, attributes in mixed.tags
        for value in attributes.values()
        if value.startswith("url(#")
    }
    assert drawn <= set(ids), "patterns and markers are defined once for all pictures"


def test_a_page_has_every_strange_name_as_it_was(mixed: Read) -> None:
    assert mixed.text["h1"] == [f"title {NASTY}"]
    assert NASTY in "".join(mixed.text["td"])
    assert f"cms check {shlex.quote(f'a {NASTY}.json')}" in mixed.text["code"]
    assert not mixed.with_tag("b"), "no name became an element"
    assert len(mixed.with_tag("script")) == 1


@given(st.text(LETTERS, min_size=1, max_size=30))
def test_any_text_is_read_back_from_a_page_as_it_is_printed(name: str) -> None:
    grid = Grid("all", [Column("name")], [[Cell(name.replace("\n", " "))]])
    page = Read(html(Page(name, name, [Fact(name, name)], [Section("s", name, [grid, name])])))
    wanted = printable(name)
    assert page.text["h1"] == [wanted]
    assert page.text["p"][0] == wanted
    assert [tag for tag, _ in page.tags].count("td") == 1
    assert page.text["td"] == [printable(name.replace("\n", " "))]


def test_heads_of_tables_are_buttons_with_a_state(mixed: Read) -> None:
    heads = mixed.with_tag("th")
    assert heads
    assert all(each["aria-sort"] == "none" for each in heads)
    assert len(mixed.with_tag("button")) == len(heads)


def test_what_is_sorted_by_is_a_number_where_a_column_is_of_numbers(mixed: Read) -> None:
    numbers = [
        each["data-key"] for each in mixed.with_tag("td") if "number" in each.get("class", "")
    ]
    assert numbers
    for each in numbers:
        assert each == "nan" or float(each) == float(each)


def test_a_number_beyond_all_floats_is_sorted_at_the_end() -> None:
    assert [Cell("", order).key for order in (10**400, -(10**400), 0.5)] == [
        "1.7e+308", "-1.7e+308", "0.5",
    ]  # fmt: skip


def test_a_long_table_says_what_it_leaves_out() -> None:
    rows = [[Cell(str(n), n)] for n in range(10_003)]
    page = html(Page("t", "", [], [Section("s", "s", [Grid("g", [Column("n")], rows)])]))
    assert "... and 3 more rows" in page
    assert page.count("<tr>") == 10_000 + 1


# --- plans ----------------------------------------------------------------------------------------


def test_the_head_of_a_page_says_gpus_bound_proof_and_saving() -> None:
    plan = served(100, 300, 350)
    facts = {fact.name: fact for fact in plan_page(plan, "x").facts}
    assert (facts["GPUs"].value, facts["Bound"].value) == ("2", "≥ 2")
    assert (facts["Proof"].value, facts["Proof"].tone) == ("optimal", "good")
    assert facts["Saving"].value == "33.3 %"
    assert "3 whole GPUs" in facts["Saving"].note


def test_a_saving_in_cost_is_not_said_of_a_number_of_gpus() -> None:
    dear = served(100, 300, 350, costs={"a100-80gb": "1.5"})
    fact = next(fact for fact in plan_page(dear, "x").facts if fact.name == "Saving")
    assert "of the cost, 3 of 4.5 " in fact.note


def test_a_bound_that_is_not_met_is_not_called_a_proof() -> None:
    plan = mixed_plan()
    facts = {fact.name: fact for fact in plan_page(plan, "x").facts}
    assert facts["Proof"].tone == "fair"
    assert facts["Bound"].value == "≥ 0"
    assert "at most 100 % above the best" in facts["Bound"].note


def test_a_service_that_no_whole_gpu_serves_leaves_the_saving_open() -> None:
    facts = {fact.name: fact for fact in plan_page(mixed_plan(), "x").facts}
    assert facts["Saving"].value == "not known"


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=4))
def test_whole_gpus_are_those_of_a_plan_with_whole_gpus_alone(rates: list[int]) -> None:
    plan = served(*rates)
    services = plan.serving.services
    whole = as_problem(services, [point("bert", "7g.80gb", 800)], rule="plain")
    found = whole_gpus(plan)
    assert (found.gpus, found.unknown) == (solve(whole.problem).machine_count, ())


def test_an_infeasible_plan_has_a_page_that_says_why() -> None:
    serving = as_problem(
        [Service("slow", "bert", 10, "0.1")], [point("bert", "3g.40gb", 400)], rule="plain"
    )
    page = plan_page(Plan(serving, solve(serving.problem)), "x")
    assert page.facts[0].value == "none"
    assert "a limit of" in str(page.sections[0].parts[0])
    assert Read(html(page)).text["h1"] == ["x"]


def test_a_page_says_what_one_more_instance_would_save() -> None:
    said = html(plan_page(served(100, 300, 350), "x"))
    assert re.search(r"One more 3g\.40gb would save up to 0\.5 GPU\.", said)


def test_many_services_are_all_in_the_table_and_all_gpus_are_drawn() -> None:
    plan = many_services(60)
    page = Read(html(plan_page(plan, "x")))
    cells = "\n".join(page.text["td"])
    assert all(service.name in cells for service in plan.serving.services)
    drawn = sum(int(text.rstrip(" ×").replace(",", "")) for text in page.text["text"] if "×" in text
                and re.fullmatch(r"[0-9,]+ ×", text))  # fmt: skip
    assert drawn == plan.solution.machine_count


@pytest.mark.parametrize("rate", [10**40, 10**400, Fraction(1, 10**30), 0])
def test_rates_beyond_all_measure_have_a_page(rate: Fraction) -> None:
    services = [Service("s", "bert", rate, 400), Service("t", "bert", 1)]
    serving = as_problem(services, [point("bert", "3g.40gb", 400)], rule="plain")
    plan = Plan(serving, solve(serving.problem))
    page = html(plan_page(plan, "x", curve=rate_curve(plan, ["0.5", 1, 4])))
    assert Read(page).text["h1"] == ["x"]


def test_a_long_name_is_not_cut_where_its_instance_is_narrow() -> None:
    canvas = Canvas()
    name = "team-a/a-service-with-a-very-long-name-indeed"
    draw_bar(
        canvas,
        Bar("a100-80gb", 8, (Drawn(0, 1, "1g.10gb", name, "p=1 b=1"), Drawn(1, 7))),
        {name: 0},
    )
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", canvas.inline(""))
    assert "".join(texts[2:]).replace(" ", "") == f"1{name}"


# --- more rates -----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=4))
def test_a_point_of_the_curve_is_the_plan_of_services_with_such_rates(rates: list[int]) -> None:
    plan = served(*rates)
    for found in rate_curve(plan, ["0.5", 1, "2.5"], time_limit=None):
        asked = [
            replace(each, rate_rps=each.rate_rps * found.rate) for each in plan.serving.services
        ]
        posed = as_problem(
            asked, [point("bert", "3g.40gb", 400), point("bert", "7g.80gb", 800)], rule="plain"
        )
        answer = solve(posed.problem)
        assert (found.cost, found.bound, found.status) == (
            answer.cost, answer.lower_bound, answer.status,
        )  # fmt: skip


def test_a_bound_never_falls_along_the_curve_and_too_much_is_said_to_be_too_much() -> None:
    """With two GPUs at most: what is beyond them was proved with bounds of 0 and 1."""
    serving = as_problem(
        [Service("s", "bert", 500, 400)], [point("bert", "7g.80gb", 400)], rule="plain",
        limits={"a100-80gb": 2},
    )  # fmt: skip
    plan = Plan(serving, solve(serving.problem))
    curve = rate_curve(plan, ["0.5", 1, "1.5", 2, 3, 4], time_limit=None)
    bounds = [each.bound for each in curve]
    assert bounds == sorted(bounds)
    assert [(each.cost, each.status) for each in curve] == [
        (1, "optimal"), (2, "optimal"), (2, "optimal"), *[(None, "infeasible")] * 3
    ]  # fmt: skip
    page = html(plan_page(plan, "x", curve=curve))
    assert "3 without a plan (3 cannot be served, proved)" in page
    assert page.count(">cannot be served<") == 3
    # without time nothing is proved of half the rate, nor found
    unknown = RatePoint(Fraction(1, 2), None, Fraction(0), Status.NO_SCHEDULE)
    page = html(plan_page(plan, "x", curve=[unknown, *curve[1:3]]))
    assert ">not known<" in page
    assert "cannot be served" not in page


def test_services_that_share_in_time_are_planned_again_too() -> None:
    points = [OperatingPoint("bert", "a100-80gb", "mps:50", 1, 8, 800, 10)]
    services = [Service("chat", "bert", 300, 60), Service("search", "bert", 100, 60)]
    serving = as_problem(services, points, sharing="time", max_services=2)
    curve = rate_curve(Plan(serving, solve(serving.problem)), [1, 4])
    assert [(each.cost, each.status) for each in curve] == [(1, "optimal"), (1, "optimal")]
    doubled = [replace(each, rate_rps=4 * each.rate_rps) for each in services]
    again = as_problem(doubled, points, sharing="time", max_services=2)
    assert curve[1].cost == solve(again.problem).cost


def test_without_time_the_curve_has_the_plan_alone() -> None:
    curve = rate_curve(served(500), time_limit=0)
    assert [each.rate for each in curve] == [1]


def test_after_a_cancel_no_further_point_is_begun() -> None:
    cancel = threading.Event()
    seen: list[tuple[int, int]] = []

    def note(done: int, of: int) -> None:
        seen.append((done, of))
        cancel.set()

    curve = rate_curve(served(500), ["0.5", 1, 2], cancel=cancel, on_point=note)
    assert ([each.rate for each in curve], seen) == ([Fraction(1, 2)], [(1, 3)])


def test_a_multiple_that_thousandths_cannot_say_is_refused() -> None:
    for wrong in ("1/3", 0):
        assert "with at most three decimals" in refusal(ValueError, rate_curve, served(1), [wrong])


def test_a_point_that_is_open_is_drawn_hollow_and_the_table_says_so() -> None:
    points = [
        RatePoint(Fraction(1), Fraction(3), Fraction(3), Status.OPTIMAL),
        RatePoint(Fraction(2), Fraction(7), Fraction(6), Status.FEASIBLE),
        RatePoint(Fraction(4), None, Fraction(9), Status.NO_SCHEDULE),
    ]
    page = html(plan_page(served(500), "x", curve=points))
    assert "1 point proved fewest, 1 open (hollow, with the bound below), 1 without a plan" in page
    assert "there was no time for 7 further ones" in page
    assert len(re.findall(r'<circle[^>]* class="line best"', page)) == 1
    assert "2 times all rates: 7 GPUs, proved &gt;= 6" in page


# --- charts ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 1e6), st.fractions(-100, 10**9), st.booleans()), min_size=1))
def test_bounds_of_any_run_are_drawn_inside_the_sheet(
    lines: list[tuple[float, Fraction, bool]],
) -> None:
    known = [Known(at, value if has else None, value - 1, "x") for at, value, has in sorted(lines)]
    drawn = bounds_chart(known, 1.0, "found", "bound").inline("x")
    box = [float(each) for each in re.findall(r'viewBox="([^"]*)"', drawn)[0].split()]
    path = " ".join(re.findall(r'<path d="([^"]*)" class="line', drawn))
    for across, down in re.findall(r"M(-?[0-9.]+) (-?[0-9.]+)", path):
        assert box[0] <= float(across) <= box[0] + box[2]
        assert box[1] - 1 <= float(down) <= box[1] + box[3] + 1


def test_a_chart_of_one_rate_and_of_counts_is_drawn() -> None:
    one = rates_chart([RatePoint(Fraction(1), Fraction(3), Fraction(3), Status.OPTIMAL)], "GPUs")
    assert "found, proved" in one.inline("")
    many = counts_chart([("a", [0.1, 0.2]), ("<b>", [])], "proved")
    assert "&lt;b&gt;" in many.inline("")
    assert Picture(many, "said").svg.startswith('<svg class="picture"')
