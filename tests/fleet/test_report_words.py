"""The words of reports: verdicts, numbers, what is scarce, abstract problems."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, Branch
from cms.certificate.quantity import MachinesOfType
from cms.fleet.hardware import gpu
from cms.fleet.report.catalogue import gpu_page
from cms.fleet.report.problems import solved_page
from cms.fleet.report.proofs import scarcest_line, worth_line, worths
from cms.problem.parts import Configuration, Job, MachineType, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import Incumbent, Proof, Status, StopReason
from cms.solving.solve import solve
from cms.solving.words import circumstances, log_line, verdict
from cms.values.words import at_least, decimal, fraction, percent
from tests.fleet.plans import A100, printed, solution

ONE = Schedule([MachineGroup(Configuration({"b": 1}), {}, 12)])


OPTIMAL = {"status": Status.OPTIMAL, "proof": Proof.CHECKED}
ON_A_WORD = {"status": Status.OPTIMAL, "proof": Proof.SOLVER}
NONE = {"status": Status.INFEASIBLE, "proof": Proof.CHECKED, "cost": None}


@pytest.mark.parametrize(
    ("changes", "bound", "expected"),
    [
        (OPTIMAL, 12, "12 GPUs, proved >= 12: optimal, proof checked"),
        (ON_A_WORD, 11, "12 GPUs, proved >= 11; optimal on a solver's word alone"),
        ({}, 11, "12 GPUs, proved >= 11: at most 1 GPU (8.4 %) above the optimum"),
        (
            {"claimed_bound": Fraction(11)}, 10,
            "12 GPUs, proved >= 10 (a solver claims >= 11): at most 2 GPUs (16.7 %) above the "
            "optimum",
        ),
        (
            OPTIMAL | {"cost": Fraction(27, 2)}, "13.5",
            "12 GPUs at a cost of 13.5, proved >= 13.5: optimal, proof checked",
        ),
        (
            {"cost": Fraction(15)}, 14,
            "12 GPUs at a cost of 15, proved >= 14: at most 1 in cost (6.7 %) above the optimum",
        ),
        (NONE, 0, "infeasible, proof checked"),
        (NONE | {"proof": Proof.SOLVER}, 0, "infeasible, on a solver's word alone"),
        ({"status": Status.NO_SCHEDULE, "cost": None}, 0, "no schedule was found"),
    ],
)  # fmt: skip
def test_a_verdict_says_what_is_proved_and_no_more(
    changes: dict[str, Any], bound: int | str, expected: str
) -> None:
    found = solution(schedule=ONE, lower_bound=Fraction(bound), **changes)
    assert verdict(found, "GPU") == expected


def test_the_circumstances_name_every_reason_to_stop() -> None:
    said = {circumstances(solution(stop_reason=reason)) for reason in StopReason}
    assert len(said) == len(StopReason)
    assert all(each.startswith("auto, 0.13 s, ") for each in said)


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


def test_a_verdict_and_the_log_round_the_bound_down_and_the_cost_up() -> None:
    third, sixth = Fraction(2, 3), Fraction(1, 6)
    found = solution(schedule=ONE, cost=third + sixth * 2 / 7, lower_bound=third)
    assert verdict(found).startswith("12 machines at a cost of 0.7143, proved >= 0.6666: ")
    line = log_line(Incumbent(1, third * 2, third, None, "auto"), 2)
    assert line.split()[1:3] == ["1.334", "0.6666"]


@pytest.mark.parametrize(
    ("machines", "price", "said", "logged"),
    [
        (10**30 // 2173, 1, "4.602e26 machines, proved the fewest: ", "4.602e26 the same 0 %"),
        (1, "2/3", "1 machine at a cost of 0.6667, proved the least: ", "0.6667 the same 0 %"),
        (10**26, 1, "1e26 machines, proved >= 1e26: ", "1e26 1e26 0 %"),
        (10**14, 1, f"{10**14:,} machines, proved >= {10**14:,}: ", f"{10**14:,} {10**14:,} 0 %"),
    ],
)
def test_a_cost_and_a_bound_that_are_equal_do_not_differ_in_print(
    machines: int, price: int | str, said: str, logged: str
) -> None:
    cost = machines * Fraction(price)
    proved = solution(
        schedule=Schedule([MachineGroup(Configuration({"b": 1}), {}, machines)]),
        status=Status.OPTIMAL, proof=Proof.CHECKED, cost=cost, lower_bound=cost,
    )  # fmt: skip
    assert verdict(proved) == f"{said}optimal, proof checked"
    line = " ".join(log_line(Incumbent(1, cost, cost, None, "auto"), 2).split())
    assert line == f"2.0s {logged} auto"


def test_the_best_machine_of_a_size_bounded_set_is_the_fullest() -> None:
    shares = Problem(
        configurations=SizeBoundedConfigurations({"a": 60, "b": 40}, capacity=100, machine="m"),
        jobs=[Job("j", 3, {"a": 1, "b": 1})],
        machine_types=[MachineType("m"), MachineType("n", cost=2)],
    )
    found = worths(solution(certificate=BlockPrices({"a": "1/2", "b": "1/4"})), shares)
    assert found is not None
    assert dict(found.shares) == {"a": Fraction(2, 3), "b": Fraction(1, 3)}


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
    assert fraction(Fraction(123456, 999983)) == "0.1235"  # which nobody could read
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
    assert worths(solution(), halves()) is None
    assert worths(solution(status=Status.INFEASIBLE, cost=None), halves()) is None


def test_a_huge_fleet_is_reported_by_its_groups() -> None:
    problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 2 * 10**12, {"b": 1})])
    text = printed(solved_page(problem, solve(problem), "huge [x]"))
    assert "1,000,000,000,000 machines, proved >= 1,000,000,000,000" in text
    assert len(text.splitlines()) < 20
    assert text.startswith("huge [x]\n1 job, 1 block, 1 configuration\n")


def test_a_gpu_is_shown_with_the_starts_of_its_configurations() -> None:
    text = printed(gpu_page(gpu(A100)))
    assert "1g.10gb@0,1,2,3 3g.40gb@4" in re.sub(r" +", " ", text)
    assert "12 maximal configurations" in text
