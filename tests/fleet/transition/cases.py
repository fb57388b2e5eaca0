"""Transitions that several tests look at, each planned once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

from cms.fleet import OperatingPoint, Service, get_gpu
from cms.fleet.deployment import (
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Work,
)
from cms.fleet.deployment.transition import Transition, exchange_and_compact, transition
from cms.fleet.serving import RULES
from tests.references.transitions import Content, Thing, contents

from ..deployments import placed, published

A30 = get_gpu("a30-24gb")
A100 = get_gpu("a100-80gb")
CHAIN = ("S2", "S5", "S1", "S6", "S3")
SIZES = {1: "1g.6gb", 2: "2g.12gb", 4: "4g.24gb"}


def reached(now: Deployment, then: DesiredState | Deployment, **how: Any) -> Transition:
    found = transition(now, then, **how)
    assert isinstance(found, Transition), found
    return found


@cache
def leg(step: int) -> tuple[Transition, Transition]:
    """From a published scenario to the next: ours, and exchange and compact from there."""
    if step:
        now = leg(step - 1)[0].target
    else:
        cards = tuple(FleetGpu("a", index, A100) for index in range(24))
        now = placed(published(CHAIN[0]), Deployment((FleetNode("a", cards),))).deployment
    wanted = published(CHAIN[step + 1])
    ours, other = transition(now, wanted), exchange_and_compact(now, wanted)
    assert isinstance(ours, Transition), ours
    assert isinstance(other, Transition), other
    return ours, other


def chain() -> tuple[tuple[Transition, Transition], ...]:
    return tuple(map(leg, range(len(CHAIN) - 1)))


def work(service: str, profile: str) -> Work:
    size = int(profile[0])
    speed = Fraction({1: 10, 2: 22, 4: 40}[size] + (3 * size if service == "b" else 0))
    return Work(service, OperatingPoint(service, A30.key, profile, 1, 4, speed, 100), speed)


THINGS = frozenset((p, s, work(s, p).supply_rps) for p in SIZES.values() for s in "ab")
FULL = sorted((c for c in contents(A30, THINGS) if sum(int(x[0][0]) for x in c) >= 3), key=sorted)


class Pair:
    """Two A30s with two services, so many GPUs more, and what is wanted of them."""

    def __init__(self, seed: int, spare: int = 3, names: str = "n") -> None:
        rng = random.Random(seed)
        self.contents: list[Content] = [rng.choice(FULL), rng.choice(FULL)]
        after = [rng.choice(FULL), rng.choice(FULL)]
        share = rng.choice((Fraction(1), Fraction(9, 10), Fraction(7, 10)))
        old, new = (
            {
                s: share * sum((x[3] for c in side for x in c if x[2] == s), Fraction(0))
                for s in "ab"
            }
            for side in (self.contents, after)
        )
        self.floors = {s: min(old[s], new[s]) for s in "ab"}
        self.counts: Counter[Thing] = Counter((p, s, r) for c in after for p, _, s, r in c)
        held = [*self.contents, *[frozenset[tuple[str, int, str, Fraction]]()] * spare]
        cards: dict[str, list[FleetGpu]] = {}
        for index, content in enumerate(held):
            name = names[index % len(names)]
            placed = tuple(Instance(p, at, work(s, p)) for p, at, s, _ in content)
            cards.setdefault(name, []).append(FleetGpu(name, index, A30, instances=placed))
        nodes = tuple(FleetNode(name, tuple(own)) for name, own in cards.items())
        self.start = Deployment(nodes, _services(old), RULES["half"])
        kinds = {Kind(A30.key, p, work(s, p)): n for (p, s, _), n in self.counts.items()}
        self.wanted = DesiredState(
            dict(sorted(kinds.items(), key=lambda item: item[0].order)),
            {A30.key: 2},
            {A30.key: A30},
            _services(new),
            RULES["half"],
        )


@cache
def planned(seed: int, tool: str = "nvidia-smi") -> Transition:
    """A transition between two random A30s' contents; of other tools on nodes of two GPUs each."""
    pair = Pair(seed, spare=3 if tool == "nvidia-smi" else 6)
    start = pair.start if tool == "nvidia-smi" else on_nodes(pair.start, 2)
    return reached(start, pair.wanted, tool=tool)


def on_nodes(start: Deployment, size: int) -> Deployment:
    nodes: dict[str, list[FleetGpu]] = {}
    for number, card in enumerate(start.gpus()):
        own = nodes.setdefault(f"n{number // size}", [])
        own.append(replace(card, node=f"n{number // size}", index=number % size))
    made = tuple(FleetNode(name, tuple(own)) for name, own in nodes.items())
    return replace(start, nodes=made)


def on_node(*held: Sequence[Instance], rate: int = 0, limit: int = 1000) -> Deployment:
    """A node of A30s with these instances; b is not asked for anything, a for a rate."""
    cards = tuple(FleetGpu("n", at, A30, instances=tuple(each)) for at, each in enumerate(held))
    services = tuple(Service(s, s, rate * (s == "a"), limit) for s in "ab")
    return Deployment((FleetNode("n", cards),), services, RULES["half"])


def does(service: str, profile: str, start: int | None = 0) -> Instance:
    return Instance(profile, start, work(service, profile))


@cache
def small(tool: str) -> Transition:
    """One GPU is cut otherwise, and what works on the other has to stop where nodes are drained."""
    beside = (does("b", "2g.12gb"),)
    parts = (does("b", "2g.12gb"), Instance("1g.6gb", 3))
    now = on_node((does("a", "4g.24gb"),), beside)
    return reached(now, on_node(parts, beside), tool=tool, floor=0)


def _services(rates: dict[str, Fraction]) -> tuple[Service, ...]:
    return tuple(Service(name, name, rate, 1000) for name, rate in rates.items())
