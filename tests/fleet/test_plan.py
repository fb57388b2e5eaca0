"""Plans: what each GPU and each service gets, and the document that holds it all."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import BlockPrices, Proof, Status, solve
from cms.errors import FileError, InvalidSchedule
from cms.files import problem_from_json, solution_from_json
from cms.fleet import (
    OperatingPoint,
    Plan,
    Service,
    ServingProblem,
    build_problem,
    get_gpu,
    list_gpus,
    plan_from_json,
    plan_to_json,
    read_plan,
    write_plan,
)
from cms.fleet.serving.plan import placed_instances
from cms.problem.parts import Configuration
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import StopReason
from instances import published
from tests.files.test_schemas import require_valid, validator
from tests.fleet.plans import GONE, NASTY, many_services, mixed_plan, point, set_at

A100, H100 = "a100-80gb", "h100-80gb"


def tiny() -> ServingProblem:
    """Two services, three kinds of instances; 2 GPUs are enough."""
    points = [
        OperatingPoint("bert", A100, "3g.40gb", 2, 4, "100.5", 20),
        OperatingPoint("bert", A100, "4g.40gb", 1, 8, 130, 30, {"source": "run 7"}),
        OperatingPoint("vgg16", A100, "1g.10gb", 1, 1, "1/3", 5),
    ]
    services = [
        Service("chat", "bert", "300.5", 100, extra={"team": "a"}),
        Service("images", "vgg16", 1, 50, ["1g.10gb"]),
    ]
    return build_problem(services, points, limits={A100: 8}, max_processes=3, rule="parvagpu")


@pytest.fixture(scope="module")
def plan() -> Plan:
    serving = tiny()
    big = Configuration({"4g.40gb": 1, "3g.40gb": 1}, A100)
    shape = next(c for c in serving.problem.listed_configurations if c.blocks.get("1g.10gb") == 4)
    schedule = Schedule(
        [
            MachineGroup(big, {("4g.40gb", "chat"): 1, ("3g.40gb", "chat"): 1}, 1),
            MachineGroup(shape, {("3g.40gb", "chat"): 1, ("1g.10gb", "images"): 3}, 1),
        ]
    )
    solved = solve(serving.problem, start=schedule)
    return Plan(serving, replace(solved, schedule=schedule, cost=Fraction(2)))


def test_a_service_and_a_gpu_see_what_they_get(plan: Plan) -> None:
    chat, images = plan.services
    assert (chat.wanted_rps, chat.provided_rps) == (Fraction("300.5"), Fraction(331))
    assert chat.headroom_rps == Fraction("30.5")
    assert chat.headroom == Fraction(61, 601)
    assert [(use.profile, use.count, use.supply_rps) for use in chat.uses] == [
        (block, {"3g.40gb": 2, "4g.40gb": 1}[block], {"3g.40gb": Fraction("100.5")}.get(block, 130))
        for block in plan.serving.problem.blocks
        if block != "1g.10gb"
    ]
    assert (images.provided_rps, images.headroom, images.instances) == (1, 0, 3)
    assert plan.service("images") is images
    _, second = plan.groups
    assert (second.gpu, second.count) == (A100, 1)
    assert {
        (each.profile, each.count, *(one.service for one in each.serves))
        for each in second.instances
    } == {("3g.40gb", 1, "chat"), ("1g.10gb", 3, "images"), ("1g.10gb", 1)}
    one = second.instances[0].serves[0]
    assert (one.rate_rps, one.slack_ms) == (Fraction("100.5"), 100 - one.point.latency_ms)
    shape = Configuration({"4g.40gb": 1, "3g.40gb": 1}, A100)
    groups = [*plan.solution.schedule.groups, MachineGroup(shape, {("4g.40gb", "images"): 1}, 2)]
    wasteful = Plan(
        plan.serving, replace(plan.solution, schedule=Schedule(groups), cost=Fraction(4))
    )
    assert [each.serves for each in wasteful.groups[-1].instances] == [(), ()]
    assert wasteful.service("images") == plan.service("images")


def test_a_plan_takes_a_valid_solution_of_its_own_problem_or_none(plan: Plan) -> None:
    with pytest.raises(InvalidSchedule, match="the solution is of another problem"):
        Plan(published.S1.build_problem(), plan.solution)
    document = copy.deepcopy(plan_to_json(plan))
    group = document["solution"]["schedule"]["groups"][1]
    group["assignment"] = [["3g.40gb", "chat", 1], ["1g.10gb", "images", 2]]
    with pytest.raises(FileError, match="solution is not valid: job 'images' has"):
        plan_from_json(document)
    made = of_one_point()
    nothing = replace(
        made.solution, schedule=Schedule([]), cost=Fraction(0), status=Status.FEASIBLE,
        proof=Proof.NONE, lower_bound=Fraction(0), certificate=BlockPrices({}),
        stop_reason=StopReason.FINISHED, history=(),
    )  # fmt: skip
    with pytest.raises(FileError, match="solution is not valid: job 'chat' has 0 of its demand"):
        plan_from_json(plan_to_json(Plan(made.serving, nothing)))
    empty = of_one_point(limit=1)
    assert empty.groups == ()
    assert (empty.services[0].provided_rps, empty.services[0].headroom) == (0, -1)
    document = plan_to_json(empty)
    assert plan_from_json(document) == empty
    with pytest.raises(FileError, match="unservable does not name 'chat'"):
        plan_from_json(document | {"unservable": {}})


def test_a_plan_comes_back_keeps_its_schema_and_ignores_own_keys(
    plan: Plan, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    write_plan(plan, path)
    back = read_plan(path)
    assert back == plan
    assert back.serving.services[0].extra == {"team": "a"}
    write_plan(back, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    document = plan_to_json(plan)
    by_pair = {(p["service"], p["block"]): p for p in document["operating_points"]}
    for group in document["groups"]:
        for each in group["instances"]:
            for served in each["serves"]:
                point = by_pair[served["service"], each["block"]]
                assert point["processes"] == served["processes"] >= 1
                assert point["supply_rps"] == served["rate_rps"]
    document = json.loads(json.dumps(plan_to_json(plan)))
    require_valid("plan", document)
    for key in document:
        rest = {k: v for k, v in document.items() if k != key}
        assert not validator("plan").is_valid(rest), key
    document = json.loads(json.dumps(plan_to_json(plan)))
    assert problem_from_json(document["problem"]) == plan.serving.problem
    assert solution_from_json(document["solution"]) == plan.solution
    instance = document["groups"][0]["instances"][0]
    for inside in (document, document["services"][0], document["groups"][0], instance):
        inside["x-note"] = {"team": "a"}
    assert plan_from_json(document) == plan


def of_one_point(profile: str = "3g.40gb", gpu: Any = A100, limit: int = 60, **terms: Any) -> Plan:
    """A service on one point of a GPU, in the catalogue or of one's own."""
    device = gpu if isinstance(gpu, str) else gpu.key
    points = [OperatingPoint("bert", device, profile, 1, 1, 100, 10)]
    serving = build_problem([Service("chat", "bert", 70, limit)], points, [gpu], **terms)
    return Plan(serving, solve(serving.problem))


class Halved:
    """A rule that is no latency rule: half of every throughput counts."""

    name = "halved"
    promise = None

    def supply(self, service: Service, point: OperatingPoint) -> Fraction:
        return point.throughput_rps / 2

    def refusal(self, service: Service, point: OperatingPoint) -> str:
        return "never"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}


def test_a_rule_or_devices_of_ones_own_come_back_as_they_were() -> None:
    rule = Halved()
    made = of_one_point(limit=1, rule=rule)
    assert made.services[0].provided_rps == 100
    assert plan_from_json(plan_to_json(made), rule=rule) == made
    with pytest.raises(FileError, match="the rule 'halved' is not known here"):
        plan_from_json(plan_to_json(made))
    mine = replace(
        get_gpu(H100), key="my-card", aliases=("My Card",), profiles=get_gpu(H100).profiles[:4]
    )
    for device in (*list_gpus(), mine):
        made = of_one_point(device.base_profiles[-1], device)
        assert plan_from_json(plan_to_json(made)).serving.gpus == (device,)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("rule", GONE, 'no "rule"'),
        ("rule.latency_share", "1/2", "rule is batch latency < 0.5 x the limit, expected .* 0.45"),
        ("rule.latency_share", 2, "share of rule"),
        ("services.0.rate_rps", 300, "demand .* is .300.5., expected 300, as the rest of"),
        ("services.0.name", "chats", "name .* is .chats., expected .chat., as in the pr"),
        ("services.0.latency_limit_ms", 50, r"jobs\[0\].demand_function .*, expected only"),
        ("services.0.provided_rps", 999, r"provided_rps .* is 999, expected 331"),
        ("services.0.instances", 4, r"instances .* is 4, expected 3"),
        ("operating_points.0.throughput_rps", 1, "points.0..fill_ms.4 is .*, expected 8000"),
        ("operating_points.0.supply_rps", 1, "supply_rps is 1, expected .* by the rule, the prob"),
        ("operating_points.0.service", "nobody", "nobody"),
        ("operating_points.0.gpu", "h100-80gb", "gpu is .h100-80gb., expected .a100-80gb."),
        ("operating_points.0.latency_ms", 0, "cannot be"),
        ("operating_points.0", GONE, r"jobs\[0\].demand_function .*, expected only"),
        ("operating_points.0.model", "vgg19", 'model is "vgg19", expected "'),
        ("operating_points.0.device", H100, "measured on h100.*, expected a100-80gb 3g.40gb, w"),
        ("operating_points.0.profile", "7g.80gb", "on a100-80gb 7g.80gb, expected a100-80gb 3g.4"),
        ("operating_points.0.processes", 9, "operating_points.0..fill_ms"),
        ("services.1.allowed_profiles", ["7g.80gb"], "one of 7g.80gb, which service 'images' all"),
        ("services.1.allowed_profiles", ["9g"], "service 'images' allows the profile '9g'"),
        ("unservable.chat", "so slow", "unservable.chat is about 'chat', expected services that"),
        ("unservable.nobody", "who?", "unservable.nobody is about 'nobody'"),
        ("problem.configurations.0.blocks", {"1g.10gb": 8}, r"configurations\[0\].blocks.*, as th"),
        ("problem.configurations.0", GONE, "problem.configurations has 4 entries, expected 5"),
        ("problem.machine_types.0.name", "a100", "a100"),
        ("groups.0.count", 2, r"groups\[0\].count is 2, expected 1, as the solution has"),
        ("groups.1.instances.0.serves.0.service", "images", 'service is "images", expected "chat"'),
        ("groups.0", GONE, "groups has 1 entr"),
        ("devices.0.key", "b200-180gb", r"devices\[0\] has the key 'b200-180gb' of the catalogue"),
        ("devices.0.key", "mine", "key is .mine., expected .a100-80gb., as in the pr"),
        ("problem.jobs.0.demand", 1, "demand .* is 1, expected .300.5., as the rest of the plan"),
        ("solution.schedule.groups.0.count", 9, "machine_count|limit|machines"),
        ("solution.problem_sha256", "0" * 64, "problem"),
    ],
)
def test_a_plan_whose_parts_contradict_each_other_is_refused(
    plan: Plan, path: str, value: Any, message: str
) -> None:
    document = json.loads(json.dumps(plan_to_json(plan)))
    set_at(document, path, value)
    with pytest.raises(FileError, match=message):
        plan_from_json(document)


def test_a_plan_of_several_gpus_or_under_mps_is_held_to_its_device() -> None:
    points = [OperatingPoint("bert", key, "3g.40gb", 1, 1, 100, 10) for key in (A100, H100)]
    serving = build_problem([Service("chat", "bert", 10, 60)], points, [A100, H100])
    made = Plan(serving, solve(serving.problem))
    assert plan_from_json(plan_to_json(made)) == made
    text = json.dumps(plan_to_json(made)).replace('"h100-80gb:', '"x:')
    with pytest.raises(FileError, match="problem.blocks.1. is .x:3g.40gb"):
        plan_from_json(json.loads(text))
    made = of_one_point("mps:40")
    document = json.loads(json.dumps(plan_to_json(made)))
    assert plan_from_json(document) == made
    document["problem"]["configurations"][0]["capacity"] = 200
    with pytest.raises(
        FileError, match="capacity is 200, expected 100, as the rest of the plan has"
    ):
        plan_from_json(document)


def test_what_a_person_prints_is_a_few_lines_that_say_how_sure() -> None:
    serving = published.S6.build_problem()
    plan = Plan(serving, solve(serving.problem))
    own = (*plan.services, *plan.groups, *(use for one in plan.services for use in one.uses))
    for thing in (plan, many_services(9), serving, *serving.gpus, published.S6, *own):
        assert str(thing).count("\n") < 9
        assert len(str(thing)) < 600
    for thing in (plan, serving, *serving.gpus, published.S6):
        assert len(repr(thing)) < 100
        assert repr(thing).startswith(f"{type(thing).__name__}(")
    lost = build_problem([Service("chat", "m", 1, 1)], [point("m", "7g.80gb", 10)])
    nothing = Plan(lost, solve(lost.problem))
    assert repr(nothing) == "Plan(0 GPUs for 1 services: infeasible, proof checked)"
    assert str(lost).endswith("\nnot servable: chat")


def test_each_instance_of_a_group_has_a_start_the_first_of_the_group_first() -> None:
    plan = mixed_plan()
    small, halves = (placed_instances(get_gpu(A100), group) for group in plan.groups)
    served = [[one.service for one in instances.serves] for _, instances in small]
    assert served == [["chat"]] * 4 + [[NASTY]] + [[]] * 2
    assert [str(place) for place, _ in halves] == ["2g.20gb@0", "2g.20gb@2", "3g.40gb@4"]
    assert [[one.service for one in own.serves] for _, own in halves] == [[NASTY], [], ["chat"]]
