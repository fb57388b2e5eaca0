"""Replicas and equal routing from the tables to the plan, its checkers and its replay."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from cms import Replicas, solve
from cms.errors import CmsError, FileError, InvalidOption, InvalidProblem, UnsupportedProblem
from cms.fleet import Plan, Service, build_problem, explain, rightsize
from cms.fleet.deployment import Deployment
from cms.fleet.placement import place_plan
from cms.fleet.serving.plan_document import plan_from_json, plan_to_json
from cms.fleet.simulation import simulate
from proofs_checks.checker import parse_document
from proofs_checks.checker.rates import rate_faults
from tests.fleet.plans import point

POINTS = [point("m", "1g.10gb", 30), point("m", "3g.40gb", 100), point("m", "7g.80gb", 240)]


def posed(rate: int, replicas: str = "2", **terms: Any) -> Any:
    service = Service("chat", "m", rate, 1000, extra={"min_replicas": replicas})
    return build_problem([service], POINTS, rule="plain", **terms)


@pytest.mark.parametrize(
    ("rate", "terms", "replicas"),
    [
        (200, {}, Replicas(2, "1/4")),
        (960, {}, Replicas(2, "1/4")),
        (961, {}, Replicas(2, 0)),  # no instance serves a quarter of it: more than four are needed
        (200, {"routing": "equal"}, Replicas(2, 0)),
        (961, {"replica_share": "1/5"}, Replicas(2, "1/5")),
    ],
)
def test_build_problem_asks_for_replicas(
    rate: int, terms: dict[str, Any], replicas: Replicas
) -> None:
    (job,) = posed(rate, **terms).problem.jobs
    assert (job.replicas, job.routing) == (replicas, terms.get("routing", "weighted"))
    assert posed(rate, "0", **terms).problem.jobs[0].replicas is None


def test_build_problem_refuses_bad_terms() -> None:
    for replicas in ("two", "65"):
        with pytest.raises(InvalidProblem, match=f"min_replicas of 'chat' is '{replicas}'; expect"):
            posed(200, replicas)
    for terms in ({"replica_share": "1/2"}, {"routing": "equal"}):
        with pytest.raises(InvalidOption, match="one service each; leave them out"):
            build_problem([], POINTS, sharing="time", **terms)  # type: ignore[call-overload]
    with pytest.raises(CmsError, match="routing of job 'chat' is 'fair'; expected 'weighted' or"):
        posed(200, routing="fair")


def test_plan_of_equal_routing_counts_instances_as_the_smallest() -> None:
    serving = posed(330, routing="equal")
    plan = Plan(serving, solve(serving.problem))
    (given,) = plan.services
    assert given.provided_rps == given.instances * min(use.supply_rps for use in given.uses)
    assert given.provided_rps >= 330
    assert plan.checkers == ("package", "independent")  # not the proved one
    assert explain(plan, "chat").bound <= (plan.solution.cost or 0)
    with pytest.raises(UnsupportedProblem, match="weighted routing without replicas"):
        rightsize(plan)
    with pytest.raises(InvalidOption, match="extra_cost is 1, and a plan for equal routing"):
        place_plan(plan, Deployment(()), extra_cost=1)
    assert simulate(plan, requests=100).routing == "equal-weight random"
    assert simulate(plan, routing="round_robin", requests=100).routing == "weighted round robin"


@pytest.mark.parametrize(
    ("change", "told", "checked"),
    [
        (
            {"routing": "weighted"},
            "expected only name, demand",
            "has the routing equal in the problem",
        ),
        ({"replica_share": "1/3"}, "replicas.share", None),  # says nothing that is checked twice
        ({"extra": {"min_replicas": "3"}}, "replicas.count", "'chat' asks for '3' replicas, and"),
    ],
)
def test_forged_terms_of_a_plan_are_refused(
    change: dict[str, Any], told: str, checked: str | None
) -> None:
    serving = posed(200, routing="equal", replica_share=Fraction(1, 4))
    document = json.loads(json.dumps(plan_to_json(Plan(serving, solve(serving.problem)))))
    assert plan_from_json(document).serving.problem == serving.problem
    (document["services"][0] if "extra" in change else document).update(change)
    with pytest.raises(FileError, match=told):
        plan_from_json(document)
    said = list(rate_faults(parse_document(json.dumps(document)), _problem(document)))
    assert any(checked in sentence for sentence in said) if checked else not said


def _problem(document: dict[str, Any]) -> Any:
    from proofs_checks.checker.problem import read_problem

    return read_problem(parse_document(json.dumps(document["problem"])))
