"""Rightsizing: what it says of rates, limits, shares and profiles, and when it says nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cms import (
    AlgorithmError,
    InvalidOption,
    Proof,
    Schedule,
    Solution,
    Status,
    StopReason,
    UnsupportedProblem,
    load_instance,
    solve,
)
from cms.certificate.certificate import BlockPrices
from cms.fleet import Plan, Scenario, build_problem, rightsize
from cms.fleet.serving import LoadCurve, OperatingPoint, Service
from cms.fleet.serving.capacity import CapacityRule
from cms.fleet.serving.load_curve import key_of
from cms.fleet.what_if import Relaxation, Rightsizing
from cms.fleet.what_if.least import Outcome, What
from cms.fleet.what_if.rightsizing import rightsizing_to_json
from tests.fleet.what_if.test_breakpoints import exchanged, require_proofs
from tests.fleet.what_if.tiny import A100, other, planned
from tests.samples import refusal


def numbers(found: Rightsizing) -> list[Relaxation]:
    """All but the plans, which hold seconds."""
    return [replace(each, plan=None, certificate=None) for each in found.relaxations]


CHAT = Service("chat", "bert", 130, 100)
POINTS = [
    OperatingPoint("bert", A100, "3g.40gb", 1, 2, 60, 33),
    OperatingPoint("bert", A100, "3g.40gb", 1, 8, 90, 120),
]


def chat(**changes: Any) -> Plan:
    plan = planned([other(CHAT, **changes)], POINTS)
    assert plan is not None
    return plan


def rate_of(found: Rightsizing, service: str = "chat") -> Relaxation:
    wanted = service, What.RATE
    return next(each for each in found.relaxations if (each.service, each.what) == wanted)


def test_what_is_least_of_all_is_proved_or_not_said() -> None:
    found = rightsize(chat(), POINTS)
    rate, limit = found.relaxations
    assert (rate.ruled_out, limit.ruled_out) == (Fraction(1, 13), Fraction(1, 5))
    assert (found.is_least_of_all, found.least) == (True, rate)
    opened = replace(limit, outcome=Outcome.OPEN, plan=None)
    for ruled_out, least in ((Fraction(1, 13), True), (Fraction(1, 14), False)):
        other = replace(found, relaxations=(rate, replace(opened, ruled_out=ruled_out)))
        assert other.is_least_of_all is least
    loose = replace(rate, outcome=Outcome.FOUND)
    assert not replace(found, relaxations=(loose, limit)).is_least_of_all
    assert not replace(found, relaxations=(opened,)).is_least_of_all


def test_a_margin_is_kept() -> None:
    serving = build_problem([CHAT], POINTS, A100, rule="plain", rate_margin="1/5")
    rate = rate_of(rightsize(Plan(serving, solve(serving.problem)), POINTS, services=["chat"]))
    assert rate.plan is not None
    assert (rate.enough, rate.plan.services[0].planned_rps) == (100, 120)
    assert rate.plan.serving.rate_margin == Fraction(1, 5)


def test_another_cost_may_be_wanted_and_without_the_points_only_rates_are_looked_at() -> None:
    plan = chat(rate_rps=310)
    assert plan.solution.cost == 3
    for to, enough in ((1, 120), ("5/2", 240), (0, 0)):
        (rate,) = rightsize(plan, to=to).relaxations
        assert (rate.what, rate.enough, rate.outcome) == (What.RATE, enough, Outcome.LEAST)
    assert not rightsize(chat(latency_limit_ms=None)).unasked
    assert "expected a number >= 0" in refusal(InvalidOption, rightsize, plan, to=-1)


def test_costs_that_differ_count_as_they_are() -> None:
    points = [*POINTS, *(replace(point, device="h100-80gb") for point in POINTS[:1])]
    serving = build_problem(
        [other(CHAT, rate_rps=250)], points, [A100, "h100-80gb"], rule="plain",
        costs={A100: "3/2"}, limits={"h100-80gb": 1},
    )  # fmt: skip
    plan = Plan(serving, solve(serving.problem))
    assert plan.solution.cost == 4  # an h100 for 1, two a100 for 3
    found = rightsize(plan, points)
    assert found.target == Fraction(7, 2)
    (rate, limit) = found.relaxations
    assert (rate.what, rate.enough, rate.outcome) == (What.RATE, 240, Outcome.LEAST)
    assert rate.plan is not None
    assert rate.plan.solution.cost == Fraction(5, 2)
    assert (limit.what, limit.enough, limit.outcome) == (What.LATENCY_LIMIT, 120, Outcome.LEAST)


def test_huge_rates_take_no_longer() -> None:
    plan = chat(rate_rps=10**12 + 7)
    found = rightsize(plan, POINTS, time_limit=None)
    rate = rate_of(found)
    blocks = -(-(10**12 + 7) // 60)
    assert plan.solution.cost == -(-blocks // 2)
    assert rate.enough == 120 * (-(-blocks // 2) - 1)
    assert rate.outcome is Outcome.LEAST


def test_nothing_is_saved_where_nothing_is_wanted() -> None:
    said = refusal(UnsupportedProblem, rightsize, chat(rate_rps=0))
    assert said == "the plan costs nothing, so that there is nothing to save"
    plan = planned([CHAT, Service("idle", "bert", 0, 100)], POINTS)
    assert plan is not None
    found = rightsize(plan, POINTS)
    assert {(each.service, each.what) for each in found.relaxations if each.service == "idle"} == {
        ("idle", What.LATENCY_LIMIT)
    }


UNPROVED: dict[str, Any] = {
    "certificate": BlockPrices(), "lower_bound": Fraction(0), "status": Status.FEASIBLE,
    "proof": Proof.NONE,
}  # fmt: skip


def test_a_plan_that_is_not_proved_is_solved_anew_first() -> None:
    plan = chat()
    found = rightsize(Plan(plan.serving, replace(plan.solution, **UNPROVED)), POINTS)
    assert (found.proved, found.better) == (True, None)
    assert numbers(found) == numbers(rightsize(plan, POINTS))


def wasteful() -> Plan:
    """A plan of three GPUs where two will do, and not proved."""
    plan = chat()
    (group,) = plan.solution.schedule.groups[:1]
    more = Schedule([*plan.solution.schedule.groups, group._replace(assignment={}, count=1)])
    found = replace(plan.solution, schedule=more, cost=Fraction(3), **UNPROVED)
    return Plan(plan.serving, found)


def test_a_plan_that_can_be_had_cheaper_is_told_so() -> None:
    found = rightsize(wasteful(), POINTS)
    assert found.better is not None
    assert found.better.solution.cost == found.cost == 2
    assert found.target == 1
    found = rightsize(wasteful(), POINTS, to=2)
    assert (found.cost, found.target, found.relaxations) == (2, 2, ())


def test_without_time_nothing_is_claimed() -> None:
    found = rightsize(wasteful(), POINTS, time_limit=0)
    assert (found.proved, found.better, found.cost) == (False, None, 3)
    for each in found.relaxations:
        assert each.outcome in (Outcome.OPEN, Outcome.FOUND)
        assert each.short is None
    cancel = threading.Event()
    cancel.set()
    rate = rate_of(rightsize(chat(rate_rps=310), POINTS, cancel=cancel, to=1))
    assert (rate.outcome, rate.enough, rate.ruled_out) == (Outcome.OPEN, None, 0)


def test_a_question_that_is_given_up_is_not_called_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search asks in vain between what it knows."""
    plan = chat(rate_rps=310)
    asked = []

    def slow(problem: Any, *args: Any, **named: Any) -> Solution:
        asked.append(problem)
        answer = solve(problem, *args, **named)
        if len(asked) == 1:
            return answer
        return replace(
            answer, schedule=plan.solution.schedule, cost=plan.solution.cost,
            stop_reason=StopReason.TIME_LIMIT, **UNPROVED,
        )  # fmt: skip

    monkeypatch.setattr("cms.infeasibility.search.solve", slow)
    (rate,) = rightsize(plan, to=1).relaxations
    assert rate.outcome is Outcome.FOUND
    assert rate.short is not None
    assert rate.enough is not None
    assert rate.enough < 120 < rate.short
    assert len(asked) == 3  # the end of the ladder, and the first state that is open, twice


def test_a_false_schedule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = chat(rate_rps=310)

    def lying(problem: Any, *args: Any, **named: Any) -> Solution:
        return replace(solve(problem, *args, **named), schedule=Schedule(), cost=Fraction(0))

    monkeypatch.setattr("cms.infeasibility.search.solve", lying)
    monkeypatch.setattr(
        "cms.fleet.what_if.least.find_last", lambda ladder, low, high, holds: (low, low)
    )
    with pytest.raises((AlgorithmError, ValueError)):
        rightsize(plan)


def test_late_shares_and_profiles_are_relaxed_too() -> None:
    rule = CapacityRule("capacity")
    tight = Service("tight", "bert", 60, 66, ["1g.10gb"], late_share="0.001")
    points = [
        OperatingPoint("bert", A100, "1g.10gb", 1, 4, 130, 30),
        OperatingPoint("bert", A100, "3g.40gb", 1, 4, 400, 10),
        OperatingPoint("bert", A100, "7g.80gb", 1, 4, 900, 5),
    ]
    curves = {key_of(points[0]): LoadCurve([1], [60], "0.02", "measured")}
    serving = build_problem(
        [tight, other(tight, name="other", rate_rps=400)],
        points,
        A100,
        rule=rule,
        load_curves=curves,
    )
    plan = Plan(serving, solve(serving.problem))
    found = rightsize(plan, points, load_curves=curves, time_limit=None)
    by = {(each.service, each.what): each for each in found.relaxations}
    profiles, late = (by["other", what] for what in (What.ALLOWED_PROFILES, What.LATE_SHARE))

    def cost(**changes: Any) -> Fraction | None:
        services = exchanged(serving.services, other(serving.service("other"), **changes))
        return solve(
            build_problem(services, points, A100, rule=rule, load_curves=curves).problem
        ).cost

    assert profiles.outcome is Outcome.LEAST
    for name in profiles.profiles:
        least = cost(allowed_profiles=("1g.10gb", name))
        assert least is not None
        assert least <= found.target
    assert late.now == Fraction(1, 1000)
    tried = [Fraction(share) for share in ("1/100", "1/50", "1/20")]
    costs = [cost(late_share=each) for each in tried]
    enough = next(
        (s for s, c in zip(tried, costs, strict=True) if c is not None and c <= found.target), None
    )
    assert late.enough == enough
    assert late.outcome is (Outcome.NONE if enough is None else Outcome.LEAST)
    # a curve that counts from 1/50 on says less than the table does: more is late, and less served
    assert plan.solution.cost is not None
    assert costs[1] is None or costs[1] > costs[0]  # type: ignore[operator]


def test_a_rule_of_ones_own_has_no_breakpoints_unless_it_says_so() -> None:
    class Own:
        name, promise = "own", None

        def supply(self, service: Service, point: OperatingPoint) -> Fraction:
            return point.throughput_rps

        def refusal(self, service: Service, point: OperatingPoint) -> str:
            return "never"

        def to_json(self) -> dict[str, str]:
            return {"name": "own"}

    serving = build_problem([CHAT], POINTS, A100, rule=Own())
    found = rightsize(Plan(serving, solve(serving.problem)), POINTS)
    assert {each.what for each in found.relaxations} == {What.RATE}
    assert found.unasked == (
        "latency limits: the rule 'own' does not say where its supplies change",
    )


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (POINTS[1:], "service 'chat' counts 60 requests/s for 3g.40gb in the plan, 0 by the table"),
        (
            [*POINTS, OperatingPoint("bert", A100, "7g.80gb", 1, 1, 5, 5)],
            "the plan knows nothing of 7g.80gb",
        ),
        (
            [replace(POINTS[0], profile="4g.40gb")],
            "nothing was measured on 3g.40gb, and the plan knows",
        ),
    ],
)
def test_other_points_than_the_plans_are_refused(points: list[OperatingPoint], said: str) -> None:
    words = refusal(InvalidOption, rightsize, chat(), points)
    assert words.startswith(f"the operating points are not those of the plan: {said}")


def test_what_cannot_be_rightsized_is_said_in_words() -> None:
    shared = build_problem([CHAT], POINTS, A100, sharing="time")
    said = refusal(UnsupportedProblem, rightsize, Plan(shared, solve(shared.problem)))
    assert said.startswith(
        "looking for what would save a GPU takes plans whose instances serve one service each"
    )
    curves = {key_of(POINTS[0]): LoadCurve([1], [60])}
    said = refusal(InvalidOption, rightsize, chat(), POINTS, load_curves=curves)
    assert "the rule 'plain' does not ask for" in said


def test_progress_and_json() -> None:
    steps: list[tuple[int, int]] = []
    found = rightsize(chat(), POINTS, on_step=lambda done, of: steps.append((done, of)))
    assert steps == [(1, 2), (2, 2)]
    document = rightsizing_to_json(found)
    assert document["relaxations"][0] == {
        "service": "chat", "what": "rate", "outcome": "least", "now": 130, "enough": 120,
        "above": False, "change": "1/13", "too_little": None, "cost": 1,
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ["S4", "S5"])
def test_a_published_scenario_is_rightsized_from_both_sides(name: str) -> None:
    scenario = load_instance(name)
    assert isinstance(scenario, Scenario)
    serving = scenario.build_problem()
    plan = Plan(serving, solve(serving.problem))
    found = rightsize(plan, scenario.operating_points, time_limit=None)
    assert {each.outcome for each in found.relaxations} <= {Outcome.LEAST, Outcome.NONE}
    for each in found.relaxations:
        require_proofs(found, plan, each)
