"""Plans of the published scenarios, put on numbered GPUs by hand, beside what is another's."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cms import load_instance, solve
from cms.fleet import Plan, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, Work
from cms.fleet.serving import PlanGroup, Scenario

SCENARIOS = ("S1", "S2", "S3", "S4", "S5", "S6")


@cache
def plan_of(name: str) -> Plan:
    """An optimal plan of a published scenario."""
    loaded = load_instance(name)
    assert isinstance(loaded, Scenario)
    serving = loaded.build_problem()
    return Plan(serving, solve(serving.problem))


def fleet(**counts: int) -> Deployment:
    """Empty GPUs of one type: `fleet(a=2, b=1)`; an underscore in a name stands for a dash."""
    a100 = get_gpu("a100-80gb")
    nodes = []
    for name, count in counts.items():
        node = name.replace("_", "-")
        cards = tuple(FleetGpu(node, index, a100) for index in range(count))
        nodes.append(FleetNode(node, cards))
    return Deployment(tuple(nodes))


def placed(name: str, now: Deployment) -> Deployment:
    """A scenario on these GPUs."""
    return put(plan_of(name), now)


def put(plan: Plan, now: Deployment) -> Deployment:
    """The GPUs of a plan on the first GPUs that can hold them beside what is not ours."""
    left = [(group, number) for group in plan.groups for number in range(group.count)]
    cards = {}
    for card in now.gpus():
        pinned = tuple((each.profile, each.start) for each in card.foreign)
        around = [(profile, start) for profile, start in pinned if start is not None]
        held = list(card.foreign)
        for group, number in left:
            work = _work(group)
            counts = {profile: len(each) for profile, each in work.items()}
            layout = card.gpu.place(counts, around=around)
            if group.gpu == card.gpu.key and layout is not None:
                held += [Instance(*place, work[place.profile].pop()) for place in layout]
                left.remove((group, number))
                break
        mode = Mode.MIG if held else card.mode
        cards[card.node, card.index] = card.with_instances(held, mode)
    assert not left, "there are too few GPUs"
    nodes = tuple(
        replace(node, gpus=tuple(cards[node.name, card.index] for card in node.gpus))
        for node in now.nodes
    )
    return Deployment(nodes, plan.serving.services, plan.unshared("a deployment").rule, plan)


def _work(group: PlanGroup) -> dict[str, list[Work | None]]:
    """What each instance of a GPU does, by profile."""
    found: dict[str, list[Work | None]] = {}
    for each in group.instances:
        work = None
        if each.serves:
            served = each.serves[0]
            work = Work(served.service, served.point, served.rate_rps)
        found.setdefault(each.profile, []).extend([work] * each.count)
    return found
