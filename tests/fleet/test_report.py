"""Reports: bars of slices, the table of services, the words for a bound, and the picture."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from cms.certificate import BlockPrices, Branch
from cms.fleet.hardware import gpu
from cms.fleet.report.bars import Bar, Cell, bars, occupancy
from cms.fleet.report.catalogue import gpu_report
from cms.fleet.report.drawing import draw, fit
from cms.fleet.report.palette import COLOURS, colour
from cms.fleet.report.problems import solution_report
from cms.fleet.report.reasons import reasons
from cms.fleet.report.scarcity import scarcest_line, worth_line, worths
from cms.fleet.report.services import MOST_SERVICES, SHOWN_OF_MANY
from cms.fleet.report.svg import plan_picture
from cms.fleet.report.terminal import MOST_BARS, plan_report
from cms.fleet.report.words import circumstances, decimal, fraction, percent, printable, verdict
from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
from cms.model import Configuration, Job, MachineType
from cms.problem import Problem
from cms.quantity import MachinesOfType
from cms.schedule import MachineGroup, Schedule
from cms.solution import Proof, Solution, Status, StopReason
from cms.solve import solve

A100 = "a100-80gb"
NASTY = "<b>&\"'[red]x[/red] 漢字"


def point(model: str, profile: str, rate: int, device: str = A100) -> OperatingPoint:
    return OperatingPoint(model, device, profile, 2, 8, rate, 20)


def made(
    plan_of: list[MachineGroup], services: list[Service], points: list[OperatingPoint]
) -> Plan:
    """A plan whose schedule is given, not found."""
    serving = as_problem(services, points)
    schedule = Schedule(plan_of)
    return Plan(serving, solution(schedule=schedule, problem_sha256=serving.problem.sha256))


def solution(**changes: Any) -> Solution:
    schedule = changes.get("schedule", Schedule())
    base = Solution(
        status=Status.FEASIBLE, proof=Proof.NONE, stop_reason=StopReason.FINISHED, method="auto",
        seconds=0.126, schedule=schedule, cost=Fraction(schedule.machine_count),
        certificate=BlockPrices(), lower_bound=Fraction(0), claimed_bound=None, guarantee=None,
        history=(), problem_sha256="0" * 64,
    )  # fmt: skip
    return replace(base, **changes)


def printed(report: Iterable[RenderableType], width: int = 100) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    for part in report:
        console.print(part)
    return stream.getvalue()


@pytest.fixture(scope="module")
def mixed() -> Plan:
    """Three GPUs: two alike with an idle instance, one whose last memory slice is left over."""
    services = [Service("chat", "bert", 500, 100), Service(NASTY, "vgg", 300, 100)]
    points = [
        point("bert", "3g.40gb", 150), point("bert", "1g.10gb", 60), point("vgg", "2g.20gb", 110),
        point("vgg", "1g.10gb", 50),
    ]  # fmt: skip
    halves = Configuration({"3g.40gb": 1, "2g.20gb": 2}, A100)
    small = Configuration({"1g.10gb": 7}, A100)
    return made(
        [
            MachineGroup(small, {("1g.10gb", "chat"): 4, ("1g.10gb", NASTY): 1}, 1),
            MachineGroup(halves, {("3g.40gb", "chat"): 1, ("2g.20gb", NASTY): 1}, 2),
        ],
        services,
        points,
    )


# --- bars -----------------------------------------------------------------------------------------


def test_every_instance_stands_at_the_slot_where_it_can_be_placed(mixed: Plan) -> None:
    first, second = bars(mixed)
    assert (first.count, second.count) == (2, 1)
    assert first.cells == (
        Cell(0, 2, "2g.20gb", NASTY, "p=2 b=8"),
        Cell(2, 2, "2g.20gb"),
        Cell(4, 4, "3g.40gb", "chat", "p=2 b=8"),
    )
    starts = [cell.start for cell in second.cells]
    assert starts == list(range(8))
    assert [cell.service for cell in second.cells] == ["chat"] * 4 + [NASTY] + [None] * 3
    assert second.cells[-1] == Cell(7, 1)


def test_the_cells_cover_a_bar(mixed: Plan) -> None:
    for bar in bars(mixed):
        ends = [cell.start + cell.width for cell in bar.cells]
        assert [0, *ends] == [*(cell.start for cell in bar.cells), bar.slices]


def test_alike_gpus_of_different_groups_share_a_bar() -> None:
    services = [Service("a", "m", 1, 100)]
    shape = Configuration({"7g.80gb": 1}, A100)
    group = MachineGroup(shape, {("7g.80gb", "a"): 1}, 2)
    plan = made([group, group], services, [point("m", "7g.80gb", 10)])
    (bar,) = bars(plan)
    assert bar.count == 4


def test_slices_that_serve_are_counted_and_idle_ones_are_not(mixed: Plan) -> None:
    there = occupancy(gpu(A100), bars(mixed))
    assert (there.gpus, there.cut) == (3, 3)
    assert there.compute == 2 * (3 + 2) + 5
    assert there.memory == 2 * (4 + 2) + 5


def test_shares_of_a_gpu_under_mps_are_drawn_in_per_cent() -> None:
    services = [Service("a", "m", 200, 100), Service("b", "n", 50, 100)]
    points = [
        OperatingPoint("m", A100, "mps:40", 1, 2, 100, 20),
        OperatingPoint("n", A100, "mps:15", 1, 2, 50, 20),
    ]
    shape = Configuration({"mps:40": 2, "mps:15": 1}, A100)
    plan = made(
        [MachineGroup(shape, {("mps:40", "a"): 2, ("mps:15", "b"): 1}, 1)], services, points
    )
    (bar,) = bars(plan)
    assert bar.shared
    assert [(cell.start, cell.width, cell.service) for cell in bar.cells] == [
        (0, 40, "a"), (40, 40, "a"), (80, 15, "b"), (95, 5, None),
    ]  # fmt: skip
    assert "1 x a100-80gb, all shared by MPS" in printed(plan_report(plan, "x", 100))


def test_gpus_of_two_types_stand_under_a_headline_each() -> None:
    services = [Service("a", "m", 500, 100)]
    points = [point("m", "7g.80gb", 100), point("m", "4g.24gb", 90, "a30-24gb")]
    serving = as_problem(services, points, [A100, "a30-24gb"])
    groups = [
        MachineGroup(Configuration({block: 1}, block.partition(":")[0]), {(block, "a"): 1}, count)
        for block, count in (("a100-80gb:7g.80gb", 3), ("a30-24gb:4g.24gb", 4))
    ]
    sha = serving.problem.sha256
    plan = Plan(serving, solution(schedule=Schedule(groups), problem_sha256=sha))
    text = printed(plan_report(plan, "two types", 100))
    assert "3 x a100-80gb, 21 of 21 compute and 24 of 24 memory slices serve" in text
    assert "4 x a30-24gb, 16 of 16 compute and 16 of 16 memory slices serve" in text
    assert re.search(r"3 x 7g.80gb on a100-80gb .*p=2 b=8", text)
    assert "3g.40gb" not in text


# --- drawing --------------------------------------------------------------------------------------


@given(width=st.integers(40, 200), count=st.sampled_from([1, 12, 10**6, 10**12]))
def test_a_drawing_is_a_rectangle_that_fits(width: int, count: int) -> None:
    drawn = [
        Bar("g", 8, (Cell(0, 4, "4g.40gb", "a", "p=1 b=4"), Cell(4, 4, "3g.40gb")), count),
        Bar("g", 8, (*(Cell(i, 1, "1g.10gb", "漢字" * 5) for i in range(7)), Cell(7, 1)), 1),
    ]
    lines = draw(drawn, {"a": 0, "漢字" * 5: 1}, width).plain.splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    assert len(lines) == 7
    sizes = {Console(width=500).measure(line).maximum for line in lines}
    assert len(sizes) == 1
    assert sizes.pop() <= max(width, margin + 8 * 4 + 1)
    assert all(line.rstrip()[-1] in "│┐┤┘" for line in lines)


def test_a_drawing_reads_without_colour(mixed: Plan) -> None:
    text = printed(plan_report(mixed, "x", 120), 120)
    assert "1 chat" in text
    assert "\x1b" not in text
    assert "idle" in text
    assert "////" in text


@given(st.text(max_size=20), st.integers(0, 12))
def test_a_label_is_as_wide_as_it_must_be(name: str, width: int) -> None:
    shown = printable(name)
    assert Console(width=100).measure(fit(shown, width) + "|").maximum == width + 1


def test_colours_repeat_only_after_all_have_been_used() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    assert [colour(i) for i in range(len(COLOURS))] == list(COLOURS)


# --- the whole report -----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(mixed: Plan, width: int) -> None:
    lines = printed(plan_report(mixed, "title", width), width).splitlines()
    assert max(Console(width=500).measure(line.rstrip()).maximum for line in lines) <= width


def test_names_with_markup_are_printed_as_they_are(mixed: Plan) -> None:
    text = printed(plan_report(mixed, "[bold]title[/bold]", 120), 120)
    assert text.startswith("[bold]title[/bold]")
    assert NASTY in text


def test_a_row_says_what_is_wanted_served_spare_and_run(mixed: Plan) -> None:
    text = printed(plan_report(mixed, "title", 120), 120)
    assert re.search(
        r"1\s+chat\s+bert\s+100 ms\s+500\s+540\s+8 %\s+2 x 3g.40gb \(p=2 b=8, 150/s, 20 ms\)", text
    )
    assert "4 x 1g.10gb (p=2 b=8, 60/s, 20 ms)" in text


def test_a_narrow_terminal_loses_columns_but_no_service(mixed: Plan) -> None:
    text = printed(plan_report(mixed, "title", 80), 80)
    assert "2 x 3g.40gb p=2 b=8 150/s 20 ms" in text
    assert "540" in text


def many_services(count: int) -> Plan:
    services = [Service(f"s{i}", "m", 10 * i + 10, 100) for i in range(count)]
    serving = as_problem(services, [point("m", "7g.80gb", 10)])
    shape = Configuration({"7g.80gb": 1}, A100)
    groups = [MachineGroup(shape, {("7g.80gb", f"s{i}"): 1}, i + 1) for i in range(count)]
    sha = serving.problem.sha256
    return Plan(serving, solution(schedule=Schedule(groups), problem_sha256=sha))


def test_a_large_plan_shows_its_largest_services_and_counts_the_rest() -> None:
    count = 10 * MOST_SERVICES
    text = printed(plan_report(many_services(count), "many", 100))
    assert f"... and {count - SHOWN_OF_MANY} more services" in text
    assert re.search(rf"{count} s{count - 1} ", text), "the one that takes most slices"
    assert "s0 " not in text
    assert re.search(r"\.\.\. and \d+ more layouts on [\d,]+ GPUs", text)
    assert len(text.splitlines()) < 90


def test_a_plan_of_moderate_size_is_shown_whole() -> None:
    text = printed(plan_report(many_services(MOST_BARS), "some", 100))
    assert "more" not in text
    assert text.count("│") == 2 * 2 * MOST_BARS


def test_a_plan_without_a_schedule_says_so() -> None:
    serving = as_problem([Service("a", "m", 1, 100)], [point("m", "7g.80gb", 10)])
    nothing = solution(
        status=Status.NO_SCHEDULE, cost=None, lower_bound=Fraction(3),
        stop_reason=StopReason.TIME_LIMIT, problem_sha256=serving.problem.sha256,
    )  # fmt: skip
    text = printed(plan_report(Plan(serving, nothing), "a", 100))
    assert "no schedule was found; any has a cost >= 3" in text
    assert "stopped at the time limit" in text
    assert "│" not in text


def test_an_impossible_service_is_named_with_the_limit_it_needs() -> None:
    services = [Service("fast", "m", 10, 30), Service("slow", "m", 10, 300)]
    serving = as_problem(services, [point("m", "7g.80gb", 10)])
    plan = Plan(serving, solve(serving.problem))
    (reason,) = reasons(plan)
    assert reason.startswith("fast: no profile meets 30 ms")
    assert "a limit" in reason
    text = printed(plan_report(plan, "a", 200), 200)
    assert f"- {reason}" in re.sub(r" +", " ", text)
    assert "infeasible, proof checked" in text
    assert "fast: no profile" in plan_picture(plan, "a")


def test_too_few_gpus_are_named_as_the_reason() -> None:
    serving = as_problem(
        [Service("a", "m", 100, 100)], [point("m", "7g.80gb", 10)], limits={A100: 3}
    )
    (reason,) = reasons(Plan(serving, solve(serving.problem)))
    assert "only 3 x a100-80gb" in reason


def test_a_possible_plan_has_no_reasons(mixed: Plan) -> None:
    assert reasons(mixed) == ()


# --- words ----------------------------------------------------------------------------------------

ONE = Schedule([MachineGroup(Configuration({"b": 1}), {}, 12)])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"status": Status.OPTIMAL, "proof": Proof.CHECKED, "lower_bound": Fraction(12)},
            "12 GPUs, proved >= 12: optimal, proof checked",
        ),
        (
            {"status": Status.OPTIMAL, "proof": Proof.SOLVER, "lower_bound": Fraction(11)},
            "12 GPUs, proved >= 11; optimal on a solver's word alone",
        ),
        (
            {"lower_bound": Fraction(11)},
            "12 GPUs, proved >= 11: at most 1 GPU (8.4 %) above the optimum",
        ),
        (
            {"lower_bound": Fraction(10), "claimed_bound": Fraction(11)},
            "12 GPUs, proved >= 10 (a solver claims >= 11): at most 2 GPUs (16.7 %) above the "
            "optimum",
        ),
        (
            {
                "status": Status.OPTIMAL, "proof": Proof.CHECKED, "cost": Fraction(27, 2),
                "lower_bound": Fraction(27, 2),
            },
            "12 GPUs at a cost of 13.5, proved >= 13.5: optimal, proof checked",
        ),
        (
            {"cost": Fraction(15), "lower_bound": Fraction(14)},
            "12 GPUs at a cost of 15, proved >= 14: at most 1 in cost (6.7 %) above the optimum",
        ),
        (
            {"status": Status.INFEASIBLE, "proof": Proof.CHECKED, "cost": None},
            "infeasible, proof checked",
        ),
        (
            {"status": Status.INFEASIBLE, "proof": Proof.SOLVER, "cost": None},
            "infeasible, on a solver's word alone",
        ),
        ({"status": Status.NO_SCHEDULE, "cost": None}, "no schedule was found"),
    ],
)  # fmt: skip
def test_a_verdict_says_what_is_proved_and_no_more(changes: dict[str, Any], expected: str) -> None:
    assert verdict(solution(schedule=ONE, **changes), "GPU") == expected


@pytest.mark.parametrize("reason", list(StopReason))
def test_the_circumstances_name_every_reason_to_stop(reason: StopReason) -> None:
    text = circumstances(solution(stop_reason=reason))
    assert text.startswith("auto, 0.13 s, ")


@given(st.fractions(min_value=0, max_value=10**20, max_denominator=10**9))
def test_a_decimal_is_near_the_number_it_stands_for(value: Fraction) -> None:
    shown = Fraction(decimal(value).replace(",", ""))
    assert abs(shown - value) <= value / 1000


@given(st.fractions(min_value=0, max_value=100))
def test_a_percentage_flatters_in_no_direction(share: Fraction) -> None:
    def number(text: str) -> Fraction:
        return Fraction(text.removesuffix(" %").replace(",", "")) / 100

    assert number(percent(share)) <= share <= number(percent(share, up=True))
    assert number(percent(share, up=True)) - number(percent(share)) <= Fraction(1, 1000)


def test_an_unreadable_fraction_is_written_as_a_decimal() -> None:
    assert fraction(Fraction(176, 15)) == "176/15"
    assert fraction(Fraction(123456, 999983)) == "0.1235"


# --- scarcity -------------------------------------------------------------------------------------


def halves(**machine: Any) -> Problem:
    return Problem(
        configurations=[Configuration({"half": 2}, "m"), Configuration({"whole": 1}, "m")],
        jobs=[Job("j", 3, {"half": 1, "whole": 1})],
        machine_types=[MachineType("m", **machine)],
    )


def test_prices_of_a_proof_are_told_as_shares_of_a_machine() -> None:
    priced = solution(certificate=BlockPrices({"half": "3/4", "whole": "3/2"}))
    found = worths(priced, halves(cost="1.5"))
    assert found is not None
    assert found.absolute
    assert dict(found.shares) == {"half": Fraction(1, 2), "whole": Fraction(1)}
    assert worth_line(found) == "Worth in machines, by the prices of the proof: half 1/2, whole 1"


def test_prices_of_a_branching_proof_are_told_relative_to_the_best_machine() -> None:
    tree = Branch(
        MachinesOfType("m"), 1,
        below=BlockPrices({"half": 1, "whole": 1}, multipliers=[2]),
        above=BlockPrices(multipliers=[1]),
    )  # fmt: skip
    found = worths(solution(certificate=tree), halves())
    assert found is not None
    assert dict(found.shares) == {"half": Fraction(1, 2), "whole": Fraction(1, 2)}
    assert "one of the proof's 2 cases" in worth_line(found)
    assert scarcest_line(found, {"half": (1, 7)}) == ""


def test_there_is_nothing_to_say_where_nothing_has_a_price() -> None:
    assert worths(solution(), halves()) is None
    assert worths(solution(status=Status.INFEASIBLE, cost=None), halves()) is None


# --- abstract problems and the catalogue ----------------------------------------------------------


def test_a_solution_of_an_abstract_problem_is_a_table() -> None:
    problem = halves()
    found = solve(problem)
    text = printed(solution_report(problem, found, "halves [x]"))
    assert text.startswith("halves [x]\n1 job, 2 blocks, 2 configurations\n")
    assert "2 machines, proved >= 2: optimal, proof checked" in text
    assert re.search(r"j\s+3\s+\d\s+[\d.]+ %", text)


def test_a_huge_fleet_is_reported_by_its_groups() -> None:
    problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 2 * 10**12, {"b": 1})])
    text = printed(solution_report(problem, solve(problem), "huge"))
    assert "1,000,000,000,000 machines, proved >= 1,000,000,000,000" in text
    assert len(text.splitlines()) < 20


def test_jobs_that_no_block_can_serve_are_named() -> None:
    problem = Problem(
        configurations=Configuration({"b": 2}),
        jobs=[Job("j", 1, {"b": 1}), Job("lost", 1, {}), Job("wide", 10**30, {})],
    )
    text = printed(solution_report(problem, solve(problem), "x"))
    assert "job 'lost': no block supplies any of its demand" in text
    assert "job 'wide': no block supplies any of its demand" in text
    assert "job 'j'" not in text


def test_a_gpu_is_shown_with_the_starts_of_its_configurations() -> None:
    text = printed(gpu_report(gpu(A100)))
    assert "1g.10gb@0,1,2,3 3g.40gb@4" in re.sub(r" +", " ", text)
    assert "12 maximal configurations" in text


# --- the picture ----------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_is_one_well_formed_file_with_every_name_escaped(mixed: Plan) -> None:
    picture = plan_picture(mixed, f"title {NASTY}")
    root = ElementTree.fromstring(picture)
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert f"title {NASTY}" in texts
    assert f"{NASTY}: 2g.20gb p=2 b=8" in [e.text for e in root.iter(f"{SVG}title")]
    assert any("3 GPUs, proved >= 0" in text for text in texts)
    assert not re.search(r"(href|src|@import|url\((?!#))", picture), "it refers to nothing outside"


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


def test_a_picture_of_a_large_plan_stays_a_picture() -> None:
    picture = plan_picture(many_services(400), "many")
    assert "more layouts" in picture
    assert "... and 280 more" in picture
    assert len(picture) < 200_000


@given(st.text(min_size=1, max_size=30))
def test_any_title_makes_a_well_formed_picture(title: str) -> None:
    serving = as_problem([Service("a", "m", 1, 100)], [point("m", "7g.80gb", 10)])
    nothing = solution(status=Status.NO_SCHEDULE, cost=None, problem_sha256=serving.problem.sha256)
    ElementTree.fromstring(plan_picture(Plan(serving, nothing), title))
