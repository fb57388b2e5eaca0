"""From one plan of shared GPUs to the next: what is free, what is prepared, and in which order."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

import pytest

from cms import Configuration, MachineGroup, Mix, Schedule, solve
from cms.errors import UnsupportedProblem
from cms.fleet import OperatingPoint, Plan, Service, build_problem, get_gpu
from cms.fleet.apply import Apply, Head, Job, Shell
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    check_deployment,
    deployment_to_json,
    desired_state,
)
from cms.fleet.deployment.export import TARGETS, export
from cms.fleet.deployment.instance import Mode, Work
from cms.fleet.deployment.transition import (
    Action,
    Impossible,
    PartitioningTool,
    Transition,
    What,
    check_transition,
    floors_of,
    lowest_capacity,
    reorganise,
    reversal,
    schedule,
    transition,
    transition_from_json,
    transition_to_json,
)
from cms.fleet.deployment.transition.curves import capacity_curves
from cms.fleet.deployment.transition.reorganisation import assign_contents
from cms.fleet.deployment.turns import contents_of, shares_of
from cms.fleet.placement import place, place_plan
from proofs_checks.checker.deployment import check_deployment as check_again
from proofs_checks.checker.replay import check_transition as recheck
from tests.fleet.plans import POINTS, SERVICES, colocate, set_at, solution
from tests.samples import few

CARD = get_gpu("a100-80gb")


def fleet(count: int) -> Deployment:
    cards = tuple(FleetGpu("n", index, CARD, Mode.MPS) for index in range(count))
    return Deployment((FleetNode("n", cards),))


@cache
def plan(chat: int, see: int, method: str = "mix_first_fit", **terms: Any) -> Plan:
    rates = {"chat": chat, "see": see}
    services = [replace(each, rate_rps=Fraction(rates[each.name])) for each in SERVICES]
    posed = build_problem(services, POINTS, CARD.key, sharing="time", **terms)
    return Plan(posed, solve(posed.problem, method))


def to_plan(now: Deployment, wanted: Plan) -> Transition:
    found = reorganise(now, wanted)
    assert isinstance(found, Transition), found
    return found


def reread(found: Transition) -> Any:
    return json.loads(json.dumps(transition_to_json(found)))


def on_gpus(side: Deployment) -> Counter[tuple[str, tuple[Instance, ...]]]:
    return Counter((card.gpu.key, card.instances) for card in side.used_gpus())


def test_batches_and_cycles_change_for_nothing_and_a_new_share_is_prepared() -> None:
    first = to_plan(fleet(2), plan(150, 50)).target
    held = next(iter(contents_of(plan(150, 50))))[1]
    assert {each.place for each in held} == {"mps:60@0", "mps:40@60"}
    free = to_plan(first, plan(600, 250))  # batches of 8 instead of 4
    assert [action.what for action in free.actions] == [What.SWITCH]
    assert free.actions[0].prepared == ()
    assert schedule(free).makespan_s == 0
    more = to_plan(free.target, plan(800, 60))
    assert [each.place for action in more.actions for each in action.prepared] == ["mps:40@60"]
    assert schedule(more).makespan_s == 15
    back = to_plan(more.target, plan(150, 50))
    assert sum(len(action.prepared) for action in back.actions) == 0
    for each in (free, more, back):
        assert check_transition(each) == ()
        assert recheck(reread(each)) == []
        assert transition_from_json(reread(each)) == each


def pairs(seed: int) -> tuple[Deployment, Plan]:
    rng = random.Random(seed)
    before, after = ((rng.randint(0, 1900), rng.randint(0, 1900)) for _ in range(2))
    methods = [rng.choice(["gpulet", "mix_first_fit"]) for _ in range(2)]
    both = plan(*before, methods[0]), plan(*after, methods[1])
    most = max(sum(contents_of(each).values()) for each in both)
    # so few empty ones that one may be used again
    start = reorganise(fleet(most + 2 + seed % 3), both[0])
    assert isinstance(start, Transition)
    return start.target, both[1]


@pytest.mark.parametrize("seed", few(5, [409, *range(150)]))
def test_every_floor_holds_and_the_plan_is_reached_by_both_checkers(seed: int) -> None:
    now, wanted = pairs(seed)
    found = to_plan(now, wanted)
    assert check_transition(found) == ()
    assert recheck(reread(found)) == []
    assert on_gpus(found.target) == Counter(contents_of(wanted))
    for name, floor in found.floors.items():
        assert lowest_capacity(found, name) >= floor.rps
    for curve in capacity_curves(found, schedule(found)):
        assert curve.lowest >= curve.floor
        assert curve.after == found.target.capacity(curve.service)
    least_is_prepared(now, wanted)
    no_spare_gpu_is_taken_in_vain(now, found)


def test_a_plan_is_the_way_to_itself_whatever_the_order_of_its_services() -> None:
    services = [replace(each, rate_rps=Fraction(200)) for each in reversed(SERVICES)]
    posed = build_problem(services, POINTS, CARD.key, sharing="time")
    cut = Configuration({"mps:60": 1, "mps:40": 1}, CARD.key)
    both = {("mps:60", Mix({"chat": 8, "see": 4})): 1, ("mps:40", Mix({"see": 4})): 1}
    found = solution(
        schedule=Schedule([MachineGroup(cut, both, 1)]), problem_sha256=posed.problem.sha256
    )
    wanted = Plan(posed, found)
    there = to_plan(fleet(1), wanted).target
    assert to_plan(there, wanted).actions == ()


def in_rings(step: int) -> Plan:
    """Twice three GPUs: 60 % for one of three services and 40 % for the one so many after it."""
    points = [colocate("bert", 60, 8, 10), colocate("bert", 40, 8, 20)]
    services = [Service(name, "bert", 1200, 60) for name in "abcdef"]
    posed = build_problem(services, points, CARD.key, sharing="time")
    cut = Configuration({"mps:60": 1, "mps:40": 1}, CARD.key)
    groups = [
        MachineGroup(
            cut, {("mps:60", Mix({name: 8})): 1, ("mps:40", Mix({ring[(at + step) % 3]: 8})): 1}, 1
        )
        for ring in ("abc", "def")
        for at, name in enumerate(ring)
    ]
    found = solution(schedule=Schedule(groups), problem_sha256=posed.problem.sha256)
    return Plan(posed, found)


def test_where_each_waits_for_the_next_an_empty_gpu_is_used_and_the_emptied_ones_again() -> None:
    now = to_plan(fleet(7), in_rings(1)).target
    found = to_plan(now, in_rings(2))
    assert found.spare.count == 1
    assert recheck(reread(found)) == []
    assert max(Counter(action.gpu for action in found.actions).values()) == 2
    assert schedule(found).makespan_s > schedule(found).least_s > 0
    assert all(lowest_capacity(found, name) == 1200 for name in "abcdef")
    assert len(found.target.used_gpus()) == 6
    short = reorganise(to_plan(fleet(6), in_rings(1)).target, in_rings(2))
    assert isinstance(short, Impossible)
    assert short.proof == "none"
    assert "no order of switches keeps the floors on 6 GPUs" in str(short)


def processes(held: tuple[Instance, ...]) -> Counter[tuple[str, str]]:
    return Counter((each.profile, each.work.service) for each in held if each.work)


def least_is_prepared(now: Deployment, wanted: Plan) -> None:
    """Whether no other assignment of contents to GPUs would save a process."""
    contents = list(Counter(contents_of(wanted)).elements())
    old = [card.instances for card in now.used_gpus()]
    if max(len(contents), len(old)) > 4:
        return
    old += [()] * len(contents)  # empty GPUs
    best = min(
        sum(
            (processes(new[1]) - processes(old[at])).total()
            for at, new in zip(to, contents, strict=True)
        )
        for to in permutations(range(len(old)), len(contents))
    )
    after = assign_contents(now, contents_of(wanted))
    assert not isinstance(after, Impossible)
    cards = {(card.node, card.index): card.instances for card in now.gpus()}
    pairs_of = ((cards[place], to) for place, to in after.items())
    assert sum((processes(to) - processes(at)).total() for at, to in pairs_of) == best


def no_spare_gpu_is_taken_in_vain(now: Deployment, found: Transition) -> None:
    """Orders are tried one by one, for GPUs that all become what they become in the answer."""
    ends = {(card.node, card.index): card for card in found.target.gpus()}
    changes = [
        (card.instances, ends[card.node, card.index].instances)
        for card in now.gpus()
        if card.instances != ends[card.node, card.index].instances
    ]
    if len(changes) > 5:
        return
    floors = floors_of(now, found.target)
    most = max(len(now.used_gpus()), len(found.target.used_gpus()))

    def does(order: tuple[int, ...]) -> bool:
        has, used = {name: now.capacity(name) for name in floors}, len(now.used_gpus())
        for at in order:
            old, new = changes[at]
            used += bool(new) - bool(old)
            for sign, held in ((-1, old), (1, new)):
                for each in held:
                    assert each.work is not None
                    has[each.work.service] += sign * each.supply_rps
            if used > most or any(has[name] < floor.rps for name, floor in floors.items()):
                return False
        return True

    if any(map(does, permutations(range(len(changes))))):
        assert found.spare.count == 0


def first_change() -> Transition:
    now = to_plan(fleet(3), plan(150, 50)).target
    return to_plan(now, plan(800, 60))


Document = dict[str, Any]


def _overlapping(document: Document) -> None:
    for part in (document["target"], document["start"]):
        for card in part["nodes"][0]["gpus"]:
            for each in card["instances"]:
                each["start"] = 41
    for action in document["actions"]:
        for each in (*action["removes"], *action["adds"]):
            each["start"] = 41


def _tight(document: Document) -> None:
    for part in (document, document["target"], document["start"]):
        for each in part["services"]:
            each["latency_limit_ms"] = "12.0001"


def _with_another(document: Document) -> None:
    """Another's process begins where a share of ours does, before and after."""
    for side in ("start", "target"):
        for node in document[side]["nodes"]:
            for card in node["gpus"]:
                card["instances"] += [
                    {**each, "point": None, "owner": "pod team-x/trainer"}
                    for each in card["instances"][:1]
                ]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: set_at(document, "actions.0.what", "repartition"),
        lambda document: set_at(document, "points.0.supply_rps", "400.000001"),
        lambda document: set_at(document, "floors.chat.rps", 10_000),
        _overlapping, _tight, _with_another,
    ],
)  # fmt: skip
def test_both_checkers_refuse_what_is_spoiled(spoil: Callable[[Document], None]) -> None:
    document = reread(first_change())
    assert recheck(document) == []
    spoil(document)
    assert check_transition(transition_from_json(document)) != ()
    assert recheck(document) != []


def test_turns_change_by_switches_only_and_48_clients_are_the_most() -> None:
    found = first_change()
    by_hand = [
        Action(What.DELETE, action.node, action.index, (each,))
        for action in found.actions
        for each in action.removes
    ]
    faults = check_transition(replace(found, actions=tuple(by_hand)))
    assert any("a switch for that" in str(fault) for fault in faults)
    many, others = (
        tuple(
            Instance(
                f"mps:{size}", size * at, Work("chat", colocate("bert", size, 1, 5), Fraction(50))
            )
            for at in range(24)
        )
        for size in (2, 4)
    )
    card = FleetGpu("n", 0, CARD, Mode.MPS, many)
    service = Service("chat", "bert", 100, 60)
    now = Deployment((FleetNode("n", (card,)),), (service,))
    for count, is_too_many in ((24, False), (25, True)):
        own = (*others, *(replace(each, profile="mps:3") for each in many[: count - 24]))
        switch = Action(What.SWITCH, "n", 0, many, own)
        seen = check_transition(replace(found, start=now, target=now, actions=(switch,), floors={}))
        assert any("clients" in str(fault) for fault in seen) is is_too_many


def test_what_is_not_shared_in_time_is_refused() -> None:
    point = OperatingPoint("bert", CARD.key, "3g.40gb", 1, 8, 800, 10)
    services = [Service("chat", "bert", 100, 60)]
    sliced = build_problem(services, [point], CARD.key, sharing="time")
    with pytest.raises(UnsupportedProblem, match="an instance of MIG"):
        contents_of(Plan(sliced, solve(sliced.problem, "mix_first_fit")))
    alone = build_problem(services, [point], CARD.key, rule="half")
    with pytest.raises(UnsupportedProblem, match="take a transition"):
        contents_of(Plan(alone, solve(alone.problem)))
    card = FleetGpu("n", 0, CARD, Mode.MPS, (Instance("mps:60"),))
    with pytest.raises(UnsupportedProblem, match="no share that services take turns in"):
        reorganise(Deployment((FleetNode("n", (card,)),)), plan(150, 50))


def test_what_is_planned_without_sharing_knows_no_turns_and_says_so() -> None:
    now = to_plan(fleet(3), plan(150, 50)).target
    services = [replace(each, rate_rps=Fraction(200)) for each in SERVICES]
    posed = build_problem(services, POINTS, CARD.key, rule="half")
    alone = Plan(posed, solve(posed.problem))
    ways: list[Callable[[], object]] = [
        lambda: transition(now, desired_state(alone)),
        lambda: transition(now, to_plan(now, plan(600, 250)).target),
        lambda: place(desired_state(alone), now),
        lambda: place_plan(alone, now),
    ]
    for way in ways:
        with pytest.raises(UnsupportedProblem, match="in which services take turns"):
            way()
    head = Head(first_change(), PartitioningTool.NVIDIA_SMI, with_work=True)
    with pytest.raises(UnsupportedProblem, match="a switch is yours to carry out"):
        Apply(head, Job(head.transition, Shell()), {})
    back = reversal(first_change())
    assert check_transition(back) == ()
    assert {action.what for action in back.actions} == {What.SWITCH}


def test_too_few_gpus_are_said_and_others_work_is_left_alone() -> None:
    assert isinstance(reorganise(fleet(1), plan(1900, 1900)), Impossible)
    theirs = Instance("mps:60", 0, owner="pod team-x/trainer")
    cards: Mapping[tuple[str, int], FleetGpu] = {
        ("n", 0): FleetGpu("n", 0, CARD, Mode.MPS, (theirs,))
    }
    found = to_plan(fleet(3).with_gpus(cards), plan(150, 50))
    assert found.target.node("n").gpus[0].instances == (theirs,)
    assert isinstance(reorganise(fleet(1).with_gpus(cards), plan(150, 50)), Impossible)


@pytest.mark.parametrize("mode", [Mode.MIG, Mode.WHOLE])
def test_empty_gpus_without_mps_stay_empty_and_are_named(mode: Mode) -> None:
    other: Mapping[tuple[str, int], FleetGpu] = {("n", 0): FleetGpu("n", 0, CARD, mode)}
    found = to_plan(fleet(2).with_gpus(other), plan(150, 50))
    assert next((card.mode, card.is_empty) for card in found.target.gpus()) == (mode, True)
    refused = reorganise(fleet(1).with_gpus(other), plan(150, 50))
    assert isinstance(refused, Impossible)
    assert "there for it: 0, and 1 empty and not under MPS" in refused.reasons[0]


def work(name: str, percent: int, batch: int, ms: int, supply: Fraction | int) -> Work:
    return Work(name, colocate("bert", percent, batch, ms), Fraction(supply))


Turn = tuple[int, str, int, int, int, int]  # start, service, percent, batch, ms and supply


@pytest.mark.parametrize(
    ("turns", "limit", "words"),
    [
        ([(0, "a", 60, 8, 10, 400)], 30, ""),
        ([(0, "a", 60, 8, 10, 400)], Fraction(299999, 10000), "a limit of 30 ms"),
        ([(0, "a", 60, 8, 10, 400), (0, "b", 60, 4, 10, 200)], 30, ""),
        ([(0, "a", 60, 8, 10, 400), (0, "b", 60, 4, 10, 201)], 60, "one cycle for all"),
        ([(0, "a", 60, 8, 11, 400), (0, "b", 60, 4, 10, 200)], 60, "batches that fit"),
        ([(0, "a", 60, 8, 5, 800), (0, "a", 60, 8, 5, 800)], 60, "a turn for each"),
        ([(0, "a", 60, 8, 5, 800), (41, "b", 60, 8, 5, 800)], 60, "ends at 100 %"),
        ([(0, "a", 40, 8, 5, 800), (39, "b", 60, 8, 5, 800)], 60, "per cents of their own"),
    ],
)
def test_turns_in_a_share_are_checked_exactly(
    turns: list[Turn], limit: Fraction | int, words: str
) -> None:
    held = tuple(Instance(f"mps:{each[2]}", each[0], work(*each[1:])) for each in turns)
    card = FleetGpu("n", 0, CARD, Mode.MPS, held)
    services = tuple(Service(name, "bert", 0, limit) for name in "ab")
    faults = check_deployment(Deployment((FleetNode("n", (card,)),), services))
    assert bool(faults) == bool(words), faults
    assert words in " ".join(map(str, faults))


def test_anothers_process_in_a_share_of_ours_is_refused_and_beside_it_is_not() -> None:
    ours = Instance("mps:60", 0, work("a", 60, 8, 10, 400))
    for start, is_valid in ((0, False), (60, True)):
        theirs = Instance("mps:40" if start else "mps:60", start, owner="pod team-x/trainer")
        card = FleetGpu("n", 0, CARD, Mode.MPS, (ours, theirs))
        deployment = Deployment((FleetNode("n", (card,)),), (Service("a", "bert", 0, 30),))
        faults = check_deployment(deployment)
        assert (faults == ()) is is_valid
        second = check_again(json.loads(json.dumps(deployment_to_json(deployment))))
        assert (second == []) is is_valid, second
        if not is_valid:
            assert "others' turns" in str(faults[0])
            assert "another's process" in second[0]


def test_every_export_of_turns_says_that_no_tool_makes_them() -> None:
    shared = to_plan(fleet(2), plan(800, 60)).target
    turns = {
        f"{card.name} {place}"
        for card in shared.gpus()
        for place, held in shares_of(card).items()
        if len(held) > 1
    }
    alone = [card for card in shared.gpus() if not shares_of(card)]
    assert turns
    for target in TARGETS:
        (said,) = (loss for loss in export(shared, target).losses if loss.startswith("Turns: "))
        assert all(each in said for each in turns)
        without = replace(shared, nodes=(FleetNode("n", tuple(alone)),), services=())
        assert "Turns:" not in " ".join(export(without, target).losses)
