"""Transitions for the tests of what is said and drawn of them: by hand, and small planned ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

from cms.fleet import Service
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Work,
)
from cms.fleet.deployment.transition import (
    Action,
    Durations,
    Floor,
    Kept,
    Spare,
    Transition,
    What,
)
from cms.solving.solution import Proof
from tests.fleet.deployments import placed, published
from tests.fleet.plans import point
from tests.fleet.transition.cases import A30, A100, Pair, reached

NOTHING = Durations(*(Fraction(0),) * 6)


def work(service: str, rps: int = 10) -> Work:
    return Work(service, point(service, "2g.12gb", rps, A30.key), Fraction(rps))


def made(
    actions: list[Action], names: list[str], start: Deployment, floors: dict[str, int] | None = None
) -> Transition:
    """A transition whose target is what its actions lead to."""
    cards = {(card.node, card.index): card for card in start.gpus()}
    for each in actions:
        held = [one for one in cards[each.gpu].instances if one not in each.removes]
        cards[each.gpu] = cards[each.gpu].with_instances([*held, *each.adds])
    services = tuple(Service(name, name, 1, 1000) for name in names)
    start = replace(start, services=services)
    kept = {name: Floor(Fraction(rps), "given") for name, rps in (floors or {}).items()}
    return Transition(
        start, start.with_gpus(cards), kept, tuple(actions), Spare(0), Kept(0, 0, Proof.CHECKED)
    )


def fleet(count: int, node: str = "a", *held: Instance) -> Deployment:
    cards = tuple(FleetGpu(node, index, A30, instances=held) for index in range(count))
    names = {each.work.service for each in held if each.work is not None}
    services = tuple(Service(name, name, 1, 1000) for name in sorted(names))
    return Deployment((FleetNode(node, cards),), services)


def every_kind(chat: str = "chat", code: str = "code", node: str = "a") -> Transition:
    """One of each kind on three GPUs, one temporary; two services, one that stays in part."""
    one, two = Instance("2g.12gb", 0, work(chat)), Instance("2g.12gb", 2, work(chat))
    other = Instance("2g.12gb", 2, work(code))
    actions = [
        Action(What.CREATE, node, 2, adds=(one,), is_temporary=True),
        Action(What.RESTART, node, 0, removes=(two,), adds=(other,), after=(0,)),
        Action(What.REPARTITION, node, 1, removes=(one, two), adds=(one, other), after=(0, 1)),
        Action(What.DELETE, node, 2, removes=(one,), after=(2,), is_temporary=True),
    ]
    cards = [FleetGpu(node, index, A30, instances=(one, two)) for index in range(2)]
    start = Deployment(
        (FleetNode(node, (*cards, FleetGpu(node, 2, A30), FleetGpu(node, 3, A30))),),
        (Service(chat, chat, 1, 1000),),
    )
    found = made(actions, [chat, code], start, {chat: 20})
    return replace(found, kept=Kept(1, 1, Proof.CHECKED))


@cache
def growth() -> Transition:
    """From 3 to 12 GPUs."""
    cards = tuple(FleetGpu("a", index, A100) for index in range(16))
    first = placed(published("S2"), Deployment((FleetNode("a", cards),)))
    return reached(first.deployment, published("S5"))


@cache
def pair(seed: int) -> Transition:
    return reached(Pair(seed).start, Pair(seed).wanted)
