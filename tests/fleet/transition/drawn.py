"""Random changes of small fleets by every tool, and what their transitions come to.

``python -m tests.fleet.transition.drawn COUNT`` prints a row of JSON a change; with the rows of
another commit as a second argument it also says on how many of them each figure differs.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from cms.errors import InvalidProblem
from cms.fleet import Service, get_gpu
from cms.fleet.deployment import Deployment, DesiredState, FleetGpu, FleetNode, Instance
from cms.fleet.deployment.transition import (
    Impossible,
    PartitioningTool,
    Transition,
    reorganise,
    schedule,
    transition,
)
from cms.fleet.serving import RULES
from tests.fleet.deployments import SCENARIOS, placed, point, published

from .cases import on_nodes

DEVICES = ("a30-24gb", "a100-80gb", "h100-80gb")
#: What is compared, and whether more of it is better.
FIGURES = {"found": True, "kept": True, "spare": False, "actions": False, "makespan_s": False,
           "cpu_s": False}  # fmt: skip


class Drawn(NamedTuple):
    """A change and the tool for it; shares of GPUs that are switched have none."""

    start: Deployment
    to: Any
    tool: PartitioningTool | None
    floor: Fraction

    def plan(self) -> Transition | Impossible:
        if self.tool is None:
            return reorganise(self.start, self.to)
        return transition(self.start, self.to, tool=self.tool, floor=self.floor)


def draw(seed: int) -> Drawn:
    rng = random.Random(seed)
    floor = rng.choice((Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1)))
    if seed % 10 == 9:
        from .test_reorganising import pairs

        return Drawn(*pairs(seed), None, Fraction(1))
    tool = rng.choice([*PartitioningTool][1:]) if seed % 3 == 2 else PartitioningTool.NVIDIA_SMI
    if seed % 10 == 8:
        return Drawn(*_published(rng), tool, floor)
    return Drawn(*_sides(rng, tool), tool, floor)


def _published(rng: random.Random) -> tuple[Deployment, DesiredState]:
    first, second = rng.sample(SCENARIOS, 2)
    device = get_gpu("a100-80gb")
    foreign = Instance("1g.10gb", 0, owner="pod x/y")
    held = [(foreign,) * (rng.random() < 0.1) for _ in range(rng.randint(20, 28))]
    cards = [FleetGpu("n", at, device, instances=own) for at, own in enumerate(held)]
    empty = on_nodes(Deployment((FleetNode("n", tuple(cards)),)), rng.choice((4, 8, 30)))
    return placed(published(first), empty, as_grouped=True).deployment, published(second)


def _sides(
    rng: random.Random, tool: PartitioningTool
) -> tuple[Deployment, DesiredState | Deployment]:
    """Layouts drawn GPU by GPU; of those of the target only the instances are wanted, mostly."""
    names = "abcd"[: rng.randint(2, 4)]
    keys = rng.choices(DEVICES, k=rng.choice((1, 1, 2)))
    foreign, same = rng.choice((0.0, 0.0, 0.05)), rng.choice((0.2, 0.5, 0.8))
    cards, ends = [], []
    for at in range(rng.randint(1, 12)):
        device = get_gpu(rng.choice(keys))
        old: list[Instance] = []
        for profile, start in rng.choice(device.maximal_layouts()):
            work, chance = point(rng.choice(names), device.key, profile), rng.random()
            if chance < foreign:
                old.append(Instance(profile, start, owner="pod x/y"))
            elif chance < 0.9:
                old.append(Instance(profile, start, work if chance > 0.05 else None))
        new = [each for each in old if not each.is_managed]
        if rng.random() < same:
            new = [each for each in old if rng.random() < 0.9 or not each.is_managed]
        else:
            around = [(each.profile, each.start or 0) for each in new]
            for profile, start in rng.choice(device.maximal_layouts_around(around)):
                if (profile, start) not in around and rng.random() < 0.9:
                    work = point(rng.choice(names), device.key, profile)
                    new.append(Instance(profile, start, work))
        cards.append(FleetGpu("n", at, device, instances=tuple(old)))
        ends.append(replace(cards[-1], instances=tuple(new)))
    spare = [
        FleetGpu("n", len(cards) + at, get_gpu(rng.choice(keys))) for at in range(rng.randint(0, 4))
    ]
    size, sides = rng.randint(1, 4), []
    for own in (cards, ends):
        works = [each.work for card in own for each in card.instances if each.work is not None]
        services = tuple(
            Service(name, name, sum(w.supply_rps for w in works if w.service == name), 1000)
            for name in names
        )
        node = FleetNode("n", (*own, *spare))
        sides.append(on_nodes(Deployment((node,), services, RULES["half"]), size))
    start, target = sides
    if rng.random() < 0.2:
        return start, target
    kinds = target.kinds()
    used = Counter(card.gpu.key for card in target.used_gpus())
    counts = {kind: kinds[kind] for kind in sorted(kinds, key=lambda kind: kind.order)}
    devices = {key: get_gpu(key) for key in {*keys, *used}}
    return start, DesiredState(counts, used, devices, target.services, RULES["half"])


def measure(seed: int) -> tuple[dict[str, Any], Transition | None]:
    """Return the figures of a change, and its transition if one is found."""
    drawn = draw(seed)
    begin = time.process_time()
    try:
        found = drawn.plan()
    except InvalidProblem:  # a foreign instance is on a node that is drained
        return {"seed": seed, "found": None}, None
    cpu = time.process_time() - begin
    row: dict[str, Any] = {"seed": seed, "tool": drawn.tool, "cpu_s": round(cpu, 4)}
    if isinstance(found, Impossible):
        return row | {"found": 0}, None
    drains = drawn.tool is not None and drawn.tool.drains_nodes
    makespan = float(schedule(found, by_node=drains).makespan_s)
    return row | {
        "found": 1, "kept": found.kept.count, "spare": found.spare.count,
        "actions": len(found.actions), "makespan_s": makespan,
    }, found  # fmt: skip


def compare(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Say on how many changes a figure is better, equal and worse than another's, with the sums."""
    old = {row["seed"]: row for row in others}
    for name, is_more in FIGURES.items():
        both = [(row.get(name), old.get(row["seed"], {}).get(name)) for row in rows]
        pairs = [(new, was) for new, was in both if None not in (new, was)]
        better, worse = (
            sum(new > was if more else new < was for new, was in pairs)
            for more in (is_more, not is_more)
        )
        print(
            name,
            f"{better} better, {worse} worse of",
            len(pairs),
            *map(sum, zip(*pairs, strict=True)),
        )


if __name__ == "__main__":
    made = []
    for number in range(int(sys.argv[1])):
        made.append(measure(number)[0])
        print(json.dumps(made[-1]), flush=True)
    for path in sys.argv[2:]:
        with open(path) as lines:
            compare(made, [json.loads(line) for line in lines if line.startswith("{")])
