"""Replicas and equal routing from the tables to the plan, its checkers and its replay."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from operator import add
from pathlib import Path
from typing import Any

import pytest

from cms import Replicas, solve
from cms.cli.app import run
from cms.errors import CmsError, FileError, InvalidOption, InvalidProblem, UnsupportedProblem
from cms.fleet import (
    OperatingPoint,
    Plan,
    Service,
    build_problem,
    explain,
    get_gpu,
    rightsize,
)
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    State,
    Work,
    check_deployment,
    deployment_to_json,
    desired_state,
)
from cms.fleet.deployment.transition import Transition, exchange_and_compact, transition
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementInfeasible,
    list_available,
    place_plan,
)
from cms.fleet.serving import RULES
from cms.fleet.serving.plan_document import plan_from_json, plan_to_json
from cms.fleet.simulation import simulate
from proofs_checks.checker import check_deployment as check_again
from proofs_checks.checker import parse_document
from proofs_checks.checker.__main__ import main as again
from proofs_checks.checker.headroom import examine_headroom
from proofs_checks.checker.rates import rate_faults
from tests.cli.shared import flat
from tests.fleet.plans import point
from tests.samples import few

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
        with pytest.raises(InvalidOption, match="is .* and services share instances in time"):
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


A30 = get_gpu("a30-24gb")
SPEEDS = {"1g.6gb": 10, "2g.12gb": 22, "4g.24gb": 45}


def _layouts(held: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """All that an A30 can have of 1g, 2g and 4g beside what is held: four slices are all."""
    some = product(range(5), range(3), range(2))
    return [
        own for own in some
        if sum(n * size for n, size in zip(map(add, own, held), (1, 2, 4), strict=True)) <= 4
    ]  # fmt: skip


def _least_gpus(
    nodes: Sequence[Sequence[bool]], least: tuple[int, int, int], needed: Fraction
) -> int | None:
    """The fewest free GPUs on which every node can be lost, by trying all contents of all GPUs.

    `nodes`: Of each node its GPUs, by whether a foreign 1g.6gb is at start 0 of it. `least`: What
    the plan has of each profile.
    """
    sizes, every = tuple(SPEEDS.values()), set[tuple[tuple[tuple[int, int, int], ...], int]]()
    every.add(((), 0))
    smallest = min(size for size, n in zip(sizes, least, strict=True) if n)
    for node in nodes:
        here = {((0, 0, 0), 0)}
        for is_held in node:
            options = _layouts((int(is_held), 0, 0))
            here = {
                (tuple(map(add, total, own)), gpus + (any(own) and not is_held))
                for (total, gpus), own in product(here, options)
            }
        every = {((*sums, own), gpus + n) for (sums, gpus), (own, n) in product(every, here)}

    def survives(sums: tuple[tuple[int, int, int], ...]) -> bool:
        total = [sum(column) for column in zip(*sums, strict=True)]
        if any(n < m for n, m in zip(total, least, strict=True)):
            return False
        if any(n for n, size in zip(total, sizes, strict=True) if size < smallest):
            return False
        rests = [[n - own for n, own in zip(total, gone, strict=True)] for gone in sums]
        return all(
            sum(rest) * min((s for s, n in zip(sizes, rest, strict=True) if n), default=0) >= needed
            for rest in rests
        )

    return min((gpus for sums, gpus in every if survives(sums)), default=None)


@pytest.mark.parametrize("seed", few(25, range(300)))
def test_what_survives_a_node_in_equal_shares_costs_least_of_all_placements(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice(([1, 1], [2, 1], [2, 2], [1, 1, 1], [2, 1, 1]))
    nodes = [[rng.random() < 0.25 for _ in range(n)] for n in shape]
    taken = (Instance("1g.6gb", 0, owner="pod x/y"),)
    fleet = Deployment(
        tuple(
            FleetNode(f"n{at}", tuple(FleetGpu(f"n{at}", index, A30, instances=taken * is_held)
                                      for index, is_held in enumerate(node)))
            for at, node in enumerate(nodes)
        )
    )  # fmt: skip
    rate = rng.randint(1, 18 * sum(shape))
    points = [OperatingPoint("a", A30.key, name, 1, 4, n, 20) for name, n in SPEEDS.items()]
    serving = build_problem(
        [Service("a", "a", rate, 1000)], points, A30.key, rule=RULES["half"], routing="equal",
        available=list_available(fleet, [A30]),
    )  # fmt: skip
    plan = Plan(serving, solve(serving.problem, time_limit=None))
    if plan.solution.cost is None:
        return
    has = desired_state(plan).counts
    least = tuple(sum(n for k, n in has.items() if k.profile == name) for name in SPEEDS)
    share = Fraction(rng.choice((1, 2, 3, 4)), 4)
    found = place_plan(plan, fleet, constraints=PlacementConstraints(survive=share))
    best = _least_gpus(nodes, (least[0], least[1], least[2]), share * rate)
    if isinstance(found, PlacementInfeasible):
        assert best is None
        return
    assert found.spent == (best, best)
    for node in fleet.nodes:
        rest = [each.work.supply_rps for card, each in found.deployment.instances()
                if each.work is not None and card.node != node.name]  # fmt: skip
        assert len(rest) * min(rest, default=0) >= share * rate


def _wanted(rate: int, **terms: Any) -> Plan:
    points = [OperatingPoint("a", A30.key, name, 1, 4, n, 20) for name, n in SPEEDS.items()]
    serving = build_problem(
        [Service("a", "a", rate, 1000)], points, A30.key, rule="half", routing="equal", **terms
    )
    return Plan(serving, solve(serving.problem))


def _deployed(plan: Plan, *contents: tuple[int, int, int], stops: bool = False) -> Deployment:
    """A deployment that says it is of a plan, with so many 1g, 2g and 4g on each GPU."""
    rule, cards = desired_state(plan).rule, []
    for index, held in enumerate(contents):
        layout = A30.place(dict(zip(SPEEDS, held, strict=True)))
        assert layout is not None
        works = {
            name: Work("a", OperatingPoint("a", A30.key, name, 1, 4, n, 20), Fraction(n))
            for name, n in SPEEDS.items()
        }
        parts = [Instance(each.profile, each.start, works[each.profile]) for each in layout]
        if stops and index:
            parts = [replace(each, state=State.STARTING) for each in parts]
        cards.append(FleetGpu("n", index, A30, instances=tuple(parts)))
    return Deployment((FleetNode("n", tuple(cards)),), plan.serving.services, rule, plan)


@pytest.mark.parametrize("rate", [29, 44])
def test_both_checkers_count_a_deployment_in_equal_shares(rate: int) -> None:
    """Over all contents of two GPUs: each instance has to serve its equal share of the rate."""
    plan, forged = _wanted(rate), 0
    for at, (one, two) in enumerate(combinations_with_replacement(_layouts((0, 0, 0)), 2)):
        stops = at % 3 == 0  # then the second GPU's only start
        counts = one if stops else [*map(add, one, two)]
        supplies = [s for s, n in zip(SPEEDS.values(), counts, strict=True) for _ in range(n)]
        serves = all(rate <= each * len(supplies) for each in supplies or [0])
        found = _deployed(plan, one, two, stops=stops)
        kinds = {fault.kind for fault in check_deployment(found)}
        assert kinds == (set() if serves else {"capacity"})
        said = check_again(parse_document(json.dumps(deployment_to_json(found))))
        assert bool(said) is not serves
        assert all("'a' is supplied" in each for each in said)
        forged += not serves and sum(supplies) >= rate
    assert forged  # where a sum would have passed


def test_a_deployment_that_only_a_sum_passes_is_refused_from_its_file_by_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = _wanted(40, rate_margin="1/10")
    two, one = (0, 2, 0), (1, 1, 0)
    for content, told, checked in (
        (two, "", ""),
        # 22 + 22 + 22 + 10 requests/s are 76, and in equal shares the rate, not what is planned
        (one, "has 40 requests/s, needs 44, as planned", "supplied 40 requests/s of the 44"),
        ((1, 0, 0), "has 30 requests/s", "supplied 30 of 40 requests/s"),
    ):
        path = tmp_path / "deployment.json"
        path.write_text(json.dumps(deployment_to_json(_deployed(plan, two, content))), "utf-8")
        assert (run(["check", str(path)]), again([str(path)])) == ((1, 1) if told else (0, 0))
        out, err = capsys.readouterr()
        assert told in flat(out)
        assert checked in err


def test_transition_in_equal_shares_keeps_floors_of_like_instances_alone() -> None:
    now, plan = _deployed(_wanted(22), (0, 1, 0), (0, 0, 0)), _wanted(44)
    found = transition(now, _deployed(plan, (0, 2, 0), (0, 0, 0)))
    assert isinstance(found, Transition)
    assert found.floors["a"].rps == 22 == found.start.capacity("a")
    unlike = _deployed(plan, (0, 2, 0), (2, 1, 0))  # 50 in equal shares, but 20 as one 1g has come
    with pytest.raises(UnsupportedProblem, match="supply 10 and 22 requests/s, before or after"):
        transition(now, unlike)
    mixed = _deployed(plan, (1, 1, 0), (0, 0, 0), (0, 0, 0))
    for plans in (transition, exchange_and_compact):
        with pytest.raises(UnsupportedProblem, match="expected a floor of 0, or weighted routing"):
            plans(mixed, desired_state(plan))
    assert isinstance(transition(now, unlike, floors={"a": 0}), Transition)
    assert isinstance(transition(replace(now, plan=None), replace(unlike, plan=None)), Transition)


def test_the_independent_checker_counts_unlike_instances_of_a_plan_as_the_smallest() -> None:
    points = [point("m", "2g.20gb", 40), point("m", "1g.10gb+me", 38)]  # one +me a GPU at most
    serving = build_problem([Service("a", "m", 150, 1000)], points, rule="plain", routing="equal")
    plan = Plan(serving, solve(serving.problem))
    assert plan.services[0].provided_rps == 4 * 38
    document = parse_document(json.dumps(plan_to_json(plan)))
    assert examine_headroom(document, _problem(document))[0] == []
