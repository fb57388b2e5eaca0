"""The words of reports: verdicts, numbers, reasons; what notebooks show; tables of pandas."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    BlockPrices,
    Branch,
    Configuration,
    Job,
    MachineType,
    Problem,
    Proof,
    SizeBoundedConfigurations,
    Solution,
    Status,
    explain_infeasibility,
    solve,
)
from cms.certificate.quantity import MachinesOfType
from cms.errors import InvalidOption
from cms.fleet import Deployment, Plan, get_gpu, place
from cms.fleet.placement import PlacementResult
from cms.fleet.report.plans import plan_page
from cms.fleet.report.problems import solved_page
from cms.fleet.report.proofs import (
    MOST_REASONS,
    find_reasons,
    find_worths,
    format_scarcest,
    format_worths,
)
from cms.fleet.report.web import MOST_SHOWN
from cms.fleet.serving import Service, build_problem
from cms.plugin.algorithm import SolverBound
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import Incumbent, StopReason
from cms.solving.words import circumstances, log_line, verdict
from cms.values.views import Tabular, Viewed
from cms.values.words import at_least, decimal, fraction, percent
from tests.fleet.deployments import fleet, published
from tests.fleet.plans import A100, NASTY, many_services, point, printed, solution
from tests.references.mixes import time_shared_toy
from tests.scripted import told


def machines(number: int) -> Schedule:
    return Schedule([MachineGroup(Configuration({"b": 1}), {}, number)])


OPTIMAL = {"status": Status.OPTIMAL, "proof": Proof.CHECKED}
ON_A_WORD = {"status": Status.OPTIMAL, "proof": Proof.SOLVER}
NONE = {"status": Status.INFEASIBLE, "proof": Proof.CHECKED, "cost": None}


@pytest.mark.parametrize(
    ("changes", "bound", "expected"),
    [
        (OPTIMAL, 12, "12 GPUs, lower bound 12: optimal, proof checked"),
        (ON_A_WORD, 11, "12 GPUs, lower bound 11; optimal on a solver's word alone"),
        ({}, 11, "12 GPUs, lower bound 11: at most 1 GPU (8.4 %) above the optimum"),
        (
            {"claimed_bound": Fraction(11)}, 10,
            "12 GPUs, lower bound 10 (a solver claims >= 11): at most 2 GPUs (16.7 %) above the "
            "optimum",
        ),
        (
            OPTIMAL | {"cost": Fraction(27, 2)}, "13.5",
            "12 GPUs; cost 13.5, lower bound 13.5: optimal, proof checked",
        ),
        (
            {"cost": Fraction(5, 7)}, "2/3",
            "12 GPUs; cost 0.7143, lower bound 0.6666: at most 0.04762 in cost (6.7 %) above the "
            "optimum",
        ),
        # a cost and a bound that are equal do not differ in print
        (
            OPTIMAL | {"schedule": machines(10**30 // 2173)}, 10**30 // 2173,
            "4.602e26 GPUs, proved the fewest: optimal, proof checked",
        ),
        (
            OPTIMAL | {"schedule": machines(1), "cost": Fraction(2, 3)}, "2/3",
            "1 GPU; cost 0.6667, proved the least: optimal, proof checked",
        ),
        (NONE, 0, "infeasible, proof checked"),
        (NONE | {"proof": Proof.SOLVER}, 0, "infeasible, on a solver's word alone"),
        ({"status": Status.NO_SCHEDULE, "cost": None}, 0, "no schedule was found"),
    ],
)  # fmt: skip
def test_a_verdict_says_what_is_proved_and_no_more(
    changes: dict[str, Any], bound: int | str, expected: str
) -> None:
    found = solution(**{"schedule": machines(12), **changes}, lower_bound=Fraction(bound))
    assert verdict(found, "GPU") == expected


def test_circumstances_are_named_and_a_line_of_the_log_is_rounded_or_the_same() -> None:
    said = {circumstances(solution(stop_reason=reason)) for reason in StopReason}
    assert len(said) == len(StopReason)
    assert all(each.startswith("auto, 0.13 s, ") for each in said)
    third = Fraction(2, 3)
    for cost, shown in ((third * 2, ["1.334", "0.6666"]), (third, ["0.6667", "the"])):
        line = log_line(Incumbent(1, cost, third, None, "auto"), 2)
        assert line.split()[1:3] == shown


def number(text: str) -> Fraction:
    return Fraction(text.removesuffix(" %").replace(",", ""))


@given(st.fractions(min_value=0, max_value=10**20, max_denominator=10**9))
def test_a_decimal_is_near_and_a_bound_never_overstated_nor_a_cost_understated(
    value: Fraction,
) -> None:
    assert abs(number(decimal(value)) - value) <= value / 1000
    assert number(at_least(value)) <= value <= number(decimal(value, rounding=math.ceil))


@given(st.fractions(min_value=0, max_value=100))
def test_a_percentage_flatters_in_no_direction(share: Fraction) -> None:
    low, high = number(percent(share)), number(percent(share, up=True))
    assert low <= 100 * share <= high <= low + Fraction(1, 10)


def halves(**machine: Any) -> Problem:
    return Problem(
        configurations=[Configuration({"half": 2}, "m"), Configuration({"whole": 1}, "m")],
        jobs=[Job("j", 3, {"half": 1, "whole": 1})],
        machine_types=[MachineType("m", **machine)],
    )


def test_prices_are_told_as_shares_of_a_machine() -> None:
    priced = solution(certificate=BlockPrices({"half": "3/4", "whole": "3/2"}))
    found = find_worths(priced, halves(cost="1.5"))
    assert found is not None
    assert found.absolute
    assert fraction(Fraction(123456, 999983)) == "0.1235"  # which nobody could read
    assert dict(found.shares) == {"half": Fraction(1, 2), "whole": Fraction(1)}
    assert (
        format_worths(found) == "Worth in machines, by the prices of the proof: half 1/2, whole 1"
    )
    tree = Branch(
        MachinesOfType("m"), 1,
        below=BlockPrices({"half": 1, "whole": 1}, multipliers=[2]),
        above=BlockPrices(multipliers=[1]),
    )  # fmt: skip
    found = find_worths(solution(certificate=tree), halves())
    assert found is not None
    assert dict(found.shares) == {"half": Fraction(1, 2), "whole": Fraction(1, 2)}
    assert "one of the proof's 2 cases" in format_worths(found)
    assert format_scarcest(found, {"half": (1, 7)}) == ""
    assert find_worths(solution(), halves()) is None
    assert find_worths(solution(status=Status.INFEASIBLE, cost=None), halves()) is None
    shares = Problem(
        configurations=SizeBoundedConfigurations({"a": 60, "b": 40}, capacity=100, machine="m"),
        jobs=[Job("j", 3, {"a": 1, "b": 1})],
        machine_types=[MachineType("m"), MachineType("n", cost=2)],
    )
    found = find_worths(solution(certificate=BlockPrices({"a": "1/2", "b": "1/4"})), shares)
    assert found is not None
    assert dict(found.shares) == {"a": Fraction(2, 3), "b": Fraction(1, 3)}


REMEDY = "1 more few machine would do (proved fewest), or 66.6 % of every demand (proved most)"


def short() -> Problem:
    """Three blocks are wanted of two machines; another type has a limit that harms nobody."""
    return Problem(
        configurations=[Configuration({"a": 1}, "few"), Configuration({"b": 1}, "other")],
        jobs=[Job("x", 3, {"a": 1}), Job("y", 1, {"b": 1})],
        machine_types=[MachineType("few", limit=2), MachineType("other", limit=1)],
    )


def test_a_proof_or_a_solvers_word_blames_limits_and_says_what_would_do() -> None:
    problem = short()
    solution: Solution = told(problem, [BlockPrices({"a": 1}, {"few": 1})])
    assert solution.proof is Proof.CHECKED
    (reason,) = find_reasons(problem, solution)
    assert reason == (
        "the machines do not suffice: there are only 2 x few (more other alone would not help)"
    )
    solution = told(problem, [SolverBound(None, "oracle")], trusted=True)
    (reason,) = find_reasons(problem, solution)
    assert reason == "the machines do not suffice: there are only 2 x few and 1 x other"
    solution = solve(problem)
    found = explain_infeasibility(problem, solution=solution)
    reasons = find_reasons(problem, solution, found)
    assert reasons[1:] == (REMEDY,)
    text = re.sub(r"\s+", " ", printed(solved_page(problem, solution, "short", found)))
    assert f"- {reasons[0]} - {REMEDY} infeasible, proof checked" in text
    free = problem.replace(machine_types=[MachineType("few"), MachineType("other")])
    assert find_reasons(free, solve(free)) == ()


def test_reasons_speak_of_gpus_rates_and_what_nothing_can_run() -> None:
    lost = [Service(f"s{i}", "m", 1, 1) for i in range(21)]
    for more in ([], lost):
        services = [Service("slow", "m", 100, 300), *more]
        points = [point("m", "7g.80gb", 10)]
        serving = build_problem(services, points, limits={A100: 3}, rule="parvagpu")
        plan = Plan(serving, solve(serving.problem))
        found = explain_infeasibility(serving.problem, solution=plan.solution)
        *others, remedy = find_reasons(serving.problem, plan.answer, found, serving)
        said = "7 more a100-80gb GPUs would do (proved fewest), or 30 % of every rate (proved most)"
        assert remedy == f"for everything else, {said}" if more else said
        assert len(others) == (MOST_REASONS + 1 if more else 1)
        assert f"- {remedy}" in " ".join(printed(plan_page(plan, "a", shortage=found)).split())
    assert others[0].startswith("s0: no profile meets 1 ms")
    assert others[-1] == "... and 1 more service"
    problem = Problem(
        configurations=Configuration({"b": 1}),
        jobs=[Job("x", 1, {"b": 1}), *(Job(f"lost {i}", 1, {}) for i in range(22))],
    )
    solution = solve(problem)
    reasons = find_reasons(problem, solution, explain_infeasibility(problem, solution=solution))
    assert len(reasons) == MOST_REASONS + 2
    assert reasons[0] == "job 'lost 0': no block supplies any of its demand"
    assert reasons[-2:] == ("... and 2 more jobs", "everything else can be served")


MANY = MOST_SHOWN + 7


def s5() -> Plan:
    plan = published("S5").plan
    assert plan is not None
    return plan


def placed() -> Deployment:
    found = place(published("S5"), fleet(n=14))
    assert isinstance(found, PlacementResult)
    return found.deployment


def nasty() -> Problem:
    return Problem(
        configurations=Configuration({NASTY: 2}), jobs=[Job(NASTY, Fraction(10, 3), {NASTY: 1})]
    )


SHOWN: dict[str, Callable[[], Viewed]] = {
    "plan": lambda: many_services(MANY),
    "deployment": placed,
    "gpu": lambda: get_gpu("h100-80gb"),
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


def test_reprs_are_short_and_left_where_nobody_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    monkeypatch.setattr("cms.values.views.entry_points", lambda **_: [])
    assert nasty()._repr_html_() is None
    assert nasty()._repr_svg_() is None
    demand = 10**400
    problem = Problem(
        configurations=Configuration({"b": 10**399}), jobs=[Job("x", demand, {"b": 1})]
    )
    assert solve(problem).to_pandas()["cost"].iloc[-1] == 10


def test_tables_say_what_the_objects_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, deployment = s5(), placed()
    services = plan.to_pandas()
    assert list(services["service"]) == [each.service.name for each in plan.services]
    assert list(services["provided_rps"]) == [float(each.provided_rps) for each in plan.services]
    instances = plan.to_pandas("instances")
    assert instances["count"].sum() == sum(each.instances for each in plan.services)
    solution: Solution = plan.solution
    used = (plan.to_pandas("gpus"), "gpus"), (solution.to_pandas("schedule"), "machines")
    for cycle, column in used:
        assert cycle.groupby("group")[column].first().sum() == solution.machine_count
    history = solution.to_pandas()
    assert list(history["lower_bound"]) == [float(line.lower_bound) for line in solution.history]
    assert len(deployment.to_pandas()) == sum(1 for _ in deployment.instances())
    assert len(deployment.to_pandas("gpus")) == sum(1 for _ in deployment.gpus())
    few: Tabular = many_services(2)
    with pytest.raises(InvalidOption, match="no table 'gpu'; nearest: 'gpus'"):
        few.to_pandas("gpu")
    for module, method in (("pandas", few.to_pandas), ("pyarrow", few.to_arrow)):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(InvalidOption, match=r"pip install '\.\[tables\]'"):
            method()


@pytest.mark.parametrize("table", [None, "instances", "gpus"])
def test_arrow_has_the_same_table(table: str | None) -> None:
    plan = many_services(5)
    cycle = plan.to_pandas(table)
    assert plan.to_arrow(table).to_pylist() == [
        {key: None if value != value else value for key, value in row.items()}
        for row in cycle.to_dict("records")
    ]
