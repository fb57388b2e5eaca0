"""Reports for the terminal: bars of slices, the table of services, reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cms.certificate.certificate import BlockPrices
from cms.fleet.hardware import gpu
from cms.fleet.report.bars import Bar, Cell, bars, occupancy
from cms.fleet.report.drawing import draw, fit
from cms.fleet.report.palette import COLOURS, colour
from cms.fleet.report.reasons import plan_reasons
from cms.fleet.report.services import MOST_SERVICES, SHOWN_OF_MANY
from cms.fleet.report.svg import plan_picture
from cms.fleet.report.terminal import MOST_BARS, plan_report
from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
from cms.problem.parts import Configuration
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import Status, StopReason
from cms.solving.solve import solve
from cms.values.words import printable
from tests.fleet.plans import A100, NASTY, made, many_services, mixed_plan, point, printed, solution
from tests.texts import LETTERS


@pytest.fixture(scope="module")
def mixed() -> Plan:
    return mixed_plan()


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
    text = printed(plan_report(plan, "x", 100))
    assert "1 x a100-80gb, all shared by MPS" in text
    assert "memory slices" not in text + plan_picture(plan, "x")


def test_gpus_of_two_types_stand_under_a_headline_each() -> None:
    services = [Service("a", "m", 500, 100)]
    points = [point("m", "7g.80gb", 100), point("m", "4g.24gb", 90, "a30-24gb")]
    serving = as_problem(services, points, [A100, "a30-24gb"], rule="parvagpu")
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


@given(st.text(LETTERS, max_size=20), st.integers(0, 12))
def test_a_label_is_as_wide_as_it_must_be(name: str, width: int) -> None:
    shown = printable(name)
    assert Console(width=100).measure(fit(shown, width) + "|").maximum == width + 1


def test_colours_repeat_only_after_all_have_been_used() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    assert [colour(i) for i in range(len(COLOURS))] == list(COLOURS)


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
    serving = as_problem([Service("a", "m", 1, 100)], [point("m", "7g.80gb", 10)], rule="parvagpu")
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
    serving = as_problem(services, [point("m", "7g.80gb", 10)], rule="parvagpu")
    plan = Plan(serving, solve(serving.problem))
    (reason,) = plan_reasons(plan)
    assert reason.startswith("fast: no profile meets 30 ms")
    assert "a limit" in reason
    text = printed(plan_report(plan, "a", 200), 200)
    assert f"- {reason}" in re.sub(r" +", " ", text)
    assert "infeasible, proof checked" in text
    assert "fast: no profile" in plan_picture(plan, "a")


def test_too_few_gpus_are_named_as_the_reason() -> None:
    serving = as_problem(
        [Service("a", "m", 100, 100)],
        [point("m", "7g.80gb", 10)],
        limits={A100: 3},
        rule="parvagpu",
    )
    (reason,) = plan_reasons(Plan(serving, solve(serving.problem)))
    assert reason == (
        "the GPUs do not suffice: there are only 3 x a100-80gb; allow more (--max-gpus), lower the "
        "rates or relax the latency limits"
    )


def test_limits_on_several_gpus_are_all_named() -> None:
    serving = as_problem(
        [Service("a", "m", 100, 100)],
        [point("m", "7g.80gb", 10), point("m", "7g.80gb", 20, "h100-80gb")],
        [A100, "h100-80gb"],
        limits={A100: 3, "h100-80gb": 1},
        rule="parvagpu",
    )
    (reason,) = plan_reasons(Plan(serving, solve(serving.problem)))
    assert "there are only 3 x a100-80gb and 1 x h100-80gb; " in reason


def test_instances_too_small_for_a_bar_are_listed() -> None:
    serving = as_problem(
        [Service("a", "m", 48, 100)],
        [OperatingPoint("m", A100, "mps:2", 1, 8, 1, 20)],
        rule="parvagpu",
    )
    shape = Configuration({"mps:2": 48}, A100)
    schedule = Schedule([MachineGroup(shape, {("mps:2", "a"): 48}, 1)])
    tiny = Plan(serving, solution(schedule=schedule, problem_sha256=serving.problem.sha256))
    text = printed(plan_report(tiny, "a", 40), 40)
    assert "1 × 48 x mps:2 p=1 b=8 for 1 a" in text
    assert "│" not in text.partition("#")[0]
    assert "┌" in printed(plan_report(tiny, "a", 120), 120)


def test_a_possible_plan_has_no_reasons(mixed: Plan) -> None:
    assert plan_reasons(mixed) == ()


def test_what_is_scarce_is_an_instance_of_a_gpu_that_the_plan_uses() -> None:
    services = [Service("chat", "bert", 600, 100)]
    points = [
        point("bert", profile, rate, device)
        for device, rates in ((A100, (40, 330)), ("h100-80gb", (100, 330, 700)))
        for profile, rate in zip(("1g.10gb", "4g.40gb", "7g.80gb"), rates, strict=False)
    ]
    serving = as_problem(services, points, [A100, "h100-80gb"], rule="parvagpu")
    plan = Plan(serving, solve(serving.problem))
    assert {group.gpu for group in plan.groups} == {"h100-80gb"}
    prices: dict[str, int | str] = {
        f"{A100}:4g.40gb": 1,
        "h100-80gb:4g.40gb": "2/3",
        "h100-80gb:1g.10gb": "1/21",
    }
    plan = Plan(serving, replace(plan.solution, certificate=BlockPrices(prices)))
    text = printed(plan_report(plan, "x", 100))
    assert "a100-80gb:4g.40gb 1" in text  # among what the proof says about each block
    assert "Scarcest: h100-80gb:4g.40gb, worth 2/3 of a GPU for 4 of its 7 compute" in text
